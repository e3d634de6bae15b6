"""Streams of three dialects put together: the same answer as the response that was not streamed."""

import itertools
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.ingest.messages import Message, ToolCall, answer_message
from ng_capture.records.assembling import assemble
from ng_capture.records.raw_call import finish_reason
from ng_capture.records.streams import stream_events
from tests.support.dialects import CALLING, DIALECTS, RESPONSES, STOPS, STREAMS, call_piece, delta, of_block
from tests.support.forge import Row
from tests.support.raw_calls import spelled_compactly, streamed


def assembled(events: list[Any]) -> Row:
    """Through the text of the stream, as it was captured."""
    return dict(assemble(stream_events(streamed({}, events)["response_raw"])))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_three_dialects_are_put_together(dialect: str) -> None:
    response = assembled(STREAMS[dialect])
    answer = answer_message(response)
    assert answer is not None
    assert spelled_compactly([answer]) == spelled_compactly([CALLING])
    assert (response["id"], response["model"]) == ("c1", "m")
    assert finish_reason(response) == STOPS[dialect]


@given(text=st.text(max_size=12), cuts=st.lists(st.integers(0, 12), max_size=4).map(sorted))
def test_a_text_is_the_same_however_it_is_cut(text: str, cuts: list[int]) -> None:
    places = [0, *cuts, len(text)]
    pieces = [text[start:end] for start, end in itertools.pairwise(places)]
    chat = answer_message(assemble([delta(content=each) for each in pieces]))
    assert chat == Message("assistant", text)
    blocks = [of_block("delta", 0, delta={"text": each}) for each in pieces]
    start = of_block("start", 0, content_block={"type": "text", "text": ""})
    assert answer_message(assemble([{"type": "message_start"}, start, *blocks])) == Message("assistant", text)


def test_the_last_response_of_a_stream_is_taken_and_a_finished_one_before_all() -> None:
    late = {"type": "response.in_progress", "response": {"id": "late"}}
    created, *_, completed = STREAMS["responses"]
    assert assembled([created, completed, late]) == RESPONSES["responses"]
    assert assembled([created, late]) == {"id": "late"}
    for kind in ("response.incomplete", "response.failed"):
        assert assembled([{"type": kind, "response": {"id": "end"}}, late]) == {"id": "end"}


def test_a_finished_event_without_its_response_takes_nothing_away() -> None:
    assert assembled([STREAMS["responses"][0], {"type": "response.completed"}]) == {"id": "c1", "output": []}


def test_tool_calls_stand_in_the_order_of_their_indexes() -> None:
    answer = answer_message(
        assembled(
            [
                call_piece(1, "b", name="g", arguments="{"),
                call_piece(0, "a", name="f", arguments="{}"),
                call_piece(1, name="", arguments="}"),
            ]
        )
    )
    assert answer is not None
    assert answer.tool_calls == (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))


def test_tool_calls_without_an_index_are_calls_of_their_own() -> None:
    called = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    answer = answer_message(assembled([delta(tool_calls=called)]))
    assert answer is not None and [call.name for call in answer.tool_calls] == ["a", "b"]


def test_input_that_does_not_parse_is_kept_as_text() -> None:
    events = [
        {"type": "message_start"},
        of_block("start", 0, content_block={"type": "tool_use", "id": "k", "name": "f"}),
        of_block("delta", 0, delta={"partial_json": '{"a": '}),
    ]
    answer = answer_message(assembled(events))
    assert answer is not None and answer.tool_calls == (ToolCall("k", "f", '{"_raw":"{\\"a\\": "}'),)


def test_input_that_is_nested_without_end_is_kept_as_text() -> None:
    events = [
        {"type": "message_start"},
        of_block("start", 0, content_block={"type": "tool_use", "id": "k", "name": "f"}),
        of_block("delta", 0, delta={"partial_json": "[" * 100_000}),
    ]
    assert answer_message(assembled(events)) is not None


def test_input_is_known_as_the_model_spelled_it() -> None:
    start = of_block("start", 0, content_block={"type": "tool_use", "id": "k", "name": "f", "input": {}})
    pieces = [of_block("delta", 0, delta={"partial_json": piece}) for piece in ('{"b":1,', '"a": "é"}')]
    [block] = assemble([{"type": "message_start"}, start, *pieces])["content"]  # type: ignore[misc]
    assert block["input"] == {"b": 1, "a": "é"} and block["input"].text == '{"b":1,"a": "é"}'
    copied = pickle.loads(pickle.dumps(block["input"]))
    assert copied == block["input"] and copied.text == block["input"].text


def test_signatures_and_citations_are_kept() -> None:
    events = [
        {"type": "message_start"},
        of_block("start", 0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        of_block("delta", 0, delta={"type": "signature_delta", "signature": "SIG"}),
        of_block("start", 1, content_block={"type": "text", "text": "", "citations": None}),
        of_block("delta", 1, delta={"type": "citations_delta", "citation": {"cited_text": "a"}}),
        of_block("delta", 1, delta={"type": "citations_delta", "citation": {"cited_text": "b"}}),
    ]
    thinking, text = assemble(events)["content"]  # type: ignore[misc]
    assert thinking["signature"] == "SIG"
    assert text["citations"] == [{"cited_text": "a"}, {"cited_text": "b"}]


def test_a_message_whose_start_was_lost_is_one() -> None:
    assert assembled(STREAMS["messages"][1:])["content"] == assembled(STREAMS["messages"])["content"]


def test_a_block_that_did_not_begin_says_nothing() -> None:
    events = [
        {"type": "message_start"},
        of_block("delta", 7, delta={"text": "lost"}),
        {"type": "content_block_delta", "delta": {"text": "lost"}},
    ]
    assert assembled(events) == {"content": []}


def test_a_stream_of_nothing_is_nothing() -> None:
    assert assemble([]) == {}
    assert assembled(["no json", 5, [], None]) == {}
    assert assembled([{"id": "c1", "usage": {"completion_tokens": 1}}]) == {
        "id": "c1",
        "usage": {"completion_tokens": 1},
    }


def test_lines_of_one_event_are_one_value_and_events_without_a_blank_line_are_several() -> None:
    text = 'event: x\ndata: {"a":\ndata: 1}\n\n: comment\ndata: {"b": 2}\ndata: {"c": 3}\n\ndata: [DONE]\n'
    assert stream_events(text) == [{"a": 1}, {"b": 2}, {"c": 3}, {}]
    assert stream_events(text.replace("\n", "\r\n")) == stream_events(text)


def test_a_plain_body_is_no_stream() -> None:
    assert stream_events('{"choices": []}') == [] and stream_events(None) == [] and stream_events(5) == []


ODD: list[Any] = [None, True, 5, -1, 0.5, "x", [], {}, [[]], [{}], {"a": []}, 2**70]
KEYS = ["type", "index", "delta", "choices", "message", "response", "content_block", "id", "usage"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_field_of_an_event_may_hold_any_value(dialect: str, key: str, odd: object) -> None:
    events = STREAMS[dialect]
    for place in range(len(events)):
        answer_message(assemble([*events[:place], {**events[place], key: odd}, *events[place + 1 :]]))


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_any_field_of_a_delta_may_hold_any_value(odd: object) -> None:
    for key in ("content", "reasoning", "reasoning_content", "refusal", "tool_calls", "role"):
        answer_message(assemble([delta(content="x"), delta(None, **{key: odd})]))
    for key in ("index", "id", "function"):
        answer_message(assemble([delta(tool_calls=[{"index": 0, "id": "a", "function": {}, key: odd}])]))
    for key in ("name", "arguments"):
        answer_message(assemble([delta(tool_calls=[{"index": 0, "function": {key: odd}}])]))
    for key in ("text", "thinking", "partial_json"):
        events = [{"type": "message_start"}, of_block("start", 0, content_block={key: odd, "type": "text"})]
        answer_message(
            assemble([*events, of_block("delta", 0, delta={key: "x"}), of_block("delta", 0, delta={key: odd})])
        )
