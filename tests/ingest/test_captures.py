"""Logs as captures: every raw call a line, in order, once; no record is made of them."""

import json
from pathlib import Path

import pytest

from ng_capture.ingest.captures import LogCaptures
from ng_capture.ingest.sources.recognise import recognise
from tests.support.forge import Forge, Row
from tests.support.logs import write_log
from tests.support.raw_calls import chat_call, says, user, write_capture


def logged(call_id: str | None, at: float, rollout_id: str | None = "r-1", text: str = "x") -> Row:
    """A line as litellm logs it."""
    response = {"id": f"resp-{text}", "choices": [{"index": 0, "finish_reason": None, "message": says(text)}]}
    named = {} if rollout_id is None else {"metadata": {"rollout_id": rollout_id}}
    told = {} if call_id is None else {"id": call_id}
    times = {"startTime": at, "endTime": at + 0.5}
    head = {"call_type": "acompletion", "model": "m", "status": "success", "messages": [user("hi")]}
    return {**told, **head, **times, "response": response, **named}


def captured(path: Path, rollout_id: str | None = None) -> LogCaptures:
    return LogCaptures(recognise([str(path)], "litellm" if path.name == "log.jsonl" else None), rollout_id)


def lines(captures: LogCaptures) -> dict[str, list[Row]]:
    return {each.rollout_id: [json.loads(line) for line in each.lines] for each in captures.rollouts()}


def test_calls_stand_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_log(path, [logged("b", 5.0), logged("x", 0.0, "r-2"), logged("a", 1.0), logged("b", 5.0)])
    told = lines(captured(path))
    assert {name: [row["model_call_id"] for row in rows] for name, rows in told.items()} == {
        "r-1": ["a", "b"],
        "r-2": ["x"],
    }
    assert told["r-1"][0]["response"]["choices"][0]["finish_reason"] is None


def test_what_keeps_calls_from_being_trained_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_log(path, [logged("a", 1.0), logged("b", 2.0)])
    (only,) = captured(path).rollouts()
    assert only.problems == {"call_without_tokens": 2}


def test_a_call_without_an_id_gets_the_same_one_every_time(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_log(path, [logged(None, 1.0), logged(None, 2.0)])
    ids = [row["model_call_id"] for row in lines(captured(path))["r-1"]]
    assert len(set(ids)) == 2
    assert ids == [row["model_call_id"] for row in lines(captured(path))["r-1"]]


def test_a_call_that_names_no_rollout_is_refused_or_of_the_one_that_was_chosen(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_log(path, [logged("a", 1.0, None), logged("b", 2.0, "r-2")])
    captures = captured(path)
    assert [defect.reason for defect in captures.defects] == ["bad_rollout_id"]
    assert captures.rollout_ids == ["r-2"]
    assert captured(path, "r-9").rollout_ids == ["r-2", "r-9"]


def test_a_line_that_is_damaged_is_told_and_the_rest_is_there(tmp_path: Path) -> None:
    write_capture(tmp_path, "r-1", [chat_call("a", [user("hi")], says("x"))])
    path = tmp_path / "r-1.capture.jsonl"
    path.write_bytes(path.read_bytes() + b'{"torn')
    captures = captured(path)
    assert [defect.reason for defect in captures.defects] == ["torn_tail"]
    assert [row["model_call_id"] for row in lines(captures)["r-1"]] == ["a"]


def test_a_token_record_is_no_raw_call(tmp_path: Path) -> None:
    forge = Forge("r-1")
    forge.root([1], [2], id="A")
    forge.write(tmp_path, state=False, intents=False)
    captures = captured(tmp_path / "r-1.tokens.jsonl")
    assert [(defect.reason, defect.call) for defect in captures.defects] == [("response_missing", "A")]
    assert lines(captures) == {}


@pytest.mark.parametrize("depth", [400, 900])
def test_what_is_nested_deeply_is_a_fault_of_its_call(tmp_path: Path, depth: int) -> None:
    row = json.dumps(chat_call("a", [user("hi")], says("x")) | {"request": "DEEP"})
    path = tmp_path / "r-1.capture.jsonl"
    path.write_text(row.replace('"DEEP"', '{"messages":' + "[" * depth + "]" * depth + "}") + "\n")
    captures = captured(path)
    assert bool(captures.defects) != bool(captures.rollout_ids)
    for each in captures.rollouts():
        assert each.lines
