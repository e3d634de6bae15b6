"""How an answer ended, and whether there is one at all."""

from typing import Any

import pytest

from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.normalised import NormalisedCall
from ng_capture.records.streams import DONE
from tests.support.engines import BUNDLE, GENERATION, INPUT, TRIPLES, chat, delta
from tests.support.forge import Row
from tests.support.raw_exchanges import answered, asked, streamed_as


def only(response: Row, **fields: Any) -> NormalisedCall:
    [call] = normalise(answered(response, **fields))
    return call


def ended(**choice: Any) -> NormalisedCall:
    return only(chat({"message": BUNDLE, **choice}))


ITEM = {"type": "message", **BUNDLE}
FINISHES: dict[str, tuple[Row, str | None, str | None]] = {
    "chat": (chat({}), "stop", "stop"),
    "chat, length": (chat({"finish_reason": "length"}), "length", "length"),
    "vLLM's stop string is no reason": (chat({"finish_reason": None, "stop_reason": "END"}), None, None),
    "SGLang, native": ({"meta_info": {"finish_reason": {"type": "length", "length": 2}}}, "length", "length"),
    "TGI": ({"details": {"finish_reason": "stop_sequence"}}, "stop", "stop_sequence"),
    "llama.cpp": ({"content": "a", "stop_type": "limit"}, "length", "limit"),
    "Messages": ({"content": [], "stop_reason": "tool_use"}, "tool_calls", "tool_use"),
    "Responses": ({"output": [ITEM], "status": "completed"}, "stop", "completed"),
    "Responses, cut": (
        {"output": [ITEM], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        "length",
        "max_output_tokens",
    ),
    "a reason of its own": (chat({"finish_reason": "parse_error"}), "parse_error", "parse_error"),
    "a proxy that keeps the engine's": (
        chat({"finish_reason": "tool_calls", "provider_specific_fields": {"native_finish_reason": "eos"}}),
        "tool_calls",
        "eos",
    ),
    "none": ({"output": [ITEM]}, None, None),
}


@pytest.mark.parametrize("name", FINISHES)
def test_the_reason_is_told_in_the_words_of_chat_and_of_the_engine(name: str) -> None:
    response, finish, native = FINISHES[name]
    call = only(response)
    assert (call.finish, call.native_finish) == (finish, native)


@pytest.mark.parametrize("word", ["abort", "cancelled", "timeout", "error", {"type": "abort", "message": "x"}])
def test_an_aborted_generation_is_kept_and_not_trained(word: object) -> None:
    call = ended(finish_reason=word)
    assert (call.problems, call.finish) == (("generation_aborted",), "abort")
    assert call.generation_token_ids == GENERATION


def test_an_abort_that_a_proxy_renamed_is_one() -> None:
    renamed = {"provider_specific_fields": {"native_finish_reason": "abort"}}
    for call in (ended(**renamed), ended(message={**BUNDLE, **renamed})):
        assert (call.problems, call.finish) == (("generation_aborted",), "abort")


def test_an_abort_before_the_first_token_is_an_empty_generation() -> None:
    empty = {**BUNDLE, "generation_token_ids": [], "generation_log_probs": []}
    assert ended(message=empty, finish_reason="abort").problems == ("empty_generation",)


@pytest.mark.parametrize(("matched", "told"), [(9, True), (7, False), (None, None), ("END", None)])
def test_whether_the_stop_token_is_among_the_ids_is_told_where_the_engine_names_it(
    matched: object, told: object
) -> None:
    assert ended(stop_reason=matched).stop_token_in_ids is told
    assert ended(matched_stop=matched).stop_token_in_ids is told
    assert ended(finish_reason={"type": "stop", "matched": matched}).stop_token_in_ids is told


def test_what_could_not_be_sampled_was_not() -> None:
    """SGLang puts its stop token in place of NaN (ingest.md 1.4)."""
    assert ended(matched_stop="NaN happened").problems == ("logprob_not_finite",)


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (chat({"message": {"refusal": "no"}}), "no"),
        (chat({"message": {"refusal": ""}}), None),
        ({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]}, "no"),
        ({"output": [ITEM]}, None),
    ],
)
def test_a_refusal_is_told(refusal: Row, text: str | None) -> None:
    assert only(refusal).refusal == text


@pytest.mark.parametrize(
    ("response", "fields", "problem"),
    [
        ({"error": {"message": "too long"}}, {"status_code": 400}, "http_error"),
        ({}, {"status_code": 503}, "http_error"),
        ({"error": {"message": "too long"}}, {"status_code": None}, "http_error"),
        ({"output": [], "status": "failed", "error": {"code": "x"}}, {}, "http_error"),
        ({}, {"status_code": None, "error_category": "connection"}, "http_error"),
        ({}, {}, "response_missing"),
        ({}, {"error_category": "capture_parse_error"}, "response_missing"),
        ({}, {"error_category": "stream_truncated"}, "stream_truncated"),
        ({"id": "r1", "choices": []}, {}, "no_output"),
        ({"id": "r1", "output": []}, {}, "no_output"),
        ({"id": "r1"}, {}, "no_output"),
        ({"id": "r1", "content": [], "error": None}, {}, "no_output"),
    ],
)
def test_a_call_without_an_answer_has_one_problem(response: Row, fields: Row, problem: str) -> None:
    call = only(response, **fields)
    assert (call.problems, call.missing) == ((problem,), ())


def test_ids_of_a_refused_call_are_kept() -> None:
    call = only(chat({"message": BUNDLE}), status_code=500)
    assert (call.problems, call.generation_token_ids) == (("http_error",), GENERATION)


WHOLE = [delta({"delta": BUNDLE}), delta({}, "stop")]
CUT: dict[str, list[Row]] = {
    "no last event": WHOLE,
    "no reason": [WHOLE[0], dict(DONE)],
    "a reason, no last event": [WHOLE[0], delta({}, "stop")],
    "an error": [WHOLE[0], {"error": {"message": "x"}}],
    "Responses": [{"type": "response.created", "response": {"output": [ITEM]}}],
    "Responses, an error": [{"type": "response.created", "response": {"output": [ITEM]}}, {"type": "error"}],
    "Messages": [{"type": "message_start", "message": {}}, {"type": "message_delta", "delta": BUNDLE}],
    "llama.cpp": [{"content": "a", "stop": False, "tokens": [5]}],
    "TGI": [{"token": {"id": 5, "logprob": -0.5}, "generated_text": None}],
}


@pytest.mark.parametrize("name", CUT)
def test_a_stream_without_a_proper_end_is_truncated(name: str) -> None:
    [call] = normalise(streamed_as(CUT[name], done=False))
    assert call.problems == ("stream_truncated",)


def test_a_stream_that_breaks_off_before_its_first_choice_has_no_other_problem() -> None:
    [call] = normalise(streamed_as([{"prompt_token_ids": [1], "choices": []}], done=False))
    assert (call.problems, call.prompt_token_ids) == (("stream_truncated",), [1])


def test_a_log_may_say_that_the_stream_broke_off() -> None:
    assert only(chat({"message": BUNDLE}), error_category="stream_truncated").problems == ("stream_truncated",)


def test_of_a_stream_each_choice_has_to_end() -> None:
    events = [delta({"delta": BUNDLE}, "stop"), {"choices": [{"index": 1, "delta": BUNDLE}]}]
    first, second = normalise(streamed_as(events))
    assert first.problems == ("ambiguous_choices",)
    assert second.problems == ("ambiguous_choices", "stream_truncated")


def test_a_stream_that_begins_with_an_error_was_refused() -> None:
    [call] = normalise(streamed_as([{"error": {"message": "too long"}}]))
    assert call.problems == ("http_error",)


COUNTED: dict[str, Row] = {
    "usage": chat({"message": BUNDLE}, usage={"completion_tokens": 3}),
    "usage of Responses": {"output": [ITEM], "usage": {"output_tokens": 1}},
    "SGLang": {
        "output_ids": GENERATION,
        "meta_info": {
            "prompt_tokens": 2,
            "input_token_logprobs": INPUT,
            "output_token_logprobs": TRIPLES,
            "completion_tokens": 3,
        },
    },
    "TGI": {
        "prompt_token_ids": [1],
        "details": {"generated_tokens": 2, "tokens": [{"id": 5, "logprob": -1.0}]},
    },
    "llama.cpp": {
        "prompt_token_ids": [1],
        "tokens": [5],
        "tokens_predicted": 2,
        "completion_probabilities": [{"id": 5, "logprob": -1.0}],
    },
    "ids that were swallowed, all of them": chat(
        {"message": {**BUNDLE, "generation_token_ids": [], "generation_log_probs": []}}, usage={"completion_tokens": 3}
    ),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_server_that_counts_another_number_of_tokens_is_a_problem(name: str) -> None:
    assert only(COUNTED[name]).problems == ("token_count_mismatch",)


def test_a_usage_counts_the_tokens_of_all_choices() -> None:
    choices = [{"index": place, "message": BUNDLE, "finish_reason": "stop"} for place in range(2)]
    usage = {"prompt_tokens": 2, "completion_tokens": 4}
    assert {call.problems for call in normalise(asked({}, {"choices": choices, "usage": usage}))} == {
        ("ambiguous_choices",)
    }
