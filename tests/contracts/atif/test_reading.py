"""Documents as episodes: what is told, what is refused, notes that somebody broke (contracts.md 3.3, 9.8, 9.9)."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.atif.foreign import foreign_format, foreign_lines
from ng_capture.contracts.atif.read import read_document
from ng_capture.contracts.episode import Role, Thought, Tokens
from ng_capture.contracts.interface import Head, Options, Read, Refused
from ng_capture.contracts.sources import Source
from tests.support.atif import Doc, called, document, put, read_text, with_steps, write_one
from tests.support.atif import agent_step as agent
from tests.support.atif import user_step as user


def noted(step: Doc, **notes: Any) -> Doc:
    """A document of one step that has these notes."""
    return with_steps({**step, "extra": {"ng_capture": notes}})


def turn(value: Doc) -> Any:
    return read_document(value).main.turns[0]


def test_a_document_is_read_whole(tmp_path: Path) -> None:
    read = read_text(tmp_path, json.dumps(document()))
    assert isinstance(read, Read) and read.faults == () and read.losses == ()
    main = read.episode.main
    assert (main.session_id, main.agent.name, main.agent.model) == ("s-1", "counter", "policy-a")
    assert [each.role for each in main.turns] == [Role.USER, Role.ASSISTANT, Role.ASSISTANT]
    assert [each.place for each in main.turns] == ["/steps/0", "/steps/1", "/steps/2"]
    assert main.turns[1].content is None and main.turns[1].thoughts == (Thought(("Use the tool.",)),)
    assert main.turns[1].calls[0].arguments == '{"a": 2, "b": 3}'
    assert main.turns[1].results[0].content == "5"
    assert main.totals is not None and (main.totals.usage.tokens_in, main.totals.steps) == (32, 3)


def test_nulls_are_what_is_not_there(tmp_path: Path) -> None:
    value = document(final_metrics={"total_prompt_tokens": None})
    value["steps"][1]["observation"] = None
    value["steps"][1]["tool_calls"][0]["extra"] = None
    read = read_document(value)
    assert read.main.turns[1].results == ()
    assert read.main.totals is not None and read.main.totals.usage.tokens_in is None


def test_errors_refuse_a_document_with_all_of_them_and_warnings_do_not(tmp_path: Path) -> None:
    refused = read_text(tmp_path, json.dumps(document(x=1, steps=[])))
    assert isinstance(refused, Refused)
    assert {fault.rule for fault in refused.faults if fault.severity == "error"} == {
        "atif.field.unknown",
        "atif.steps.empty",
    }
    read = read_text(tmp_path, "\ufeff" + json.dumps(document()))
    assert isinstance(read, Read) and [fault.rule for fault in read.faults] == ["atif.json.bom"]


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"a":1}{"a":2}', '{"steps":[1e999]}'])
def test_what_is_no_document_is_refused(tmp_path: Path, text: str) -> None:
    refused = read_text(tmp_path, text)
    assert isinstance(refused, Refused) and refused.faults


def test_a_compressed_document_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document()).encode()))
    assert ATIF.reader is not None
    (read,) = ATIF.reader.read(Source(str(path)), Options())
    assert isinstance(read, Read)


# other formats

FOREIGN = {
    "mini-swe-agent": {"info": {}, "messages": []},
    "gemini-cli": {"sessionId": "s", "projectHash": "h", "messages": []},
    "Gym rollout row": {"responses_create_params": {}, "response": {}},
    "ATOF event": {"atof_version": "0.1", "kind": "scope"},
    "verifiers row": {"prompt": [], "completion": []},
    "OpenAI Chat Completions response": {"choices": []},
}


@pytest.mark.parametrize("name", FOREIGN)
def test_another_format_is_refused_by_its_name_whole_or_line_by_line(tmp_path: Path, name: str) -> None:
    value = FOREIGN[name]
    for text in (json.dumps(value), json.dumps([value]), f"{json.dumps(value)}\n{json.dumps(value)}\n"):
        refused = read_text(tmp_path, text)
        assert isinstance(refused, Refused)
        (fault,) = refused.faults
        assert fault.rule == "atif.foreign" and name in fault.message


def test_a_format_that_another_reader_reads_is_refused_with_its_name() -> None:
    known = foreign_format(FOREIGN["Gym rollout row"])
    assert known is not None and "--from gym" in known.message
    unknown = foreign_format(FOREIGN["gemini-cli"])
    assert unknown is not None and "--from" not in unknown.message


@pytest.mark.parametrize(
    "value", [document(), {"agent": {}, "steps": []}, {"schema_version": "ATIF-v9"}, 1, [], {"x": 1}]
)
def test_what_is_atif_or_nothing_known_is_not_foreign(value: object) -> None:
    assert foreign_format(value) is None
    assert foreign_lines(json.dumps(value).encode()) is None


def test_lines_that_are_no_json_are_not_foreign() -> None:
    assert foreign_lines(b"{\n{") is None
    assert foreign_lines(b"") is None


def test_atif_is_recognised_and_what_only_claims_to_be_a_trajectory() -> None:
    assert ATIF.reader is not None
    recognises = ATIF.reader.recognises
    assert recognises(Head("t.json", False, document()))
    assert recognises(Head("t.json", False, FOREIGN["gemini-cli"]))
    assert not recognises(Head("t.json", False, FOREIGN["Gym rollout row"]))
    assert not recognises(Head("t.json", False, {"x": 1}))
    assert not recognises(Head("t.json", False, 1))


# notes


def test_reasoning_that_somebody_edited_is_the_text_that_it_is() -> None:
    pieces = [{"summary": ["a"]}, {"content": ["b"], "encrypted": "e"}]
    whole = noted(agent("x", reasoning_content="a\nb"), reasoning=pieces)
    assert turn(whole).thoughts == (Thought(("a",)), Thought((), ("b",), encrypted="e"))
    assert turn(put(whole, "/steps/0/reasoning_content", "c")).thoughts == (Thought(("c",)),)
    assert turn(noted(agent("x"), reasoning=pieces)).thoughts == ()


def test_one_piece_keeps_its_form_whatever_its_text() -> None:
    note = [{"form": "content", "signature": "s"}]
    assert turn(noted(agent("x", reasoning_content="R"), reasoning=note)).thoughts == (
        Thought((), ("R",), signature="s"),
    )


def test_ids_of_reasoning_that_fit_no_piece_are_not_given_to_any() -> None:
    value = noted(agent("x", reasoning_content="R"), items={"reasoning": [{"id": "a"}, {"id": "b"}]})
    assert turn(value).thoughts == (Thought(("R",)),)


@pytest.mark.parametrize("notes", [1, [], {"call_index": "x"}, {"reasoning": 1}, {"parts": [{"index": "0"}]}])
def test_notes_that_cannot_be_read_stay_where_they_are(notes: object) -> None:
    value = with_steps({**agent("x"), "extra": {"ng_capture": notes, "e": 1}})
    assert turn(value).content == "x"
    assert write_one(read_document(value))[0] == value


def test_notes_of_others_in_ours_stay() -> None:
    value = noted(agent("x"), call_index=1, of_others=[1])
    assert turn(value).call.index == 1
    assert write_one(read_document(value))[0] == value


@pytest.mark.parametrize("arrays", [1, {"prompt_ids": 1}])
def test_arrays_in_notes_that_are_none_are_not_tokens(arrays: object) -> None:
    value = noted(agent("x"), token_arrays=arrays)
    assert turn(value).call is None
    assert write_one(read_document(value))[0] == value


@pytest.mark.parametrize("metrics", [1, {"prompt_tokens": "2"}, {"x": 1}])
def test_metrics_in_notes_that_are_none_are_not_counts(metrics: object) -> None:
    value = noted(agent("x", is_copied_context=True), metrics=metrics)
    assert turn(value).call is None
    assert write_one(read_document(value))[0] == value


def test_metrics_of_a_step_win_over_those_of_its_notes_and_neither_is_lost() -> None:
    value = noted(
        agent("x", metrics={"prompt_tokens": 1, "logprobs": [-1.0]}),
        metrics={"prompt_tokens": 2},
        token_arrays={"prompt_ids": [1]},
    )
    call = turn(value).call
    assert (call.usage.tokens_in, call.tokens) == (1, Tokens(log_probs=[-1.0]))
    assert write_one(read_document(value))[0] == value


def test_a_result_that_names_its_call_does_not_ask_the_notes() -> None:
    result = {"source_call_id": "c1", "extra": {"ng_capture": {"call_id": "z"}}}
    value = with_steps(agent("x", tool_calls=[called()], observation={"results": [result]}))
    assert turn(value).results[0].call_id == "c1"


def test_an_item_that_is_no_json_any_more_is_its_text() -> None:
    for message in ("edited", "[1]", [{"type": "text", "text": "a"}]):
        value = noted({"source": "system", "message": message}, item_kind="item_reference")
        assert write_one(read_document(value))[0]["steps"][0]["message"] == message


def test_a_rollout_that_gym_exported_keeps_its_name() -> None:
    value = document(extra={"nemo_gym": {"source": {"rollout_id": "r-1"}}})
    assert read_document(value).rollout_id == "r-1"
    assert write_one(read_document(value))[0] == value


@pytest.mark.parametrize("reward", ["1", True, None])
def test_a_reward_that_is_no_number_is_none(reward: object) -> None:
    value = document(extra={"ng_capture": {"rollout": {"reward": reward, "truncated": 1}}})
    assert (read_document(value).reward, read_document(value).truncated) == (None, None)


def test_answers_without_a_step_that_somebody_broke_are_passed_over() -> None:
    good = {"step_id": 1, "source": "agent", "message": "", "model_name": "m"}
    value = document(extra={"ng_capture": {"omitted": [good, {"source": 1}, 7]}})
    assert [each.call.model for each in read_document(value).omitted if each.call] == ["m"]


def test_a_system_step_may_observe() -> None:
    step = {"source": "system", "message": "S", "observation": {"results": [{"content": "x"}]}}
    value = with_steps(step, user())
    assert turn(value).results[0].content == "x"
    assert write_one(read_document(value))[0] == value
