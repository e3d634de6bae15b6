"""Episodes as token records: ids travel whole or not at all, links are proven or refused (contracts.md 3.3, 3.4, 6)."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.captured import ROLLOUT, codes, converted, document, put, rules_of, written
from tests.support.forge import Forge, Row, token_digest
from tests.support.raw_calls import calls, chat_call, result, says, system, user
from tests.support.runs import healthy


def records(source: Path, contract: str = "capture", **options: Any) -> list[Row]:
    one = written(source, "tokens", contract, **options).written
    assert one is not None
    return [json.loads(each) for each in one.documents]


def put_written(source: Path, to: str, directory: Path, contract: str = "capture") -> Path:
    """What a conversion wrote, as the command lays it in a folder."""
    directory.mkdir()
    for one in converted(source, to, contract):
        assert one.written is not None, one.faults
        data = b"".join(each + b"\n" for each in one.written.documents)
        (directory / f"{one.name.stem}.{'tokens.jsonl' if to == 'tokens' else 'json'}").write_bytes(data)
        for file in one.written.files:
            (directory / file.name).write_bytes(file.data)
    return directory


def raw_talk() -> list[Row]:
    look = calls(("k1", "look_up", "{}"), text="")
    found = result("k1", "x")
    return [
        chat_call("a", [user("hi")], look, prompt=[1, 2], generation=[3, 4]),
        chat_call("b", [user("hi"), look, found], says("done"), prompt=[1, 2, 3, 4, 5], generation=[6], at=1.0),
    ]


def test_raw_calls_with_ids_become_linked_records(tmp_path: Path) -> None:
    first, second = records(put(tmp_path, raw_talk()))
    assert first["rollout_id"] == second["rollout_id"] == ROLLOUT
    assert (first["prompt_token_ids"], first["generation_token_ids"]) == ([1, 2], [3, 4])
    assert first["generation_log_probs"] == [-0.25, -0.25]
    assert (first["parent_resolution"], first["parent_call_id"]) == ("root", None)
    assert (second["parent_resolution"], second["parent_call_id"]) == ("resolved", "a")
    assert second["digest"] == token_digest([1, 2, 3, 4, 5, 6])
    assert second["cum_len"] == 6
    assert first["output_items"][first["token_item_index"]]["type"] == "function_call"


def test_records_that_were_read_are_written_as_they_stood(tmp_path: Path) -> None:
    forge = healthy(ROLLOUT)
    forge.write(tmp_path)
    told = {record["model_call_id"]: record for record in records(tmp_path)}
    assert told == {call.id: call.record() for call in forge.calls}


def test_fields_that_nobody_knows_survive(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    forge.root([1], [2], id="A", colour={"deep": [1, 2.5, None]}, routed_experts=[[0, 1]])
    forge.write(tmp_path)
    (told,) = records(tmp_path)
    assert told["colour"] == {"deep": [1, 2.5, None]}
    assert told["routed_experts"] == [[0, 1]]


@pytest.mark.parametrize("to", ["jsonl", "atif", "tokens"])
@pytest.mark.parametrize("delta", [False, True])
def test_there_and_back_gives_the_same_records(tmp_path: Path, to: str, delta: bool) -> None:
    forge = Forge(ROLLOUT, delta=delta)
    first = forge.root([1, 2], [3], id="A")
    second = first.then([4], [5, 6], id="B")
    second.retry([7], id="C")
    second.then([8], [], id="D")
    first.then([9], [10], id="E")
    forge.unresolved([60], [61], id="F")
    forge.write(tmp_path / "store", state=False, intents=False)
    there = put_written(tmp_path / "store", to, tmp_path / "there")
    source = next(there.iterdir()) if to != "tokens" else there
    told = {
        record["model_call_id"]: record
        for record in records(source, {"jsonl": "jsonl", "atif": "atif"}.get(to, "tokens"))
    }
    assert told == {call.id: call.record() for call in forge.calls}


def test_a_record_with_faulty_arrays_is_written_as_it_stood(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    first = forge.root([1, 2], [3], id="A")
    first.then([4], [5], id="B", generation_log_probs=[None])
    forge.write(tmp_path)
    told = {record["model_call_id"]: record for record in records(tmp_path)}
    assert told["B"]["generation_log_probs"] == [None]
    assert told["B"]["prompt_token_ids"] == [1, 2, 3, 4]


@pytest.mark.parametrize("bad", [[-1], [1.5], [2**31], [None], [1, 2**70]])
@pytest.mark.parametrize("position", ["prompt_token_ids", "generation_token_ids"])
def test_an_id_that_is_none_is_no_token_of_a_trajectory(tmp_path: Path, position: str, bad: list[Any]) -> None:
    forge = Forge(ROLLOUT)
    call = forge.root([1, 2], [3], id="A")
    call.fields[position] = bad
    forge.write(tmp_path)
    trajectory = document(tmp_path, "atif")
    assert "prompt_token_ids" not in trajectory["steps"][0].get("metrics", {})
    (told,) = records(tmp_path)
    assert told[position] == bad


def test_a_delta_whose_parent_is_lost_stays_a_delta(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT, delta=True)
    first = forge.root([1, 2], [3], id="A")
    second = first.then([4], [5], id="B")
    put(tmp_path, [second.line()], kind="tokens")
    (told,) = records(tmp_path)
    assert told == second.record()


def test_a_delta_whose_parent_is_not_written_gets_its_whole_prompt(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT, delta=True)
    first = forge.root([1, 2], [3], id="A", generation_log_probs=[None])
    first.then([4], [5], id="B")
    forge.write(tmp_path)
    told = {record["model_call_id"]: record for record in records(tmp_path)}
    if told["B"]["prompt_is_delta"]:
        assert told["B"]["prompt_token_ids"] == [4]
    else:
        assert told["B"]["prompt_token_ids"] == [1, 2, 3, 4]


def atif(tmp_path: Path, *agents: Row, **fields: Any) -> Path:
    """A trajectory of steps of an agent behind one of the user, each with its metrics."""
    steps = [{"step_id": 1, "source": "user", "message": "hi"}]
    steps += [
        {"step_id": 2 + at, "source": "agent", "message": f"m{at}", **({"metrics": metrics} if metrics else {})}
        for at, metrics in enumerate(agents)
    ]
    trajectory = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "x", "version": "1", "model_name": "m"},
        "steps": steps,
        **fields,
    }
    path = tmp_path / "t.json"
    path.write_text(json.dumps(trajectory))
    return path


def metrics(prompt: list[int], completion: list[int], **fields: Any) -> Row:
    return {
        "prompt_token_ids": prompt,
        "completion_token_ids": completion,
        "logprobs": [-0.5] * len(completion),
        **fields,
    }


def test_a_trajectory_with_ids_becomes_records(tmp_path: Path) -> None:
    first, second = records(atif(tmp_path, metrics([1], [2]), metrics([1, 2, 3], [4])), "atif")
    assert first["parent_resolution"] == "root"
    assert second["parent_call_id"] == first["model_call_id"]
    assert second["model"] == "m"
    assert second["generation_log_probs"] == [-0.5]


def test_a_prompt_that_begins_with_no_call_is_told_as_unresolved(tmp_path: Path) -> None:
    _, second = records(atif(tmp_path, metrics([1], [2]), metrics([9], [4])), "atif")
    assert (second["parent_resolution"], second["parent_call_id"]) == ("unresolved", None)


def test_a_call_goes_on_with_the_longest_sequence_that_fits(tmp_path: Path) -> None:
    path = atif(tmp_path, metrics([1], [2]), metrics([1, 2, 3], [4]), metrics([9], [9]), metrics([1, 2, 3, 4, 5], [6]))
    told = records(path, "atif")
    assert told[3]["parent_call_id"] == told[1]["model_call_id"]


def test_calls_with_the_identical_sequence_are_no_parent(tmp_path: Path) -> None:
    path = atif(tmp_path, metrics([1], [2]), metrics([1], [2]), metrics([9], [9]), metrics([1, 2, 3], [4]))
    (refused,) = converted(path, "tokens", "atif")
    assert refused.written is None
    assert rules_of(refused.faults) == [("tokens.link_ambiguous", "/steps/4", None)]


@pytest.mark.parametrize(
    "incomplete",
    [
        {"completion_token_ids": [4]},
        metrics([1, 2, 3], [4], logprobs=[-0.5, -0.5]),
        metrics([1, 2, 3], [4]) | {"logprobs": None},
        {},
    ],
)
def test_tokens_travel_whole_or_not_at_all(tmp_path: Path, incomplete: Row) -> None:
    one = written(atif(tmp_path, metrics([1], [2]), incomplete), "tokens", "atif")
    assert one.written is not None
    assert len(one.written.documents) == 1
    assert codes(one)["tokens_incomplete"] >= 1
    # a rollout that is not whole does not look so
    assert [file.name for file in one.written.files] == [f"{one.name.stem}.tokens.incomplete"]


def test_without_any_ids_nothing_is_written(tmp_path: Path) -> None:
    (refused,) = converted(atif(tmp_path, {}), "tokens", "atif")
    assert refused.written is None
    assert [fault.rule for fault in refused.faults] == ["tokens.none"]


def test_values_that_no_record_holds_are_refused(tmp_path: Path) -> None:
    (refused,) = converted(atif(tmp_path, metrics([1], [2]), metrics([2**31], [1])), "tokens", "atif")
    assert refused.written is None
    assert rules_of(refused.faults) == [("tokens.bad_token_id", "/steps/2", None)]


def test_a_gap_of_the_source_is_marked_beside_the_records(tmp_path: Path) -> None:
    forge = healthy(ROLLOUT)
    forge.write(tmp_path)
    path = tmp_path / f"{ROLLOUT}.tokens.jsonl"
    path.write_bytes(path.read_bytes() + b'{"torn')
    one = written(tmp_path, "tokens")
    assert one.written is not None
    assert [file.name for file in one.written.files] == [f"{ROLLOUT}.tokens.incomplete"]


def test_what_the_raw_call_says_against_its_record_is_noted_in_it(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    forge.root([1, 2], [3], id="A")
    forge.write(tmp_path)
    row = chat_call("A", [user("hi")], says("x"))
    row["response"]["usage"] = {"prompt_tokens": 2, "completion_tokens": 7}
    put(tmp_path, [row])
    (told,) = records(tmp_path)
    assert told["ng_capture"]["problems"] == ["token_count_mismatch"]


def test_a_sub_agent_has_records_of_its_own(tmp_path: Path) -> None:
    rows = [
        chat_call("a", [system("S"), user("go")], says("one"), prompt=[1], generation=[2]),
        chat_call("b", [system("T"), user("sub")], says("two"), prompt=[8], generation=[9], at=1.0),
        chat_call("c", [user("x")], None, status_code=500, error_category="upstream_error", at=2.0),
    ]
    first, second = records(put(tmp_path, rows))
    assert (first["parent_resolution"], second["parent_resolution"]) == ("root", "root")


def test_choices_of_one_call_are_kept_apart(tmp_path: Path) -> None:
    forge = Forge(ROLLOUT)
    first = forge.root([1], [2], id="A#0")
    forge.root([1], [3], id="A#1", ng_capture={"choices": 2})
    forge.write(tmp_path, state=False, intents=False)
    put(tmp_path, [chat_call("A", [user("hi")], says("x"))])
    told = records(tmp_path)
    assert {record["model_call_id"] for record in told} == {"A#0", "A#1"}
    assert first.id in {record["model_call_id"] for record in told}


def gym_row(**message: Any) -> Row:
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    content = [{"type": "output_text", "text": "one", "annotations": []}]
    return {
        "responses_create_params": {"input": [user("hi")], "temperature": 0.5},
        "response": {"id": "resp", "model": "m", "output": [{**item, "content": content, **message}]},
        "reward": 1.0,
        "_ng_task_index": 3,
        "_ng_rollout_index": 0,
        "expected_answer": "one",
    }


def test_a_finished_row_with_ids_becomes_a_record_of_its_rollout(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    ids = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.1]}
    path.write_text(json.dumps(gym_row(**ids)) + "\n")
    one = written(path, "tokens", "gym")
    (told,) = records(path, "gym")
    assert one.name.stem == told["rollout_id"] == "3-0"
    assert {key: told[key] for key in ids} == ids
    assert {"reward_dropped", "row_fields_dropped", "request_fields_dropped"} <= codes(one).keys()


@pytest.mark.parametrize("between", ["gym", "responses", "atif", "jsonl"])
def test_ids_come_through_every_contract_that_carries_them(tmp_path: Path, between: str) -> None:
    direct = records(put(tmp_path / "store", raw_talk()))
    one = written(tmp_path / "store", between).written
    assert one is not None
    path = tmp_path / "between.json"
    path.write_bytes(b"".join(each + b"\n" for each in one.documents))
    told = records(path, between)
    names = ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "digest", "parent_resolution")
    assert [[record[name] for name in names] for record in told] == [
        [record[name] for name in names] for record in direct
    ]
    assert told[1]["parent_call_id"] == told[0]["model_call_id"]


def test_ids_on_the_history_of_a_request_are_no_calls_of_it_and_are_told(tmp_path: Path) -> None:
    one = written(put(tmp_path / "store", raw_talk()), "chat").written
    assert one is not None
    path = tmp_path / "pair.json"
    path.write_bytes(one.documents[0])
    (told,) = records(path, "chat")
    assert (told["prompt_token_ids"], told["generation_token_ids"]) == ([1, 2, 3, 4, 5], [6])
    # the call before it is not there, so the link is not known
    assert told["parent_resolution"] == "unresolved"
    assert codes(written(path, "tokens", "chat"))["tokens_dropped"] == 1


@pytest.mark.parametrize("between", ["messages", "sft", "eval"])
def test_contracts_without_a_place_for_ids_say_so(tmp_path: Path, between: str) -> None:
    one = written(put(tmp_path, raw_talk()), between)
    assert codes(one)["tokens_dropped"] == 2
    assert one.written is not None
    assert b"token_ids" not in b"".join(one.written.documents)


def test_a_choice_as_vllm_serves_it_has_its_ids(tmp_path: Path) -> None:
    row = chat_call("a", [user("hi")], says("x"))
    row["response"]["prompt_token_ids"] = [1, 2]
    row["response"]["choices"][0]["token_ids"] = [3]
    row["response"]["choices"][0]["logprobs"] = {"content": [{"token": "x", "logprob": -0.5}]}
    (told,) = records(put(tmp_path, [row]))
    assert (told["prompt_token_ids"], told["generation_token_ids"]) == ([1, 2], [3])
    assert told["generation_log_probs"] == [-0.5]
    # the log probabilities of a server that gives none are not made up
    row["response"]["choices"][0]["logprobs"] = None
    (refused,) = converted(put(tmp_path, [row]), "tokens")
    assert [fault.rule for fault in refused.faults] == ["tokens.none"]
