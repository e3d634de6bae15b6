"""Where the engines put token ids and log probabilities: every spelling, whole and streamed, complete and partial."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.ingest.token_fields import RawTokens, read_streamed_tokens, read_tokens

Response = dict[str, Any]
PROMPT, GENERATION, LOG_PROBS = [11, 12, 13], [40, 41, 2], [-0.25, -0.5, -1.0]
BUNDLE = {"prompt_token_ids": PROMPT, "generation_token_ids": GENERATION, "generation_log_probs": LOG_PROBS}
WITH_LOG_PROBS = {"logprobs": {"content": [{"token": "x", "logprob": value} for value in LOG_PROBS]}}
SPELLED = {
    "logprobs": {
        "content": [
            {"token": f"token_id:{token}", "logprob": value} for token, value in zip(GENERATION, LOG_PROBS, strict=True)
        ]
    }
}
TRIPLES = [[value, token, None] for token, value in zip(GENERATION, LOG_PROBS, strict=True)]


def whole(choice: Response, **response: Any) -> Response:
    return {**response, "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, **choice}]}


SPELLINGS: dict[str, Response] = {
    "bundle on the message": whole({"message": BUNDLE}),
    "bundle on the last item": {"output": [{"type": "reasoning"}, {"type": "message", **BUNDLE}]},
    "bundle on a tool call": {"output": [{"type": "function_call", "name": "f", **BUNDLE}, {"type": "message"}]},
    "vLLM chat": whole({"token_ids": GENERATION, **WITH_LOG_PROBS}, prompt_token_ids=PROMPT),
    "vLLM completions": whole({"prompt_token_ids": PROMPT, "token_ids": GENERATION, **WITH_LOG_PROBS}),
    "tokens as token ids": whole(SPELLED, prompt_token_ids=PROMPT),
    "SGLang chat": whole(
        {
            "prompt_token_ids": PROMPT,
            "response_token_ids": GENERATION,
            "meta_info": {"output_token_logprobs": TRIPLES},
        }
    ),
    "SGLang with log probabilities of its own": whole(
        {"prompt_token_ids": PROMPT, "response_token_ids": GENERATION, **WITH_LOG_PROBS}
    ),
}


def complete(tokens: RawTokens | None) -> tuple[list[object], list[object], list[object]]:
    assert tokens is not None and tokens.complete
    assert tokens.prompt is not None and tokens.generation is not None and tokens.log_probs is not None
    return list(tokens.prompt), list(tokens.generation), list(tokens.log_probs)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_says_the_same(spelling: str) -> None:
    assert complete(read_tokens(SPELLINGS[spelling])) == (PROMPT, GENERATION, LOG_PROBS)


@pytest.mark.parametrize("absent", BUNDLE)
def test_of_a_bundle_what_is_absent_is_absent(absent: str) -> None:
    message = {key: value for key, value in BUNDLE.items() if key != absent}
    tokens = read_tokens(whole({"message": message}))
    if absent == "generation_token_ids":
        assert tokens is None
        return
    assert tokens is not None and not tokens.complete
    told = {
        "prompt_token_ids": tokens.prompt,
        "generation_token_ids": tokens.generation,
        "generation_log_probs": tokens.log_probs,
    }
    assert told == {**BUNDLE, absent: None}


@pytest.mark.parametrize("value", [None, "40,41", {"0": 40}, 40])
def test_a_field_that_is_no_list_is_absent(value: object) -> None:
    tokens = read_tokens(whole({"message": {**BUNDLE, "generation_token_ids": value}}))
    assert tokens is not None and tokens.generation is None
    assert read_tokens(whole({"token_ids": value}, prompt_token_ids=PROMPT)) is None


def test_a_response_without_token_fields_has_none() -> None:
    assert read_tokens({}) is None
    assert read_tokens({"output": [{"type": "message"}]}) is None
    assert read_tokens(whole({}, prompt_token_ids=PROMPT)) is None
    assert read_tokens(whole(WITH_LOG_PROBS, prompt_token_ids=PROMPT)) is None


def test_a_generation_without_log_probabilities_or_prompt_is_partial() -> None:
    tokens = read_tokens(whole({"token_ids": GENERATION}))
    assert tokens == RawTokens(None, GENERATION, None)


def test_a_bundle_of_no_generated_token_is_complete() -> None:
    empty = {"prompt_token_ids": PROMPT, "generation_token_ids": [], "generation_log_probs": []}
    assert complete(read_tokens(whole({"message": empty}))) == (PROMPT, [], [])


def test_the_first_choice_is_read() -> None:
    first, second = whole(SPELLED)["choices"][0], whole({"token_ids": [9]})["choices"][0]
    tokens = read_tokens({"prompt_token_ids": PROMPT, "choices": [first, second]})
    assert tokens is not None and tokens.generation == GENERATION


def test_texts_among_spelled_ids_make_them_no_ids() -> None:
    content = [*SPELLED["logprobs"]["content"], {"token": "hello", "logprob": -1.0}]
    assert read_tokens(whole({"logprobs": {"content": content}}, prompt_token_ids=PROMPT)) is None


@pytest.mark.parametrize(
    "spelled", ["", "x7", "-7", "7.0", " 7", "\u0663", "1_0", pytest.param("9" * 5000, id="5000 digits")]
)
def test_a_spelled_id_that_is_none_stays_as_it_is_spelled(spelled: str) -> None:
    """What is no id is for whoever checks ids; it is never made one, and never hides the others."""
    content = [{"token": f"token_id:{spelled}", "logprob": -1.0}, {"token": "token_id:7", "logprob": -1.0}]
    tokens = read_tokens(whole({"logprobs": {"content": content}}))
    assert tokens is not None and tokens.generation == [spelled, 7]


def test_log_probabilities_that_are_no_numbers_keep_their_places() -> None:
    content = [{"token": "a", "logprob": None}, {"token": "b"}, {"token": "c", "logprob": "x"}]
    tokens = read_tokens(whole({"token_ids": [1, 2, 3], "logprobs": {"content": content}}))
    assert tokens is not None and tokens.log_probs == [None, None, "x"]
    triples = {"output_token_logprobs": [[], None, [-0.5], "x"]}
    tokens = read_tokens(whole({"response_token_ids": [1, 2, 3, 4], "meta_info": triples}))
    assert tokens is not None and tokens.log_probs == [None, None, -0.5, None]


def chunk(**choice: Any) -> Response:
    return {"choices": [{"index": 0, "delta": {}, **choice}]}


CUTS = st.lists(st.integers(0, 3), max_size=3).map(sorted)


@given(cuts=CUTS, spelled=st.booleans(), before=st.booleans())
def test_a_stream_says_the_same_however_it_is_cut(cuts: list[int], spelled: bool, before: bool) -> None:
    """Prompt ids stand in the first event, at the response or at the choice; the rest comes a piece at a time."""
    first = {"prompt_token_ids": PROMPT, "choices": []} if before else chunk(prompt_token_ids=PROMPT)
    events = [first]
    places = [0, *cuts, len(GENERATION)]
    for start, end in itertools.pairwise(places):
        content = {"content": SPELLED["logprobs"]["content"][start:end]}
        events.append(chunk(logprobs=content) if spelled else chunk(token_ids=GENERATION[start:end], logprobs=content))
    assert complete(read_streamed_tokens([*events, {"choices": [], "usage": {}}])) == (PROMPT, GENERATION, LOG_PROBS)


def test_a_stream_of_texts_has_no_tokens() -> None:
    assert read_streamed_tokens([]) is None
    assert read_streamed_tokens([{"prompt_token_ids": PROMPT, "choices": []}, chunk(delta={"content": "x"})]) is None


def test_a_stream_without_prompt_or_log_probabilities_is_partial() -> None:
    tokens = read_streamed_tokens([chunk(token_ids=GENERATION)])
    assert tokens is not None and not tokens.complete and tokens.generation == GENERATION
