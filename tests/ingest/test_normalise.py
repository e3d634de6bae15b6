"""A raw call becomes its answers: named, judged, and never more than was served; whatever stands there."""

import copy
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ng_capture.ingest.messages import Message, ToolCall
from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.raw import RawExchange
from ng_capture.records.assembling import assemble
from ng_capture.records.stream_chunks import completion
from tests.support.dialects import CALLING, DIALECTS, REQUESTS, RESPONSES, TURNS
from tests.support.engines import BUNDLE, ENGINES, GENERATION, LOG_PROBS, PACKED, PROMPT, TEXTS, chat
from tests.support.forge import Row
from tests.support.raw_calls import spelled_compactly
from tests.support.raw_exchanges import answered, asked

WHOLE = chat({"message": {"role": "assistant", "content": "a", **BUNDLE}}, model="m")


def test_a_call_says_what_was_asked_and_answered() -> None:
    exchange = asked({"model": "asked", "messages": [{"role": "user", "content": "q"}]}, WHOLE)
    [call] = normalise(exchange)
    assert call.raw is exchange
    assert (call.call_id, call.choice, call.model, call.response_id) == ("c1", 0, "m", "r1")
    assert call.messages == (Message("user", "q"),)
    assert call.answer == Message("assistant", "a")
    assert call.trainable


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_conversation_is_read_in_every_dialect(dialect: str) -> None:
    [call] = normalise(asked(REQUESTS[dialect], RESPONSES[dialect], dialect=dialect))
    assert spelled_compactly(call.messages) == spelled_compactly(TURNS)
    assert call.answer is not None and spelled_compactly([call.answer]) == spelled_compactly([CALLING])
    assert call.problems == ("call_without_tokens",)


@pytest.mark.parametrize("key", ["text", "generated_text", "content"])
def test_an_answer_of_plain_text_is_one(key: str) -> None:
    [call] = normalise(answered({key: "a", "tokens": GENERATION}))
    assert call.answer == Message("assistant", "a")


@pytest.mark.parametrize(
    ("response", "request_", "model", "response_id"),
    [
        ({"id": 7, "model": ""}, {"model": "asked"}, "asked", "7"),
        ({"meta_info": {"id": "m1"}}, {}, None, "m1"),
        ({"id": None, "model": 5.0}, {"model": []}, None, None),
        ({"id": True, "model": "\ud800"}, {}, "\\ud800", None),
    ],
)
def test_names_are_texts_or_none(response: Row, request_: Row, model: str | None, response_id: str | None) -> None:
    [call] = normalise(asked(request_, response))
    assert (call.model, call.response_id) == (model, response_id)


def test_a_call_without_an_id_is_named_by_its_line() -> None:
    [call] = normalise(answered(WHOLE, call_id=None, line=7))
    assert call.call_id == "line:7"


@pytest.mark.parametrize(
    ("indexes", "order", "names"),
    [
        ([1, 0], [1, 0], ["c1#0", "c1#1"]),
        ([3, 7], [0, 1], ["c1#3", "c1#7"]),
        ([0, 0], [0, 1], ["c1#0", "c1#1"]),
        ([None, 5], [0, 1], ["c1#0", "c1#1"]),
        ([-1, True], [0, 1], ["c1#0", "c1#1"]),
    ],
)
def test_two_choices_are_two_calls_that_wait_for_a_decision(
    indexes: list[object], order: list[int], names: list[str]
) -> None:
    choices = [
        {"index": index, "token_ids": [place, 9], "logprobs": TEXTS, "message": {"content": str(place)}}
        for place, index in enumerate(indexes)
    ]
    calls = normalise(answered({"prompt_token_ids": PROMPT, "choices": choices}))
    assert [call.call_id for call in calls] == names
    assert [call.generation_token_ids for call in calls] == [[place, 9] for place in order]
    assert [call.answer.text for call in calls if call.answer] == [str(place) for place in order]
    assert {call.problems for call in calls} == {("ambiguous_choices",)}
    assert {tuple(call.prompt_token_ids or ()) for call in calls} == {tuple(PROMPT)}


def test_more_than_one_item_with_tokens_is_a_problem() -> None:
    items = [{"type": "reasoning"}, {"type": "message", **BUNDLE}, {"type": "function_call", **BUNDLE}]
    [call] = normalise(answered({"output": items}))
    assert (call.problems, call.item_index, call.generation_token_ids) == (("multiple_token_items",), 1, GENERATION)


def test_problems_take_nothing_away() -> None:
    message = {**BUNDLE, "prompt_token_ids": [[1, 2]], "generation_log_probs": ["-0.5", math.inf]}
    [call] = normalise(answered(chat({"message": message, "finish_reason": "abort"}), duplicate_key="token_ids"))
    assert call.problems == (
        *("duplicate_key", "generation_aborted", "bad_token_id"),
        *("logprob_not_finite", "logprob_not_number"),
    )
    assert (call.prompt_token_ids, call.generation_log_probs) == ([[1, 2]], ["-0.5", math.inf])


def test_warnings_take_nothing_away() -> None:
    zeros = {**BUNDLE, "generation_token_ids": [5, 6, 7, 9], "generation_log_probs": [0.0] * 4}
    [call] = normalise(answered(chat({"message": zeros}), lone_surrogate=True))
    assert (call.trainable, call.warnings) == (True, ("lone_surrogate", "logprob_all_zero"))


def test_a_stream_is_read_from_its_events_where_the_response_lost_its_tokens() -> None:
    """NeMo Gym's own reassembly drops every token field (ingest.md 0)."""
    engine = ENGINES["vLLM, chat stream"].call
    lost = {"id": "r1", "choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}
    [call] = normalise(RawExchange(file="x", line=1, call_id="c1", response=lost, events=engine.events))
    assert (call.trainable, call.generation_token_ids) == (True, GENERATION)


DEEP: Any = []
for _ in range(100_000):
    DEEP = [DEEP]


@pytest.mark.parametrize("place", ["ids", "arguments", "routed"])
def test_what_is_nested_too_deeply_is_an_invalid_record(place: str) -> None:
    message: Row = {"content": "a", **BUNDLE}
    if place == "ids":
        exchange = answered(chat({"message": {**message, "prompt_token_ids": [DEEP]}}, prompt_token_ids=[[DEEP]]))
    elif place == "arguments":
        exchange = answered(chat({"message": {**message, "tool_calls": [{"function": {"arguments": DEEP}}]}}))
    else:
        exchange = answered(chat({"message": {**message, "routed_experts": DEEP}}))
    [call] = normalise(exchange)
    assert call.raw is exchange
    # deep values that are only looked at for their shape are dropped for it
    assert call.problems == (() if place == "routed" else ("invalid_record",))


NAMES = sorted(
    {
        *("id", "model", "choices", "index", "message", "delta", "finish_reason", "stop_reason", "usage", "output"),
        *("prompt_token_ids", "token_ids", "generation_token_ids", "generation_log_probs", "response_token_ids"),
        *("logprobs", "content", "token", "token_id", "logprob", "sampling_logprob", "tokens", "token_logprobs"),
        *("meta_info", "output_ids", "input_token_logprobs", "output_token_logprobs", "prompt_tokens", "sglext"),
        *("nvext", "engine_data", "completion_token_ids", "completion_logprobs", "raw_output", "details", "prefill"),
        *("completion_probabilities", "prob", "provider_specific_fields", "prompt_token_ids_b64", "prompt_logprobs"),
        *("input_messages", "output_messages", "sequences", "routed_experts", "shape", "prompt", "chunks", "echo"),
        *("input_ids", "n", "temperature", "sampling_params", "messages", "role", "type", "error", "stop", "text"),
        *("prompt_moe_topk_indices", "moe_topk_indices", "completion_tokens", "matched", "refusal", "tool_calls"),
    }
)
SCALARS = (
    *(None, True, False, 0, 1, 2, -1, 5.0, -0.5, 0.25, math.nan, -math.inf, -9999.0, 2**31, 2**64, 10**400),
    *("", "a", "abort", "token_id:5", "token_id:-5", "AQAAAA==", "nrlre1:int8:1x1x1:AA==", "\ud800"),
    *("message_start", "message_delta", "response.completed"),
)
values: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=5)
hard = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


_PACKED = {PACKED: PROMPT, "AQAAAA==": [1]}


def ids_in(value: object) -> set[object]:
    """All integers that stand anywhere, also as `token_id:N` and in bytes."""
    if isinstance(value, dict):
        return set().union(*map(ids_in, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(ids_in, value))
    if isinstance(value, str) and value.startswith("token_id:") and value[9:].isdigit():
        return {int(value[9:])}
    if isinstance(value, str) and value in _PACKED:
        return set(_PACKED[value])
    return {value} if type(value) is int else set()


def check(call: RawExchange) -> None:
    """Nothing is raised, and what is trainable is whole, plain and served."""
    served = ids_in(call.response) | ids_in(list(call.events))
    for read in normalise(call):
        if not read.trainable:
            assert read.problems
            continue
        prompt, generation, log_probs = read.prompt_token_ids, read.generation_token_ids, read.generation_log_probs
        assert prompt and generation and log_probs and len(generation) == len(log_probs)
        assert all(type(token) is int and 0 <= token < 2**31 for token in (*prompt, *generation))
        assert set(generation) <= served
        assert set(prompt) <= (served | ids_in(call.request) if read.prompt_origin == "request" else served)
        assert all(isinstance(value, int | float) and -9999 < value <= 1e-6 for value in log_probs)


@hard
@given(request=objects, response=objects, events=st.lists(objects, max_size=3), done=st.booleans())
def test_any_json_is_read_without_an_error(request: Row, response: Row, events: list[Row], done: bool) -> None:
    check(asked(request, response, events=events))
    check(asked(request, assemble(events), events=events))
    completion(events)


def with_odd_values(data: st.DataObject, whole: Any) -> Any:
    """The value with one to three of its members, at any depth, replaced by odd ones."""
    row = copy.deepcopy(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        here = row
        while here:
            key = data.draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
            if not (isinstance(here[key], dict | list) and here[key]) or data.draw(st.booleans()):
                here[key] = data.draw(values)
                break
            here = here[key]
    return row


@pytest.mark.parametrize("name", ENGINES)
@settings(hard, max_examples=60)
@given(data=st.data())
def test_odd_values_in_any_places_of_a_good_call_raise_nothing_and_train_nothing_odd(
    name: str, data: st.DataObject
) -> None:
    good = ENGINES[name].call
    if good.events:
        events = with_odd_values(data, [dict(event) for event in good.events])
        kept = [event for event in events if isinstance(event, dict)]
        check(asked(good.request, assemble(kept), events=kept))
    else:
        check(asked(good.request, with_odd_values(data, good.response)))
    check(asked(with_odd_values(data, good.request), good.response, events=good.events))


def test_tool_calls_and_reasoning_are_told() -> None:
    called = {"id": "k", "function": {"name": "f", "arguments": {"x": 1}}}
    [call] = normalise(answered(chat({"message": {"reasoning": "t", "tool_calls": [called], **BUNDLE}})))
    assert call.answer == Message("assistant", "", "t", (ToolCall("k", "f", '{"x":1}'),))
    assert call.generation_log_probs == LOG_PROBS
