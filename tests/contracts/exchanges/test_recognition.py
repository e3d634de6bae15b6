"""What a document of chat or of Messages is taken for, and what is none of them."""

from typing import Any

import pytest

from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.interface import Head
from tests.support.converting import json_text, recognised

USER = {"role": "user", "content": "x"}
BLOCK = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}
COMPLETION = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}}]}
MESSAGE = {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "a"}]}
CHATS: list[Any] = [
    {"model": "m", "messages": [USER]},
    {"messages": [USER], "tools": None},
    [USER, {"role": "assistant", "content": "a"}],
    COMPLETION,
    {"request": {"model": "m", "messages": [USER]}, "response": COMPLETION},
    {"request": {"model": "m", "messages": [USER]}, "response": "data: {}"},
    {"response": COMPLETION},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}]},
]
OF_MESSAGES: list[Any] = [
    {"model": "m", "max_tokens": 5, "system": "S", "messages": [USER]},
    {"model": "m", "messages": [BLOCK]},
    {"model": "m", "messages": [USER], "tools": [{"name": "f", "input_schema": {}}]},
    {"messages": [USER], "anthropic_version": "x"},
    [USER, BLOCK],
    MESSAGE,
    {"request": {"model": "m", "messages": [USER]}, "response": MESSAGE},
    {"response": MESSAGE},
]
OTHERS: dict[str, Any] = {
    "harbor": [{"conversations": [USER], "agent": "a"}],
    "verifiers": {"example_id": 0, "prompt": [USER], "completion": [], "reward": 1.0, "task": "t", "answer": ""},
    "responses": {"model": "m", "input": [USER]},
    "capture": {"model_call_id": "c", "dialect": "chat", "request": {"messages": [USER]}, "response": COMPLETION},
    "gym": {"responses_create_params": {"input": [USER]}, "response": {"object": "response", "output": []}},
    "atif": {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": []},
}


@pytest.mark.parametrize("document", CHATS, ids=json_text)
def test_chat_is_known_by_its_messages_and_choices(document: Any) -> None:
    assert recognised(document) == "chat"


@pytest.mark.parametrize("document", OF_MESSAGES, ids=json_text)
def test_messages_are_known_by_what_chat_does_not_have(document: Any) -> None:
    assert recognised(document) == "messages"


@pytest.mark.parametrize("name", OTHERS)
def test_documents_of_others_are_theirs(name: str) -> None:
    head = Head("x.json", False, OTHERS[name])
    for contract in (CHAT, MESSAGES):
        assert contract.reader is not None and not contract.reader.recognises(head)


@pytest.mark.parametrize(
    "value", [None, 5, "x", [], {}, [[]], [5], {"messages": 5}, {"messages": [5]}, {"choices": [5]}, ["x"]]
)
def test_what_is_nothing_is_not_claimed(value: Any) -> None:
    for contract in (CHAT, MESSAGES):
        assert contract.reader is not None and not contract.reader.recognises(Head("x.json", False, value))


def test_a_folder_is_never_claimed() -> None:
    for contract in (CHAT, MESSAGES):
        assert contract.reader is not None and not contract.reader.recognises(Head("x", True, ["messages", "tool_use"]))
