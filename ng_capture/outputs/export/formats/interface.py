"""What a format is: the columns of its rows, how one is made of a flat row, and what its trainer must know."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.forms import LINES_OR_TABLE, Form
from ng_capture.outputs.training_rows import RowHead

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
"""A span of a row; see `spans_in_columns`."""

PROVENANCE: Mapping[str, Kind] = {
    "rollout_id": "text",
    "trajectory_index": "int",
    "n_trajectories": "int",
    "row_weight": "number",
    "advantage": "number",
    "spans": [SPAN],
}
"""What a row tells of itself where its format has room for it; see `provenance`."""

Record = Mapping[str, Any]
"""A row as it is written, by column."""

Told = Literal["reward", "advantage", "weight", "group"]
"""What is made of the finished rows, or chosen, and has a place in a row or not."""
ALL_TOLD: frozenset[Told] = frozenset(get_args(Told))


def spans_in_columns(spans: Iterable[Record]) -> list[Record]:
    """Spans with versions as text: they are numbers or names, and a loader of columns takes one type of them."""
    return [{**span, "weight_version": _text(span["weight_version"])} for span in spans]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def provenance(head: RowHead) -> Record:
    """Whose row it is, which part of its rollout, and the calls and weights that its tokens come from."""
    return {
        "rollout_id": head.rollout_id,
        "trajectory_index": head.trajectory_index,
        "n_trajectories": head.n_trajectories,
        "row_weight": head.row_weight,
        "advantage": head.advantage,
        "spans": spans_in_columns(msgspec.to_builtins(head.spans)),
    }


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
    probability stand, `drops` what the format has no place for, `tells` what it has one for. `row` makes the values of
    one row by column; a rollout without a reward never gets there where `needs_reward`. `read` is the way back; it
    raises what indexing raises for a row of another shape. `forms` are what its file can be. `takes_advantages`: its
    trainer takes them from the row, so that where they are asked for a row without one is none. `whole_reward`: its
    trainer takes the reward of a rollout from its last row alone.
    """

    name: str
    trainer: str
    checked: str
    alignment: str
    columns: Mapping[str, Kind]
    row: Callable[[FlatRow], Record]
    read: Callable[[Record], Arrays]
    tells: frozenset[Told] = ALL_TOLD
    needs_reward: bool = False
    whole_reward: bool = False
    drops: str = ""
    forms: tuple[Form, ...] = LINES_OR_TABLE
    takes_advantages: bool = False
