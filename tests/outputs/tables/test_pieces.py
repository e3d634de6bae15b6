"""A table is written and read in pieces, whatever the run: memory follows a piece (design.md, promise 10)."""

from array import array
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ng_capture import load
from ng_capture.files.writing import AtomicFile
from ng_capture.outputs.export.formats.interface import Kind
from ng_capture.outputs.forms import Form
from ng_capture.outputs.tables.writing import RecordTable, RowTable
from ng_capture.outputs.training_rows import TableRow, training_rows
from tests.support.forge import Forge
from tests.support.judging import judged
from tests.support.tables import TABLES, named

LABELS: Mapping[str, Kind] = {"input_ids": "ids", "loss_mask": "mask"}


def pieces_of(path: Path) -> list[int]:
    """How many rows each piece of a table has."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            return [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as stream:
        return [batch.num_rows for batch in stream]


@pytest.fixture
def row(tmp_path: Path) -> TableRow:
    """A neutral row of 200,000 tokens."""
    forge = Forge()
    forge.root([1], [2], id="a")
    forge.write(tmp_path / "store")
    (made,) = training_rows(judged(tmp_path / "store"), None)
    length = 200_000
    return msgspec.structs.replace(
        made.as_table_row(),
        tokens=array("Q", range(length)),
        loss_mask=bytes([0]) + bytes([1]) * (length - 1),
        log_probs=array("f", bytes(4 * length)),
    )


@pytest.mark.parametrize("form", TABLES)
def test_neutral_rows_are_written_some_hundred_thousand_tokens_at_a_time(
    tmp_path: Path, form: Form, row: TableRow
) -> None:
    path = named(tmp_path, form)
    with AtomicFile(path) as file:
        table = RowTable(file, form)
        for _ in range(7):
            table.add(row)
        table.close()
    assert pieces_of(path) == [3, 3, 1]
    assert [len(each.tokens) for each in load(path)] == [200_000] * 7


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize(
    ("tokens", "count", "pieces"), [(200_000, 7, [2, 2, 2, 1]), (1, 10_001, [10_000, 1]), (1, 10_000, [10_000])]
)
def test_rows_of_a_trainer_are_written_by_their_tokens_or_their_number(
    tmp_path: Path, form: Form, tokens: int, count: int, pieces: list[int]
) -> None:
    path = named(tmp_path, form)
    record = {"input_ids": [7] * tokens, "loss_mask": [1] * tokens}
    with AtomicFile(path) as file:
        table = RecordTable(file, LABELS, form)
        for _ in range(count):
            table.add(record)
        table.close()
    assert pieces_of(path) == pieces
    assert sum(len(row.tokens) for row in load(path)) == tokens * count


@pytest.mark.parametrize("form", TABLES)
def test_rows_without_a_token_have_arrays_without_one(tmp_path: Path, form: Form) -> None:
    path = named(tmp_path, form)
    with AtomicFile(path) as file:
        table = RecordTable(file, LABELS, form)
        table.add({"input_ids": [], "loss_mask": []})
        table.close()
    (row,) = load(path)
    assert (row.tokens.tolist(), row.loss_mask.tolist(), row.tokens.format) == ([], [], "i")
