"""What every dialect gives: the turns of a request, the turn of a response (contracts.md 4)."""

from collections.abc import Callable

import msgspec

from ng_capture.contracts.episode import Json, Tool, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss


class Asked(msgspec.Struct, frozen=True):
    """A request: its turns (instructions first, results of tools on the turn that called), tools, other parameters.

    Turns of the assistant are copied: a request holds history. `parameters` are in the words of Responses where it has
    them (`max_output_tokens`, `reasoning`, `text`, `tool_choice`), else of chat (`stop`), else as they stand.
    """

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] | None = None
    parameters: Json | None = None
    losses: tuple[Loss, ...] = ()


class Answered(msgspec.Struct, frozen=True):
    """A response: the turn of the model with its call (usage, finish, model, tokens), None where it said nothing.

    The finish reason is in the words of the dialect (`finishes.finish_of` knows all). Reasoning is a summary.
    """

    turn: Turn | None
    losses: tuple[Loss, ...] = ()


class Dialect(msgspec.Struct, frozen=True):
    """A dialect by its name in captures: `responses`, `chat`, `messages`.

    Both functions are pure and deterministic: a prefix of a history gives a prefix of the turns, but for results that
    come later to a turn that is there (4.8). What they cannot read is an opaque part, never an error. Loss paths and
    `Turn.place` are JSON pointers into the request or the response.
    """

    name: str
    asked: Callable[[Json, Options], Asked]
    answered: Callable[[Json, Options], Answered]
