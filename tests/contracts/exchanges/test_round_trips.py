"""There and back: what the specification promises to keep is kept, byte for byte (contracts.md 7.1, 4.8)."""

from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Contract
from ng_capture.contracts.responses.contract import RESPONSES
from tests.support.converting import Done, converted, json_text
from tests.support.forge import Row

ARGUMENTS = '{"b":1,"a": "é",  "n":1.50}'
CHAT_PAIR: Row = {
    "request": {
        "model": "m",
        "max_tokens": 5,
        "temperature": 0.5,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": False}}],
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {
                "role": "assistant",
                "content": "x",
                "reasoning_content": "R",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}},
                    {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "nope"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c2", "content": "2"},
            {"role": "tool", "tool_call_id": "c1", "content": ""},
            {"role": "assistant", "content": "ok"},
            {"role": "developer", "content": "D"},
            {"role": "user", "content": "go"},
        ],
    },
    "response": {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "done", "reasoning_content": "Q"},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 5,
            "completion_tokens": 2,
            "total_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 3},
        },
    },
}
MESSAGES_PAIR = (
    '{"request":{"model":"m","max_tokens":9,"system":"S","messages":[{"role":"user","content":"hi"},'
    '{"role":"assistant","content":[{"type":"thinking","thinking":"T","signature":"s"},{"type":"text","text":"x"},'
    '{"type":"tool_use","id":"t1","name":"f","input":ARGUMENTS},{"type":"tool_use","id":"t2","name":"g","input":{}}]},'
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"two"},'
    '{"type":"tool_result","tool_use_id":"t1","content":"one"},{"type":"text","text":"next"}]}]},'
    '"response":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":['
    '{"type":"thinking","thinking":"U","signature":"v"},{"type":"redacted_thinking","data":"zz"},'
    '{"type":"text","text":"a"},{"type":"tool_use","id":"t3","name":"f","input":ARGUMENTS}],"stop_reason":"tool_use",'
    '"stop_sequence":null,"usage":{"input_tokens":5,"cache_read_input_tokens":90,"output_tokens":3}}}'
).replace("ARGUMENTS", ARGUMENTS)


def there_and_back(document: object, contract: Contract, through: Contract) -> Done:
    there = converted(document, contract, through)
    return converted(there.lines[0].decode(), through, contract)


def without_id(pair: Any) -> Any:
    """A pair without the id of its response, which is another API's when it comes back."""
    return {**pair, "response": {key: value for key, value in pair["response"].items() if key != "id"}}


def test_chat_is_written_as_it_was_read() -> None:
    done = converted(CHAT_PAIR, CHAT, CHAT)
    assert done.lines == (json_text(CHAT_PAIR).encode(),) and not done.losses


def test_messages_are_written_as_they_were_read() -> None:
    done = converted(MESSAGES_PAIR, MESSAGES, MESSAGES)
    assert done.lines == (MESSAGES_PAIR.encode(),) and not done.losses


@pytest.mark.parametrize("through", [RESPONSES, GYM], ids=lambda contract: contract.name)
def test_chat_comes_back_from_responses(through: Contract) -> None:
    back = there_and_back(CHAT_PAIR, CHAT, through)
    assert json_text(without_id(back.value)) == json_text(without_id(CHAT_PAIR))


@pytest.mark.parametrize("through", [RESPONSES, GYM], ids=lambda contract: contract.name)
def test_messages_come_back_from_responses(through: Contract) -> None:
    back = there_and_back(MESSAGES_PAIR, MESSAGES, through)
    made = f'"id":"{back.value["response"]["id"]}"'
    assert back.lines[0].decode().replace(made, '"id":"msg_1"') == MESSAGES_PAIR


def test_messages_keep_their_words_and_calls_through_chat() -> None:
    document = MESSAGES_PAIR.replace(',"signature":"s"', ',"signature":""').replace(
        ',"signature":"v"', ',"signature":""'
    )
    back = (
        there_and_back(document.replace('{"type":"redacted_thinking","data":"zz"},', ""), MESSAGES, CHAT)
        .lines[0]
        .decode()
    )
    for kept in (
        ARGUMENTS,
        '"thinking":"T"',
        '"thinking":"U"',
        '{"type":"tool_result","tool_use_id":"t2","content":"two"}',
    ):
        assert kept in back


@pytest.mark.parametrize(
    ("document", "contract"), [(CHAT_PAIR, CHAT), (MESSAGES_PAIR, MESSAGES)], ids=["chat", "messages"]
)
def test_what_comes_back_is_the_same_whenever_it_is_asked_for(document: object, contract: Contract) -> None:
    for through in (RESPONSES, GYM, CHAT, MESSAGES, ATIF):
        assert converted(document, contract, through).lines == converted(document, contract, through).lines


@pytest.mark.parametrize(
    ("document", "contract"), [(CHAT_PAIR, CHAT), (MESSAGES_PAIR, MESSAGES)], ids=["chat", "messages"]
)
def test_half_of_a_pair_comes_back_as_that_half(document: Any, contract: Contract) -> None:
    whole = converted(document, contract, contract).value
    for half in ("request", "response"):
        for value in (
            whole[half],
            {half: whole[half]},
            {**whole, "request" if half == "response" else "response": None},
        ):
            assert converted(value, contract, contract).value == whole[half]
