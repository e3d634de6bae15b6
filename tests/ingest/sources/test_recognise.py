"""A log is known by what stands in it, whatever its name; what is not known, or holds text alone, is refused."""

import gc
import gzip
import io
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import zstandard

from ng_capture.errors import UsageError
from ng_capture.ingest.sources.recognise import FORMAT_NAMES, recognise
from tests.support import logs
from tests.support.logs import ONE_CALL, exchanges, faults, readings, records, write_log


def test_every_format_has_a_name_and_a_log_to_try_it_on() -> None:
    assert sorted(FORMAT_NAMES) == sorted(ONE_CALL)


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_each_format_is_recognised_by_its_content_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(ONE_CALL[name][1])
    (log,) = recognise([str(path)]).logs
    assert log.format.name == name
    read = list(log.read())
    assert (len(exchanges(read)) + len(records(read)), faults(read)) == (1, [])


@pytest.mark.parametrize("name", FORMAT_NAMES)
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_compression_is_known_by_the_bytes_and_not_by_the_name(tmp_path: Path, name: str, pack: object) -> None:
    file_name, data = ONE_CALL[name]
    path = tmp_path / file_name
    half = len(data) // 2
    path.write_bytes(pack(data[:half]) + pack(data[half:]))  # type: ignore[operator]
    read = readings(path)
    assert (len(exchanges(read)) + len(records(read)), faults(read)) == (1, [])


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_a_compressed_file_that_is_cut_keeps_the_lines_before_the_cut(tmp_path: Path, pack: object) -> None:
    path = write_log(tmp_path / "t1-0.capture.jsonl", [logs.GYM_CAPTURE] * 2)
    # a name like no other makes the second member too long to fit into one piece of input
    path.write_bytes(pack(path.read_bytes()) + pack(bytes(range(256)) * 99)[:-9])  # type: ignore[operator]
    read = readings(path)
    assert len(exchanges(read)) == 2
    assert faults(read)[-1][0] == "file_truncated"


def test_a_long_first_line_is_recognised_by_the_keys_behind_its_length(tmp_path: Path) -> None:
    row = {"request": {"prompt": list(range(100_000))}, "response": logs.VLLM_RESPONSE}
    assert len(exchanges(readings(write_log(tmp_path / "x", [row])))) == 1


def test_standard_input_is_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO(gzip.compress(ONE_CALL["jsonl"][1]))

    monkeypatch.setattr(sys, "stdin", Input())
    (call,) = exchanges(readings("-"))
    assert (call.file, call.call_id) == ("-", "c1")


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        written = pool.submit(pipe.write_bytes, ONE_CALL["jsonl"][1])
        (log,) = recognise([str(pipe)]).logs
        written.result()
    copy = log.files[0].path
    assert [call.file for call in exchanges(log.read())] == [str(pipe)]
    del log
    gc.collect()
    assert not Path(copy).exists()


def test_a_name_overrules_the_content(tmp_path: Path) -> None:
    path = write_log(tmp_path / "x.jsonl", [logs.GYM_CAPTURE])
    assert [log.format.name for log in recognise([str(path)]).logs] == ["gym-capture"]
    assert [log.format.name for log in recognise([str(path)], "jsonl").logs] == ["jsonl"]


def test_a_folder_is_walked_in_natural_order_and_names_what_it_passes_over(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        write_log(tmp_path / "run" / f"{number}-0.capture.jsonl", [logs.GYM_CAPTURE])
    write_log(tmp_path / "run" / "9-0.tokens.jsonl", [logs.GYM_TOKENS])
    (tmp_path / "run" / "README").write_text("hello")
    (tmp_path / "run" / "9-0.tokens.state.json").write_text("{}")
    found = recognise([str(tmp_path)])
    assert [Path(file.path).name for log in found.logs for file in log.files] == [
        "9-0.tokens.jsonl",
        "1-0.capture.jsonl",
        "9-0.capture.jsonl",
        "10-0.capture.jsonl",
    ]
    assert [Path(name).name for name in found.passed_over] == ["README"]


@pytest.mark.parametrize("title", logs.TEXT_ONLY_LOGS)
def test_a_log_of_text_alone_is_refused_with_what_it_is_and_what_to_do(tmp_path: Path, title: str) -> None:
    path = write_log(tmp_path / "session.jsonl", [logs.TEXT_ONLY_LOGS[title]])
    with pytest.raises(UsageError, match="text_only_source") as refusal:
        recognise([str(path)])
    assert title in refusal.value.message
    assert refusal.value.hint
    assert [defect.reason for defect in recognise([str(tmp_path)]).refused] == ["text_only_source"]


@pytest.mark.parametrize("data", [b"hello\n", b"[1, 2]\n", b'{"a": 1}\n', b"\x7fELF\0\0", b'{"open": "'])
def test_what_is_not_known_is_refused_with_the_names_that_are(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    for source in (tmp_path / "x", tmp_path):
        with pytest.raises(UsageError) as refusal:
            recognise([str(source)])
        assert all(name in str(refusal.value.hint) for name in FORMAT_NAMES)


def test_a_file_in_which_nothing_was_logged_yet_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    assert recognise([str(tmp_path / "x")]).logs == ()
    with pytest.raises(UsageError):
        recognise([str(tmp_path)])


def test_a_path_or_a_format_that_does_not_exist_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        recognise([str(tmp_path / "absent")])
    with pytest.raises(UsageError, match="no such log format"):
        recognise([str(tmp_path)], "csv")


def test_documents_may_be_written_in_one_line_or_many(tmp_path: Path) -> None:
    for indent in (None, 2):
        path = tmp_path / f"{indent}.json"
        path.write_text(json.dumps(logs.har(logs.har_entry()), indent=indent))
        assert len(exchanges(readings(path))) == 1
