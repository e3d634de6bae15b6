"""What a format is: the columns of its rows, how one is made of a flat row, and what its trainer must know."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from ng_capture.outputs.export.flat import FlatRow

ColumnType = Literal["ids", "mask", "floats", "text", "number", "int", "flag", "json"]
"""Lists of int32, int8, float32; a string; a double; an int64; a bool; any JSON, which no table of ours has."""


class TrainerFormat(msgspec.Struct, frozen=True):
    """A format for one trainer.

    `trainer` and `checked` say for whom, and which version was read or run. `alignment` is where a token's mask and log
    probability stand, `drops` what the format has no place for. `row` makes the values of one row by column; a rollout
    without a reward never gets there where `needs_reward`. `tables`: it can be a columnar file.
    """

    name: str
    trainer: str
    checked: str
    alignment: str
    columns: Mapping[str, ColumnType]
    row: Callable[[FlatRow], Mapping[str, object]]
    needs_reward: bool = False
    drops: str = ""
    tables: bool = True
