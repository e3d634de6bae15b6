"""`ng-capture formats`: what `rebuild --to` writes, and for whom."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ng_capture.outputs.forms import LINES, Form
from ng_capture.outputs.rebuilding import ALIASES, Shape
from ng_capture_cli import exits

if TYPE_CHECKING:
    from ng_capture.outputs.export.formats.interface import TrainerFormat

_GYM = ("NeMo RL, NeMo Gym", "nemo-gym 0.7.0")
_CHAT = "as SFT trainers take chat messages; loss where an assistant's weight is 1; tools and arguments as JSON text"
_PAIR = "the best and the worst rollout of a group, as offline DPO takes them; tools and arguments as JSON text"
_RAW_CALLS = "raw calls (.capture.jsonl)"


class ToldFormat(msgspec.Struct, frozen=True):
    """A format as it is printed."""

    name: str
    aliases: tuple[str, ...]
    trainer: str
    checked: str
    files: tuple[Form, ...]
    alignment: str
    needs: tuple[str, ...]
    drops: str


def command(
    as_json: Annotated[
        bool, typer.Option("--json", envvar="NG_CAPTURE_FORMATS_JSON", help="One object a format.")
    ] = False,
) -> int:
    """List the formats of `rebuild --to`: trainer, version checked, kinds of file, alignment, what is dropped."""
    for told in _told():
        if as_json:
            sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
            continue
        lines = [f"{told.name:<13} {told.trainer} ({told.checked}); {', '.join(told.files)}", f"  {told.alignment}"]
        lines += [f"  also: {', '.join(told.aliases)}"] if told.aliases else []
        lines += [f"  needs: {', '.join(told.needs)}"] if told.needs else []
        lines += [f"  drops: {told.drops}"] if told.drops else []
        sys.stdout.write("\n".join(lines) + "\n")
    return exits.DONE


def _told() -> list[ToldFormat]:
    from ng_capture.outputs.export.formats import FORMATS
    from ng_capture_cli.export_options import forms_of

    ours = [
        _ours(Shape.ROLLOUTS, "finished rows with token-bearing responses, as NeMo Gym delivers them", *_GYM),
        ToldFormat(
            Shape.ROWS.value,
            (),
            "any",
            "nemo-gym 0.7.0",
            forms_of(Shape.ROWS),
            "one neutral row a chain: tokens, mask, log probabilities, spans, accounting",
            (),
            "",
        ),
        _ours(Shape.GYM_RESPONSE, "one finished row a chain: contiguous items, for NeMo RL's converter", *_GYM),
        _text(Shape.MESSAGES, "SFT on chat messages", f"one row a chain, {_CHAT}", _RAW_CALLS),
        _text(Shape.PAIRS, "DPO and the like", _PAIR, _RAW_CALLS, "reward", "group"),
    ]
    return ours + [
        ToldFormat(
            each.name,
            tuple(alias for alias, shape in ALIASES.items() if shape == each.name),
            each.trainer,
            each.checked,
            each.forms,
            each.alignment,
            tuple(_needs(each)),
            each.drops,
        )
        for each in FORMATS.values()
    ]


def _ours(shape: Shape, alignment: str, trainer: str, checked: str) -> ToldFormat:
    return ToldFormat(shape.value, (), trainer, checked, LINES, alignment, (), "")


def _text(shape: Shape, trainer: str, alignment: str, *needs: str) -> ToldFormat:
    drops = "token ids, log probabilities, spans: a chat template makes tokens of the text again"
    return ToldFormat(shape.value, (), trainer, "read, not run", LINES, alignment, needs, drops)


def _needs(known: "TrainerFormat") -> Iterator[str]:
    if known.needs_reward:
        yield "reward"
    if known.takes_advantages:
        yield "advantage, where --advantage asks for it"
