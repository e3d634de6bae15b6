"""File-level cases of the ingest corpus (N81 to N96): what the reader alone can say of lines, packing and bytes."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ng_capture.ingest.raw import RawExchange
from ng_capture.records.defects import Defect
from tests.support.corpus import corpus_root, ids_in, json_lines
from tests.support.logs import readings

CASES_FILE = corpus_root() / "ingest" / "cases.jsonl"
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in json_lines(CASES_FILE)}
OF_FILES = [name for name in CASES if "N81" <= name <= "N96"]


def packed(case: Mapping[str, Any]) -> bytes:
    """The bytes of a case's file, as its `how` says."""
    how = case["how"] or {}
    lines = [line.encode(how.get("encoding", "utf-8"), "surrogatepass") for line in case["lines"]]
    if how.get("join") == "members":
        return b"".join(gzip.compress(line) for line in lines)
    data = b"".join(lines) if how.get("join") == "" or how.get("pack") else b"".join(line + b"\n" for line in lines)
    if how.get("cut"):
        # the eight bytes behind a member's data, and some of the data
        return gzip.compress(data)[:-12]
    return gzip.compress(data) if how.get("pack") == "gzip" else data


def read(case: Mapping[str, Any], directory: Path) -> list[RawExchange | Defect]:
    path = directory / (case["how"] or {}).get("name", "x.capture.jsonl")
    path.write_bytes(packed(case))
    return [each for each in readings(path) if isinstance(each, RawExchange | Defect)]


@pytest.mark.parametrize("name", ids_in(CASES_FILE, OF_FILES))
def test_errors_have_their_lines_and_calls_are_there(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    told = [each for each in read(case, tmp_path) if not (isinstance(each, Defect) and each.reason == "bom")]
    errors = [each for each in told if isinstance(each, Defect)]
    expected = [each for each in case["expect"] if "error" in each]
    assert [each.reason for each in errors] == [each["error"] for each in expected]
    assert all(each["line"] == error.line for each, error in zip(expected, errors, strict=True) if "line" in each)
    calls = [each for each in told if isinstance(each, RawExchange)]
    # a copy of a line is a call of its own until the copies are compared
    copies = sum(each.get("warnings") == ["duplicate_record"] for each in case["expect"])
    assert len(calls) == len(case["expect"]) - len(expected) + copies
    assert [call.lone_surrogate for call in calls] == [name == "N87"] * len(calls)
    assert [call.duplicate_key for call in calls] == ["token_ids" if name == "N96" else None] * len(calls)


@pytest.mark.parametrize("name", ids_in(CASES_FILE, CASES))
def test_every_case_is_a_log_that_is_recognised_and_read(name: str, tmp_path: Path) -> None:
    assert read(CASES[name], tmp_path)


@pytest.mark.parametrize("name", ids_in(CASES_FILE, ["N59"]))
def test_an_id_beyond_64_bits_is_read_as_the_integer_that_it_is(name: str, tmp_path: Path) -> None:
    (call,) = read(CASES[name], tmp_path)
    assert isinstance(call, RawExchange)
    assert str(2**64) in str(call.response)
