"""The profile strict: what Gym's import and export of ATIF take, and every reason to refuse (contracts.md 3.2)."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.gym.rules import RULES
from ng_capture.contracts.interface import Options, Profile
from ng_capture.contracts.responses.contract import RESPONSES
from tests.support.converting import Done, converted
from tests.support.gym_trajectory import model_call, seen, tool_record
from tests.support.items import (
    TOKENS,
    agent_step,
    call,
    result,
    said,
    step_call,
    step_result,
    thought,
    trajectory,
    user,
)

STRICT = Options(profile=Profile.STRICT, session_id="s", agent_version="1")
ANSWERED = agent_step(tool_calls=[step_call("c1", x=1)], observation={"results": [step_result()]})
COUNTS = {"prompt_tokens": 10, "completion_tokens": 4}
TOTALS = {"total_prompt_tokens": 10, "total_completion_tokens": 4}


def imported(*steps: Any, **members: Any) -> Done:
    return converted(trajectory(*steps, **members), ATIF, GYM, STRICT)


def counted(metrics: Any, totals: Any) -> dict[str, Any]:
    return trajectory(agent_step("ok", metrics=metrics), final_metrics=totals)


IMAGE = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
INNER = trajectory(agent_step("x"), trajectory_id="t-2")

REFUSED: dict[str, list[dict[str, Any]]] = {
    "version": [trajectory(agent_step("ok"), schema_version="ATIF-v1.6")],
    "total_steps": [trajectory(agent_step("ok"), final_metrics={"total_steps": 9})],
    "no_agent_step": [trajectory({"source": "user", "message": "more"})],
    "continued": [trajectory(agent_step("ok"), continued_trajectory_ref="next.json")],
    "subagents": [
        trajectory(agent_step("ok"), subagent_trajectories=[INNER]),
        trajectory(
            agent_step(
                tool_calls=[step_call()],
                observation={"results": [step_result(subagent_trajectory_ref=[{"trajectory_path": "p"}])]},
            )
        ),
    ],
    "media": [trajectory(agent_step() | {"message": [IMAGE]})],
    "content": [trajectory(agent_step() | {"message": []})],
    "copied_context": [trajectory(agent_step("old", is_copied_context=True), agent_step("new"))],
    "tokens": [trajectory(agent_step("ok", metrics={"completion_token_ids": [1]}))],
    "text_and_calls": [trajectory({**ANSWERED, "message": "so"})],
    "model_calls": [trajectory(agent_step("ok", llm_call_count=2))],
    "later_turn": [trajectory(agent_step("a"), {"source": "user", "message": "b"}, agent_step("c"))],
    "observation": [
        trajectory(
            {"source": "system", "message": "S", "observation": {"results": [step_result(None)]}}, agent_step("ok")
        )
    ],
    "call_id": [trajectory(agent_step(tool_calls=[step_call(" ")], observation={"results": [step_result(" ")]}))],
    "call_name": [trajectory(agent_step(tool_calls=[step_call(name=" ")], observation={"results": [step_result()]}))],
    "call_repeated": [trajectory(ANSWERED, ANSWERED)],
    "result_unlinked": [trajectory(agent_step(tool_calls=[step_call()], observation={"results": [step_result(None)]}))],
    "result_repeated": [
        trajectory(agent_step(tool_calls=[step_call()], observation={"results": [step_result(), step_result()]}))
    ],
    "result_missing": [trajectory(agent_step(tool_calls=[step_call()]))],
    "result_empty": [
        trajectory(agent_step(tool_calls=[step_call()], observation={"results": [step_result("c1", None)]}))
    ],
    "result_twice": [
        trajectory(
            agent_step(
                tool_calls=[step_call()],
                observation={"results": [step_result("c1", "x", extra={"tool_result": {"a": 1}})]},
            )
        )
    ],
    "timestamp": [trajectory(agent_step("ok", timestamp="2026-01-02T03:04:05"))],
    "models": [
        trajectory(agent_step("a", model_name="m"), agent_step("b", model_name="n")),
        trajectory(agent_step("a", model_name="m"), agent_step("b")),
    ],
    "usage": [
        counted({**COUNTS, "cached_tokens": 11}, TOTALS),
        counted({**COUNTS, "extra": {"reasoning_tokens": 5}}, TOTALS),
        counted({**COUNTS, "extra": {"total_tokens": 3}}, TOTALS),
        counted(COUNTS, {**TOTALS, "total_cached_tokens": 11}),
        counted(COUNTS, {}),
        counted({"prompt_tokens": 10}, TOTALS),
        counted(None, {"total_cached_tokens": 1}),
        counted(None, {"total_prompt_tokens": 1}),
        counted(COUNTS, {**TOTALS, "total_prompt_tokens": 11}),
        counted(COUNTS, {**TOTALS, "total_completion_tokens": 5}),
        counted({**COUNTS, "cached_tokens": 3}, {**TOTALS, "total_cached_tokens": 4}),
    ],
}
NEVER_OF_ATIF = {"arguments", "result_unknown"}
"""What no sound ATIF holds: its own rules refuse it before."""


@pytest.mark.parametrize("rule", REFUSED)
def test_what_gyms_import_refuses_is_refused_with_its_reason(rule: str) -> None:
    for document in REFUSED[rule]:
        done = converted(document, ATIF, GYM, STRICT)
        assert f"gym.strict.{rule}" in done.rules, document
        assert not done.lines


def test_every_reason_of_the_import_has_a_case() -> None:
    named = {rule.removeprefix("gym.strict.") for rule in RULES if rule.startswith("gym.strict.")}
    assert named - NEVER_OF_ATIF == set(REFUSED)


def test_episodes_of_other_contracts_are_refused_for_what_atif_never_holds() -> None:
    done = converted(
        {"request": {"input": "hi"}, "response": {"output": [call(arguments="[1]")]}}, RESPONSES, GYM, STRICT
    )
    assert "gym.strict.arguments" in done.rules
    done = converted(
        {"request": {"input": "hi"}, "response": {"output": [call(), result(), said("a"), result("z")]}},
        RESPONSES,
        GYM,
        STRICT,
    )
    assert "gym.strict.result_unknown" in done.rules


def test_all_reasons_are_told_at_once() -> None:
    broken = agent_step("so", tool_calls=[step_call()], metrics={"completion_token_ids": [1]}, llm_call_count=2)
    wanted = {"text_and_calls", "tokens", "model_calls", "result_missing"}
    assert {f"gym.strict.{rule}" for rule in wanted} <= imported(broken).rules


def test_a_step_is_reasoning_then_words_or_calls_with_their_results() -> None:
    done = imported({**ANSWERED, "reasoning_content": "R"}, agent_step("done"))
    output = done.value["response"]["output"]
    assert [item["type"] for item in output] == ["reasoning", "function_call", "function_call_output", "message"]
    assert output[1]["arguments"] == '{"x":1}'
    assert all(item["id"].startswith("atif_") and len(item["id"]) == 25 for item in output)


def test_contents_in_parts_and_structured_results_are_written() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    results = [step_result("c1", parts), step_result("c2", None, extra={"tool_result": {"a": 1}})]
    step = agent_step(tool_calls=[step_call("c1"), step_call("c2")], observation={"results": results})
    response = imported(step, agent_step() | {"message": parts}).value["response"]
    answers = [item["output"] for item in response["output"] if item["type"] == "function_call_output"]
    assert answers == [[{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], '{"a":1}']
    assert [part["text"] for part in response["output"][-1]["content"]] == ["a", "b"]
    assert response["parallel_tool_calls"] is True


def test_usage_is_that_of_all_counted_steps() -> None:
    metrics = {**COUNTS, "cached_tokens": 3, "extra": {"reasoning_tokens": 1, "total_tokens": 15}}
    usage = converted(counted(metrics, TOTALS), ATIF, GYM, STRICT).value["response"]["usage"]
    assert usage == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 15,
    }
    assert converted(counted(None, None), ATIF, GYM, STRICT).value["response"]["usage"] is None
    told = {**TOTALS, "total_cached_tokens": 2}
    usage = converted(counted(None, told), ATIF, GYM, STRICT).value["response"]["usage"]
    assert usage["input_tokens_details"] == {"cached_tokens": 2}


def test_ids_are_of_the_trajectory_or_of_all_that_it_says() -> None:
    named = [imported(agent_step(text), trajectory_id="t").value["response"]["id"] for text in ("a", "b")]
    assert named[0] == named[1]
    unnamed = [imported(agent_step(text), session_id=None).value["response"]["id"] for text in ("a", "b")]
    assert unnamed[0] != unnamed[1]


def test_the_moment_and_the_model_are_those_of_the_steps() -> None:
    step = agent_step("ok", timestamp="2026-01-02T03:04:05Z", model_name="m")
    response = imported(step).value["response"]
    assert (response["created_at"], response["model"]) == (1767323045.0, "m")
    assert imported(agent_step("ok")).value["response"]["model"] == "unknown"


# --- the export

Change = Callable[[dict[str, Any]], object]


def exported(*changes: Change, **row: Any) -> Done:
    """A row that Gym exports, with its trajectory changed."""
    whole = {**copy.deepcopy(seen()), **row}
    for change in changes:
        change(whole["ng_trajectory"])
    return converted(whole, GYM, ATIF, STRICT)


def conversation(*changed: Any, at: int) -> Change:
    """Other items in place of one of the conversation; the turns stay as they were."""

    def change(it: dict[str, Any]) -> None:
        it["invocations"][0]["conversation"][at : at + 1] = changed

    return change


def told(call_id: str = "mc2", **members: Any) -> Change:
    return lambda it: it.update(
        model_calls=[model_call("mc1"), {**model_call("mc2", **members), "model_call_id": call_id}]
    )


def stats(**counts: Any) -> Change:
    return lambda it: it["model_calls"][1]["token_stats"].update(counts)


def tool_is(**members: Any) -> Change:
    return lambda it: it.update(tool_calls=[tool_record(**members)])


def first(key: str, **members: Any) -> Change:
    return lambda it: it[key][0].update(members)


CHANGES: dict[str, list[Change]] = {
    "trajectory": [lambda it: it.update(schema_version="2.0"), lambda it: it.pop("task_id")],
    "gaps": [lambda it: it.update(gaps=[{"code": "turns_unavailable"}])],
    "invocations": [
        lambda it: it.update(invocations=[]),
        first("invocations", parent_invocation_id="x"),
        first("invocations", status="failed"),
        first("invocations", error_type="Timeout"),
    ],
    "item": [
        conversation({"type": "compaction"}, at=1),
        conversation(said("done"), result("z"), at=4),
    ],
    "field": [
        conversation(user("hi") | {"foo": 1}, at=0),
        conversation(said("done", phase="final"), at=4),
        conversation(user("") | {"content": [{"type": "input_text", "text": "hi", "foo": 1}]}, at=0),
    ],
    "status": [conversation(said("done", status="incomplete"), at=4)],
    "role": [conversation(user("hi", "developer"), at=0)],
    "later_turn": [conversation(said("done"), user("more"), at=4)],
    "tokens": [conversation(said("done", **TOKENS), at=4)],
    "content": [
        conversation(user("") | {"content": [{"type": "input_image", "image_url": "x"}]}, at=0),
        conversation(user("") | {"content": []}, at=0),
        conversation(result(output={"a": 1}), at=3),
        conversation(said("", content=[{"type": "output_text", "text": "a", "annotations": [{}]}]), at=4),
    ],
    "reasoning": [
        conversation(thought(encrypted_content="e"), at=1),
        conversation(thought("R", content=[{"type": "reasoning_text", "text": "c"}]), at=1),
        conversation(thought(), at=1),
        conversation(thought("a", "b"), at=1),
        conversation(said("done"), thought("late"), at=4),
    ],
    "call": [conversation(call(name=" "), at=2), conversation(call(), call(), at=2)],
    "arguments": [conversation(call(arguments="[1]"), at=2), conversation(call(arguments="no"), at=2)],
    "result": [conversation(at=3), conversation(result(), result(), at=3)],
    "tool_record": [
        lambda it: it.update(tool_calls=[]),
        lambda it: it["tool_calls"].append(tool_record("c9")),
        tool_is(invocation_id="other"),
        tool_is(status="failed"),
        tool_is(tool_name="g"),
        tool_is(output="43"),
    ],
    "turns": [
        lambda it: it["turns"].pop(),
        lambda it: it["invocations"][0].update(conversation=[]),
        first("turns", turn_no=7),
        first("turns", step_count=7),
        first("turns", timestamp=None),
        first("turns", answer=[]),
        first("turns", invocation_id="other"),
    ],
    "model_call": [
        first("turns", model_calls=[]),
        first("turns", model_calls=[{"model_call_id": "mc1", "response_id": "other"}]),
        first("turns", model_calls=[{"model_call_id": "mc2"}]),
        told(response_status="incomplete"),
        told(status_code=500),
        told(error_category="timeout"),
    ],
    "finish": [
        told(finish_reason="length"),
        told(finish_reason="tool_calls", dialect="chat"),
        told(finish_reason="tool_calls"),
    ],
    "usage": [
        stats(cached_tokens=99),
        stats(total_tokens=11),
        stats(total_tokens=None, cached_tokens=11),
        stats(total_tokens=None, reasoning_tokens=5),
    ],
}
OF_ROWS: list[dict[str, Any]] = [
    {"_ng_task_index": "x"},
    {"agent_ref": {"name": " "}},
    {"agent_ref": {"name": "a", "type": "resources_servers"}},
]


@pytest.mark.parametrize("rule", CHANGES)
def test_what_gyms_export_refuses_is_refused_with_its_reason(rule: str) -> None:
    for change in CHANGES[rule]:
        done = exported(change)
        assert f"gym.export.{rule}" in done.rules
        assert not done.lines


def test_a_row_of_no_agent_or_no_version_is_refused() -> None:
    for members in OF_ROWS:
        assert "gym.export.identity" in exported(**members).rules
    unversioned = Options(profile=Profile.STRICT, session_id="s")
    assert converted(seen(), GYM, ATIF, unversioned).rules == {"gym.export.identity"}


def test_every_reason_of_the_export_has_a_case() -> None:
    named = {rule.removeprefix("gym.export.") for rule in RULES if rule.startswith("gym.export.")}
    assert named == {*CHANGES, "identity"}


def test_what_gym_exports_is_converted() -> None:
    document = exported().value
    assert document["trajectory_id"] == "s:3:1"
    assert [step["source"] for step in document["steps"]] == ["user", "agent", "agent"]
    assert document["extra"]["nemo_gym"]["conversion"]["status"] == "complete"


@pytest.mark.parametrize(("finish", "dialect"), [("stop", "chat"), ("end_turn", "messages"), (None, "responses")])
def test_a_finish_that_proves_a_complete_answer_is_exported(finish: str | None, dialect: str) -> None:
    assert exported(told(finish_reason=finish, dialect=dialect)).lines


def test_what_no_row_can_hold_is_carried_from_a_strict_export_to_a_strict_import() -> None:
    there = exported()
    back = converted(there.value, ATIF, GYM, STRICT)
    kinds = [item["type"] for item in back.value["response"]["output"]]
    assert kinds == ["reasoning", "function_call", "function_call_output", "message"]
