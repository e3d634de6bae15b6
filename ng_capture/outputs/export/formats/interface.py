"""What a format is: the columns of its rows, how one is made of a flat row, and what its trainer must know."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.forms import LINES_OR_TABLE, Form

ColumnType = Literal["ids", "mask", "floats", "text", "number", "int", "flag"]
"""Lists of int32, int8, float32; a string; a double; an int64; a bool."""
Kind = ColumnType | Mapping[str, "Kind"] | list["Kind"]
"""What stands in a column: also an object of such, or a list of one kind."""

SPAN: Mapping[str, Kind] = {
    "call_id": "text",
    "kind": "text",
    "start": "int",
    "end": "int",
    "call_offset": "int",
    "weight_version": "text",
    "model": "text",
}
"""A span of a row as its JSON tells it; versions are numbers or names."""

Record = Mapping[str, Any]
"""A row as it is written, by column."""


class Arrays(msgspec.Struct, frozen=True, eq=False):
    """What a row holds of its tokens, of full, equal length; log probabilities are None where the format has none."""

    tokens: list[int]
    loss_mask: list[int]
    log_probs: list[float] | None


def split_arrays(row: Record, prompt: str, response: str, mask: str, log_probs: str) -> Arrays:
    """The arrays of a row that has prompt and response apart."""
    before = len(row[prompt])
    return Arrays(
        [*row[prompt], *row[response]],
        [*[0] * before, *row[mask]],
        [*[0.0] * before, *row[log_probs]],
    )


class TrainerFormat(msgspec.Struct, frozen=True):
    """A format for one trainer.

    `trainer` and `checked` say for whom, and which version was read or run. `alignment` is where a token's mask and log
    probability stand, `drops` what the format has no place for. `row` makes the values of one row by column; a rollout
    without a reward never gets there where `needs_reward`. `read` is the way back; it raises what indexing raises
    for a row of another shape. `forms` are what its file can be. `takes_advantages`: its trainer takes them from the
    row, so that where they are asked for a row without one is none.
    """

    name: str
    trainer: str
    checked: str
    alignment: str
    columns: Mapping[str, Kind]
    row: Callable[[FlatRow], Record]
    read: Callable[[Record], Arrays]
    needs_reward: bool = False
    drops: str = ""
    forms: tuple[Form, ...] = LINES_OR_TABLE
    takes_advantages: bool = False
