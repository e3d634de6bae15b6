"""The steps of a rollout: each call once, damage named, gaps as NeMo Gym says them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.steps.reading import HowToRead, read_calls
from ng_capture.outputs.steps.rollout import RolloutSteps, read_steps
from ng_capture.store.snapshot import read_snapshot
from tests.support.forge import Row, compressed, in_lines
from tests.support.raw_calls import calls, chat_call, says, system, talk, user, write_capture

DAMAGED = b'{"model_call_id":"cut","stat'


def steps(directory: Path, how: HowToRead | None = None) -> RolloutSteps:
    """The steps of the one rollout that lies there."""
    (files,) = list_rollouts([str(directory)])
    return read_steps(files.rollout_id, files, files.directory, how or HowToRead())


def steps_in(directory: Path, rows: list[Row]) -> RolloutSteps:
    write_capture(directory, "r-1", rows)
    return steps(directory)


def write_lines(directory: Path, *lines: bytes, tail: bytes = b"", name: str = "r-1.capture.jsonl") -> None:
    (directory / name).write_bytes(in_lines(lines) + tail)


def line(call_id: str | None = "a", **fields: Any) -> bytes:
    row = chat_call(call_id or "", [user("hello")], says("hi"), **fields)
    return json.dumps({key: value for key, value in row.items() if key != "model_call_id" or value}).encode()


def used(read: int, written: int) -> Row:
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    choice = {"message": says("hi"), "finish_reason": "stop"}
    return {"response": {"id": "r", "choices": [choice], "usage": usage}}


def codes(rollout: RolloutSteps) -> list[str]:
    return [gap.code for gap in rollout.gaps]


# Each call once


def test_calls_come_in_the_order_of_their_lines_with_their_turns(tmp_path: Path) -> None:
    rows = talk(says("hi"), says("again"), first=[system("Be brief.")])
    told = steps_in(tmp_path, rows)
    assert [(step.model_call_id, step.call_index, step.turn_index) for step in told.steps] == [("a", 0, 0), ("b", 1, 1)]
    assert [(step.file, step.line) for step in told.steps] == [("r-1.capture.jsonl", 1), ("r-1.capture.jsonl", 2)]
    assert (told.metrics.num_calls, told.metrics.num_turns) == (2, 2)


def test_a_call_on_two_lines_is_one_step(tmp_path: Path) -> None:
    asked = [user("look")]
    first = chat_call("a", asked, calls(("k1", "look", "{}"), reasoning_content="hm"), **used(94, 20))
    first["response"]["choices"][0]["message"] = calls(("k1", "look", "{}"), reasoning_content="hm")
    second = chat_call("a", asked, None, **used(94, 28))
    second["response"]["choices"][0]["message"] = calls(("k2", "go", "{}"), reasoning_content="then")
    told = steps_in(tmp_path, [first, chat_call("b", asked, says("done")), second])
    assert (told.metrics.num_calls, told.repeated_lines) == (2, 1)
    step = told.steps[0]
    assert (step.model_call_id, step.call_index, step.tokens_in, step.tokens_out) == ("a", 0, 94, 28)
    assert [use.call_id for use in step.tool_calls] == ["k1", "k2"] and step.reasoning_content == "hm\nthen"
    assert (told.metrics.tokens_in, told.metrics.tokens_out) == (94, 28)


def test_the_same_line_again_adds_nothing(tmp_path: Path) -> None:
    row = chat_call("a", [user("look")], calls(("k1", "look", "{}"), reasoning_content="hm"))
    once, twice = steps_in(tmp_path / "1", [row]), steps_in(tmp_path / "2", [row, row])
    assert msgspec.json.encode(once.steps) == msgspec.json.encode(twice.steps)


def test_lines_that_name_no_call_are_calls_of_their_own(tmp_path: Path) -> None:
    write_lines(tmp_path, line(None), line(None))
    told = steps(tmp_path)
    assert [step.model_call_id for step in told.steps] == [None, None]
    assert (told.metrics.num_calls, told.repeated_lines, codes(told)) == (2, 0, [])


def test_a_refused_answer_and_the_one_that_came_are_one_call_that_was_answered(tmp_path: Path) -> None:
    refused = chat_call("a", [user("hello")], says("hi"), status_code=503, response=None)
    told = steps_in(tmp_path, [refused, chat_call("a", [user("hello")], says("hi"))])
    assert told.metrics.failed_calls == 0 and told.steps[0].status_code == 200


# Totals


def test_totals_are_sums_of_what_is_known(tmp_path: Path) -> None:
    rows = [
        chat_call("a", [user("hello")], None, **used(10, 2), latency_ms=0.1),
        chat_call("b", [user("hello")], says("no usage"), latency_ms=0.2),
        chat_call("c", [user("hello")], None, status_code=429, response=None),
    ]
    totals = steps_in(tmp_path, rows).metrics
    assert (totals.tokens_in, totals.tokens_out, totals.tokens_total) == (10, 2, 12)
    assert (totals.cached_tokens, totals.tokens_reasoning) == (None, None)
    assert totals.latency_total_ms == pytest.approx(0.3)
    assert (totals.calls_with_partial_usage, totals.failed_calls) == (1, 1)
    assert totals.error_categories == {"rate_limit": 1}


def test_without_a_call_every_sum_is_unknown(tmp_path: Path) -> None:
    write_lines(tmp_path)
    told = steps(tmp_path)
    assert (told.metrics.num_calls, told.metrics.tokens_in, told.metrics.latency_total_ms) == (0, None, None)
    assert codes(told) == ["model_call_capture_no_records"] and told.complete


# Damage


def test_a_damaged_line_is_named_and_counted_and_the_others_stay(tmp_path: Path) -> None:
    write_lines(tmp_path, line("a"), b"{not json}", b"", b"[1]", line("b"), tail=DAMAGED)
    told = steps(tmp_path)
    assert [(step.model_call_id, step.call_index, step.line) for step in told.steps] == [("a", 0, 1), ("b", 3, 5)]
    assert [(each.reason, each.line) for each in told.findings] == [
        ("damaged_line", 2),
        ("damaged_line", 4),
        ("torn_tail", 6),
    ]
    assert [(gap.code, gap.detail) for gap in told.gaps] == [("model_call_capture_records_unreadable", "count=3")]
    assert (told.damaged_lines, told.complete, told.captured) == (3, False, True)


def test_a_last_line_without_a_break_counts_and_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path, tail=line("a"))
    told = steps(tmp_path)
    assert (told.metrics.num_calls, told.damaged_lines, told.complete) == (1, 0, False)
    assert [each.reason for each in told.findings] == ["missing_newline"]


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    write_lines(tmp_path, b"\xef\xbb\xbf" + line("a"))
    told = steps(tmp_path)
    assert (told.metrics.num_calls, told.complete) == (1, True)


def test_a_file_that_is_no_list_of_lines_holds_no_calls(tmp_path: Path) -> None:
    (tmp_path / "r-1.capture.jsonl").write_bytes(b"[\n" + line("a") + b"\n]\n")
    told = steps(tmp_path)
    assert (told.metrics.num_calls, told.damaged_lines) == (0, 1)
    assert [each.reason for each in told.findings] == ["not_one_object_per_line"]


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_compressed_calls_are_read_and_a_cut_is_named(tmp_path: Path, compression: str) -> None:
    data = compressed(in_lines(line(f"call {n}", tools=[{"name": str(n * 7919)}]) for n in range(200)), compression)
    name = f"r-1.capture.jsonl{compression}"
    (tmp_path / name).write_bytes(data)
    assert steps(tmp_path).metrics.num_calls == 200
    (tmp_path / name).write_bytes(data[:-20])
    told = steps(tmp_path)
    assert [each.reason for each in told.findings] == ["file_truncated"] and not told.complete


def test_a_mark_of_lost_calls_is_a_gap(tmp_path: Path) -> None:
    write_lines(tmp_path, line("a"))
    (tmp_path / "r-1.capture.incomplete").touch()
    told = steps(tmp_path)
    assert (codes(told), told.complete) == (["model_call_capture_incomplete"], False)
    assert [(each.reason, each.file) for each in told.findings] == [("capture_incomplete", "r-1.capture.incomplete")]


def test_what_is_appended_between_two_readings_is_left_to_the_next(tmp_path: Path) -> None:
    write_lines(tmp_path, line("a"), tail=DAMAGED)
    (files,) = list_rollouts([str(tmp_path)])
    snapshot = read_snapshot(files)
    write_lines(tmp_path, line("a"), DAMAGED + b'us_code":200}', line("b"))
    assert [read.call.model_call_id for read in read_calls(files, snapshot, HowToRead())] == ["a"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.binary(max_size=3), st.integers(0, 3)), max_size=4))
def test_every_line_is_a_call_a_repetition_or_damage(tmp_path: Path, faults: list[tuple[int, bytes, int]]) -> None:
    data = bytearray(in_lines([line("a"), line("b"), line("a"), line(None)]))
    for place, added, removed in faults:
        place %= len(data) + 1
        data[place : place + removed] = added
    (tmp_path / "r-1.capture.jsonl").write_bytes(data)
    told = steps(tmp_path)
    if "not_one_object_per_line" not in {finding.reason for finding in told.findings}:
        lines = [each for each in bytes(data).removeprefix(b"\xef\xbb\xbf").split(b"\n") if each and not each.isspace()]
        assert told.metrics.num_calls + told.repeated_lines + told.damaged_lines == len(lines)


def test_a_file_that_cannot_be_read_is_the_machines_failure(tmp_path: Path) -> None:
    (tmp_path / "r-1.capture.jsonl").mkdir()
    with pytest.raises(SurroundingsError):
        steps(tmp_path)
