"""What becomes of calls that are not like the others: `ng-capture ingest`, and what the other commands make of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import run
from tests.support.forge import Row, canonical, write_rows
from tests.support.ingesting import (
    actions,
    dialogue,
    document,
    generation,
    generations,
    going_on,
    ingest,
    links,
    reasons,
    stored,
    told_calls,
    trained,
    training_rows,
    verdict,
    verdicts,
)
from tests.support.logs import write_log
from tests.support.raw_calls import calls, chat_call, result, says, system, user, write_capture
from tests.support.runs import healthy

LOG = "r-1.capture.jsonl"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def message_of(row: Row) -> Row:
    message: Row = row["response"]["choices"][0]["message"]
    return message


# Calls without a name


def test_a_call_without_an_id_is_called_by_its_line(tmp_path: Path, store: Path) -> None:
    rows = dialogue(3)
    for row in rows[1:]:
        del row["model_call_id"]
    write_capture(tmp_path, "r-1", rows)
    done = ingest(store, tmp_path / LOG)
    assert (done.code, list(told_calls(done))) == (0, ["c0", "line:2", "line:3"])
    assert (verdict(store), trained(store)) == (("trainable", []), generations(rows))


def test_calls_without_ids_of_two_files_stay_apart(tmp_path: Path, store: Path) -> None:
    first, second = dialogue(1), dialogue(1, start=500)
    for number, rows in enumerate((first, second), 1):
        del rows[0]["model_call_id"]
        write_log(tmp_path / f"part-{number}.jsonl", rows)
    done = ingest(store, tmp_path / "part-1.jsonl", tmp_path / "part-2.jsonl", "--rollout-id", "r-1")
    assert len(told_calls(done)) == 2
    assert trained(store) == generations([*first, *second])


@pytest.mark.parametrize("name", ["two\nlines", " blank ", "\rx"])
def test_an_id_that_is_alone_on_no_line_gets_no_record_and_is_missed(name: str, tmp_path: Path, store: Path) -> None:
    rows = [*dialogue(1), {**dialogue(2)[1], "model_call_id": name}]
    write_capture(tmp_path, "r-1", rows)
    done = ingest(store, tmp_path / LOG)
    assert (done.code, reasons(done), actions(done)) == (1, {"invalid_record": 1}, {"added": 1, "left_out": 1})
    assert (set(stored(store, "r-1")), verdict(store)[0], trained(store)) == ({"c0"}, "masked", [])
    assert (store / "r-1.tokens.incomplete").exists()


@pytest.mark.parametrize(("name", "told"), [("", "line:2"), ("\ud800x", "\\ud800x")])
def test_an_empty_id_is_none_and_half_of_a_pair_is_spelled_out(
    name: str, told: str, tmp_path: Path, store: Path
) -> None:
    rows = [*dialogue(1), {**dialogue(2)[1], "model_call_id": name}]
    write_capture(tmp_path, "r-1", rows)
    assert ingest(store, tmp_path / LOG).code == 0
    assert (list(stored(store, "r-1")), trained(store)) == (["c0", told], generations(dialogue(2)))


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path, store: Path) -> None:
    first, second = dialogue(1), dialogue(1, start=500)
    for folder, rows in (("one", first), ("two", second)):
        del rows[0]["model_call_id"]
        write_log(tmp_path / "logs" / folder / "calls.jsonl", rows)
    done = ingest(store, tmp_path / "logs", "--rollout-id", "r-1")
    assert len(told_calls(done)) == 2
    assert trained(store) == generations([*first, *second])


# Choices


def two_answers(name: str = "c1", finish: str = "stop") -> Row:
    """The second call of a dialogue with another answer beside its own."""
    row: Row = dialogue(2)[1]
    own = row["response"]["choices"][0]
    other = {**says("another answer"), "prompt_token_ids": message_of(row)["prompt_token_ids"]}
    other |= {"generation_token_ids": [77, 78], "generation_log_probs": [-0.5, -0.5]}
    row["response"]["choices"] = [own, {"index": 1, "message": other, "finish_reason": finish}]
    row["request"]["n"] = 2
    return {**row, "model_call_id": name}


def test_two_choices_are_two_calls_and_mask(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "r-1", [dialogue(1)[0], two_answers()])
    done = ingest(store, tmp_path / LOG)
    assert (done.code, reasons(done)) == (1, {"ambiguous_choices": 1})
    assert {finding["call"] for finding in document(done)["rollouts"][0]["findings"]} == {"c1"}
    assert links(store, "r-1") == {"c0": None, "c1#0": "c0", "c1#1": "c0"}
    assert verdict(store) == ("masked", ["ambiguous_choices"])
    assert not {77, 78, *generation(dialogue(2)[1])} & set(trained(store))


@pytest.mark.parametrize("used", [0, 1])
def test_a_later_call_settles_which_choice_was_used(used: int, tmp_path: Path, store: Path) -> None:
    both = two_answers()
    chosen = {**both, "response": {"choices": [both["response"]["choices"][used]]}}
    message = message_of(chosen)
    ids = [*message["prompt_token_ids"], *message["generation_token_ids"], 120]
    later = going_on(chosen, "and then?", ids, "so", [125], name="c2", at=110.0)
    write_capture(tmp_path, "r-1", [dialogue(1)[0], both, later])
    ingest(store, tmp_path / LOG)
    assert links(store, "r-1")["c2"] == f"c1#{used}"
    assert verdict(store) == ("trainable", [])
    assert [row["calls"] for row in training_rows(store, "terminal")] == [["c0", f"c1#{used}", "c2"]]


def test_a_finished_row_settles_which_choice_was_used(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "r-1", [dialogue(1)[0], two_answers()])
    ingest(store, tmp_path / LOG)
    chosen = stored(store, "r-1")["c1#1"]
    response = {"id": "harness", "object": "response", "output": chosen["output_items"]}
    write_rows(tmp_path / "rows.jsonl", [{"_ng_rollout_id": "r-1", "reward": 1.0, "response": response}])
    done = run("rebuild", store, "--rollouts", tmp_path / "rows.jsonl", "--to", "rows", "-q", "-o", "-")
    assert [row["calls"] for row in done.rows] == [["c0", "c1#1"]]


def test_one_bad_choice_leaves_the_other_and_masks(tmp_path: Path, store: Path) -> None:
    both = two_answers()
    del both["response"]["choices"][1]["message"]["generation_log_probs"]
    write_capture(tmp_path, "r-1", [dialogue(1)[0], both])
    done = ingest(store, tmp_path / LOG)
    assert actions(done) == {"added": 2, "left_out": 1}
    assert verdict(store)[0] == "masked" and trained(store) == []


# What was not answered


@pytest.mark.parametrize("status", [400, 429, 500, 503])
def test_a_call_that_the_server_refused_is_not_missed(status: int, tmp_path: Path, store: Path) -> None:
    first, second = dialogue(2)
    refused = {**second, "model_call_id": "no", "status_code": status, "response": {"error": {"message": "no"}}}
    write_capture(tmp_path, "r-1", [first, refused, second])
    done = ingest(store, tmp_path / LOG)
    assert actions(done) == {"added": 2, "left_out": 1} and told_calls(done)["no"]["problems"] == ["http_error"]
    assert (verdict(store)[0], trained(store)) == ("trainable", generations([first, second]))


@pytest.mark.parametrize("response", [None, {}, {"id": "r", "choices": []}])
def test_a_call_whose_answer_was_lost_is_missed(response: Any, tmp_path: Path, store: Path) -> None:
    first, second = dialogue(2)
    write_capture(tmp_path, "r-1", [first, {**second, "response": response}])
    done = ingest(store, tmp_path / LOG)
    assert (done.code, told_calls(done)["c1"]["action"]) == (1, "left_out")
    assert verdict(store)[0] == "masked" and trained(store) == []
    assert verdicts(store)["r-1"]["lost_calls"] == ["c1"]


def test_a_call_that_was_answered_later_is_no_longer_missed(tmp_path: Path, store: Path) -> None:
    rows = dialogue(2)
    write_log(tmp_path / "1.jsonl", [rows[0], {**rows[1], "response": None}])
    write_log(tmp_path / "2.jsonl", rows)
    ingest(store, tmp_path / "1.jsonl", "--rollout-id", "r-1")
    done = ingest(store, tmp_path / "2.jsonl", "--rollout-id", "r-1")
    assert actions(done) == {"there": 1, "added": 1}
    assert (verdict(store), trained(store)) == (("trainable", []), generations(rows))


def test_the_same_call_with_and_without_its_answer_is_one(tmp_path: Path, store: Path) -> None:
    first, second = dialogue(2)
    write_capture(tmp_path, "r-1", [first, {**second, "response": None}, second])
    done = ingest(store, tmp_path / LOG)
    assert (done.code, told_calls(done)["c1"]["action"]) == (0, "added")
    assert (verdict(store), trained(store)) == (("trainable", []), generations(dialogue(2)))


# Values


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_log_probability_that_is_no_number_gets_no_record(value: str, tmp_path: Path, store: Path) -> None:
    first, second = dialogue(2)
    text = json.dumps(second).replace("[-0.25, -0.25]", f"[-0.25, {value}]")
    (tmp_path / LOG).write_text(f"{json.dumps(first)}\n{text}\n")
    done = ingest(store, tmp_path / LOG)
    assert told_calls(done)["c1"]["problems"] == ["logprob_not_finite"]
    assert stored(store, "r-1").keys() == {"c0"} and verdict(store)[0] == "masked"
    assert trained(store) == []


@pytest.mark.parametrize(("value", "problem"), [(-9999.0, "logprob_sentinel"), (0.5, "logprob_positive")])
def test_log_probabilities_that_are_none_leave_a_call_as_context(
    value: float, problem: str, tmp_path: Path, store: Path
) -> None:
    rows = dialogue(3)
    message_of(rows[1])["generation_log_probs"][0] = value
    write_capture(tmp_path, "r-1", rows)
    done = ingest(store, tmp_path / LOG)
    assert told_calls(done)["c1"]["problems"] == [problem]
    assert verdict(store) == ("masked", [problem])
    assert trained(store) == generations([rows[0], rows[2]])


@pytest.mark.parametrize("finish", ["abort"])
def test_a_generation_that_was_aborted_is_context(finish: str, tmp_path: Path, store: Path) -> None:
    rows = dialogue(3)
    rows[1]["response"]["choices"][0]["finish_reason"] = finish
    write_capture(tmp_path, "r-1", rows)
    ingest(store, tmp_path / LOG)
    assert verdict(store) == ("masked", ["generation_aborted"])
    assert trained(store) == generations([rows[0], rows[2]])


def test_beams_are_context(tmp_path: Path, store: Path) -> None:
    rows = dialogue(3)
    rows[1]["request"]["use_beam_search"] = True
    write_capture(tmp_path, "r-1", rows)
    ingest(store, tmp_path / LOG)
    assert verdict(store) == ("masked", ["beam_search"])
    assert trained(store) == generations([rows[0], rows[2]])


def test_spellings_that_disagree_put_the_ids_in_doubt(tmp_path: Path, store: Path) -> None:
    rows = dialogue(3)
    rows[1]["response"]["choices"][0]["token_ids"] = [1, 2]
    write_capture(tmp_path, "r-1", rows)
    done = ingest(store, tmp_path / LOG)
    assert told_calls(done)["c1"]["problems"] == ["source_mismatch"]
    assert verdict(store)[0] == "masked" and "source_mismatch" in verdict(store)[1]
    assert not set(generation(rows[1])) & set(trained(store))


def test_half_of_a_pair_in_what_was_said_changes_no_token(tmp_path: Path, store: Path) -> None:
    first, second = dialogue(2)
    message_of(second)["content"] = "half \ud800 of a pair"
    write_capture(tmp_path, "r-1", [first, second])
    done = ingest(store, tmp_path / LOG)
    assert (done.code, reasons(done)) == (0, {"lone_surrogate": 1})
    assert "half \\ud800 of a pair" in json.dumps(stored(store, "r-1")["c1"]["output_items"]).replace("\\\\", "\\")
    assert (verdict(store)[0], trained(store)) == ("trainable", generations([first, second]))


def test_what_is_nested_deeper_than_can_be_read_is_said_and_masks(tmp_path: Path, store: Path) -> None:
    first, second = dialogue(2)
    deep = json.dumps(second).replace('"c asks 1"', "[" * 5000 + "1" + "]" * 5000)
    (tmp_path / LOG).write_text(f"{json.dumps(first)}\n{deep}\n")
    done = ingest(store, tmp_path / LOG)
    assert done.code == 1 and set(reasons(done)) <= {"invalid_record", "damaged_line"}
    assert stored(store, "r-1").keys() == {"c0"} and verdict(store)[0] == "masked"


# What continues what


def test_what_the_server_keeps_is_found_by_the_response_that_is_gone_on_with(tmp_path: Path, store: Path) -> None:
    """The request shows nothing of the conversation but its last turn."""

    def response(number: int, prompt: list[int], sampled: list[int], previous: str | None) -> Row:
        item: Row = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": f"answer {number}"}],
        }
        item |= {"prompt_token_ids": prompt, "generation_token_ids": sampled}
        item |= {"generation_log_probs": [-0.5] * len(sampled)}
        request = {"model": "m", "input": f"question {number}"}
        return {
            "model_call_id": f"c{number}",
            "dialect": "responses",
            "status_code": 200,
            "started_at": 100.0 + number,
            "completed_at": 100.5 + number,
            "request": request if previous is None else {**request, "previous_response_id": previous},
            "response": {"id": f"resp-{number}", "model": "m", "status": "completed", "output": [item]},
        }

    rows = [
        response(0, [1, 2], [3], None),
        response(1, [1, 2, 3, 4], [5], "resp-0"),
        response(2, [1, 2, 3, 6], [7], "resp-0"),
        response(3, [9], [8], "resp-of-yesterday"),
    ]
    write_capture(tmp_path, "r-1", rows[:2])
    ingest(store, tmp_path / LOG)
    assert (verdict(store), trained(store)) == (("trainable", []), [3, 5])
    # the response may lie in the store
    write_capture(tmp_path, "r-1", rows)
    done = ingest(store, tmp_path / LOG)
    assert links(store, "r-1") == {"c0": None, "c1": "c0", "c2": "c0", "c3": "?no_match"}
    assert told_calls(done)["c2"]["how"] == "recorded"


def test_what_the_response_of_two_calls_is_gone_on_with_is_ambiguous(tmp_path: Path, store: Path) -> None:
    first, second, third = dialogue(3)
    second["response"]["id"] = first["response"]["id"]
    third["request"]["previous_response_id"] = first["response"]["id"]
    write_capture(tmp_path, "r-1", [first, second, third])
    ingest(store, tmp_path / LOG)
    assert links(store, "r-1")["c2"] == "?ambiguous"


def test_a_prompt_that_does_not_hold_what_it_sends_again_is_a_broken_edge(tmp_path: Path, store: Path) -> None:
    """It fits another call token by token, and is not linked to that one instead."""
    rows = dialogue(2)
    side = chat_call("s", [user("side")], says("x"), prompt=[7, 8], generation=[9], at=90.0)
    message_of(rows[1])["prompt_token_ids"] = [7, 8, 9, 10]
    write_capture(tmp_path, "r-1", [side, *rows])
    done = ingest(store, tmp_path / LOG)
    assert (told_calls(done)["c1"]["how"], links(store, "r-1")["c1"]) == ("conversation", "c0")
    assert verdict(store)[0] == "masked" and "prefix_mismatch" in {
        finding["reason"] for finding in verdicts(store)["r-1"]["findings"]
    }


def test_a_tool_call_goes_on_with_its_result(tmp_path: Path, store: Path) -> None:
    asked = [system("Be brief."), user("What is a quern?")]
    calling = calls(("k1", "look_up", '{"word": "quern"}'), text="Let me look.", reasoning_content="I should.")
    first = chat_call("c0", asked, calling, prompt=[1, 2], generation=[3], at=100.0, finish="tool_calls")
    then = [*asked, calling, result("k1", "a mill")]
    second = chat_call("c1", then, says("A mill."), prompt=[1, 2, 3, 4], generation=[5], at=101.0)
    write_capture(tmp_path, "r-1", [first, second])
    done = ingest(store, tmp_path / LOG)
    assert told_calls(done)["c1"]["how"] == "conversation"
    kinds = [item["type"] for item in stored(store, "r-1")["c0"]["output_items"]]
    assert kinds == ["reasoning", "message", "function_call"]
    assert (verdict(store), trained(store)) == (("trainable", []), [3, 5])


def test_a_compacted_history_is_no_continuation_and_its_break_is_shown(tmp_path: Path, store: Path) -> None:
    asked = [system("You mend querns."), user("go")]
    first = chat_call("c0", asked, says("one"), prompt=[1, 2], generation=[3], at=100.0)
    shorter = [system("You mend querns."), user("summary: one"), user("on")]
    second = chat_call("c1", shorter, says("two"), prompt=[1, 9], generation=[5], at=101.0)
    write_capture(tmp_path, "r-1", [first, second])
    done = ingest(store, tmp_path / LOG)
    assert (told_calls(done)["c1"]["how"], links(store, "r-1")["c1"]) == ("presumed", "c0")
    assert verdict(store)[0] == "masked"


# Two tellings of one call


def test_a_record_and_a_raw_call_of_one_call_are_one(tmp_path: Path, store: Path) -> None:
    forge = healthy("r-1")
    forge.write(tmp_path / "logs")
    rows = [
        {**call.raw(), "response": {**call.raw()["response"], "output": [{**call.output[0], **bundle(call)}]}}
        for call in forge.calls
    ]
    write_capture(tmp_path / "logs", "r-1", rows)
    done = ingest(store, tmp_path / "logs")
    assert (done.code, reasons(done), actions(done)) == (0, {}, {"added": 2})
    assert links(store, "r-1") == {"a": None, "b": "a"}
    # the record that NeMo Gym made is the one that stays
    assert [canonical(row) for row in stored(store, "r-1").values()] == forge.lines()
    assert (verdict(store), trained(store)) == (("trainable", []), [3, 5])


def bundle(call: Any) -> Row:
    return {
        "prompt_token_ids": call.prompt,
        "generation_token_ids": call.generation,
        "generation_log_probs": call.log_probs,
    }


def test_a_record_and_a_raw_call_that_contradict_one_another_mask(tmp_path: Path, store: Path) -> None:
    forge = healthy("r-1")
    forge.write(tmp_path / "logs")
    row = forge.calls[1].raw()
    output = [{**forge.calls[1].output[0], **bundle(forge.calls[1]), "generation_token_ids": [6]}]
    write_capture(tmp_path / "logs", "r-1", [{**row, "response": {**row["response"], "output": output}}])
    done = ingest(store, tmp_path / "logs")
    assert (done.code, reasons(done)) == (1, {"conflicting_records": 2})
    assert stored(store, "r-1").keys() == {"a"}
    assert verdict(store)[0] == "masked" and trained(store) == []


def test_records_are_written_again_as_nemo_gym_writes_them(tmp_path: Path, store: Path) -> None:
    forge = healthy("r-1")
    files = forge.files()
    loose = [json.dumps(json.loads(line), indent=None) for line in files["r-1.tokens.jsonl"].splitlines()]
    (tmp_path / "r-1.tokens.jsonl").write_text("\r\n".join(loose) + "\r\n")
    done = ingest(store, tmp_path / "r-1.tokens.jsonl")
    assert (done.code, {call["how"] for call in told_calls(done).values()}) == (0, {None, "recorded"})
    for name in ("r-1.tokens.jsonl", "r-1.tokens.intents"):
        assert (store / name).read_bytes() == files[name]
    assert json.loads((store / "r-1.tokens.state.json").read_bytes())["version"] in (1, 2)


def test_records_without_links_get_none_and_can_be_judged_by_their_tokens(tmp_path: Path, store: Path) -> None:
    forge = healthy("r-1")
    rows = [
        {key: value for key, value in call.record().items() if not key.startswith(("parent", "digest", "contin"))}
        for call in forge.calls
    ]
    done = ingest(store, write_log(tmp_path / "r-1.tokens.jsonl", rows))
    assert {name: call["how"] for name, call in told_calls(done).items()} == {"a": None, "b": None}
    assert verdict(store) == ("masked", ["link_missing"])
    assert run("verify", store, "--infer-links").code == 0


def test_a_record_of_another_rollout_is_refused(tmp_path: Path, store: Path) -> None:
    healthy("r-2").write(tmp_path / "logs")
    (tmp_path / "logs" / "r-2.tokens.jsonl").rename(tmp_path / "logs" / "r-1.tokens.jsonl")
    done = ingest(store, tmp_path / "logs" / "r-1.tokens.jsonl")
    assert (done.code, reasons(done)) == (1, {"rollout_id_mismatch": 2})
    assert not store.exists()


def test_a_state_that_tells_of_a_lost_call_beside_records_masks(tmp_path: Path, store: Path) -> None:
    healthy("r-1").write(tmp_path / "logs")
    (tmp_path / "logs" / "r-1.tokens.intents").write_bytes(b"a\nb\nlost\n")
    done = ingest(store, tmp_path / "logs")
    assert (done.code, reasons(done)) == (1, {"capture_incomplete": 1})
    assert verdicts(store)["r-1"]["lost_calls"] == ["lost"]


def test_a_record_whose_line_break_was_lost_is_kept_and_masks(tmp_path: Path, store: Path) -> None:
    healthy("r-1").write(tmp_path / "logs", state=False, intents=False)
    path = tmp_path / "logs" / "r-1.tokens.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    done = ingest(store, tmp_path / "logs")
    assert (done.code, reasons(done), actions(done)) == (1, {"missing_newline": 1}, {"added": 2})
    assert verdict(store)[0] == "masked"


def test_a_state_that_cannot_be_read_beside_records_masks(tmp_path: Path, store: Path) -> None:
    healthy("r-1").write(tmp_path / "logs")
    (tmp_path / "logs" / "r-1.tokens.state.json").write_bytes(b"{")
    done = ingest(store, tmp_path / "logs")
    assert (done.code, reasons(done), actions(done)) == (1, {"state_unreadable": 1}, {"added": 2})
    assert verdict(store)[0] == "masked"


def test_a_damaged_file_whose_name_is_no_rollout_names_none(tmp_path: Path, store: Path) -> None:
    (tmp_path / "%41.capture.jsonl").write_bytes(b"{broken}\n")
    done = ingest(store, tmp_path / "%41.capture.jsonl")
    assert (done.code, reasons(done), store.exists()) == (1, {"damaged_line": 1}, False)


def test_a_request_that_is_nested_too_deeply_costs_its_own_call_alone(tmp_path: Path, store: Path) -> None:
    """Deep enough for what writes, compares or keeps it, and not for what reads it."""
    first, second = dialogue(2)
    for depth in (150, 300, 480, 700, 950):
        text = json.dumps({**second, "model_call_id": f"d{depth}"})
        deep = text.replace('"model": "policy-8b"', '"tools": ' + "[" * depth + "]" * depth, 1)
        (tmp_path / LOG).write_text(f"{json.dumps(first)}\n{deep}\n")
        done = ingest(store, tmp_path / LOG)
        assert done.code in (0, 1) and "c0" in stored(store, "r-1")
        assert done.code == 1 or f"d{depth}" in stored(store, "r-1")
