"""A line of `.capture.jsonl` as NeMo Gym's model-call record."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.outputs.steps.model_call import model_call_of
from ng_capture.outputs.steps.said import tool_uses_in
from ng_capture.records.json_text import decode_json
from ng_capture.records.raw_call import raw_call_of
from tests.support.command import strict_json
from tests.support.forge import Row
from tests.support.raw_calls import calls, chat_call, says, streamed, user


def record(row: Row, index: int = 0, **how: Any) -> Row:
    """The record of a line, as it is printed."""
    value, _ = decode_json(json.dumps(row).encode())
    assert isinstance(value, dict)
    told: Row = strict_json(msgspec.json.encode(model_call_of(value, raw_call_of(value, 1, 0), index, **how)))
    return told


def answered(response: Row, **fields: Any) -> Row:
    return {"model_call_id": "c1", "status_code": 200, "request": {"model": "asked"}, "response": response, **fields}


def test_a_record_has_the_names_of_the_reference_in_its_order() -> None:
    assert list(record(answered({}))) == [
        *("model_call_id", "response_id", "client_session_id", "call_index", "model_ref", "model", "dialect"),
        *("status_code", "response_status", "finish_reason", "upstream_attempted", "response_source"),
        *("upstream_status_code", "local_response_reason", "started_at", "completed_at", "tokens_in", "tokens_out"),
        *("tokens_reasoning", "tokens_total", "tool_calls", "reasoning_content", "cache_hit", "cached_tokens"),
        *("cache_creation_tokens", "error_category", "latency_total_ms", "latency_ttft_ms"),
    ]


def test_everything_that_a_line_tells_is_taken_over() -> None:
    told = record(
        answered(
            {"id": "r1", "model": "served", "status": "incomplete", "incomplete_details": {"reason": "max_tokens"}},
            dialect="responses",
            model_ref={"type": "responses_api_models", "name": "policy"},
            client_session_id="s1",
            started_at=5,
            completed_at=6.5,
            latency_ms=1500.25,
            latency_ttft_ms=20,
            upstream_attempted=False,
            response_source="local",
            upstream_status_code=503,
            local_response_reason="context_length_exceeded",
            error_category="context_length_exceeded",
        ),
        index=7,
    )
    assert {name: value for name, value in told.items() if value not in (None, [])} == {
        "model_call_id": "c1",
        "response_id": "r1",
        "client_session_id": "s1",
        "call_index": 7,
        "model_ref": {"type": "responses_api_models", "name": "policy"},
        "model": "served",
        "dialect": "responses",
        "status_code": 200,
        "response_status": "incomplete",
        "finish_reason": "max_tokens",
        "upstream_attempted": False,
        "response_source": "local",
        "upstream_status_code": 503,
        "local_response_reason": "context_length_exceeded",
        "started_at": 5.0,
        "completed_at": 6.5,
        "error_category": "context_length_exceeded",
        "latency_total_ms": 1500.25,
        "latency_ttft_ms": 20.0,
    }


def test_what_is_not_told_is_null_and_never_zero() -> None:
    told = record({"model_call_id": "c1"})
    assert {name for name, value in told.items() if value is not None} == {"model_call_id", "call_index", "tool_calls"}


@pytest.mark.parametrize("wrong", ["text", True, -1, 1.5, [], {}, "NaN"])
def test_a_value_that_is_no_count_is_unknown(wrong: object) -> None:
    usage = {"prompt_tokens": wrong, "completion_tokens": wrong, "total_tokens": wrong}
    told = record(answered({"usage": usage}, status_code=wrong, latency_ms=[wrong], started_at=[wrong]))
    unknown = ("tokens_in", "tokens_out", "tokens_total", "status_code", "latency_total_ms", "started_at")
    assert [told[name] for name in unknown] == [None] * len(unknown)


def test_cached_tokens_are_counted_once() -> None:
    apart = {"input_tokens": 4, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 100, "output_tokens": 3}
    told = record(answered({"usage": apart}))
    assert (told["tokens_in"], told["cached_tokens"], told["cache_creation_tokens"]) == (2104, 2000, 100)
    inside = {"prompt_tokens": 2104, "prompt_tokens_details": {"cached_tokens": 2000}, "completion_tokens": 3}
    told = record(answered({"usage": inside}))
    assert (told["tokens_in"], told["tokens_total"], told["cached_tokens"]) == (2104, 2107, 2000)


@pytest.mark.parametrize(("cached", "hit"), [(None, None), (0, False), (1, True)])
def test_a_cache_hit_is_told_only_where_the_server_counts_cached_tokens(cached: int | None, hit: bool | None) -> None:
    usage = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": cached}}
    assert record(answered({"usage": usage}))["cache_hit"] is hit


def test_counts_beyond_64_bits_are_added_exactly() -> None:
    most = 2**63 - 1
    told = record(answered({"usage": {"input_tokens": most, "cache_read_input_tokens": most, "output_tokens": most}}))
    assert (told["tokens_in"], told["tokens_total"]) == (2 * most, 3 * most)


@pytest.mark.parametrize(
    ("status", "category"), [(429, "rate_limit"), (504, "timeout"), (403, "auth"), (418, "client_error")]
)
def test_an_error_that_nobody_named_is_named_by_its_status(status: int, category: str) -> None:
    assert record(answered({}, status_code=status))["error_category"] == category
    assert record(answered({}, status_code=status, error_category="mine"))["error_category"] == "mine"


def test_a_stream_without_an_end_is_told() -> None:
    row = chat_call("c1", [user("hello")], says(None))
    cut = streamed(row, [{"choices": [{"index": 0, "delta": {"content": "h"}}]}], done=False)
    assert record(cut)["error_category"] == "stream_truncated"


# Tools and thinking, in the three dialects


def test_the_tools_and_the_thinking_of_responses_are_read() -> None:
    output = [
        {"type": "reasoning", "summary": [{"text": "first"}, {"text": "then"}]},
        {"type": "function_call", "call_id": "k1", "name": "look", "arguments": '{ "at": [1, 2] }'},
        {"type": "function_call", "id": "fc2", "name": "go", "arguments": "{cut"},
        {"type": "reasoning", "summary": [{"text": "last"}]},
    ]
    told = record(answered({"output": output}))
    assert told["reasoning_content"] == "first\nthen\nlast"
    assert told["tool_calls"] == [
        {"call_id": "k1", "name": "look", "arguments": {"at": [1, 2]}},
        {"call_id": "fc2", "name": "go", "arguments": {"_raw": "{cut"}},
    ]


def test_tools_of_all_choices_are_read_and_the_finish_of_the_first() -> None:
    choices = [
        {"message": calls((f"k{n}", "look", "{}"), reasoning_content=f"idea {n}"), "finish_reason": f"end {n}"}
        for n in (1, 2)
    ]
    told = record(answered({"choices": choices}))
    assert [call["call_id"] for call in told["tool_calls"]] == ["k1", "k2"]
    assert (told["finish_reason"], told["reasoning_content"]) == ("end 1", "idea 1\nidea 2")


def test_tags_in_a_text_are_no_reasoning() -> None:
    told = record(chat_call("c1", [user("hello")], says("<think>hm</think>hi")))
    assert told["reasoning_content"] is None


def test_the_tools_and_the_thinking_of_messages_are_read() -> None:
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "id": "k1", "name": "look", "input": {"at": 1}},
        {"type": "tool_use", "id": "k2", "name": "go", "input": None},
    ]
    told = record(answered({"content": content, "stop_reason": "tool_use"}))
    assert (told["reasoning_content"], told["finish_reason"]) == ("hm", "tool_use")
    assert [call["arguments"] for call in told["tool_calls"]] == [{"at": 1}, {}]


def test_a_stream_that_nobody_put_together_is_put_together() -> None:
    events = [
        {"id": "r1", "model": "m", "choices": [{"index": 0, "delta": {"reasoning": "hm"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [_piece(name="look", arguments='{"at"')]}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [_piece(arguments=": 1}")]}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    ]
    told = record(streamed(chat_call("c1", [user("hello")], says(None)), events))
    assert (told["response_id"], told["finish_reason"], told["reasoning_content"]) == ("r1", "tool_calls", "hm")
    assert (told["tokens_in"], told["tokens_out"], told["tokens_total"]) == (5, 2, 7)
    assert told["tool_calls"] == [{"call_id": "k1", "name": "look", "arguments": {"at": 1}}]


def _piece(**function: str) -> Row:
    return {"index": 0, "id": "k1", "function": function}


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ('{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ('{\n  "pretty": true\n}', {"pretty": True}),
        ("5", 5),
        ("", {"_raw": ""}),
        ('{"n": NaN}', {"_raw": '{"n": NaN}'}),
        ('{"n": 1e999}', {"_raw": '{"n": 1e999}'}),
        ("[" * 5000, {"_raw": "[" * 5000}),
        ('{"half": "\\ud800"}', {"half": "\ud800"}),
    ],
)
def test_arguments_keep_their_value_and_never_a_line_break(spelled: str, value: object) -> None:
    row = chat_call("c1", [user("hello")], calls(("k1", "look", spelled)))
    told = record(row)["tool_calls"][0]["arguments"]
    assert told == value
    raw, _ = decode_json(json.dumps(row).encode())
    assert isinstance(raw, dict)
    assert b"\n" not in msgspec.json.encode(model_call_of(raw, raw_call_of(raw, 1, 0), 0))


def test_arguments_nested_deeper_than_can_be_written_are_unknown() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = {"a": deep}
    (use,) = tool_uses_in({"content": [{"type": "tool_use", "id": "k1", "name": "look", "input": deep}]})
    assert (use.name, bytes(use.arguments)) == ("look", b"null")


def test_requests_and_responses_are_kept_only_where_they_are_asked_for() -> None:
    row = chat_call("c1", [user("hello")], says("hi"), response_raw="data: x", request_raw="{")
    assert "request" not in record(row) and "response_raw" not in record(row)
    told = record(row, payload=True)
    assert (told["request"], told["response"]) == (row["request"], row["response"])
    assert (told["request_raw"], told["response_raw"]) == ("{", "data: x")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    *("model_call_id", "dialect", "model_ref", "started_at", "completed_at", "latency_ms", "status_code", "request"),
    *("error_category", "response", "response_raw", "client_session_id", "upstream_attempted", "usage", "output"),
    *("choices", "content", "message", "tool_calls", "function", "arguments", "summary", "messages", "input", "id"),
    *("type", "function_call", "reasoning", "input_tokens", "prompt_tokens", "total_tokens", "model", "status"),
)
members = st.recursive(
    json_values | st.sampled_from(NAMES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(NAMES), members))
def test_whatever_stands_in_a_line_makes_a_record_that_is_json(row: Row) -> None:
    try:
        value, _ = decode_json(json.dumps(row).encode())
    except ValueError:
        return
    assert isinstance(value, dict)
    strict_json(msgspec.json.encode(model_call_of(value, raw_call_of(value, 1, 0), 0, payload=True)))
