"""What a raw call tells beside its answer: how it was asked, how long it took, why it failed (capture-files.md 7.1)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.records.raw_call import SAMPLING_PARAMETERS, RawCall, decode_raw_call


def raw_call(**values: Any) -> RawCall:
    call = decode_raw_call(json.dumps({"model_call_id": "x", **values}).encode(), 1, 0)
    assert call is not None
    return call


# Sampling


def test_the_parameters_that_a_request_sets_are_told_and_those_left_open_are_not() -> None:
    call = raw_call(request={"model": "m", "temperature": 0.7, "top_k": -1, "seed": 0, "top_p": None, "max_tokens": 9})
    assert call.sampling == {"temperature": "0.7", "top_k": "-1", "seed": "0"}


def test_every_parameter_that_bends_the_distribution_is_looked_for() -> None:
    asked = dict.fromkeys(SAMPLING_PARAMETERS, 1)
    assert raw_call(request=asked).sampling == dict.fromkeys(SAMPLING_PARAMETERS, "1")
    assert {"temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty", "seed"} < set(SAMPLING_PARAMETERS)


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("0", "-0.0"), ("1e0", "1"), ("0.70", "0.7")])
def test_one_value_in_two_spellings_is_one_value(one: str, other: str) -> None:
    lines = [b'{"model_call_id": "x", "request": {"temperature": %b}}' % text.encode() for text in (one, other)]
    first, second = (decode_raw_call(line, 1, 0) for line in lines)
    assert first is not None and second is not None and first.sampling == second.sampling


@pytest.mark.parametrize("value", ["1e999", "1e300", "9" * 400, '"\\ud800"', "[[1], {}]", "true", '"%s"' % ("x" * 99)])
def test_a_value_that_is_no_parameter_is_told_as_its_beginning(value: str) -> None:
    call = decode_raw_call(b'{"model_call_id": "x", "request": {"seed": %b}}' % value.encode(), 1, 0)
    assert call is not None and call.sampling is not None
    assert 0 < len(call.sampling["seed"].encode()) <= 40


@pytest.mark.parametrize("request_", [None, "{bad", [], 7])
def test_of_a_request_that_is_not_known_nothing_is_said(request_: object) -> None:
    for call in (raw_call(request=request_), raw_call()):
        assert (call.sampling, call.tools) == (None, None)


def test_a_request_that_sets_nothing_is_not_one_that_is_unknown() -> None:
    assert raw_call(request={}).sampling == {}


# Tools


@pytest.mark.parametrize(
    ("request_", "offered"),
    [({"tools": [{"type": "function"}]}, True), ({"tools": []}, False), ({"tools": None}, False), ({}, False)],
)
def test_a_request_offers_tools_or_none(request_: dict[str, Any], offered: bool) -> None:
    assert raw_call(request=request_).tools is offered


# Latencies


@pytest.mark.parametrize(("value", "told"), [(0, 0.0), (0.0, 0.0), (1500, 1500.0), (12.34, 12.34), (1e18, 1e18)])
def test_a_latency_is_a_number_of_milliseconds(value: float, told: float) -> None:
    call = raw_call(latency_ms=value, latency_ttft_ms=value)
    assert (call.latency_ms, call.latency_ttft_ms) == (told, told)
    assert type(call.latency_ms) is type(call.latency_ttft_ms) is float


@pytest.mark.parametrize("value", ["null", "-1", "-0.5", "true", '"3"', "[]", "1e999", "-1e999", "1e400", "9" * 30])
def test_what_is_no_time_is_unknown(value: str) -> None:
    line = b'{"model_call_id": "x", "latency_ms": %b, "latency_ttft_ms": %b}' % (value.encode(), value.encode())
    call = decode_raw_call(line, 1, 0)
    assert call is not None and (call.latency_ms, call.latency_ttft_ms) == (None, None)


# Category


def meant(status: int) -> str | None:
    """What 7.1 says of a status."""
    named = {"timeout": (408, 504), "rate_limit": (429,), "auth": (401, 403), "not_found": (404,)}
    kind = {4: "client_error", 5: "upstream_error"}.get(status // 100)
    return next((name for name, statuses in named.items() if status in statuses), kind)


@given(status=st.integers(100, 599))
def test_a_status_means_what_7_1_says(status: int) -> None:
    assert raw_call(status_code=status).category == meant(status)


@given(status=st.none() | st.integers(100, 599), category=st.sampled_from(["cancelled", "context_length_exceeded"]))
def test_the_category_that_the_capture_names_is_the_one(status: int | None, category: str) -> None:
    assert raw_call(status_code=status, error_category=category).category == category


@pytest.mark.parametrize(("status", "category"), [(None, "stream_truncated"), (200, "stream_truncated"), (503, None)])
def test_a_stream_without_its_end_is_why_there_is_no_answer_where_no_status_is(
    status: int | None, category: str | None
) -> None:
    call = raw_call(dialect="chat", response_raw='data: {"choices": []}\n\n', status_code=status)
    assert call.stream_truncated and call.category == (category or "upstream_error")


@pytest.mark.parametrize("values", [{}, {"status_code": None}, {"status_code": "500"}, {"status_code": 500.0}])
def test_without_a_status_and_a_category_nothing_failed(values: dict[str, Any]) -> None:
    assert raw_call(**values).category is None


@given(status=st.none() | st.integers(100, 599), category=st.none() | st.sampled_from(["timeout", "incomplete"]))
def test_a_call_without_a_category_was_answered(status: int | None, category: str | None) -> None:
    call = raw_call(status_code=status, error_category=category)
    assert call.answered is (call.category in (None, "incomplete") and (status is None or status < 400))


# Model


@pytest.mark.parametrize(
    ("values", "model"),
    [
        ({"response": {"model": "m-1"}, "request": {"model": "m"}}, "m-1"),
        ({"response": {"model": ""}, "request": {"model": "m"}}, "m"),
        ({"response": None, "request": {"model": "m"}}, "m"),
        ({"response": {"model": 7}, "request": {"model": None}}, None),
        ({}, None),
    ],
)
def test_the_model_is_the_one_that_answered_or_else_the_one_that_was_asked(
    values: dict[str, Any], model: str | None
) -> None:
    assert raw_call(**values).model == model


# Streams


def test_a_part_of_a_stream_that_does_not_say_how_it_ended_takes_nothing_back() -> None:
    parts: list[dict[str, Any]] = [
        {"choices": [{"finish_reason": "length"}], "model": "m", "usage": {"prompt_tokens": 5}},
        {"choices": [{"finish_reason": None}], "model": None, "usage": {"prompt_tokens": None, "completion_tokens": 2}},
    ]
    stream = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
    call = raw_call(dialect="chat", response_raw=stream)
    assert (call.finish_reason, call.model, call.answered) == ("length", "m", True)
    assert (call.usage.tokens_in, call.usage.tokens_out) == (5, 2)
