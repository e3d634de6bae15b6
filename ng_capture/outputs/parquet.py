"""Training rows as a Parquet file, row group by row group, in memory that does not grow with the run.

The one module that imports the columnar library, and only when a table is written. Long columns have full, equal length
(policies-and-exports.md I7): int32 ids, int8 mask, float32 log probabilities.
"""

import io
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ng_capture.errors import UsageError
from ng_capture.files.writing import AtomicFile
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import ColumnType, Kind, Record, as_kind
from ng_capture.outputs.rebuilding import Shape
from ng_capture.outputs.training_rows import TableRow

_GROUP_TOKENS = 500_000
_GROUP_ROWS = 10_000
_READ_ROWS = 64

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
_HEAD = pa.schema(
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
_LONG = pa.schema(
    {
        "tokens": pa.list_(pa.int32()),
        "loss_mask": pa.list_(pa.int8()),
        "logprobs": pa.list_(pa.float32()),
        "routed_experts": pa.list_(pa.list_(pa.list_(pa.int32()))),
    }
)
_TYPES: Mapping[ColumnType, pa.DataType] = {
    "ids": pa.list_(pa.int32()),
    "mask": pa.list_(pa.int8()),
    "floats": pa.list_(pa.float32()),
    "text": pa.string(),
    "number": pa.float64(),
    "int": pa.int64(),
    "flag": pa.bool_(),
}
_CODES: Mapping[Any, Literal["b", "i", "f"]] = {pa.int8(): "b", pa.int32(): "i", pa.float32(): "f"}
"""Types of numbers that are viewed where they lie, as `memoryview` calls them."""

SCHEMA = pa.schema([*_HEAD, *_LONG])
"""Columns and types of a file of training rows, the same for any rows."""


class RowTable:
    """Takes training rows one by one; raises SurroundingsError where the file cannot be written."""

    def __init__(self, file: AtomicFile) -> None:
        _give_memory_back()
        self._group = _Group()
        self._writer = pq.ParquetWriter(_Stream(file), SCHEMA, compression="zstd", use_dictionary=_HEAD.names)

    def add(self, row: TableRow) -> None:
        self._group.add(row)
        if self._group.full:
            self._writer.write_table(self._group.take())

    def close(self) -> None:
        if self._group.rows:
            self._writer.write_table(self._group.take())
        self._writer.close()

    def abandon(self) -> None:
        """Let go of a file that nobody wants; what is in it does not matter."""
        self._writer.close()


class RecordTable:
    """Takes rows of a trainer's format one by one; raises SurroundingsError where the file cannot be written."""

    def __init__(self, file: AtomicFile, columns: Mapping[str, Kind]) -> None:
        _give_memory_back()
        self._columns = columns
        self._schema = schema_of(columns)
        self._writer = pq.ParquetWriter(_Stream(file), self._schema, compression="zstd")
        self._start()

    def _start(self) -> None:
        self._group: list[Record] = []
        self._tokens = 0

    def add(self, record: Record) -> None:
        self._group.append(as_kind(self._columns, record))
        self._tokens += sum(len(value) for value in record.values() if isinstance(value, list))
        if self._tokens >= _GROUP_TOKENS or len(self._group) >= _GROUP_ROWS:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._group, self._schema))
        self._start()

    def close(self) -> None:
        if self._group:
            self._write()
        self._writer.close()

    def abandon(self) -> None:
        """Let go of a file that nobody wants; what is in it does not matter."""
        self._writer.close()


def _give_memory_back() -> None:
    """The pools that come with the library keep what they have freed; the system's gives it back."""
    pa.set_memory_pool(pa.system_memory_pool())


def schema_of(columns: Mapping[str, Kind]) -> pa.Schema:
    """Columns and types of the rows of a trainer's format."""
    return pa.schema([pa.field(name, _type_of(kind)) for name, kind in columns.items()])


def _type_of(kind: Kind) -> pa.DataType:
    if isinstance(kind, list):
        return pa.list_(_type_of(kind[0]))
    if isinstance(kind, Mapping):
        return pa.struct({name: _type_of(each) for name, each in kind.items()})
    return _TYPES[kind]


def read_records(path: str) -> Iterator[Record]:
    """The rows of a Parquet file, some at a time; raises UsageError for what is none."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_READ_ROWS):
                yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path}: no Parquet file: {error}") from error


def as_stored(shape: Shape, row: Record) -> Record:
    """A row as its format's columns give it back."""
    if shape is Shape.ROWS:
        schema, row = SCHEMA, in_columns(row)
    else:
        columns = FORMATS[shape.value].columns
        schema, row = schema_of(columns), as_kind(columns, row)
    (stored,) = pa.Table.from_pylist([row], schema).to_pylist()
    return dict(stored)


def read_views(path: str) -> Iterator[Record]:
    """The same rows; a list of plain numbers is a view of the memory that the file was read into, and keeps it."""
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_READ_ROWS):
                flat = {name for name, kind in zip(batch.schema.names, batch.schema.types, strict=True) if _flat(kind)}
                views = {name: list(_views(batch.column(name))) for name in flat}
                rest = batch.drop_columns(list(flat)).to_pylist()
                for index in range(batch.num_rows):
                    plain = rest[index] if rest else {}
                    yield {name: views[name][index] if name in flat else plain[name] for name in batch.schema.names}
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path}: no Parquet file: {error}") from error


def columns_of(path: str) -> list[str]:
    """The names of the columns of a Parquet file; raises UsageError for what is none."""
    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{path}: no Parquet file: {error}") from error


def _flat(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind)) and kind.value_type in _CODES


def _views(column: pa.ListArray) -> "Iterator[memoryview[Any] | None]":
    values, ends = column.values, column.offsets.to_pylist()
    code, size = _CODES[values.type], values.type.bit_width // 8
    whole: memoryview[Any] = memoryview(b"").cast(code)
    if len(values):
        place = values.offset * size
        whole = memoryview(values.buffers()[1])[place : place + len(values) * size].cast("B").cast(code)
    for index, there in enumerate(column.is_valid().to_pylist()):
        yield whole[ends[index] : ends[index + 1]] if there else None


class TableWriter:
    """Writes any table piece by piece as Parquet; raises SurroundingsError where the file cannot be written."""

    def __init__(self, file: AtomicFile, schema: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(_Stream(file), schema, compression="zstd")

    def write(self, piece: pa.Table) -> None:
        self._writer.write_table(piece)

    def close(self) -> None:
        self._writer.close()


class _Group:
    """The rows of one row group as columns."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.rows: list[TableRow] = []
        self._tokens: array[int] = array("Q")
        self._mask = bytearray()
        self._log_probs: array[float] = array("f")
        self._ends: array[int] = array("i", [0])

    @property
    def full(self) -> bool:
        return len(self._tokens) >= _GROUP_TOKENS or len(self.rows) >= _GROUP_ROWS

    def add(self, row: TableRow) -> None:
        self.rows.append(msgspec.structs.replace(row, tokens=array("Q"), loss_mask=b"", log_probs=array("f")))
        self._tokens.extend(row.tokens)
        self._mask += row.loss_mask
        self._log_probs.extend(row.log_probs)
        self._ends.append(len(self._tokens))

    def take(self) -> pa.Table:
        """The group as a table; the group is empty afterwards."""
        head = pa.Table.from_pylist([in_columns(msgspec.to_builtins(row.head)) for row in self.rows], _HEAD)
        long = [
            self._lists(pa.uint64(), self._tokens).cast(_LONG.field("tokens").type),
            self._lists(pa.int8(), self._mask),
            self._lists(pa.float32(), self._log_probs),
            pa.array([row.experts for row in self.rows], _LONG.field("routed_experts").type),
        ]
        self._start()
        return pa.Table.from_arrays([*head.columns, *long], schema=SCHEMA)

    def _lists(self, kind: Any, values: "array[int] | array[float] | bytearray") -> Any:
        ends = pa.Array.from_buffers(pa.int32(), len(self._ends), [None, pa.py_buffer(self._ends)])
        flat = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
        return pa.ListArray.from_arrays(ends, flat)


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


class _Stream(io.RawIOBase):
    """The atomic file as a stream that only grows."""

    def __init__(self, file: AtomicFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.size

    def write(self, data: Any) -> int:
        self._file.write(data)
        return len(data)
