"""What an actor's events tell, before tools and agents are put in their places (contracts.md 2.4)."""

from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.dialects.interface import Asked
from ng_capture.contracts.episode import Json, ToolResult, Turn
from ng_capture.contracts.losses import Loss


class Said(msgspec.Struct, frozen=True):
    """A turn, at the place of its event in the stream; `scope` is that of the call or context that made it."""

    at: int
    turn: Turn
    scope: str | None = None


class Ran(msgspec.Struct, frozen=True):
    """A tool that ran, from the place of its first event in the stream to that of its last."""

    since: int
    at: int
    scope: Scope

    @property
    def call_id(self) -> str | None:
        """The call that the tool names."""
        named = self.scope.profile.get("tool_call_id")
        return named if isinstance(named, str) and named else None

    @property
    def arguments(self) -> object:
        """What the tool was given; None where its start is not known."""
        return self.scope.start.data if self.scope.start is not None else None


class ToldResult(msgspec.Struct, frozen=True):
    """What a tool gave back, as a request tells it, at the place of that request."""

    at: int
    result: ToolResult


class Told(msgspec.Struct, frozen=True):
    """All that an actor's events tell.

    `functions` are application steps that ended, with their places. `results` are by call id and how often the request
    named that id before. `first` is the first request. `failed` tells of calls without an answer.
    """

    said: Sequence[Said]
    runs: Sequence[Ran]
    functions: Sequence[tuple[int, Scope]]
    results: Mapping[tuple[str, int], ToldResult]
    first: Asked | None
    failed: Sequence[Json]
    losses: Sequence[Loss]
