"""From one contract to another: each document by itself, losses of both ends together, names that are safe."""

import gzip
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.contracts.conversion import Conversion, Converted, file_stem
from ng_capture.contracts.interface import Options
from ng_capture.contracts.recognition import recognise
from ng_capture.contracts.registry import reader_of, writer_of
from ng_capture.contracts.sources import Source
from ng_capture.contracts.validation import validate
from ng_capture.errors import UsageError
from ng_capture.files.listing import EVERYTHING, Selection
from tests.support.contracts import atif, row, write


def convert(
    path: Path, source: str, target: str, *, strict: bool = False, selection: Selection = EVERYTHING
) -> list[Converted]:
    """All that became of a file."""
    conversion = Conversion(reader_of(source), writer_of(target), Options(selection=selection), strict)
    return list(conversion.convert(Source(str(path))))


def test_every_row_becomes_a_document_named_by_its_rollout(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", row("7-0"), row("7-1"))
    assert [(each.name.stem, each.place) for each in convert(path, "gym", "atif")] == [
        ("7-0", "line 1"),
        ("7-1", "line 2"),
    ]


def test_a_damaged_line_refuses_itself_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", row("7-0"), "{torn", row("7-2"))
    made = convert(path, "gym", "sft")
    assert [each.written is None for each in made] == [False, True, False]
    assert [fault.rule for fault in made[1].faults] == ["gym.json.syntax"]


@pytest.mark.parametrize("whole", [True, False], ids=["between two lines", "within a line"])
def test_what_a_damaged_compressed_file_lost_is_refused(tmp_path: Path, whole: bool) -> None:
    text = write(tmp_path / "rows.jsonl", row("7-0"), row("7-1")).read_bytes()
    packed = zlib.compressobj(wbits=31)
    kept = text.splitlines(keepends=True)[0] + (b"" if whole else b'{"_ng')
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(packed.compress(kept) + packed.flush(zlib.Z_FULL_FLUSH))
    made = convert(path, "gym", "sft")
    assert made[0].written is not None
    assert [(fault.rule, fault.line) for fault in made[-1].faults] == [("source.compression", 2)]
    assert [each.faults[-1].rule for each in validate(recognise([str(path)], None))] == ["source.compression"]


def test_a_damaged_capture_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "a.capture.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"model_call_id": "c1"}\n')[:20])
    faults = [fault.rule for each in convert(path, "capture", "atif") for fault in each.faults]
    assert faults.count("capture.file_truncated") == 1 and "source.compression" not in faults


def test_strict_writes_nothing_that_loses_more_than_a_note(tmp_path: Path) -> None:
    lossless = write(tmp_path / "a.json", atif())
    (kept,) = convert(lossless, "atif", "atif", strict=True)
    assert kept.written is not None
    (refused,) = convert(write(tmp_path / "r.jsonl", row(grade="A")), "gym", "atif", strict=True)
    assert refused.written is None and "row_fields_dropped" in {loss.code for loss in refused.losses}


def test_losses_of_reading_and_of_writing_are_told_together(tmp_path: Path) -> None:
    (made,) = convert(write(tmp_path / "r.jsonl", row(said="<think>a</think>b")), "gym", "atif")
    assert {"think_tags_in_text", "agent_version_unknown"} <= {loss.code for loss in made.losses}


@pytest.mark.parametrize("target", ["sft", "jsonl", "eval"])
def test_what_a_rollout_is_named_by_is_not_lost_where_its_name_stands(target: str, tmp_path: Path) -> None:
    indexed = {**row(), "_ng_task_index": 7, "_ng_rollout_index": 1, "_ng_attempt_index": 2}
    del indexed["_ng_rollout_id"]
    for kept in (row("7-0"), indexed):
        (made,) = convert(write(tmp_path / "r.jsonl", kept), "gym", target)
        assert made.written is not None and json.loads(made.written.documents[0])["rollout_id"] in ("7-0", "7-1-a2")
        assert "row_fields_dropped" not in {loss.code for loss in made.losses}
    (made,) = convert(write(tmp_path / "r.jsonl", {**row("7-0"), "_ng_task_index": 7}), "gym", target)
    assert [loss.detail for loss in made.losses if loss.code == "row_fields_dropped"] == ["_ng_task_index"]


def test_only_the_rollouts_that_are_asked_for_are_converted(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", row("7-0"), row("8-0"))
    made = convert(path, "gym", "atif", selection=Selection(include=("8-*",)))
    assert [each.name.stem for each in made] == ["8-0"]


@given(st.text(min_size=1, max_size=300))
def test_whatever_a_rollout_is_called_its_file_has_a_safe_name(name: str) -> None:
    stem = file_stem(name)
    assert stem and len(stem) <= 200 and not stem.startswith((".", "-"))
    assert all(character.isascii() and (character.isalnum() or character in "._-") for character in stem)


def test_names_that_differ_keep_files_that_differ() -> None:
    assert file_stem("run-1.a_b") == "run-1.a_b"
    assert len({file_stem(name) for name in ("a/b", "a_b", "a b", "../a b", "é", "ü", "x" * 300, "x" * 301)}) == 8


def test_nothing_is_written_as_a_contract_that_is_only_read() -> None:
    with pytest.raises(UsageError, match="atof: no contract that is written"):
        writer_of("atof")
