"""The finished rows that a harness left, found by rollout id and read again when their turn comes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.outputs.rows_file import RowsFile, decoded
from tests.support.forge import write_rows

ROWS: list[dict[str, Any]] = [{"_ng_rollout_id": name, "reward": number} for number, name in enumerate("abc")]


@pytest.fixture(params=["rows.jsonl", "rows.jsonl.gz"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    made: Path = tmp_path / request.param
    write_lines(made, *(json.dumps(row).encode() for row in ROWS))
    return made


def write_lines(path: Path, *lines: bytes) -> None:
    data = b"".join(line + b"\n" for line in lines)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def test_every_row_is_found_by_its_rollout_in_whatever_order(path: Path) -> None:
    rows = RowsFile(str(path))
    assert (list(rows.rollout_ids), rows.faults) == (["a", "b", "c"], [])
    for row in reversed(ROWS):
        found = decoded(rows.find(row["_ng_rollout_id"]))
        assert found is not None and found.values == row
    assert "a" in rows and "d" not in rows
    assert rows.find("d") is None and decoded(None) is None


def test_lines_that_belong_to_no_rollout_are_told_with_their_place_and_the_others_stand(path: Path) -> None:
    good = json.dumps(ROWS[0]).encode()
    write_lines(
        path, b"\xef\xbb\xbf" + good, b"{torn", b"", b"[]", b'{"_ng_rollout_id": "../x"}', b'{"reward": 1}', good
    )
    rows = RowsFile(str(path))
    assert list(rows.rollout_ids) == ["a"] and rows.find("a") == good
    assert [(fault.line, fault.broken, fault.message) for fault in rows.faults] == [
        (2, True, "no JSON object"),
        (4, True, "no JSON object"),
        (5, False, "malformed rollout id: '../x'"),
        (6, False, "no capture key"),
        (7, False, "second row of rollout a, the first is on line 1"),
    ]
    assert [row.rollout_id for row in rows.rows()] == ["a", None, None, None, None, None]


def test_a_compressed_file_that_is_cut_is_told_where_and_what_came_before_stands(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    write_lines(path, *(json.dumps(row).encode() for row in ROWS))
    path.write_bytes(path.read_bytes()[:-8])
    rows = RowsFile(str(path))
    assert [(fault.broken, fault.message) for fault in rows.faults] == [(True, "the compressed file is cut or damaged")]
    assert decoded(rows.find("a")) is not None


def test_a_file_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "rows.jsonl"):
        with pytest.raises(UsageError, match="no such rows file"):
            RowsFile(str(path))


def test_a_row_that_changed_since_it_was_found_is_never_taken_for_the_one_that_was(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    write_rows(path, ROWS)
    rows = RowsFile(str(path))
    write_rows(path, reversed(ROWS))
    with pytest.raises(SurroundingsError, match=r"rows.jsonl:1: changed while it was read"):
        rows.find("a")
    path.unlink()
    with pytest.raises(SurroundingsError, match=r"rows.jsonl: cannot be read: No such file"):
        rows.find("a")
