"""Spellings held against one another: all are read, what differs is a problem, what lacks a piece is not."""

from typing import Any

import pytest

from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.normalised import NormalisedCall
from tests.support.engines import BUNDLE, GENERATION, LISTS, LOG_PROBS, PROMPT, SPELLED, TEXTS, chat, text
from tests.support.forge import Row
from tests.support.raw_exchanges import answered, asked


def read(response: Row, **request: Any) -> NormalisedCall:
    [call] = normalise(asked(request, response))
    return call


def served(choice: Row, **response: Any) -> Row:
    return chat({"token_ids": GENERATION, "logprobs": TEXTS, **choice}, prompt_token_ids=PROMPT, **response)


def spelled(*entries: tuple[int, float]) -> Row:
    return {"content": [{"token": f"token_id:{token}", "logprob": value} for token, value in entries]}


DISAGREE: dict[str, tuple[Row, Row]] = {
    "generated ids": ({}, served({"message": {**BUNDLE, "generation_token_ids": [5, 8]}})),
    "an empty generation": ({}, served({"message": {"generation_token_ids": []}})),
    "prompt ids": ({}, served({"prompt_token_ids": [1, 3]})),
    "prompt ids and those sent": ({"prompt": [1, 3]}, served({})),
    "prompt ids and the end of them": ({}, served({"meta_info": {"input_token_logprobs": [[-2.0, 3, None]]}})),
    "prompt ids and candidates": ({}, served({}, prompt_logprobs=[None, {"3": {}}])),
    "prompt ids and the number of candidates": ({}, served({}, prompt_logprobs=[None, {"2": {}}, {"2": {}}])),
    "log probabilities": ({}, served({"message": {**BUNDLE, "generation_log_probs": [-0.5, -0.2]}})),
    "a null and a number": ({}, served({"message": {**BUNDLE, "generation_log_probs": [None, -0.1]}})),
    "named ids": ({}, served({"logprobs": spelled((5, -0.5), (8, -0.1))})),
    "more named ids": ({}, served({"logprobs": spelled((5, -0.5), (9, -0.1), (7, -0.1), (8, -0.1))})),
    "fewer named ids": ({}, served({"logprobs": spelled((8, -0.5))})),
    "two spellings of named ids": (
        {},
        served({"logprobs": SPELLED, "meta_info": {"output_token_logprobs": [[-0.5, 5], [-0.1, 8]]}}),
    ),
    "an echo of another prompt": (
        {"echo": True},
        text(
            {
                "prompt_token_ids": PROMPT,
                "token_ids": GENERATION,
                "logprobs": {
                    "tokens": [f"token_id:{token}" for token in (1, 3, 5, 9)],
                    "token_logprobs": [None, -3.0, *LOG_PROBS],
                },
            }
        ),
    ),
}


@pytest.mark.parametrize("name", DISAGREE)
def test_two_spellings_that_disagree_are_a_problem(name: str) -> None:
    request, response = DISAGREE[name]
    call = read(response, **request)
    assert "source_mismatch" in call.problems
    assert "logprob_length_mismatch" not in call.problems
    assert call.generation_token_ids is not None and call.generation_log_probs is not None


def test_all_spellings_at_once_agree() -> None:
    engine_data = {
        "prompt_token_ids": PROMPT,
        "completion_token_ids": GENERATION,
        "completion_logprobs": LOG_PROBS,
    }
    response = served(
        {"message": BUNDLE, "logprobs": SPELLED, "prompt_token_ids": PROMPT},
        nvext={"engine_data": engine_data},
        prompt_logprobs=[None, {"2": {}, "7": {}}],
    )
    call = read(response, prompt=PROMPT)
    assert call.trainable
    assert (call.origin, call.prompt_origin, call.generation_origin) == ("message",) * 3


def test_a_log_probability_that_went_through_32_bits_is_the_same() -> None:
    call = read(served({"message": {**BUNDLE, "generation_log_probs": [-0.5, -0.10000000149011612]}}))
    assert call.trainable
    assert call.generation_log_probs == [-0.5, -0.10000000149011612]


def test_a_stop_token_that_only_the_log_probabilities_name_is_taken_from_there() -> None:
    call = read(chat({"token_ids": [5], "logprobs": SPELLED}, prompt_token_ids=PROMPT))
    assert (call.trainable, call.warnings) == (True, ("ids_trimmed",))
    assert (call.generation_token_ids, call.generation_origin) == (GENERATION, "logprob_tokens")


@pytest.mark.parametrize("counted", [1, 2])
def test_a_server_that_trims_may_count_without_the_stop_token(counted: int) -> None:
    usage = {"completion_tokens": counted}
    assert read(chat({"token_ids": [5], "logprobs": SPELLED}, prompt_token_ids=PROMPT, usage=usage)).trainable


def test_a_generation_of_nothing_but_a_trimmed_stop_token() -> None:
    call = read(chat({"token_ids": [], "logprobs": spelled((9, -0.1))}, prompt_token_ids=PROMPT))
    assert (call.trainable, call.generation_token_ids, call.warnings) == (True, [9], ("ids_trimmed",))


def test_an_id_without_an_entry_has_no_log_probability() -> None:
    call = read(served({"token_ids": [5, 6, 9], "logprobs": SPELLED}))
    assert (call.problems, call.generation_log_probs) == (("logprob_missing",), [-0.5, None, -0.1])


def test_entries_that_fit_in_more_than_one_way_are_not_placed() -> None:
    call = read(served({"token_ids": [5, 5, 9], "logprobs": SPELLED}))
    assert (call.problems, call.generation_log_probs) == (("logprob_length_mismatch",), LOG_PROBS)


@pytest.mark.parametrize("log_probs", [[-0.5], [-0.5, -0.1, -0.1]])
def test_without_ids_beside_them_log_probabilities_are_neither_padded_nor_cut(log_probs: list[float]) -> None:
    call = read(chat({"message": {**BUNDLE, "generation_log_probs": log_probs}}))
    assert (call.problems, call.generation_log_probs) == (("logprob_length_mismatch",), log_probs)


@pytest.mark.parametrize("short", [{"content": TEXTS["content"][:1]}, {"content": SPELLED["content"][:1]}])
def test_a_spelling_that_lacks_the_stop_token_does_not_disagree(short: Row) -> None:
    """Dynamo over vLLM: the engine's data are whole, the log probabilities of the choice are not (ingest.md 1.4)."""
    call = read(chat({"message": BUNDLE, "logprobs": short}))
    assert (call.trainable, call.generation_log_probs) == (True, LOG_PROBS)


def test_an_echo_whose_end_nothing_tells_is_not_used() -> None:
    call = read(text({"logprobs": LISTS}), echo=True)
    assert call.problems == ("call_without_tokens",)


def test_an_echo_is_cut_where_the_prompt_ends() -> None:
    log_probs = {"tokens": [f"token_id:{token}" for token in (1, 2, 5, 9)], "token_logprobs": [None, -3.0, *LOG_PROBS]}
    call = read(text({"prompt_token_ids": PROMPT, "logprobs": log_probs}), echo=True)
    assert (call.trainable, call.generation_token_ids, call.generation_log_probs) == (True, GENERATION, LOG_PROBS)


def test_an_echo_of_the_prompt_alone_is_an_empty_generation() -> None:
    log_probs = {"tokens": ["token_id:1", "token_id:2"], "token_logprobs": [None, -3.0]}
    call = read(text({"prompt_token_ids": PROMPT, "logprobs": log_probs}), echo=True)
    assert (call.problems, call.generation_token_ids) == (("empty_generation",), [])


def test_an_empty_list_takes_nothing_away_from_a_prompt() -> None:
    assert read(served({"prompt_token_ids": []})).trainable


def test_a_prompt_shorter_than_the_server_counted_is_cut() -> None:
    call = read(served({}, usage={"prompt_tokens": 3, "completion_tokens": 2}))
    assert (call.problems, call.missing, call.prompt_token_ids) == (
        ("partial_tokens",),
        ("prompt_token_ids",),
        PROMPT,
    )


def test_only_what_was_read_is_named() -> None:
    [call] = normalise(answered(chat({"logprobs": TEXTS})))
    assert (call.origin, call.prompt_origin, call.generation_origin) == (None, None, None)
    assert call.generation_log_probs == LOG_PROBS
