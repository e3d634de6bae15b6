"""Rows as a Parquet file or an Arrow stream, some thousands at a time, in memory that does not grow with the run."""

import io
from array import array
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ng_capture.outputs.export.formats.interface import Kind, Record
from ng_capture.outputs.forms import Form
from ng_capture.outputs.tables.columns import HEAD, LONG, SCHEMA, in_columns, schema_of
from ng_capture.outputs.training_rows import TableRow

_GROUP_TOKENS = 500_000
_GROUP_ROWS = 10_000


class Growing(Protocol):
    """What a table is written into; raises SurroundingsError where it cannot be."""

    def write(self, *chunks: bytes | bytearray | memoryview) -> None: ...


class TableWriter:
    """Writes any table piece by piece: as Parquet, or else as an Arrow stream.

    Parquet is packed, with dictionaries for the columns named (all of them: True); the stream lies as it is read.
    """

    def __init__(self, file: Growing, schema: pa.Schema, form: Form, dictionaries: list[str] | bool = True) -> None:
        # the pools that come with the library keep what they have freed; the system's gives it back
        pa.set_memory_pool(pa.system_memory_pool())
        stream = _Stream(file)
        if form is Form.PARQUET:
            self._writer: Any = pq.ParquetWriter(stream, schema, compression="zstd", use_dictionary=dictionaries)
        else:
            self._writer = pa.ipc.new_stream(stream, schema)

    def write(self, piece: pa.Table) -> None:
        self._writer.write_table(piece)

    def close(self) -> None:
        self._writer.close()


class RowTable:
    """Takes training rows one by one."""

    def __init__(self, file: Growing, form: Form) -> None:
        self._group = _Group()
        self._writer = TableWriter(file, SCHEMA, form, HEAD.names)

    def add(self, row: TableRow) -> None:
        self._group.add(row)
        if self._group.full:
            self._writer.write(self._group.take())

    def close(self) -> None:
        if self._group.rows:
            self._writer.write(self._group.take())
        self._writer.close()

    def abandon(self) -> None:
        """Let go of a file that nobody wants; what is in it does not matter."""
        self._writer.close()


class RecordTable:
    """Takes rows of a trainer's format one by one."""

    def __init__(self, file: Growing, columns: Mapping[str, Kind], form: Form) -> None:
        self._schema = schema_of(columns)
        self._writer = TableWriter(file, self._schema, form)
        self._start()

    def _start(self) -> None:
        self._group: list[Record] = []
        self._tokens = 0

    def add(self, record: Record) -> None:
        self._group.append(record)
        self._tokens += sum(len(value) for value in record.values() if isinstance(value, list))
        if self._tokens >= _GROUP_TOKENS or len(self._group) >= _GROUP_ROWS:
            self._write()

    def _write(self) -> None:
        self._writer.write(pa.Table.from_pylist(self._group, self._schema))
        self._start()

    def close(self) -> None:
        if self._group:
            self._write()
        self._writer.close()

    def abandon(self) -> None:
        """Let go of a file that nobody wants; what is in it does not matter."""
        self._writer.close()


class _Group:
    """The rows of one piece of a table as columns."""

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
        head = pa.Table.from_pylist([in_columns(msgspec.to_builtins(row.head)) for row in self.rows], HEAD)
        long = [
            self._lists(pa.uint64(), self._tokens).cast(LONG.field("tokens").type),
            self._lists(pa.int8(), self._mask),
            self._lists(pa.float32(), self._log_probs),
            pa.array([row.experts for row in self.rows], LONG.field("routed_experts").type),
        ]
        self._start()
        return pa.Table.from_arrays([*head.columns, *long], schema=SCHEMA)

    def _lists(self, kind: Any, values: "array[int] | array[float] | bytearray") -> Any:
        ends = pa.Array.from_buffers(pa.int32(), len(self._ends), [None, pa.py_buffer(self._ends)])
        flat = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
        return pa.ListArray.from_arrays(ends, flat)


class _Stream(io.RawIOBase):
    """The file as a stream that only grows."""

    def __init__(self, file: Growing) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(data)
        return len(data)
