"""Which log probabilities were served, and how they were sampled."""

import math
from typing import Any

import pytest

from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.normalised import NormalisedCall
from tests.support.engines import BUNDLE, SENT, chat
from tests.support.forge import Row
from tests.support.raw_exchanges import asked

ANSWER = chat({"message": BUNDLE})


def only(request: Row, response: Row = ANSWER, **fields: Any) -> NormalisedCall:
    [call] = normalise(asked(request, response, **fields))
    return call


SAME: list[Row] = [
    {"temperature": 1},
    {"temperature": 1.0, "top_p": 1, "top_k": -1, "min_p": 0.0, "presence_penalty": 0, "repetition_penalty": 1.0},
    {"sampling_params": {"temperature": 1.0, "top_k": 0}},
    {"parameters": {"temperature": 1.0}, "logit_bias": {}},
]
OTHER: list[Row] = [
    {},
    {"temperature": 0.7},
    {"temperature": True},
    {"temperature": "1"},
    {"temperature": 1, "top_p": 0.95},
    {"temperature": 1, "top_k": 20},
    {"temperature": 1, "sampling_params": {"repetition_penalty": 1.1}},
    {"temperature": 1, "logit_bias": {"5": -100}},
]


@pytest.mark.parametrize("request_", SAME)
def test_a_request_that_changes_nothing_makes_both_kinds_the_same(request_: Row) -> None:
    assert only(request_).log_probs_kind == "same"


@pytest.mark.parametrize("request_", OTHER)
def test_else_the_kind_is_unknown_unless_it_was_told(request_: Row) -> None:
    assert only(request_).log_probs_kind == "unknown"
    [call] = normalise(asked(request_, ANSWER), log_probs_kind="raw")
    assert call.log_probs_kind == "raw"


def test_of_two_log_probabilities_that_of_the_kind_is_read() -> None:
    entries = [{"token": "a", "token_id": 5, "logprob": -0.5, "sampling_logprob": -0.25}]
    call = asked({}, chat({"token_ids": [5], "logprobs": {"content": entries}}, prompt_token_ids=[1]))
    for kind, told, value in ((None, "raw", -0.5), ("raw", "raw", -0.5), ("processed", "processed", -0.25)):
        [read] = normalise(call, log_probs_kind=kind)
        assert (read.problems, read.log_probs_kind, read.generation_log_probs) == ((), told, [value])


def test_probabilities_after_sampling_are_told_by_their_name() -> None:
    response = {"tokens": [5, 9], "completion_probabilities": [{"id": 5, "prob": 0.5}, {"id": 9, "prob": 1}]}
    call = only(SENT, response)
    assert (call.log_probs_kind, call.generation_log_probs) == ("processed", [math.log(0.5), 0.0])
    response["completion_probabilities"] = [{"id": 5, "logprob": -1.0}, {"id": 9, "logprob": -1.0}]
    assert only(SENT, response).log_probs_kind == "raw"


@pytest.mark.parametrize(
    ("probability", "problem"),
    [
        (0.0, "logprob_not_finite"),
        (1.5, "logprob_not_finite"),
        (-0.5, "logprob_not_finite"),
        (math.nan, "logprob_not_finite"),
        ("0.5", "logprob_not_number"),
        (None, "logprob_missing"),
    ],
)
def test_what_is_no_probability_has_no_logarithm(probability: object, problem: str) -> None:
    response = {"tokens": [5], "completion_probabilities": [{"id": 5, "prob": probability}]}
    assert only(SENT, response).problems == (problem,)


@pytest.mark.parametrize(
    "request_",
    [{"use_beam_search": True}, {"num_beams": 2}, {"sampling_params": {"use_beam_search": True}}],
)
def test_ids_of_a_beam_are_no_samples(request_: Row) -> None:
    assert only(request_).problems == ("beam_search",)


def test_one_beam_is_none() -> None:
    assert only({"use_beam_search": False, "num_beams": 1}).trainable


TURNS = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "x"}]


@pytest.mark.parametrize(
    ("request_", "dialect", "continues"),
    [
        ({"messages": TURNS, "continue_final_message": True}, "chat", True),
        ({"messages": [*TURNS[:1], {**TURNS[1], "prefix": True}]}, "chat", True),
        ({"messages": TURNS}, "messages", True),
        ({"messages": TURNS}, "chat", False),
        ({"messages": TURNS[:1]}, "messages", False),
        ({"messages": []}, "messages", False),
        ({"messages": TURNS, "continue_final_message": False}, "chat", False),
    ],
)
def test_a_message_that_is_continued_is_prompt(request_: Row, dialect: str, continues: bool) -> None:
    call = only(request_, dialect=dialect)
    assert call.trainable
    assert call.warnings == (("continues_message",) if continues else ())
