"""Streams with all that they carry: choices apart, pieces joined, repeats taken once."""

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ng_capture.ingest.normalise import normalise
from ng_capture.records.assembling import assemble
from tests.support.forge import Row
from tests.support.raw_exchanges import streamed_as

ids = st.lists(st.integers(0, 9), min_size=1, max_size=6)
cuts = st.lists(st.integers(0, 6), max_size=4).map(sorted)


def pieces(values: list[Any], places: list[int]) -> list[list[Any]]:
    return [values[start:end] for start, end in itertools.pairwise([0, *places, len(values)])]


@given(one=ids, other=ids, places=cuts, mixed=st.randoms(use_true_random=False))
def test_choices_are_kept_apart_however_they_are_mixed(
    one: list[int], other: list[int], places: list[int], mixed: Any
) -> None:
    queues = [[(index, piece) for piece in pieces(whole, places)] for index, whole in enumerate((one, other))]
    events: list[Row] = [{"prompt_token_ids": [1], "choices": []}]
    while any(queues):
        index, piece = mixed.choice([queue for queue in queues if queue]).pop(0)
        entries = [{"token": "x", "logprob": -float(token)} for token in piece]
        events.append({"choices": [{"index": index, "token_ids": piece, "logprobs": {"content": entries}}]})
    events += [{"choices": [{"index": index, "delta": {}, "finish_reason": "stop"}]} for index in (1, 0)]
    calls = normalise(streamed_as(events))
    assert [call.call_id for call in calls] == ["c1#0", "c1#1"]
    assert [call.generation_token_ids for call in calls] == [one, other]
    assert [call.generation_log_probs for call in calls] == [[-float(token) for token in each] for each in (one, other)]
    assert {call.problems for call in calls} == {("ambiguous_choices",)}


@given(whole=ids, places=cuts, repeats=st.booleans(), indexes=st.sampled_from([(0,), (0, 1)]))
def test_a_native_stream_says_the_same_whether_it_repeats_or_not(
    whole: list[int], places: list[int], repeats: bool, indexes: tuple[int, ...]
) -> None:
    events = []
    for start, end in itertools.pairwise([0, *[place for place in places if place < len(whole)], len(whole)]):
        for index in indexes:
            part = whole[0 if repeats else start : end]
            triples = [[-1.0, token, None] for token in part]
            meta = {"completion_tokens": end, "output_token_logprobs": triples, "finish_reason": None}
            events.append({"index": index, "output_ids": part, "meta_info": meta})
    calls = normalise(streamed_as(events, {"input_ids": [1]}))
    assert len(calls) == len(indexes)
    for call in calls:
        assert call.generation_token_ids == whole
        assert call.generation_log_probs == [-1.0] * len(whole)
        assert set(call.problems) <= {"ambiguous_choices"}


def test_texts_of_a_native_stream_are_joined_or_taken_once() -> None:
    for texts in (["a", "ab"], ["a", "b"]):
        [call] = normalise(streamed_as([{"text": text, "output_ids": [5], "meta_info": {}} for text in texts]))
        assert call.answer is not None and call.answer.text == "ab"


def test_a_piece_that_is_no_list_stays_to_be_found() -> None:
    events: list[Row] = [{"choices": [{"token_ids": piece}]} for piece in ([5], "x", [9])]
    assert assemble(events)["choices"][0]["token_ids"] == [5, "x", 9]  # type: ignore[index]


def test_a_usage_of_messages_is_that_of_start_and_end() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}}
    end = {"type": "message_delta", "delta": {}, "usage": {"input_tokens": None, "output_tokens": 7}}
    assert assemble([start, end])["usage"] == {"input_tokens": 3, "output_tokens": 7}


def test_a_call_of_the_form_before_tools_grows_like_one_of_a_tool() -> None:
    pieces = [{"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": '{"a"'}}]
    pieces += [{"function_call": {"name": "", "arguments": ": 1}"}}]
    assert _message(pieces)["function_call"] == {"name": "f", "arguments": '{"a": 1}'}


def test_a_custom_tool_is_called_with_its_input() -> None:
    pieces = [{"tool_calls": [{"index": 0, "id": "c", "type": "custom", "custom": {"name": "sh", "input": "l"}}]}]
    pieces += [{"tool_calls": [{"index": 0, "custom": {"input": "s"}}]}]
    assert _message(pieces)["tool_calls"] == [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}]


def test_details_of_reasoning_and_sounds_come_in_pieces() -> None:
    pieces: list[Row] = [{"reasoning_details": [{"text": "a"}], "audio": {"id": "s", "data": "AA", "transcript": "h"}}]
    pieces += [{"reasoning_details": [{"text": "b"}], "audio": {"data": "BB", "transcript": "i"}}]
    message = _message(pieces)
    assert message["reasoning_details"] == [{"text": "a"}, {"text": "b"}]
    assert message["audio"] == {"id": "s", "data": "AABB", "transcript": "hi"}


def _message(deltas: list[Row]) -> Row:
    whole: Any = assemble([{"choices": [{"index": 0, "delta": each}]} for each in deltas])
    message: Row = whole["choices"][0]["message"]
    return message
