"""One line of `.capture.jsonl` as a whole; whatever stands there, nothing but ValueError is raised."""

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ng_capture.ingest.exchange import Exchange, decode_exchange
from ng_capture.ingest.messages import Message
from ng_capture.ingest.parents import presumed_parents
from tests.support.dialects import DIALECTS, REQUESTS, RESPONSES, STREAMS
from tests.support.forge import Row
from tests.support.raw_calls import calls, chat_call, exchange, streamed, system, user

WHOLE = chat_call(
    "a",
    [system("s"), user("go")],
    calls(("k1", "f", "{}"), text="x", reasoning_content="why"),
    prompt=[1, 2],
    generation=[3],
    at=5.0,
    tools=[{"type": "function", "function": {"name": "f"}}],
    finish="tool_calls",
)


def test_a_line_says_what_was_asked_and_answered_and_with_which_tokens() -> None:
    read = exchange(WHOLE, line=7)
    assert (read.call_id, read.line, read.started_at, read.completed_at) == ("a", 7, 5.0, 5.5)
    assert (read.model, read.response_id, read.finish_reason) == ("policy-8b", "resp-a", "tool_calls")
    assert [turn.role for turn in read.conversation] == ["system", "user", "assistant"]
    assert read.answer is not None and read.answer.reasoning == "why"
    assert json.loads(read.tools) == WHOLE["request"]["tools"]
    assert read.tokens is not None and read.tokens.complete


def test_an_unanswered_call_ends_with_what_was_asked() -> None:
    read = exchange(chat_call("a", [user("go")], None))
    assert (read.answer, read.tokens, read.conversation) == (None, None, (Message("user", "go"),))
    assert read.model == "policy-8b"  # the request's, where there is no response


def test_a_stream_is_read_where_there_is_no_response() -> None:
    delta = {
        "id": "c1",
        "model": "m",
        "choices": [{"delta": {"content": "hi"}, "token_ids": [3], "finish_reason": "stop"}],
    }
    read = exchange(streamed(WHOLE, [{"prompt_token_ids": [1, 2], "choices": []}, delta]))
    assert (read.model, read.response_id, read.finish_reason) == ("m", "c1", "stop")
    assert read.answer == Message("assistant", "hi")
    assert read.tokens is not None and (read.tokens.prompt, read.tokens.generation) == ([1, 2], [3])


@pytest.mark.parametrize("call_id", [None, "", 5, []])
def test_a_line_that_names_no_call_is_none(call_id: object) -> None:
    assert decode_exchange(json.dumps({**WHOLE, "model_call_id": call_id}).encode(), 1) is None


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"5", b'{"a":NaN}', b"\xff", b"null", b"[" * 100_000])
def test_what_is_no_object_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode_exchange(line, 1)


@pytest.mark.parametrize("seconds", ["1e400", "-1e400", "9" * 400, '"5"', "true", "null", "[]"])
def test_a_time_that_is_none_does_not_hide_the_call(seconds: str) -> None:
    line = json.dumps({**WHOLE, "started_at": "<>", "completed_at": "<>"}).replace('"<>"', seconds).encode()
    read = decode_exchange(line, 1)
    assert read is not None and read.tokens is not None


def survives(line: bytes) -> None:
    """Reading the line ends in an exchange, in none, or in ValueError."""
    try:
        read = decode_exchange(line, 1)
    except ValueError:
        return
    assert read is None or isinstance(read, Exchange)
    if read is not None:
        presumed_parents([read, read])


def encoded(value: object) -> bytes:
    return json.dumps(value).encode()


DEEP = {"list": "[" * 900 + "]" * 900, "object": '{"a":' * 900 + "1" + "}" * 900, "deeper": "[" * 1020 + "]" * 1020}


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize("key", ["tools", "arguments", "content", "input"])
def test_values_nested_ever_so_deep_raise_nothing_but_value_errors(key: str, deep: str) -> None:
    """The library reads deeper values than it writes."""
    row = copy.deepcopy(WHOLE)
    if key == "tools":
        row["request"]["tools"] = "<>"
    elif key == "arguments":
        row["response"]["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = "<>"
    elif key == "content":
        row["request"]["messages"][0]["content"] = "<>"
    else:
        row["response"] = {"content": [{"type": "tool_use", "id": "k", "name": "f", "input": "<>"}]}
    survives(json.dumps(row).replace('"<>"', DEEP[deep]).encode())


# deeply odd types everywhere: names that mean something, values of any type under them
NAMES = (
    *("model_call_id", "started_at", "request", "response", "response_raw", "messages", "input", "system", "tools"),
    *("role", "content", "type", "text", "thinking", "reasoning", "tool_calls", "function", "name", "arguments", "id"),
    *("output", "choices", "message", "delta", "prompt_token_ids", "generation_token_ids", "generation_log_probs"),
    *("token_ids", "response_token_ids", "logprobs", "token", "logprob", "meta_info", "output_token_logprobs"),
    *("finish_reason", "stop_reason", "summary", "call_id", "tool_use_id", "model", "index", "incomplete_details"),
)
WORDS = (
    *("user", "assistant", "tool", "developer", "reasoning", "function_call", "function_call_output", "tool_use"),
    *("tool_result", "thinking", "message", "token_id:5", "token_id:", "data: {}", "data: [DONE]", "\ud800", ""),
    *("message_start", "content_block_start", "content_block_delta", "response.completed"),
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([2**63, -(2**70), 10**400, 0.5, 1e308])
    | st.sampled_from(WORDS)
    | st.text(max_size=3)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
lines = st.dictionaries(st.sampled_from(NAMES), values, max_size=6).map(lambda row: {"model_call_id": "a", **row})
events = st.lists(st.dictionaries(st.sampled_from(NAMES), values, max_size=4), max_size=3)
hard = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@hard
@given(row=lines)
def test_a_line_of_any_shape_raises_nothing_but_value_errors(row: Row) -> None:
    survives(encoded(row))


@hard
@given(value=values)
def test_a_value_of_any_type_raises_nothing_but_value_errors(value: object) -> None:
    survives(encoded(value))


@hard
@given(made=events)
def test_a_stream_of_any_shape_raises_nothing_but_value_errors(made: list[Row]) -> None:
    survives(encoded(streamed({"model_call_id": "a"}, made)))


def with_odd_values(data: st.DataObject, whole: Any) -> Any:
    """The value with one to three of its members, at any depth, replaced by odd ones."""
    row = copy.deepcopy(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        here = row
        while True:
            key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
            if not (isinstance(here[key], dict | list) and here[key]) or data.draw(st.booleans()):
                here[key] = data.draw(values)
                break
            here = here[key]
    return row


@pytest.mark.parametrize("dialect", DIALECTS)
@hard
@given(data=st.data())
def test_a_good_line_with_odd_values_in_any_places_raises_nothing_but_value_errors(
    dialect: str, data: st.DataObject
) -> None:
    whole = {**WHOLE, "request": REQUESTS[dialect], "response": RESPONSES[dialect]}
    survives(encoded(with_odd_values(data, whole)))


@pytest.mark.parametrize("dialect", DIALECTS)
@hard
@given(data=st.data())
def test_a_good_stream_with_odd_values_in_any_places_raises_nothing_but_value_errors(
    dialect: str, data: st.DataObject
) -> None:
    survives(encoded(streamed(WHOLE, with_odd_values(data, STREAMS[dialect]))))


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=60))
def test_any_bytes_raise_nothing_but_value_errors(data: bytes) -> None:
    survives(data)
