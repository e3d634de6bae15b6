"""No bytes crash a reader: what is damaged is told with its line, and what stands around it is read."""

import gzip
import json
import tempfile
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.interface import TokenLine
from ng_capture.ingest.sources.recognise import FORMAT_NAMES, recognise
from ng_capture.ingest.sources.rollouts import resolve_rollout
from ng_capture.records.defects import Defect
from ng_capture.verdicts.findings import find
from tests.support import logs
from tests.support.logs import ONE_CALL, exchanges, faults, in_lines, readings, write_log

RICH = {
    **ONE_CALL,
    "verifiers": ("traces.jsonl", in_lines([logs.TRACE])),
    "agent-lightning": ("spans.jsonl", in_lines([logs.CLIENT_SPAN, logs.SPAN])),
    "litellm": ("spend.jsonl", in_lines([logs.LITELLM, logs.SPEND_ROW])),
    "gym-capture": (
        "t1-0.capture.jsonl",
        in_lines([logs.GYM_CAPTURE, {**logs.GYM_CAPTURE, "response_raw": logs.STREAM}]),
    ),
}
LEAVES = st.sampled_from([None, True, 0, -1, 2**64, 1.5, "", "x", "[1", [], [[]], [None], {}, {"a": 1}, "\ud800"])


def survive(name: str, data: bytes, given_name: str | None) -> None:
    """Read a file of these bytes; nothing is raised but what the command line knows how to say."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / name
        path.write_bytes(data)
        try:
            for log in recognise([str(path)], given_name).logs:
                for reading in log.read():
                    if isinstance(reading, RawExchange | TokenLine):
                        answer = resolve_rollout(reading.claims)
                        reading = answer if isinstance(answer, Defect) else reading
                    if isinstance(reading, Defect):
                        msgspec.json.encode(find(reading))
        except (UsageError, SurroundingsError):
            pass


@settings(max_examples=150, deadline=None)
@given(data=st.data(), name=st.sampled_from(FORMAT_NAMES))
def test_flipped_bytes_never_crash_a_reader(data: st.DataObject, name: str) -> None:
    file_name, good = RICH[name]
    packed = data.draw(st.sampled_from([bytes, gzip.compress]))(good)
    bad = bytearray(packed)
    for place in data.draw(st.lists(st.integers(0, len(bad) - 1), max_size=6)):
        bad[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(bad)) | st.just(len(bad)))
    survive(file_name, bytes(bad[:cut]), data.draw(st.sampled_from([name, None])))


@settings(max_examples=250, deadline=None)
@given(data=st.data(), name=st.sampled_from(FORMAT_NAMES))
def test_values_of_any_kind_in_any_field_never_crash_a_reader(data: st.DataObject, name: str) -> None:
    file_name, good = RICH[name]
    texts = [good] if file_name.endswith((".har", "result.json")) else good.splitlines()
    values = [_changed(json.loads(text), data) for text in texts]
    survive(file_name, in_lines(values), name)


def _changed(value: object, data: st.DataObject) -> dict[str, object]:
    """The object with one of its parts, however deep, put another in place of."""
    root: dict[str, object] = {"": value}
    where: object = root
    key: object = ""
    while True:
        inner = where[key]  # type: ignore[index]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.integers(0, 5)) == 0:
            break
        where = inner
        key = data.draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
    where[key] = data.draw(LEAVES)  # type: ignore[index]
    return root[""] if isinstance(root[""], dict) else {}


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200), name=st.sampled_from(FORMAT_NAMES))
def test_bytes_of_any_kind_never_crash_a_reader(data: bytes, name: str) -> None:
    survive("x", data, name)


@pytest.mark.parametrize("name", [name for name in FORMAT_NAMES if name not in ("har", "harbor", "gym-tokens")])
def test_a_damaged_line_loses_no_other_line(tmp_path: Path, name: str) -> None:
    path = tmp_path / ONE_CALL[name][0]
    good = ONE_CALL[name][1]
    path.write_bytes(b"\n" + good + good[:40] + b"\n" + b"\0\0\0\n" + good + good[:40])
    read = readings(path, name=name)
    lines = good.count(b"\n")
    assert len(exchanges(read)) == 2
    assert sorted(faults(read), key=str) == [
        ("damaged_line", lines + 2),
        ("nul_bytes", lines + 3),
        ("torn_tail", 2 * lines + 4),
    ]


def test_a_last_line_without_a_line_break_is_read_and_told_where_something_may_append(tmp_path: Path) -> None:
    for name, expected in (("gym-capture", [("missing_newline", 1)]), ("jsonl", [])):
        path = tmp_path / ONE_CALL[name][0]
        path.write_bytes(ONE_CALL[name][1].rstrip())
        read = readings(path)
        assert (len(exchanges(read)), faults(read)) == (1, expected)


def test_a_byte_order_mark_at_the_start_of_a_batch_is_told_and_its_request_found(tmp_path: Path) -> None:
    path = tmp_path / "batch.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + ONE_CALL["openai-batch"][1])
    read = readings(path)
    assert [call.request for call in exchanges(read)] == [logs.REQUEST]
    assert faults(read) == [("bom", 1)]


def test_a_file_of_blank_lines_is_nothing_however_long(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b" \r\n" * 100_000)
    with pytest.raises(UsageError):
        recognise([str(tmp_path / "x.jsonl")])
    assert readings(tmp_path / "x.jsonl", name="jsonl") == []


def test_lines_that_are_one_document_are_told_once(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.jsonl"
    path.write_text(json.dumps(logs.GYM_CAPTURE, indent=1))
    assert faults(readings(path)) == [("not_one_object_per_line", 1)]


def test_a_document_that_is_damaged_is_one_fault(tmp_path: Path) -> None:
    path = tmp_path / "x.har"
    path.write_bytes(ONE_CALL["har"][1][:-20])
    assert faults(readings(path)) == [("damaged_line", 1)]


def test_what_is_noticed_in_a_line_stands_with_its_call(tmp_path: Path) -> None:
    text = json.dumps({**logs.GYM_CAPTURE, "request": {"text": "\ud800"}})
    double = text.replace('"generation_token_ids"', '"generation_token_ids": [1], "generation_token_ids"', 1)
    path = tmp_path / "x.capture.jsonl"
    path.write_text(double + "\n" + text + "\n")
    assert [(call.duplicate_key, call.lone_surrogate) for call in exchanges(readings(path))] == [
        ("generation_token_ids", True),
        (None, True),
    ]


@pytest.mark.parametrize("name", ["gym-capture", "openai-batch", "agent-lightning"])
def test_a_long_log_is_read_in_flat_memory(tmp_path: Path, name: str) -> None:
    row = {"pad": "x" * 20_000}
    rows = [{**row, **json.loads(line)} for line in ONE_CALL[name][1].splitlines()]
    path = write_log(tmp_path / ONE_CALL[name][0], rows * 1000)
    tracemalloc.start()
    for log in recognise([str(path)]).logs:
        for _ in log.read():
            pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 2e7
    assert peak < 6e6
