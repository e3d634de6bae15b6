"""The columns of exported rows, the same for any rows: int32 ids, int8 mask, float32 log probabilities.

Long columns have full, equal length (policies-and-exports.md I7).
"""

from collections.abc import Mapping

import pyarrow as pa

from ng_capture.outputs.export.formats.interface import ColumnType, Kind, Record

_SPAN = pa.struct(
    {
        "call_id": pa.string(),
        "kind": pa.string(),
        "start": pa.int32(),
        "end": pa.int32(),
        "call_offset": pa.int32(),
        "weight_version": pa.string(),
        "model": pa.string(),
    }
)
_ACCOUNTING = pa.struct(
    {
        "captured": pa.int64(),
        "trained": pa.int64(),
        "context": pa.int64(),
        # a map would be nearer, and is a type that datasets does not load
        "lost": pa.list_(pa.struct({"reason": pa.string(), "tokens": pa.int64()})),
    }
)
HEAD = pa.schema(
    {
        "rollout_id": pa.string(),
        "group_id": pa.string(),
        "trajectory_index": pa.int32(),
        "n_trajectories": pa.int32(),
        "role": pa.string(),
        "reward": pa.float64(),
        "advantage": pa.float64(),
        "calls": pa.list_(pa.string()),
        "spans": pa.list_(_SPAN),
        "policy": pa.string(),
        "rollout_trainable_tokens": pa.int64(),
        "row_weight": pa.float64(),
        "truncated": pa.bool_(),
        "finish_reasons": pa.list_(pa.string()),
        "terminal": pa.string(),
        "accounting": _ACCOUNTING,
        "sources": pa.list_(pa.struct({"name": pa.string(), "sha256": pa.string()})),
        "tool_version": pa.string(),
    }
)
"""Columns of a neutral row but its long ones."""
LONG = pa.schema(
    {
        "tokens": pa.list_(pa.int32()),
        "loss_mask": pa.list_(pa.int8()),
        "logprobs": pa.list_(pa.float32()),
        "routed_experts": pa.list_(pa.list_(pa.list_(pa.int32()))),
    }
)
"""Its long columns."""
SCHEMA = pa.schema([*HEAD, *LONG])
"""All of them."""

_TYPES: Mapping[ColumnType, pa.DataType] = {
    "ids": pa.list_(pa.int32()),
    "mask": pa.list_(pa.int8()),
    "floats": pa.list_(pa.float32()),
    "text": pa.string(),
    "number": pa.float64(),
    "int": pa.int64(),
    "flag": pa.bool_(),
}


def schema_of(columns: Mapping[str, Kind]) -> pa.Schema:
    """Columns and types of the rows of a trainer's format."""
    return pa.schema([pa.field(name, _type_of(kind)) for name, kind in columns.items()])


def _type_of(kind: Kind) -> pa.DataType:
    if isinstance(kind, list):
        return pa.list_(_type_of(kind[0]))
    if isinstance(kind, Mapping):
        return pa.struct({name: _type_of(each) for name, each in kind.items()})
    return _TYPES[kind]


def in_columns(row: Record) -> Record:
    """A neutral row with what a column cannot hold as it is: versions are numbers or names, a mapping is a list."""
    spans = [{**span, "weight_version": _text(span["weight_version"])} for span in row["spans"]]
    lost = [{"reason": reason, "tokens": tokens} for reason, tokens in row["accounting"]["lost"].items()]
    return {**row, "spans": spans, "accounting": {**row["accounting"], "lost": lost}}


def out_of_columns(row: Record) -> Record:
    """The way back; versions stay text."""
    lost = {each["reason"]: each["tokens"] for each in row["accounting"]["lost"]}
    return {**row, "accounting": {**row["accounting"], "lost": lost}}


def _text(value: object) -> str | None:
    return None if value is None else str(value)
