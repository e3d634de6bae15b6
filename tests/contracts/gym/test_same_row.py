"""A row that is read and written again is the row, broken or sound; what is not kept is told."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Contract, Options, Profile, Thinking
from ng_capture.contracts.items.tokens import TOKEN_FIELDS
from ng_capture.contracts.registry import CONTRACTS
from ng_capture.contracts.responses.contract import RESPONSES
from ng_capture.contracts.sources import Source
from tests.support.converting import converted, written
from tests.support.items import TOKENS, USAGE, call, pair, result, row, said, thought, tool, user

BROKEN = {
    "call without a name": {"type": "function_call", "call_id": "c1", "arguments": "{}"},
    "call without arguments": {"type": "function_call", "call_id": "c1", "name": "f"},
    "call without an id": {"type": "function_call", "name": "f", "arguments": "{}"},
    "call with an object": call(arguments={"x": 1}),  # type: ignore[arg-type]
    "call with a number for an id": call(call_id=1.5),  # type: ignore[arg-type]
    "result without an id": {"type": "function_call_output", "output": "x"},
    "result without an output": {"type": "function_call_output", "call_id": "c1"},
    "result of null": result(output=None),
    "result of a number": result(output=1.5),
    "result of an object": result(output={"a": 1}),
    "result of one value": result(output=["x"]),
    "result of no parts": result(output=[]),
    "reasoning without a summary": {"type": "reasoning", "id": "r"},
    "reasoning with a broken summary": {"type": "reasoning", "id": "r", "summary": [["x"]], "content": None},
    "reasoning without types": {"type": "reasoning", "id": "r", "summary": [{"text": "x"}]},
    "message without content": {"type": "message", "role": "assistant", "id": "m"},
    "message of null": said("", content=None),
    "message of a number": said("", content=5),
    "message of no parts": said("", content=[]),
    "message of a number in parts": {"type": "message", "role": "system", "content": [1]},
    "message of nobody": {"type": "message", "role": "nobody", "content": "x"},
    "message without annotations": said("", content=[{"type": "output_text", "text": "x"}]),
    "message without a type": {"role": "assistant", "content": "x"},
    "message with more": said("x", foo=1),
    "message in parts": said("", content=[{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "b"}]),
    "message with an image": user("") | {"content": [{"type": "input_image", "image_url": "a.png"}]},
    "message with a sound": user("")
    | {"content": [{"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}}]},
    "message with a broken sound": user("") | {"content": [{"type": "input_audio", "input_audio": 3}]},
    "item without anything": {},
    "item of an unknown type": {"type": "wibble", "id": "x"},
    "item of no type": {"type": 3},
    "call of a server": {"type": "mcp_call", "id": "i", "name": "n", "arguments": "{}", "output": "o", "error": "e"},
    "call of a server that failed": {"type": "mcp_call", "id": "i", "name": "n", "arguments": "{}", "output": None},
    "call of a computer": {"type": "computer_call", "id": "i", "call_id": "c1", "action": {"type": "click"}},
    "call of a search": {"type": "web_search_call", "id": "i", "status": "completed"},
    "call of a custom tool": {"type": "custom_tool_call", "call_id": "c1", "name": "n", "input": "raw"},
    "output of a shell": {"type": "local_shell_call_output", "id": "i", "output": "o"},
    "compaction": {"type": "compaction", "encrypted_content": "e"},
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("before", [[], [said("ok")], [call("c0")]], ids=["first", "after words", "after a call"])
def test_an_item_stands_again_as_it_stood(name: str, before: list[Any]) -> None:
    output = [*before, BROKEN[name], said("done", "m9")]
    done = converted(row(output), GYM, GYM)
    kept = done.value["response"]["output"]
    assert all(item in kept for item in output)
    assert kept == output or "item_order_changed" in done.codes
    given = converted(row([said("ok")], output), GYM, GYM)
    assert all(item in given.value["responses_create_params"]["input"] for item in output)


REQUEST = {
    "instructions": "S",
    "tools": [tool(), {"type": "web_search"}],
    "temperature": 0.5,
    "metadata": {"a": "b"},
    "tool_choice": "required",
}


def test_request_envelope_usage_and_other_fields_stand_again() -> None:
    usage = {**USAGE, "input_tokens_details": {"cached_tokens": 4, "mine": None}, "cost": 0.1}
    before = row(
        [thought("R", **TOKENS), call(**TOKENS), result()],
        request=REQUEST,
        response={
            "usage": usage,
            "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"},
            "x": 1,
        },
        verifier={"score": 3},
        reward=10**30,
    )
    after = converted(before, GYM, GYM).value
    del after["ng_capture"]
    assert after == before


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": -1, "output_tokens": 2}, {"input_tokens": 3}, "x"])
def test_a_usage_of_any_form_stands_again(usage: object) -> None:
    assert converted(row(response={"usage": usage}), GYM, GYM).value["response"]["usage"] == usage


def test_a_request_that_named_no_tools_names_none_again() -> None:
    done = converted(row(response={"tools": [tool()]}), GYM, GYM).value
    assert "tools" not in done["responses_create_params"]
    assert done["response"]["tools"] == [tool()]


def test_parameters_that_gym_refuses_are_dropped_and_told() -> None:
    done = converted(row(request={"foo": 1, "instructions": 3, "tools": [1]}), GYM, GYM)
    details = {loss.detail for loss in done.losses if loss.code == "request_fields_dropped"}
    assert details == {"foo", "instructions", "tools"}
    assert done.value["responses_create_params"] == {"input": "hi"}


@pytest.mark.parametrize("broken", [1.5, "x", [1], None])
def test_a_side_that_is_no_object_is_carried(broken: object) -> None:
    asked = {**row(), "response": broken}
    assert converted(asked, GYM, GYM).value["response"] == broken
    answered = {**row(), "responses_create_params": broken}
    assert converted(answered, GYM, GYM).value["responses_create_params"] == broken


def test_a_row_without_a_response_gets_none() -> None:
    asked = {key: value for key, value in row().items() if key != "response"}
    assert "response" not in converted(asked, GYM, GYM).value


def test_an_output_that_is_no_list_is_told() -> None:
    done = converted(row(response={"output": 5}), GYM, GYM)
    assert "content_type_unsupported" in done.codes


def test_what_is_no_object_among_items_is_left_out_and_told() -> None:
    done = converted(row([said("ok"), 3]), GYM, GYM)
    assert done.value["response"]["output"] == [said("ok")]
    assert "content_type_unsupported" in done.codes


def test_a_text_as_input_stays_one() -> None:
    for source, target in ((GYM, GYM), (RESPONSES, RESPONSES)):
        value = row() if source is GYM else pair([said("ok")])
        done = converted(value, source, target).value
        assert done.get("request", done.get("responses_create_params"))["input"] == "hi"


# --- one change anywhere

VALUES: list[Any] = [None, 1, -1, 1.5, "x", "", [], {}, True, [1], {"a": 1}, ["x"], [[]], 10**30, "\ud800"]
KEYS = [*TOKEN_FIELDS, "foo", "status", "id", "call_id", "type", "role", "content", "output", "name", "annotations"]
PARTS = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:image/png;base64,QQ=="}]
WHOLE = row(
    [
        thought("R", content=[{"type": "reasoning_text", "text": "c"}], encrypted_content="e"),
        call("c1", **TOKENS),
        call("c2", "nope"),
        result("c2", PARTS),
        result("c1"),
        said("<think>a</think>b", **TOKENS),
        user("again"),
        {"type": "mcp_call", "id": "i", "name": "n", "arguments": "{}", "output": "o"},
        said("", "m2", content=[{"type": "refusal", "refusal": "no"}, {"type": "output_text", "text": "x"}]),
    ],
    [user("S", "developer"), said("old", "m0"), call("c0"), result("c0"), user("") | {"content": PARTS}],
    request=REQUEST,
    response={"usage": USAGE, "status": "completed"},
    agent_ref={"type": "responses_api_agents", "name": "a"},
)


def trajectory_row() -> dict[str, Any]:
    """A row with all that Gym saw, of two agents."""
    spawn = [user("hi"), thought("R"), call("c1"), result("c1"), said("done")]
    inner = [user("sub"), said("inside", "m5")]
    turns = [
        turn("inv", 1, spawn[:1], [spawn[2]], [spawn[1]], "mc0"),
        turn("inv", 2, spawn[:4], [spawn[4]], None, "mc1"),
        turn("sub", 1, inner[:1], [inner[1]], None, "mc2"),
    ]
    return {
        **row([]),
        "ng_trajectory": {
            "schema_version": "1.0",
            "task_id": "3",
            "rollout_id": "3-1",
            "invocations": [
                {"invocation_id": "inv", "status": "completed", "conversation": spawn},
                {
                    "invocation_id": "sub",
                    "parent_invocation_id": "inv",
                    "spawned_by_tool_call_id": "c1",
                    "conversation": inner,
                },
            ],
            "turns": turns,
            "model_calls": [model_call(f"mc{at}") for at in range(3)],
            "tool_calls": [{"tool_call_id": "c1", "invocation_id": "inv", "status": "completed", "output": "42"}],
            "gaps": [],
        },
        "ng_model_call_capture": {"rollout_id": "3-1", "calls": [{"model_call_id": "mc0", "tokens_in": 3}]},
    }


def turn(agent: str, number: int, question: Any, answer: Any, reasoning: Any, call_id: str) -> dict[str, Any]:
    return {
        "invocation_id": agent,
        "task_id": "3",
        "rollout_id": "3-1",
        "turn_no": number,
        "timestamp": 1750000000.0 + number,
        "question": question,
        "answer": answer,
        "reasoning_content": reasoning,
        "step_count": 1,
        "model_calls": [{"model_call_id": call_id}],
    }


def model_call(call_id: str) -> dict[str, Any]:
    told = {"response_id": f"resp-{call_id}", "model": "policy", "dialect": "responses", "status_code": 200}
    stats = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14, "cached_tokens": 2}
    return {
        "model_call_id": call_id,
        "started_at": 1.0,
        "completed_at": 2.0,
        "response_metadata": told,
        "token_stats": stats,
    }


BASES = [WHOLE, trajectory_row()]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))][0 if path else 1 :]


@st.composite
def changed(draw: st.DrawFn, bases: list[dict[str, Any]]) -> dict[str, Any]:
    """A document with one place changed: another value, none, a further member, or twice the same."""
    whole: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(bases)))
    *way, last = draw(st.sampled_from(places(whole)))
    at: Any = whole
    for key in way:
        at = at[key]
    kind = draw(st.sampled_from(["value", "gone", "more", "twice"]))
    if kind == "gone":
        del at[last]
    elif kind == "more" and isinstance(at[last], dict):
        at[last][draw(st.sampled_from(KEYS))] = draw(st.sampled_from(VALUES))
    elif kind == "twice" and isinstance(at[last], list) and at[last]:
        at[last].append(copy.deepcopy(at[last][0]))
    else:
        at[last] = draw(st.sampled_from(VALUES))
    return whole


OPTIONS = [
    Options(),
    Options(profile=Profile.HARBOR),
    Options(profile=Profile.STRICT, agent_version="1"),
    Options(thinking=Thinking.SPLIT, terminus=True, subagents=True, keep_row_extras=True),
]
TARGETS = [each for each in CONTRACTS if each.writer is not None]


TRAJECTORIES = [converted(each, GYM, ATIF, Options(keep_row_extras=True)).value for each in BASES]


@given(changed(TRAJECTORIES), st.sampled_from(OPTIONS), st.sampled_from([GYM, RESPONSES]))
def test_no_change_of_a_trajectory_with_notes_crashes_its_row(
    whole: dict[str, Any], options: Options, target: Contract
) -> None:
    converted(json.dumps(whole), ATIF, target, options)


@given(changed(BASES), st.sampled_from(OPTIONS), st.sampled_from(TARGETS))
def test_no_change_of_a_row_crashes_anything(whole: dict[str, Any], options: Options, target: Contract) -> None:
    text = json.dumps(whole)
    converted(text, GYM, target, options)
    assert GYM.reader is not None and GYM.reader.validate is not None
    with written(text) as file:
        list(GYM.reader.validate(Source(file.name)))


@given(changed(BASES))
def test_what_is_written_is_read_and_written_as_the_same_row(whole: dict[str, Any]) -> None:
    once = converted(json.dumps(whole), GYM, GYM)
    if once.lines:
        again = converted(once.lines[0].decode(), GYM, GYM).value
        assert {**again, "ng_capture": None} == {**once.value, "ng_capture": None}


QUIET = {"step_boundary_inferred", "think_tags_in_text", "copied_context", "call_without_output"}


@given(changed(BASES))
def test_an_item_that_changed_is_told(whole: dict[str, Any]) -> None:
    done = converted(json.dumps(whole), GYM, GYM)
    if not done.lines or "ng_trajectory" in whole or done.codes - QUIET:
        return
    for side, key in (("responses_create_params", "input"), ("response", "output")):
        before, after = (value.get(side) or {} for value in (whole, done.value))
        if isinstance(before, dict) and isinstance(before.get(key), list):
            assert [plain(item) for item in after[key]] == [plain(item) for item in before[key]]


def plain(item: Any) -> Any:
    return {key: value for key, value in item.items() if key not in TOKEN_FIELDS} if isinstance(item, dict) else item
