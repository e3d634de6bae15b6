"""Conversations of three dialects in one form."""

from typing import Any

import pytest

from ng_capture.ingest.messages import Message, ToolCall, answer_message, request_messages
from tests.support.dialects import CALLING, DIALECTS, REQUESTS, RESPONSES, TURNS
from tests.support.raw_calls import spelled_compactly

LOOK = CALLING.tool_calls[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_three_dialects_have_one_form(dialect: str) -> None:
    assert spelled_compactly(request_messages(REQUESTS[dialect])) == spelled_compactly(TURNS)


def test_arguments_that_are_a_text_stay_as_they_are_spelled() -> None:
    assert request_messages(REQUESTS["chat"])[2].tool_calls == (LOOK,)
    assert request_messages(REQUESTS["messages"])[2].tool_calls[0].arguments == '{"word":"quern"}'


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_has_the_form_of_its_turn(dialect: str) -> None:
    answer = answer_message(RESPONSES[dialect])
    assert answer is not None
    assert spelled_compactly([answer]) == spelled_compactly([CALLING])


@pytest.mark.parametrize(
    "response",
    [{}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": {}}]}, {"output": []}, {"output": "x"}],
)
def test_a_response_that_says_nothing_has_no_answer(response: dict[str, Any]) -> None:
    assert answer_message(response) is None


def test_an_answer_without_a_word_is_an_answer() -> None:
    assert answer_message({"choices": [{"message": {"role": "assistant", "content": None}}]}) == Message("assistant")
    assert answer_message({"content": []}) == Message("assistant")


def test_of_several_items_before_an_answer_ends_all_are_one_message() -> None:
    answer = answer_message(
        {
            "output": [
                {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "one, "}]},
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "two"}]},
                {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                {"type": "function_call", "call_id": "b", "name": "g", "arguments": "{}"},
            ]
        }
    )
    called = (ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}"))
    assert answer == Message("assistant", reasoning="one, two", tool_calls=called)


def test_two_answers_of_a_chat_are_two_messages() -> None:
    """Only typed items are parts of one answer: a chat turn is a whole one."""
    turns = [{"role": "assistant", "content": "one"}, {"role": "assistant", "content": "two"}]
    assert request_messages({"messages": turns}) == (Message("assistant", "one"), Message("assistant", "two"))


def test_results_of_tools_stand_apart_from_what_the_user_says_beside_them() -> None:
    blocks = [
        {"type": "tool_result", "tool_use_id": "k1", "content": [{"type": "text", "text": "one"}]},
        {"type": "tool_result", "tool_use_id": "k2", "content": "two"},
        {"type": "text", "text": "go on"},
    ]
    assert request_messages({"messages": [{"role": "user", "content": blocks}]}) == (
        Message("tool", "one", call_id="k1"),
        Message("tool", "two", call_id="k2"),
        Message("user", "go on"),
    )


def test_a_turn_of_nothing_but_results_says_nothing_else() -> None:
    block = {"type": "tool_result", "tool_use_id": "k1", "content": []}
    assert request_messages({"messages": [{"role": "user", "content": [block]}]}) == (Message("tool", call_id="k1"),)


def test_what_is_no_text_is_shown_by_its_type() -> None:
    blocks = [{"type": "text", "text": "see "}, {"type": "image_url", "image_url": {}}, {"type": "input_audio"}, "!", 5]
    turns = request_messages({"messages": [{"role": "user", "content": blocks}]})
    assert turns == (Message("user", "see [image_url][input_audio]"),)


def test_a_text_among_blocks_is_a_text() -> None:
    assert request_messages({"system": ["Be ", {"type": "text", "text": "brief."}], "messages": []}) == (
        Message("system", "Be brief."),
    )


def test_a_refusal_is_what_was_said() -> None:
    answer = answer_message({"output": [{"type": "message", "role": "assistant", "content": [{"refusal": "No."}]}]})
    assert answer == Message("assistant", "No.")


def test_a_developer_is_the_system() -> None:
    assert request_messages({"input": [{"role": "developer", "content": "x"}]}) == (Message("system", "x"),)


def test_an_input_that_is_a_text_is_what_the_user_says() -> None:
    assert request_messages({"instructions": "a", "input": "b"}) == (Message("system", "a"), Message("user", "b"))


def test_reasoning_is_read_in_every_spelling() -> None:
    for name in ("reasoning_content", "reasoning"):
        turns = request_messages({"messages": [{"role": "assistant", "content": "x", name: "why"}]})
        assert turns == (Message("assistant", "x", "why"),)
    blocks = [{"type": "reasoning", "text": "why"}, {"type": "text", "text": "x"}]
    turns = request_messages({"messages": [{"role": "assistant", "content": blocks}]})
    assert turns == (Message("assistant", "x", "why"),)


def test_calls_without_arguments_have_empty_ones() -> None:
    blocks = [{"type": "tool_use", "id": "a", "name": "f"}]
    answer = answer_message({"content": blocks})
    assert answer is not None and answer.tool_calls == (ToolCall("a", "f", "{}"),)


@pytest.mark.parametrize("turns", [None, 5, {}, [None, 5, "x", [], {}], [{"type": "item_reference"}]])
def test_what_is_no_turn_is_none(turns: object) -> None:
    assert request_messages({"messages": turns}) == ()


@pytest.mark.parametrize("odd", [None, 5, [], {}, [[]], {"a": []}, True, "\ud800"])
@pytest.mark.parametrize("key", ["type", "text", "content", "id", "input", "tool_use_id", "thinking"])
def test_any_field_of_a_block_may_hold_any_value(key: str, odd: object) -> None:
    for kind in ("text", "tool_use", "tool_result", "thinking", "image"):
        block = {"type": kind, "text": "x", key: odd}
        for role in ("user", "assistant"):
            request_messages({"messages": [{"role": role, "content": [block]}]})


def test_half_of_a_surrogate_pair_is_spelled_out() -> None:
    (turn,) = request_messages({"messages": [{"role": "user", "content": "\ud800"}]})
    assert turn.text == "\\ud800"
