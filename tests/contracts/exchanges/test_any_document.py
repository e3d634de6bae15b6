"""Whatever stands in a document: no crash, nothing undeclared, and a longer history begins as the shorter one."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.exchanges.sft import SFT
from ng_capture.contracts.interface import Contract
from ng_capture.contracts.responses.contract import RESPONSES
from tests.support.converting import converted, json_text
from tests.support.forge import Row

TARGETS = (CHAT, MESSAGES, RESPONSES, SFT)
texts = st.sampled_from(["", "x", "é\n", "<think>R</think>y", "<think>", '{"a":1}'])
ids = st.sampled_from(["a", "b", "c"])
arguments = st.sampled_from(["{}", '{"b": 1,"a":"é"}', "nope", "[1]", ""])
ODD = [None, True, "x", [], {}, [[{}]], 2**70]

calls = st.builds(
    lambda call_id, given: {"id": call_id, "type": "function", "function": {"name": "f", "arguments": given}},
    ids,
    arguments,
)
chat_messages = st.one_of(
    st.builds(
        lambda role, text: {"role": role, "content": text}, st.sampled_from(["system", "developer", "user"]), texts
    ),
    st.builds(
        lambda text, called, extra: {
            "role": "assistant",
            "content": text,
            **({"tool_calls": called} if called else {}),
            **extra,
        },
        st.none() | texts,
        st.lists(calls, max_size=2),
        st.sampled_from([{}, {"reasoning_content": "R"}, {"name": "n"}]),
    ),
    st.builds(lambda call_id, text: {"role": "tool", "tool_call_id": call_id, "content": text}, ids, texts),
    st.builds(lambda text: {"role": "tool", "content": [{"type": "text", "text": text}]}, texts),
)
blocks = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, texts),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, texts),
    st.just({"type": "redacted_thinking", "data": "d"}),
    st.just({"type": "document", "source": {}}),
    st.just({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}),
    st.builds(lambda call_id: {"type": "tool_use", "id": call_id, "name": "f", "input": {"a": "é"}}, ids),
    st.builds(
        lambda call_id, text, more: {"type": "tool_result", "tool_use_id": call_id, "content": text, **more},
        ids,
        texts,
        st.sampled_from([{}, {"is_error": True}]),
    ),
)
OF_USERS = ("text", "document", "image", "tool_result")
OF_MODELS = ("text", "thinking", "redacted_thinking", "document", "tool_use")


def said_by(role: str, kinds: tuple[str, ...]) -> st.SearchStrategy[Row]:
    """A message of one side, with the blocks that this side may say."""
    content = texts | st.lists(blocks.filter(lambda block: block["type"] in kinds), min_size=1, max_size=3)
    return st.builds(lambda told: {"role": role, "content": told}, content)


of_messages = said_by("user", OF_USERS) | said_by("assistant", OF_MODELS)


def chat(messages: list[Row]) -> Row:
    return {"model": "m", "messages": messages}


def anthropic(messages: list[Row]) -> Row:
    return {"model": "m", "max_tokens": 5, "system": "S", "messages": messages}


def items_in(document: Row, contract: Contract) -> list[str]:
    """What a request becomes as items of Responses, each with all that it says."""
    done = converted(document, contract, RESPONSES)
    return [json_text(item) for item in done.value["request"].get("input", [])] if done.lines else []


@given(st.lists(chat_messages, min_size=1, max_size=6))
def test_chat_is_written_as_it_was_read(messages: list[Row]) -> None:
    done = converted(chat(messages), CHAT, CHAT)
    results = [each for each in messages if each["role"] == "tool"]
    told = done.value["messages"]
    # a result stands behind the turn that called, wherever it stood: none is lost
    assert sorted(json_text(each["content"]) for each in told if each["role"] == "tool") == sorted(
        json_text(each["content"]) for each in results
    )
    if done.codes <= {"think_tags_split", "copied_context"}:
        assert told == messages


@given(st.lists(of_messages, min_size=1, max_size=5))
def test_messages_are_written_again_as_they_were_written(messages: list[Row]) -> None:
    done = converted(anthropic(messages), MESSAGES, MESSAGES)
    if "output_unlinked" not in done.codes:
        assert converted(done.lines[0].decode(), MESSAGES, MESSAGES).lines == done.lines
    if not done.codes - {"item_order_changed"} and not any("tool_result" in json_text(each) for each in messages):
        assert done.value["messages"] == messages


@given(st.lists(chat_messages, min_size=1, max_size=6), st.data())
def test_a_prefix_of_chat_is_a_prefix_of_its_items(messages: list[Row], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(messages)))
    whole, part = items_in(chat(messages), CHAT), items_in(chat(messages[:cut]), CHAT)
    if in_order(messages):
        assert whole[: len(part)] == part


def in_order(messages: list[Row]) -> bool:
    """True where every result stands behind the turn that called it, as a loop of an agent makes it."""
    open_ids: set[str] = set()
    for message in messages:
        if message["role"] != "tool":
            open_ids = {call["id"] for call in message.get("tool_calls", ())}
        elif message.get("tool_call_id") not in open_ids:
            return False
    return True


@st.composite
def loops(draw: st.DrawFn) -> list[Row]:
    """A history of Messages as a loop makes it: the user asks, the model thinks and calls, all calls are answered."""
    history: list[Row] = []
    for at in range(draw(st.integers(1, 4))):
        history.append({"role": "user", "content": draw(texts)})
        said = draw(st.lists(blocks.filter(lambda block: block["type"] in ("text", "thinking")), max_size=2))
        called = [
            {"type": "tool_use", "id": f"t{at}{n}", "name": "f", "input": {"n": n}}
            for n in range(draw(st.integers(0, 2)))
        ]
        if said or called:
            thoughts = [block for block in said if block["type"] == "thinking"]
            spoken = [block for block in said if block["type"] == "text"]
            history.append({"role": "assistant", "content": [*thoughts, *spoken, *called]})
        if called:
            results = [{"type": "tool_result", "tool_use_id": call["id"], "content": draw(texts)} for call in called]
            history.append({"role": "user", "content": results})
    return history


@given(loops(), st.data())
def test_a_prefix_of_messages_is_a_prefix_of_all_conversions(history: list[Row], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(history)))
    whole, part = items_in(anthropic(history), MESSAGES), items_in(anthropic(history[:cut]), MESSAGES)
    assert whole[: len(part)] == part
    for target in (CHAT, SFT):
        told = [converted(anthropic(each), MESSAGES, target).value["messages"] for each in (history, history[:cut])]
        assert told[0][: len(told[1])] == told[1]
    assert converted(anthropic(history), MESSAGES, MESSAGES).value == anthropic(history)


FULL_CHAT: Row = {
    "request": {
        "model": "m",
        "max_tokens": 5,
        "reasoning_effort": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "tools": [
            {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}, "strict": True}}
        ],
        "messages": [
            {"role": "system", "content": "S"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "x"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "low"}},
                    {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
                ],
            },
            {
                "role": "assistant",
                "content": "<think>R</think>y",
                "reasoning_content": "Q",
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "tool", "tool_call_id": "c", "content": "1"},
            {"role": "function", "name": "f", "content": "2"},
        ],
    },
    "response": {
        "id": "r",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "token_ids": [2],
                "logprobs": {"content": [{"logprob": -0.5}]},
                "message": {
                    "role": "assistant",
                    "content": "z",
                    "refusal": "no",
                    "audio": {"id": "a"},
                    "prompt_token_ids": [1],
                    "generation_token_ids": [2],
                    "generation_log_probs": [-0.5],
                },
            }
        ],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3, "more": 1}},
    },
    "reward": 1.0,
    "rollout_id": "r",
}
FULL_MESSAGES: Row = {
    "request": {
        "model": "m",
        "max_tokens": 5,
        "system": [{"type": "text", "text": "S"}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "stop_sequences": ["Z"],
        "metadata": {"user_id": "u"},
        "tools": [{"name": "f", "description": "d", "input_schema": {}}, {"type": "web_search_20250305", "name": "w"}],
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "T", "signature": "s"},
                    {"type": "redacted_thinking", "data": "d"},
                    {"type": "text", "text": "y", "citations": []},
                    {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "is_error": True,
                        "content": [
                            {"type": "text", "text": "1"},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
                            {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
                        ],
                    },
                    {"type": "text", "text": "next"},
                ],
            },
        ],
    },
    "response": {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "z"}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 5,
            "cache_read_input_tokens": 3,
            "cache_creation_input_tokens": 1,
            "output_tokens": 2,
        },
    },
}


def places_in(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every member of a document, however deep."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in inner:
        yield (*before, key)
        yield from places_in(member, (*before, key))


def changed(document: Any, place: tuple[Any, ...], odd: object) -> Any:
    """The document with something else in one place."""
    other = copy.deepcopy(document)
    member = other
    for key in place[:-1]:
        member = member[key]
    member[place[-1]] = odd
    return other


@pytest.mark.parametrize(
    ("document", "contract"), [(FULL_CHAT, CHAT), (FULL_MESSAGES, MESSAGES)], ids=["chat", "messages"]
)
@pytest.mark.parametrize("odd", ODD, ids=json_text)
def test_any_place_may_hold_anything(document: Row, contract: Contract, odd: object) -> None:
    for place in places_in(document):
        other = changed(document, place, odd)
        for target in TARGETS:
            done = converted(other, contract, target)
            assert bool(done.lines) != any(fault.severity == "error" for fault in done.faults)


@given(st.sampled_from([(FULL_CHAT, CHAT), (FULL_MESSAGES, MESSAGES)]), st.data())
def test_a_document_may_end_anywhere(case: tuple[Row, Contract], data: st.DataObject) -> None:
    document, contract = case
    text = json_text(document)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    done = converted(cut, contract, RESPONSES)
    assert not done.lines and done.faults
