"""Faults that a first user found in `ingest`: what lies there stays as it is, and a first request is a first one."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ng_capture.files.listing import list_rollouts
from ng_capture.ingest.conflict import OnConflict
from ng_capture.ingest.ingest import IngestedRollout, Ingestion, Unwritten, Wanted
from ng_capture.ingest.sources.recognise import recognise
from ng_capture.sink import TokenSink
from ng_capture.store.append import add_raw_lines
from ng_capture.store.retire import retire_under_lock
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.judge import judge
from tests.support.forge import Row

SYSTEM: Row = {"role": "system", "content": "You mend querns."}


def turn(role: str, text: str) -> Row:
    return {"role": role, "content": text}


def call(number: int, messages: Sequence[Row], answer: str, **told: object) -> Row:
    prompt = [1, *(len(str(message)) for message in messages)]
    response = {
        "id": f"r{number}",
        "model": "m",
        "prompt_token_ids": prompt,
        "choices": [
            {
                "index": 0,
                "message": turn("assistant", answer),
                "finish_reason": "stop",
                "token_ids": [40, 2],
                "logprobs": {"content": [{"token": f"token_id:{each}", "logprob": -0.5} for each in (40, 2)]},
            }
        ],
    }
    row = {"rollout_id": "4-0", "id": f"c{number}", "started_at": 1000.0 + number}
    return {**row, "request": {"model": "m", "messages": list(messages)}, "response": response, **told}


def log(path: Path, *rows: Row) -> Path:
    path.write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    return path


def ingest(source: Path, to: Path) -> list[IngestedRollout]:
    return list(Ingestion(recognise([str(source)]), to, Wanted()).write())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    asked = [SYSTEM, turn("user", "go")]
    again = [*asked, turn("assistant", "one"), turn("user", "on")]
    return log(tmp_path / "calls.jsonl", call(1, asked, "one"), call(2, again, "two"))


@pytest.fixture
def runs(tmp_path: Path, source: Path) -> Path:
    ingest(source, tmp_path / "runs")
    return tmp_path / "runs"


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_same_source_again_adds_no_raw_call(source: Path, runs: Path) -> None:
    before = files(runs)
    ingest(source, runs)
    assert files(runs) == before


@pytest.mark.parametrize("lost", [1, 20, 400])
def test_a_raw_call_that_a_killed_run_left_half_written_is_finished(source: Path, runs: Path, lost: int) -> None:
    raw, before = runs / "4-0.capture.jsonl", files(runs)
    raw.write_bytes(raw.read_bytes()[:-lost])
    ingest(source, runs)
    assert files(runs) == before


def test_a_raw_call_of_another_writer_that_was_cut_is_ended_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "4-0.capture.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":')
    add_raw_lines(path, [b'{"c":3}', b'{"d":4}'])
    assert path.read_bytes() == b'{"a":1}\n{"b":\n{"c":3}\n{"d":4}\n'


def test_a_sealed_rollout_gets_no_raw_call_either(source: Path, runs: Path) -> None:
    TokenSink(runs, "4-0").seal()
    before = files(runs)
    rows = [json.loads(line) for line in source.read_bytes().splitlines()]
    more = [*rows[1]["request"]["messages"], turn("assistant", "two"), turn("user", "more")]
    [told] = ingest(log(source, *rows, call(3, more, "three")), runs)
    assert [fault.reason for fault in told.defects] == ["rollout_frozen"]
    assert files(runs) == before


def test_the_payload_of_a_retired_rollout_does_not_come_back(source: Path, runs: Path) -> None:
    retire_under_lock(runs / "4-0.tokens.state.json", None, None)
    (runs / "4-0.capture.jsonl").unlink()
    before = files(runs)
    assert [call.action for told in ingest(source, runs) for call in told.calls] == ["there", "there"]
    assert files(runs) == before


def test_the_next_task_under_the_same_system_prompt_is_a_first_call(tmp_path: Path) -> None:
    first, second = [SYSTEM, turn("user", "mend it")], [SYSTEM, turn("user", "another")]
    rows = [
        call(1, first, "one"),
        call(2, [*first, turn("assistant", "one"), turn("user", "on")], "done"),
        call(3, second, "two"),
        call(4, [*second, turn("assistant", "two"), turn("user", "on")], "done too"),
    ]
    [told] = ingest(log(tmp_path / "calls.jsonl", *rows), tmp_path / "runs")
    links = {each.call_id: (each.parent_call_id, each.parent_resolution) for each in told.calls}
    assert links == {"c1": (None, "root"), "c2": ("c1", "resolved"), "c3": (None, "root"), "c4": ("c3", "resolved")}


def test_a_sub_agent_is_a_first_call_whether_the_main_agent_went_on_already_or_not(tmp_path: Path) -> None:
    main = [SYSTEM, turn("user", "mend it")]
    rows = [
        call(1, main, "ask the miller"),
        call(2, [SYSTEM, turn("user", "you are the miller")], "flour"),
        call(3, [*main, turn("assistant", "ask the miller"), turn("user", "flour")], "done"),
    ]
    for number in range(1, 4):
        [told] = ingest(log(tmp_path / "calls.jsonl", *rows[:number]), tmp_path / "runs")
    assert [each.parent_call_id for each in told.calls] == [None, None, "c1"]
    assert [each.action for each in told.calls] == ["there", "there", "added"]


@pytest.mark.parametrize("name", ["calls.jsonl", "4-0.capture.jsonl"])
def test_a_log_that_is_still_written_gives_what_the_whole_one_gives(source: Path, tmp_path: Path, name: str) -> None:
    whole, growing = source.read_bytes(), tmp_path / name
    rows = [{**json.loads(line), "model_call_id": f"c{number}"} for number, line in enumerate(whole.splitlines())]
    if name != source.name:
        whole = log(growing, *rows).read_bytes()
    once, live = tmp_path / "once", tmp_path / "live"
    growing.write_bytes(whole)
    ingest(growing, once)
    first = whole.index(b"\n") + 1
    for end in (first, first + 30, first + 200, len(whole) - 1, len(whole)):
        growing.write_bytes(whole[:end])
        list(Ingestion(recognise([str(growing)], live=True), live, Wanted()).write())
    assert files(live).keys() == files(once).keys()
    assert files(live)["4-0.tokens.jsonl"] == files(once)["4-0.tokens.jsonl"]
    assert files(live)["4-0.tokens.intents"] == files(once)["4-0.tokens.intents"]


def test_a_rollout_that_cannot_be_written_stops_no_other(tmp_path: Path) -> None:
    rows = [call(1, [SYSTEM], "one", rollout_id=name) for name in ("a", "b")]
    source = log(tmp_path / "calls.jsonl", *rows)
    (tmp_path / "runs" / "a.tokens.jsonl").mkdir(parents=True)
    ingestion = Ingestion(recognise([str(source)]), tmp_path / "runs", Wanted())
    failed, written = ingestion.write()
    assert (failed.rollout_id, written.rollout_id) == ("a", "b")
    assert isinstance(failed, Unwritten)
    assert failed.message == f"{tmp_path}/runs/a.tokens.jsonl: cannot be read: Is a directory"


def test_a_call_that_is_there_is_told_with_the_link_that_it_has(source: Path, tmp_path: Path) -> None:
    _, second = source.read_bytes().splitlines(keepends=True)
    (tmp_path / "second.jsonl").write_bytes(second)
    ingest(tmp_path / "second.jsonl", tmp_path / "runs")
    [told] = ingest(source, tmp_path / "runs")
    links = {each.call_id: (each.action, each.parent_call_id, each.parent_resolution) for each in told.calls}
    assert links == {"c1": ("added", None, "root"), "c2": ("there", None, "unresolved")}


def test_a_stream_that_an_error_ended_is_no_answer_that_is_missed(tmp_path: Path) -> None:
    broken = call(1, [SYSTEM], "one") | {"response": 'data: {"error": {"message": "dead"}}\n\ndata: [DONE]\n\n'}
    ingest(log(tmp_path / "calls.jsonl", broken, call(2, [SYSTEM], "one")), tmp_path / "runs")
    raw = [json.loads(line) for line in (tmp_path / "runs" / "4-0.capture.jsonl").read_bytes().splitlines()]
    assert [each["error_category"] for each in raw] == ["upstream_error", None]
    [judgement] = [judge(read_snapshot(each)) for each in list_rollouts([str(tmp_path / "runs")])]
    assert judgement.verdict == "trainable"


def test_which_of_several_choices_was_kept_is_no_question_where_one_is_continued(tmp_path: Path) -> None:
    asked = [SYSTEM, turn("user", "go")]
    two = call(1, asked, "one")
    [choice] = two["response"]["choices"]
    two["response"]["choices"] = [choice, {**choice, "index": 1, "message": turn("assistant", "other")}]
    [told] = ingest(log(tmp_path / "calls.jsonl", two), tmp_path / "open")
    assert [fault.reason for fault in told.defects] == ["ambiguous_choices"]
    then = call(2, [*asked, turn("assistant", "other"), turn("user", "on")], "end")
    [told] = ingest(log(tmp_path / "calls.jsonl", two, then), tmp_path / "kept")
    assert not told.defects
    assert [each.parent_call_id for each in told.calls] == [None, None, "c1#1"]


def test_calls_without_ids_are_the_same_calls_in_whatever_file_they_stand(tmp_path: Path) -> None:
    """A log that is rotated: its second file goes on, and both may be brought again under other names."""
    first, second = [SYSTEM, turn("user", "one?")], [turn("user", "two?")]
    rows = [call(1, first, "one"), call(2, [*first, turn("assistant", "one"), *second], "two")]
    nameless = [{key: value for key, value in row.items() if key not in ("id", "model_call_id")} for row in rows]
    old, new = log(tmp_path / "a.jsonl", nameless[0]), log(tmp_path / "b.jsonl", nameless[1])
    ingest(old, tmp_path / "runs")
    before = ingest(new, tmp_path / "runs")
    assert [each.parent_resolution for each in before[0].calls] == ["resolved"]
    renamed = log(tmp_path / "c.jsonl", *nameless)
    assert [each.action for told in ingest(renamed, tmp_path / "runs") for each in told.calls] == ["there", "there"]


def test_an_edited_history_is_followed_whatever_came_in_before(tmp_path: Path) -> None:
    first = [SYSTEM, turn("user", "do it")]
    second = [*first, turn("assistant", "one"), turn("user", "more")]
    edited = [*first, turn("assistant", "one, shortened"), turn("user", "more"), turn("user", "again")]
    rows = [call(1, first, "one"), call(2, second, "two"), call(3, edited, "three")]
    at_once = ingest(log(tmp_path / "all.jsonl", *rows), tmp_path / "once")
    ingest(log(tmp_path / "1.jsonl", *rows[:2]), tmp_path / "twice")
    later = ingest(log(tmp_path / "2.jsonl", rows[2]), tmp_path / "twice")
    links = {each.call_id: (each.parent_call_id, each.how) for told in at_once for each in told.calls}
    assert {each.call_id: (each.parent_call_id, each.how) for told in later for each in told.calls} == {
        "c3": links["c3"]
    }


def test_records_without_links_get_none(tmp_path: Path) -> None:
    """What nobody recorded is inferred where that is asked for, by the command that judges."""
    record = {"rollout_id": "4-0", "generation_log_probs": [-0.5], "generation_token_ids": [3]}
    rows = [
        {**record, "model_call_id": "c1", "prompt_token_ids": [1, 2]},
        {**record, "model_call_id": "c2", "prompt_token_ids": [1, 2, 3, 4]},
    ]
    ingest(log(tmp_path / "4-0.tokens.jsonl", *rows), tmp_path / "runs")
    judgement = judge(read_snapshot(list_rollouts([str(tmp_path / "runs")]).get("4-0")))
    assert "link_missing" in judgement.reasons


def test_an_id_that_no_file_can_be_named_after_is_refused(tmp_path: Path) -> None:
    rows = [call(1, [SYSTEM], "one", rollout_id="x" * 201), call(2, [SYSTEM], "two", rollout_id="x" * 200)]
    ingestion = Ingestion(recognise([str(log(tmp_path / "calls.jsonl", *rows))]), tmp_path / "runs", Wanted())
    assert [defect.reason for defect in ingestion.defects] == ["bad_rollout_id"]
    assert [len(told.rollout_id) for told in ingestion.write()] == [200]


def test_a_call_that_was_cut_in_a_file_of_several_rollouts_may_be_of_any_of_them(tmp_path: Path) -> None:
    rows = [call(1, [SYSTEM], "one", rollout_id=name) for name in ("a", "b")]
    source = log(tmp_path / "calls.jsonl", *rows)
    source.write_bytes(source.read_bytes() + b'{"model_call_id": "lost", "requ')
    ingest(source, tmp_path / "runs")
    listing = list_rollouts([str(tmp_path / "runs")])
    assert [judge(read_snapshot(listing.get(name))).reasons for name in ("a", "b")] == [("capture_incomplete",)] * 2


def test_what_is_kept_on_conflict_gets_no_raw_call_of_the_other_telling(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    ingest(log(tmp_path / "1.jsonl", call(1, [SYSTEM], "one")), runs)
    before = files(runs)
    other = log(tmp_path / "2.jsonl", call(1, [SYSTEM, turn("user", "else")], "other"))
    wanted = Wanted(on_conflict=OnConflict.KEEP)
    [told] = Ingestion(recognise([str(other)]), runs, wanted).write()
    assert isinstance(told, IngestedRollout)
    assert [defect.reason for defect in told.defects] == ["conflicting_records"]
    assert files(runs) == before
