"""Where the engines put token ids and log probabilities: every spelling, whole and streamed."""

import pytest

from ng_capture.ingest.evidence.spellings import SPELLINGS
from ng_capture.ingest.normalise import normalise
from tests.support.engines import BUNDLE, ENGINES, GENERATION, LOG_PROBS, PROMPT, chat, text
from tests.support.raw_exchanges import Fields, answered, asked


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_says_the_same(name: str) -> None:
    engine = ENGINES[name]
    [call] = normalise(engine.call)
    assert call.problems == ()
    assert (call.prompt_token_ids, call.generation_token_ids) == (PROMPT, GENERATION)
    assert call.generation_log_probs == LOG_PROBS
    assert (call.prompt_origin, call.generation_origin) == (engine.prompt_origin, engine.generation_origin)


def test_every_spelling_but_one_without_log_probabilities_is_that_of_an_engine() -> None:
    used = {origin for engine in ENGINES.values() for origin in (engine.prompt_origin, engine.generation_origin)}
    assert {spelling.origin for spelling in SPELLINGS} - used == {"raw_messages"}


@pytest.mark.parametrize("absent", BUNDLE)
def test_of_a_bundle_what_is_absent_is_missing(absent: str) -> None:
    for message in ({**BUNDLE, absent: None}, {key: BUNDLE[key] for key in BUNDLE if key != absent}):
        [call] = normalise(answered(chat({"message": message})))
        assert (call.problems, call.missing) == (("partial_tokens",), (absent,))


@pytest.mark.parametrize("value", ["40,41", {"0": 40}, 40, True])
def test_a_field_that_is_no_list_is_not_there(value: object) -> None:
    [call] = normalise(answered(chat({"message": {**BUNDLE, "generation_token_ids": value}})))
    assert call.missing == ("generation_token_ids",)


NO_WHOLE_PROMPT: dict[str, Fields] = {
    "prompt log probabilities lose the first id": chat({}, prompt_logprobs=[None, {"2": {"logprob": -1.0}}]),
    "input log probabilities of an unknown start": {"meta_info": {"input_token_logprobs": [[None, 2, None]]}},
    "input log probabilities that start late": {
        "meta_info": {"prompt_tokens": 2, "input_token_logprobs": [[None, 2, None]]}
    },
    "bytes that are no 32-bit integers": chat({}, prompt_token_ids_b64="AAA="),
    "bytes that are no base64": chat({}, prompt_token_ids_b64="\u00e9!"),
    "messages of several rounds": {
        "output": [],
        "input_messages": [{"tokens": [1]}, {"tokens": [2]}],
        "output_messages": [{"tokens": [5]}],
    },
    "a context without a split": {"response": "a", "context": [1, 2, 5, 9]},
}


@pytest.mark.parametrize("name", NO_WHOLE_PROMPT)
def test_a_prompt_that_is_not_proven_whole_is_not_used(name: str) -> None:
    [call] = normalise(answered(NO_WHOLE_PROMPT[name]))
    assert call.prompt_token_ids is None
    assert not call.trainable


def test_a_prompt_with_an_image_among_its_chunks_is_not_known() -> None:
    request = {"prompt": {"chunks": [{"tokens": [1]}, {"location": "x.png"}]}}
    [call] = normalise(asked(request, {"sequences": [{"tokens": [5], "logprobs": [-1.0]}]}))
    assert call.missing == ("prompt_token_ids",)


def test_of_several_prompts_each_choice_has_its_own() -> None:
    choices = [{"index": place, "text": "", "token_ids": [place]} for place in range(4)]
    calls = normalise(asked({"prompt": [[1], [2, 3]], "n": 2}, {"choices": choices, "usage": {"prompt_tokens": 3}}))
    assert [call.prompt_token_ids for call in calls] == [[1], [1], [2, 3], [2, 3]]


def test_rounds_of_built_in_tools_have_no_ids() -> None:
    """Later prompts stand among the answers."""
    rounds = {"output": [], "input_messages": [{"tokens": [1]}], "output_messages": [{"tokens": [5]}, {"tokens": [6]}]}
    [call] = normalise(answered(rounds))
    assert (call.prompt_token_ids, call.generation_token_ids) == ([1], None)


@pytest.mark.parametrize(
    "spelled",
    ["", "x7", "-7", "7.0", " 7", "\u0663", "1_0", "007", "+7", pytest.param("9" * 5000, id="5000 digits")],
)
def test_a_malformed_token_id_string_stays_as_it_is_spelled(spelled: str) -> None:
    content = [{"token": f"token_id:{spelled}", "logprob": -1.0}, {"token": "token_id:7", "logprob": -1.0}]
    [call] = normalise(answered(chat({"logprobs": {"content": content}}, prompt_token_ids=[1])))
    assert call.generation_token_ids == [f"token_id:{spelled}", 7]
    assert call.problems == ("bad_token_id",)


def test_texts_among_token_id_strings_make_them_no_ids() -> None:
    content = [{"token": "token_id:7", "logprob": -1.0}, {"token": "he", "logprob": -1.0}]
    [call] = normalise(answered(chat({"logprobs": {"content": content}}, prompt_token_ids=[1])))
    assert call.missing == ("generation_token_ids",)


def test_ids_typed_as_floats_are_none() -> None:
    logprobs = {"token_ids": [5.0, 9.0], "token_logprobs": LOG_PROBS}
    [call] = normalise(asked({"prompt": PROMPT}, text({"logprobs": logprobs})))
    assert (call.problems, call.generation_token_ids) == (("bad_token_id",), [5.0, 9.0])
