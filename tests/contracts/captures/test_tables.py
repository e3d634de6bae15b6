"""Episodes as tables: a line for each call, with its record whole (contracts.md 7.1)."""

import json
from pathlib import Path

import pytest

from tests.support.captured import ROLLOUT, codes, converted, put, written
from tests.support.forge import Forge, Row
from tests.support.raw_calls import chat_call, says, system, user
from tests.support.runs import healthy


def rows(source: Path, contract: str = "capture") -> list[Row]:
    one = written(source, "jsonl", contract).written
    assert one is not None
    return [json.loads(each) for each in one.documents]


def tabled(source: Path, path: Path) -> Path:
    """The table of a source as a file."""
    lines = [each for one in converted(source, "jsonl") if one.written for each in one.written.documents]
    path.write_bytes(b"".join(each + b"\n" for each in lines))
    return path


def test_a_record_is_a_line_as_it_stood(tmp_path: Path) -> None:
    forge = healthy(ROLLOUT)
    forge.write(tmp_path)
    assert rows(tmp_path) == [call.record() for call in forge.calls]


def test_what_the_raw_call_tells_stands_beside_its_record(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    forge.root([1], [2], id="A")
    forge.write(tmp_path)
    put(tmp_path, [chat_call("A", [user("hi")], says("x"), latency_ms=12.5, finish="length")])
    (row,) = rows(tmp_path)
    facts = row.pop("ng_capture_call")
    assert row == forge.calls[0].record()
    assert (facts["dialect"], facts["latency_total_ms"], facts["finish_reason"]) == ("chat", 12.5, "length")
    assert None not in facts.values()


def test_a_call_without_ids_is_a_line_too(tmp_path: Path) -> None:
    asked = [system("S"), user("hi")]
    (row,) = rows(put(tmp_path, [chat_call("A", asked, says("x", reasoning_content="y"))]))
    assert (row["rollout_id"], row["model_call_id"], row["response_id"]) == (ROLLOUT, "A", "resp-A")
    assert [item["type"] for item in row["output_items"]] == ["reasoning", "message"]
    assert row["tokens_in"] is None
    assert "prompt_token_ids" not in row


def test_a_call_that_nobody_answered_has_no_output(tmp_path: Path) -> None:
    (row,) = rows(put(tmp_path, [chat_call("A", [user("hi")], None, status_code=429, error_category="rate_limit")]))
    assert row["output_items"] == [] and row["error_category"] == "rate_limit"


def test_a_table_is_read_as_what_it_was_made_of(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for number in range(3):
        forge = healthy(f"r-{number}")
        forge.write(store)
    put(store, [chat_call("A", [user("hi")], says("x"), latency_ms=3.0)], "r-9")
    path = tabled(store, tmp_path / "all.jsonl")
    again = converted(path, "jsonl", "jsonl")
    assert [one.place for one in again] == ["r-0", "r-1", "r-2", "r-9"]
    lines = [json.loads(each) for one in again if one.written for each in one.written.documents]
    assert lines == [json.loads(line) for line in path.read_bytes().splitlines()]


def test_the_order_of_lines_in_a_table_decides_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for name in ("r-1", "r-2"):
        healthy(name).write(store)
    path = tabled(store, tmp_path / "all.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(reversed(lines)))
    told = {
        json.loads(each)["model_call_id"] + one.place: each
        for one in converted(path, "tokens", "jsonl")
        if one.written
        for each in one.written.documents
    }
    assert sorted(told.values()) == sorted(line.rstrip(b"\n") for line in lines)


def test_gaps_have_no_place_in_a_table(tmp_path: Path) -> None:
    healthy(ROLLOUT).write(tmp_path)
    (tmp_path / f"{ROLLOUT}.tokens.incomplete").write_bytes(b"")
    one = written(tmp_path, "jsonl")
    assert ("metadata_dropped", "gaps") in [(loss.code, loss.detail) for loss in one.losses]


def test_ids_that_make_no_record_are_told(tmp_path: Path) -> None:
    metrics = {"prompt_token_ids": [1], "completion_token_ids": [2]}
    trajectory = {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "x", "version": "1"},
        "steps": [{"step_id": 1, "source": "agent", "message": "m", "metrics": metrics}],
    }
    path = tmp_path / "t.json"
    path.write_text(json.dumps(trajectory))
    one = written(path, "jsonl", "atif")
    assert codes(one)["tokens_incomplete"] == 1
    (row,) = rows(path, "atif")
    assert "prompt_token_ids" not in row


@pytest.mark.parametrize("text", ["\\ud83d", "a\\u0000b", "\\u202e"])
def test_any_text_is_carried(tmp_path: Path, text: str) -> None:
    line = json.dumps(chat_call("A", [user("hi")], says("WORD", reasoning_content="WORD"))).replace("WORD", text)
    put(tmp_path, [line.encode()])
    (row,) = rows(tmp_path)
    (part,) = row["output_items"][1]["content"]
    assert part["text"] == json.loads(f'"{text}"')
