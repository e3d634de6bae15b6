"""Answers that were streamed: put together, and told where they were cut (contracts.md 7.2, T-SSE)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.interface import Contract
from ng_capture.contracts.responses.contract import RESPONSES
from tests.support.converting import Done, converted
from tests.support.dialects import ARGUMENTS, REQUESTS, STREAMS, call_piece, of_block
from tests.support.dialects import RESPONSES as WHOLE
from tests.support.forge import Row
from tests.support.raw_calls import streamed

CONTRACTS = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}
START = {"type": "message_start", "message": {"id": "c1", "role": "assistant", "model": "m"}}
STOPPED = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


def streamed_pair(dialect: str, events: list[Any]) -> Row:
    """A request, and the text of the stream that answered it."""
    text = streamed({}, events)["response_raw"]
    return {"request": {"model": "m", **REQUESTS[dialect]}, "response": text}


def answer(dialect: str, events: list[Any], target: Contract) -> tuple[Any, Done]:
    """The answer in the words of the target, and all of the conversion."""
    done = converted(streamed_pair(dialect, events), CONTRACTS[dialect], target)
    return done.value["response"], done


@pytest.mark.parametrize("dialect", CONTRACTS)
def test_a_streamed_answer_is_the_answer_that_was_not_streamed(dialect: str) -> None:
    told, _ = answer(dialect, STREAMS[dialect], MESSAGES)
    request = {"model": "m", **REQUESTS[dialect]}
    whole = converted({"request": request, "response": WHOLE[dialect]}, CONTRACTS[dialect], MESSAGES).value["response"]
    assert told["content"] == whole["content"]
    assert (told["id"], told["stop_reason"]) == (whole["id"], whole["stop_reason"])


def test_a_signature_that_was_streamed_is_kept() -> None:
    events = [
        START,
        of_block("start", 0, content_block={"type": "thinking", "thinking": "", "signature": ""}),
        of_block("delta", 0, delta={"type": "thinking_delta", "thinking": "T"}),
        of_block("delta", 0, delta={"type": "signature_delta", "signature": "SIG"}),
        *STOPPED,
    ]
    for target in (MESSAGES, RESPONSES):
        told, done = answer("messages", events, target)
        blocks = told.get("content") or told["output"]
        assert (blocks[0].get("signature") or blocks[0]["encrypted_content"]) == "SIG"
        assert "stream_rebuilt" not in done.codes


def test_a_stream_without_its_end_gives_what_came_and_is_told() -> None:
    events = [
        START,
        of_block("start", 0, content_block={"type": "text", "text": ""}),
        of_block("delta", 0, delta={"text": "half"}),
    ]
    told, done = answer("messages", events, RESPONSES)
    assert told["output"][0]["content"][0]["text"] == "half" and "stream_rebuilt" in done.codes
    [loss] = [each for each in done.losses if each.code == "stream_rebuilt"]
    assert (loss.path, loss.severity) == ("/response", "note")


@pytest.mark.parametrize("end", [[], [{"type": "error", "error": {"type": "overloaded_error"}}]], ids=["cut", "error"])
def test_an_answer_whose_stream_was_cut_is_not_a_completed_one(end: list[Any]) -> None:
    events = [START, of_block("start", 0, content_block={"type": "text", "text": "half"}), *end]
    told, done = answer("messages", events, RESPONSES)
    assert told["status"] == "incomplete" and "stream_rebuilt" in done.codes
    delta = {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "content_index": 0, "delta": "h"}
    told, done = answer("responses", [delta, *end], CHAT)
    assert told["choices"][0]["finish_reason"] is None and "stream_rebuilt" in done.codes


def test_an_answer_without_its_request_asks_for_nothing() -> None:
    whole = {"response": WHOLE["chat"]}
    assert "request" not in converted(whole, CHAT, RESPONSES).value


def test_a_responses_stream_without_its_envelope_is_put_together_of_its_deltas() -> None:
    events = [
        {"type": "response.created", "response": {"id": "r", "object": "response", "output": []}},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "ha"},
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "lf"},
    ]
    told, done = answer("responses", events, CHAT)
    assert told["choices"][0]["message"]["content"] == "half" and "stream_rebuilt" in done.codes


def test_choices_of_a_stream_are_kept_apart() -> None:
    events = [
        {"id": "c", "model": "m", "choices": [{"index": at, "delta": {"content": text}, "finish_reason": "stop"}]}
        for at, text in ((0, "A"), (1, "B"), (0, "a"), (1, "b"))
    ]
    told, done = answer("chat", events, CHAT)
    assert [choice["message"]["content"] for choice in told["choices"]] == ["Aa"]
    assert "choice_dropped" in done.codes


def test_arguments_that_were_cut_are_the_text_that_came() -> None:
    cut = [START, of_block("start", 0, content_block={"type": "tool_use", "id": "t", "name": "f", "input": {}})]
    cut.append(of_block("delta", 0, delta={"type": "input_json_delta", "partial_json": '{"a": '}))
    told, _ = answer("messages", cut, RESPONSES)
    assert told["output"][0]["arguments"] == '{"a": '
    told, done = answer("chat", [call_piece(0, "t", name="f", arguments='{"a": ')], MESSAGES)
    assert told["content"][0]["input"] == {"_raw": '{"a": '} and "arguments_not_object" in done.codes


def test_a_stream_of_nothing_leaves_the_request() -> None:
    for text in ("", "no stream", "data: [DONE]\n\n", "data: {cut"):
        done = converted({**streamed_pair("chat", []), "response": text}, CHAT, CHAT)
        assert "response" not in done.value and len(done.value["messages"]) == 5


@pytest.mark.parametrize("dialect", CONTRACTS)
def test_the_text_of_a_stream_alone_is_its_answer(dialect: str) -> None:
    text = streamed({}, STREAMS[dialect])["response_raw"]
    message = converted(text, CONTRACTS[dialect], CHAT).value["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("Let me look.", "I should look.")
    assert message["tool_calls"][0]["function"] == {"name": "look_up", "arguments": ARGUMENTS}


@given(st.sampled_from(sorted(CONTRACTS)), st.data())
def test_a_stream_may_be_cut_anywhere(dialect: str, data: st.DataObject) -> None:
    document = streamed_pair(dialect, STREAMS[dialect])
    at = data.draw(st.integers(0, len(document["response"])))
    for target in CONTRACTS.values():
        done = converted({**document, "response": document["response"][:at]}, CONTRACTS[dialect], target)
        assert len(done.lines) == 1 and not done.faults
