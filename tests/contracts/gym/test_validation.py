"""Every rule on rows: what breaks it is told with its place, and all faults at once."""

import copy
import tempfile
from collections.abc import Callable
from typing import Any

import pytest

from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.gym.rules import RULES
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from tests.support.converting import in_lines
from tests.support.gym_trajectory import seen
from tests.support.items import TOKENS, call, result, row, said, thought, tool, user

Change = Callable[[dict[str, Any]], object]


def faults_of(text: str | bytes) -> list[Fault]:
    assert GYM.reader is not None and GYM.reader.validate is not None
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        file.flush()
        return list(GYM.reader.validate(Source(file.name)))


def faults_in(*rows: object) -> list[Fault]:
    return faults_of(in_lines(rows))


def output(*items: Any) -> dict[str, Any]:
    return row(list(items))


def given(*items: Any) -> dict[str, Any]:
    return row([], list(items))


def without(key: str, **members: Any) -> dict[str, Any]:
    return {name: value for name, value in row(**members).items() if name != key}


def lacking(item: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != key}


def changed(change: Change) -> dict[str, Any]:
    """A row that Gym saw all of, changed."""
    whole = seen()
    change(whole["ng_trajectory"])
    return whole


def bare(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "row.id": ({**row(), "_ng_rollout_id": 3}, ""),
    "row.unnamed": (lacking(without("_ng_task_index"), "_ng_rollout_index"), ""),
    "row.reward": (without("reward"), "/reward"),
    "row.params": (without("responses_create_params"), "/responses_create_params"),
    "row.response": (without("response"), "/response"),
    "params.unknown": (row(request={"foo": 1}), "/responses_create_params/foo"),
    "params.null": (row(request={"tools": None}), "/responses_create_params/tools"),
    "params.type": (row(request={"temperature": "hot"}), "/responses_create_params/temperature"),
    "params.tool": (row(request={"tools": [lacking(tool(), "strict")]}), "/responses_create_params/tools/0"),
    "params.input": (row(given=3), "/responses_create_params/input"),
    "response.missing": ({**row(), "response": lacking(row()["response"], "model")}, "/response"),
    "response.type": (row(response={"id": 3}), "/response/id"),
    "usage.count": (row(response={"usage": {"input_tokens": 1.5}}), "/response/usage/input_tokens"),
    "usage.cached": (
        row(response={"usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 2}}}),
        "/response/usage",
    ),
    "usage.total": (
        row(response={"usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 2}}),
        "/response/usage",
    ),
    "item.object": (output("x"), "/response/output/0"),
    "item.type_missing": (output(lacking(said("x"), "type")), "/response/output/0"),
    "item.type_unknown": (output({"type": "wibble"}), "/response/output/0/type"),
    "item.field_missing": (output(lacking(call(), "name")), "/response/output/0"),
    "item.field_type": (output(call(arguments={})), "/response/output/0/arguments"),  # type: ignore[arg-type]
    "item.field_unknown": (output(said("x", foo=1)), "/response/output/0/foo"),
    "item.id_repeated": (output(said("x"), said("y")), "/response/output/1"),
    "part.type_unknown": (output(said("", content=[{"type": "output_text", "text": "a", "annotations": []}, {}])), ""),
    "part.field_missing": (output(said("", content=[{"type": "output_text", "text": "a"}])), ""),
    "part.field_type": (output(thought() | {"summary": [{"type": "summary_text", "text": 3}]}), ""),
    "part.field_unknown": (output(thought() | {"summary": [{"type": "summary_text", "text": "a", "foo": 3}]}), ""),
    "tokens.partial": (output(said("x", prompt_token_ids=[1])), "/response/output/0"),
    "tokens.null": (output(said("x", **{**TOKENS, "prompt_token_ids": None})), "/response/output/0/prompt_token_ids"),
    "tokens.type": (
        output(said("x", **{**TOKENS, "prompt_token_ids": [1, True]})),
        "/response/output/0/prompt_token_ids/1",
    ),
    "tokens.negative": (
        output(said("x", **{**TOKENS, "prompt_token_ids": [-1]})),
        "/response/output/0/prompt_token_ids",
    ),
    "tokens.empty": (output(said("x", **{**TOKENS, "prompt_token_ids": []})), "/response/output/0"),
    "tokens.length": (output(said("x", **{**TOKENS, "generation_log_probs": [0, -1]})), "/response/output/0"),
    "tokens.misplaced": (output(call(), result(**TOKENS)), "/response/output/1"),
    "call.arguments": (output(call(arguments="[1]")), "/response/output/0/arguments"),
    "call.repeated": (output(call(), result(), call(id="other")), "/response/output/2"),
    "call.unanswered": (output(call()), "/response/output/0"),
    "result.unlinked": (output(result("z")), "/response/output/0"),
    "result.repeated": (output(call(), result(), result()), "/response/output/2"),
    "capture.type": ({**row(), "ng_model_call_capture": 3}, "/ng_model_call_capture"),
    "capture.call_repeated": (
        {**row(), "ng_model_call_capture": {"calls": [{"model_call_id": "a"}, {"model_call_id": "a"}]}},
        "/ng_model_call_capture/calls",
    ),
    "capture.other_row": (
        {**row(), "ng_model_call_capture": {"rollout_id": "9-9", "calls": []}},
        "/ng_model_call_capture/rollout_id",
    ),
    "trajectory.type": (changed(lambda it: it.update(turns=3)), "/ng_trajectory/turns"),
    "trajectory.version": (changed(lambda it: it.update(schema_version="2.0")), "/ng_trajectory/schema_version"),
    "trajectory.missing": (changed(lambda it: it.pop("task_id")), "/ng_trajectory"),
    "trajectory.other_row": (changed(lambda it: it.update(rollout_id="9-9")), "/ng_trajectory/rollout_id"),
    "trajectory.invocation_repeated": (
        changed(lambda it: it["invocations"].append(copy.deepcopy(it["invocations"][0]))),
        "/ng_trajectory/invocations",
    ),
    "trajectory.call_repeated": (
        changed(lambda it: it["model_calls"].append(copy.deepcopy(it["model_calls"][0]))),
        "/ng_trajectory/model_calls",
    ),
    "trajectory.turn_identity": (
        changed(lambda it: it["turns"][0].update(task_id="9")),
        "/ng_trajectory/turns/0/task_id",
    ),
    "trajectory.turn_no": (changed(lambda it: it["turns"][0].update(turn_no=0)), "/ng_trajectory/turns/0/turn_no"),
    "trajectory.turn_repeated": (changed(lambda it: it["turns"][1].update(turn_no=1)), "/ng_trajectory/turns/1"),
    "trajectory.reference": (
        changed(lambda it: it["turns"][0].update(model_calls=[{"response_id": "r"}])),
        "/ng_trajectory/turns/0/model_calls",
    ),
    "trajectory.reference_unknown": (
        changed(lambda it: it["turns"][0].update(model_calls=[{"model_call_id": "nobody"}])),
        "/ng_trajectory/turns/0/model_calls",
    ),
    "trajectory.parent_cycle": (
        changed(lambda it: it["invocations"][0].update(parent_invocation_id="inv")),
        "/ng_trajectory/invocations/0/parent_invocation_id",
    ),
    "trajectory.tool_time": (
        changed(lambda it: it["tool_calls"][0].update(started_at=9.0, completed_at=1.0)),
        "/ng_trajectory/tool_calls/0",
    ),
}


@pytest.mark.parametrize("rule", CASES)
def test_what_breaks_a_rule_is_told_with_its_place(rule: str) -> None:
    broken, path = CASES[rule]
    found = [fault for fault in faults_in(broken) if fault.rule == f"gym.{rule}"]
    assert found
    assert {fault.severity for fault in found} == {RULES[f"gym.{rule}"].severity}
    assert not path or path in {fault.path for fault in found}
    assert {fault.line for fault in found} == {1}


def test_every_rule_on_rows_has_a_case() -> None:
    of_files = {"row.type", "row.empty", "row.repeated"}
    of_profiles = ("gym.export.", "gym.strict.", "gym.harbor.", "gym.json.")
    named = {rule.removeprefix("gym.") for rule in RULES if not rule.startswith(of_profiles)}
    assert named - of_files == set(CASES)


SOUND = {
    "words": output(said("ok")),
    "everything": output(thought("R", **TOKENS), call(**TOKENS), result(), said("ok", **TOKENS)),
    "a user in the output": output(user("again"), said("ok")),
    "easy messages": {**given({"role": "user", "content": "hi"}, bare("hi"))},
    "messages with a state": given({**bare("hi"), "status": "completed"}),
    "images": given(user("") | {"content": [{"type": "input_image", "detail": "auto", "image_url": "https://x"}]}),
    "parts of a result": output(call(), result(output=[{"type": "input_image", "image_url": "https://x"}])),
    "a message of nothing": output(said("", content=[])),
    "a server's tool": row(request={"tools": [{"type": "web_search"}, tool()], "stream": False, "store": True}),
    "all that Gym saw": seen(),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_row_has_no_faults(name: str) -> None:
    assert faults_in(SOUND[name]) == []


@pytest.mark.parametrize(
    "request_",
    [
        {"stream": True},
        {"store": 1},
        {"instructions": 3},
        {"max_output_tokens": "many"},
        {"tools": [3]},
        {"tools": [{}]},
    ],
)
def test_parameters_of_other_types_are_faults(request_: dict[str, Any]) -> None:
    assert {fault.rule for fault in faults_in(row(request=request_))} & {"gym.params.type", "gym.params.tool"}


@pytest.mark.parametrize(
    "item",
    [
        said("x", status="never"),
        thought(encrypted_content=3),
        user("x", "nobody"),
        {**bare("x"), "status": 3, "content": 3},
        said("x", prompt_token_ids=3, generation_token_ids=[1], generation_log_probs=[0]),
        {"type": "item_reference", "id": "x"},
        said("x", **{**TOKENS, "generation_log_probs": ["x"]}),
        said("x", **{**TOKENS, "generation_log_probs": [{}]}),
    ],
)
def test_an_item_that_gym_refuses_is_an_error(item: dict[str, Any]) -> None:
    assert "error" in {fault.severity for fault in faults_in(output(item))}


def test_what_only_a_request_may_hold_is_none_of_an_output() -> None:
    item = {"type": "compaction_trigger"}
    assert faults_in(given(item)) == []
    assert {fault.rule for fault in faults_in(output(item))} == {"gym.item.type_unknown"}


def test_all_faults_of_all_rows_are_told_at_once() -> None:
    broken = output(said("x", foo=1), lacking(call(), "name"), {"type": "wibble"})
    found = [(fault.line, fault.rule) for fault in faults_in(row(), broken, [1]) if fault.severity == "error"]
    assert found == [(2, "gym.item.field_missing"), (2, "gym.item.type_unknown"), (3, "gym.row.type")]
    assert (2, "gym.item.field_unknown") in {(fault.line, fault.rule) for fault in faults_in(row(), broken)}


def test_two_rows_of_a_rollout_are_warned_of() -> None:
    assert [(fault.line, fault.rule) for fault in faults_in(row(), row())] == [(2, "gym.row.repeated")]


def test_a_line_that_is_no_json_hides_no_other() -> None:
    found = faults_of(b'{"response": \n' + in_lines([{**row(), "reward": None}]).encode())
    assert [(fault.line, fault.rule) for fault in found] == [(1, "gym.json.syntax"), (2, "gym.row.reward")]


@pytest.mark.parametrize("broken", [{"a": 1}, 3, "x", [1], None, True])
def test_a_trajectory_of_any_form_is_judged(broken: object) -> None:
    whole = seen()
    for key in ("invocations", "turns", "model_calls", "tool_calls", "gaps"):
        faults_in({**whole, "ng_trajectory": {**whole["ng_trajectory"], key: broken}})
        faults_in({**whole, "ng_trajectory": {**whole["ng_trajectory"], key: [broken]}})
    rules = {fault.rule for fault in faults_in({**whole, "ng_trajectory": broken})}
    assert ("gym.trajectory.type" in rules) == (broken is not None and not isinstance(broken, dict))


def test_a_gap_without_a_code_and_an_agent_without_an_id_lack_something() -> None:
    whole = changed(lambda it: it.update(gaps=[{}]))
    assert "gym.trajectory.missing" in {fault.rule for fault in faults_in(whole)}
    whole = changed(lambda it: it["invocations"][0].pop("invocation_id"))
    assert "gym.trajectory.missing" in {fault.rule for fault in faults_in(whole)}
