"""Steps by what Gym saw of a rollout, where it saw them (contracts.md 3.4, 2; 5.4)."""

import copy
from typing import Any

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Options
from tests.support.converting import Done, converted
from tests.support.gym_trajectory import CONVERSATION, model_call, seen, tool_record, turn
from tests.support.items import call, result, row, said, thought, user


def captured(*calls: dict[str, Any], output: list[Any]) -> Done:
    """A row with the calls that were captured of it, as a trajectory."""
    return converted({**row(output), "ng_model_call_capture": {"calls": list(calls)}}, GYM, ATIF)


def record(call_id: str, *called: str, **members: Any) -> dict[str, Any]:
    told = {"model_call_id": call_id, "tokens_in": 10, "tokens_out": 4, "completed_at": 1750000000.0}
    return {**told, "tool_calls": [{"call_id": each, "name": "f"} for each in called], **members}


OUTPUT = [call(), result(), said("done")]


def test_captured_calls_tell_the_steps() -> None:
    done = captured(record("a", "c1"), record("b"), output=OUTPUT)
    steps = done.value["steps"][1:]
    assert [step["llm_call_count"] for step in steps] == [1, 1]
    assert [step["metrics"]["prompt_tokens"] for step in steps] == [10, 10]
    assert [step["extra"]["ng_capture"]["model_call_id"] for step in steps] == ["a", "b"]
    assert "step_boundary_inferred" not in done.codes


def test_a_call_that_failed_makes_no_step() -> None:
    failed = record("f", status_code=500)
    done = captured(record("a", "c1"), failed, record("b"), output=OUTPUT)
    assert [step["extra"]["ng_capture"]["model_call_id"] for step in done.value["steps"][1:]] == ["a", "b"]


def test_calls_that_do_not_fit_the_items_tell_nothing() -> None:
    for calls in ([record("a", "c1")], [record("a"), record("b", "c1")]):
        done = captured(*calls, output=OUTPUT)
        assert "step_boundary_inferred" in done.codes
        assert not [step for step in done.value["steps"] if "llm_call_count" in step]


def test_a_sum_over_calls_that_is_not_the_rows_is_told_and_the_rows_is_kept() -> None:
    usage = {"input_tokens": 30, "output_tokens": 7, "total_tokens": 37}
    whole = {
        **row(OUTPUT, response={"usage": usage}),
        "ng_model_call_capture": {"calls": [record("a", "c1"), record("b")]},
    }
    done = converted(whole, GYM, ATIF)
    [told] = [loss for loss in done.losses if loss.code == "usage_mismatch"]
    assert told.detail == "30 in, 7 out; the calls: 20 in, 8 out"
    assert done.value["final_metrics"]["total_prompt_tokens"] == 30


def test_the_turns_that_gym_saw_are_the_steps() -> None:
    done = converted(seen(), GYM, ATIF)
    first, second = done.value["steps"][1:]
    assert (first["reasoning_content"], first["llm_call_count"], second["llm_call_count"]) == ("R", 1, 1)
    assert first["timestamp"].startswith("2025-06-15T15:06:41")
    assert first["extra"]["nemo_gym"]["model_call"]["model_call_id"] == "mc1"
    assert first["observation"]["results"][0]["extra"]["nemo_gym"]["source_item_id"] == "o1"
    assert "step_boundary_inferred" not in done.codes


def test_the_calls_of_a_trajectory_without_turns_tell_the_steps() -> None:
    done = converted(seen(turns=[]), GYM, ATIF)
    assert [step.get("llm_call_count") for step in done.value["steps"]] == [None, 1, 1]


def test_a_turn_of_several_calls_has_their_sum() -> None:
    refs = [{"model_call_id": "mc1"}, {"model_call_id": "mc2"}]
    whole = seen()
    whole["ng_trajectory"]["turns"][0]["model_calls"] = refs
    step = converted(whole, GYM, ATIF).value["steps"][1]
    assert (step["llm_call_count"], step["metrics"]["prompt_tokens"]) == (2, 20)


def test_a_turn_of_a_call_that_is_not_there_has_its_time_alone() -> None:
    whole = seen(model_calls=[])
    step = converted(whole, GYM, ATIF).value["steps"][1]
    assert "timestamp" in step
    assert "llm_call_count" not in step


def test_a_call_is_named_by_its_id_or_by_server_and_response() -> None:
    whole = seen()
    server = {"type": "responses_api_models", "name": "server"}
    whole["ng_trajectory"]["turns"][0]["model_calls"] = [{"model_ref": server, "response_id": "resp-mc1"}]
    step = converted(whole, GYM, ATIF).value["steps"][1]
    assert step["extra"]["ng_capture"]["model_call_id"] == "mc1"
    whole["ng_trajectory"]["model_calls"].append(model_call("mc1"))
    step = converted(whole, GYM, ATIF).value["steps"][1]
    assert "llm_call_count" not in step


def test_calls_of_no_turn_are_kept_beside_the_steps() -> None:
    whole = seen(model_calls=[model_call("mc1"), model_call("mc2"), model_call("surplus")])
    [extra] = converted(whole, GYM, ATIF).value["extra"]["nemo_gym"]["surplus_model_calls"]
    assert extra["model_call_id"] == "surplus"


def test_what_was_said_before_the_first_turn_is_history() -> None:
    whole = seen()
    whole["ng_trajectory"]["turns"] = [
        turn("inv", 2, CONVERSATION[:4], [CONVERSATION[4]], None),
        {"turn_no": 1},
        {"turn_no": "x", "invocation_id": "inv"},
    ]
    steps = converted(whole, GYM, ATIF).value["steps"]
    assert [step.get("is_copied_context") for step in steps] == [None, True, None]


def two_agents(**members: Any) -> dict[str, Any]:
    """A row of an agent that calls another, which calls a third."""
    whole = seen()
    it = whole["ng_trajectory"]
    asked = [user("sub"), call("c2"), result("c2"), said("inside", "m5")]
    it["invocations"] += [
        {
            "invocation_id": "sub",
            "parent_invocation_id": "inv",
            "spawned_by_tool_call_id": "c1",
            "status": "completed",
            "conversation": asked,
            **members,
        },
        {
            "invocation_id": "subsub",
            "parent_invocation_id": "sub",
            "spawned_by_tool_call_id": "c2",
            "conversation": [user("deep"), said("deeper", "m6")],
        },
        {"invocation_id": "silent", "parent_invocation_id": "inv"},
    ]
    it["turns"].append({**turn("sub", 1, asked[:1], [asked[1]], None), "model_calls": [{"model_call_id": "mc3"}]})
    it["model_calls"].append(model_call("mc3"))
    it["tool_calls"].append(tool_record("c2", invocation_id="sub"))
    return whole


def test_agents_that_were_called_are_embedded_at_the_result_of_their_call() -> None:
    document = converted(two_agents(), GYM, ATIF).value
    [inner] = document["subagent_trajectories"]
    [ref] = document["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"]
    assert ref["trajectory_id"] == inner["trajectory_id"] == "sub"
    assert [each["trajectory_id"] for each in inner["subagent_trajectories"]] == ["subsub"]
    assert inner["agent"]["model_name"] == "policy"


def test_an_agent_that_nothing_is_known_to_have_called_is_told() -> None:
    for members in ({"spawned_by_tool_call_id": "c9"}, {"spawned_by_tool_call_id": None}):
        done = converted(two_agents(**members), GYM, ATIF)
        [told] = [loss for loss in done.losses if loss.code == "subagent_parent_unknown"]
        assert told.path == "/ng_trajectory/invocations/1"


def test_agents_have_rows_of_their_own_where_asked_for() -> None:
    rows = converted(two_agents(), GYM, GYM, Options(subagents=True)).values
    assert [each["response"]["output"][-1]["content"][0]["text"] for each in rows] == ["done", "inside", "deeper"]
    assert "subagent_dropped" in converted(two_agents(), GYM, GYM).codes


def test_a_trajectory_of_no_form_is_as_none() -> None:
    plain = converted({**seen(), "ng_trajectory": None}, GYM, ATIF).value["steps"]
    for broken in (3, {}, {"invocations": 3}, {"invocations": [{"invocation_id": "a"}]}, {"turns": [3]}):
        whole = {**copy.deepcopy(seen()), "ng_trajectory": broken}
        assert [step["message"] for step in converted(whole, GYM, ATIF).value["steps"]] == [
            step["message"] for step in plain
        ]


def test_the_rollout_is_named_by_what_was_captured_of_it_where_the_row_does_not() -> None:
    nameless = {key: value for key, value in seen().items() if not key.startswith("_ng")}
    document = converted(nameless, GYM, GYM).value
    assert document["ng_trajectory"]["rollout_id"] == "3-1"
    named = converted({**nameless, "_ng_rollout_id": 3}, GYM, ATIF).value
    assert named["trajectory_id"] == "3-1"


def test_an_order_that_turns_change_comes_back() -> None:
    conversation = [user("hi"), call(), thought("late"), result(), said("done")]
    whole = seen()
    whole["ng_trajectory"]["invocations"][0]["conversation"] = conversation
    whole["ng_trajectory"]["turns"] = [turn("inv", 1, conversation[:1], conversation[1:3], None)]
    done = converted(whole, GYM, GYM)
    assert "item_order_changed" in done.codes
    assert [item["type"] for item in done.value["response"]["output"]] == [item["type"] for item in conversation[1:]]
