"""Rows of a Parquet file, an Arrow stream, or a directory of such, some at a time; damage is never passed over."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from ng_capture.errors import UsageError
from ng_capture.outputs.dataset import data_files
from ng_capture.outputs.export.formats.interface import Record
from ng_capture.outputs.forms import Form, form_of

_ROWS = 64
_END = b"\xff\xff\xff\xff\0\0\0\0"
_CODES: Mapping[Any, Literal["b", "i", "f"]] = {pa.int8(): "b", pa.int32(): "i", pa.float32(): "f"}
"""Types of numbers that are viewed where they lie, as `memoryview` calls them."""


def columns_of(path: str) -> list[str]:
    """The names of the columns of a table; raises UsageError for what is none."""
    with _damage_told(path):
        if form_of(path) is Form.PARQUET:
            return list(pq.read_schema(path).names)
        # the pieces of a directory have the same
        with pa.OSFile(_streams(path)[0]) as source, pa.ipc.open_stream(source) as stream:
            return list(stream.schema.names)


def read_records(path: str) -> Iterator[Record]:
    """The rows of a table; raises UsageError for what is none, and where it is damaged."""
    with _damage_told(path):
        for batch in _batches(path):
            # the objects of one row take more than the memory of many
            for row in range(batch.num_rows):
                yield from batch.slice(row, 1).to_pylist()


def read_views(path: str) -> Iterator[Record]:
    """The same rows; a list of plain numbers is a view of the memory that the file was read into, and keeps it."""
    with _damage_told(path):
        for batch in _batches(path):
            flat = {name for name, kind in zip(batch.schema.names, batch.schema.types, strict=True) if _flat(kind)}
            views = {name: list(_views(batch.column(name))) for name in flat}
            rest = batch.drop_columns(list(flat)).to_pylist()
            for index in range(batch.num_rows):
                plain = rest[index] if rest else {}
                yield {name: views[name][index] if name in flat else plain[name] for name in batch.schema.names}


@contextlib.contextmanager
def _damage_told(path: str) -> Iterator[None]:
    try:
        yield
    # names and texts of a damaged table may be no UTF-8, its dates no dates
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        kind = "Parquet file" if form_of(path) is Form.PARQUET else "Arrow stream"
        raise UsageError(f"{path}: no {kind}: {error}") from error


def _batches(path: str) -> Iterator[pa.RecordBatch]:
    if form_of(path) is Form.PARQUET:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(batch_size=_ROWS, row_groups=[group])
        return
    for piece in _streams(path):
        _check_end(piece)
        with pa.OSFile(piece) as source, pa.ipc.open_stream(source) as stream:
            for batch in stream:
                # offsets are believed from here on
                batch.validate(full=True)
                for start in range(0, batch.num_rows, _ROWS):
                    yield batch.slice(start, _ROWS)


def _streams(path: str) -> list[str]:
    return data_files(path) if form_of(path) is Form.DIRECTORY else [path]


def _check_end(path: str) -> None:
    """A stream that was cut between two of its batches reads as one that ends there."""
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - len(_END)))
        if file.read() != _END:
            raise pa.ArrowInvalid("it has no end: it was cut")


def _flat(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind)) and kind.value_type in _CODES


def _views(column: pa.ListArray) -> "Iterator[memoryview[Any] | None]":
    values, ends = column.values, column.offsets.to_pylist()
    if values.null_count:
        raise pa.ArrowInvalid("null where a number belongs")
    code, size = _CODES[values.type], values.type.bit_width // 8
    whole: memoryview[Any] = memoryview(b"").cast(code)
    if len(values):
        place = values.offset * size
        whole = memoryview(values.buffers()[1])[place : place + len(values) * size].cast("B").cast(code)
    for index, there in enumerate(column.is_valid().to_pylist()):
        yield whole[ends[index] : ends[index + 1]] if there else None
