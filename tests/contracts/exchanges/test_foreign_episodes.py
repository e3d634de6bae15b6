"""Episodes of other contracts as requests and responses: what goes where, and what has no place (contracts.md 3.6)."""

import json
from array import array
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.episode import (
    Agent,
    Episode,
    Media,
    ModelCall,
    Role,
    Text,
    Thought,
    Thread,
    Tokens,
    Tool,
    ToolCall,
    ToolResult,
    Totals,
    Turn,
)
from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.exchanges.sft import SFT
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Contract, Options, Written
from ng_capture.contracts.responses.contract import RESPONSES
from ng_capture.records.usage import Usage
from tests.support.converting import converted
from tests.support.forge import Row

ASKED = Turn(Role.USER, "x")
BOTH = pytest.mark.parametrize("target", [CHAT, MESSAGES], ids=lambda target: target.name)


def written(target: Contract, *turns: Turn, **fields: Any) -> tuple[Any, set[str]]:
    """The document of an episode, and what was lost."""
    episode = Episode("atif", Thread(turns, **fields))
    assert target.writer is not None
    done = target.writer.write(episode, Options())
    assert isinstance(done, Written)
    [document] = done.documents
    return json.loads(document), {loss.code for loss in done.losses}


@BOTH
def test_a_step_of_no_model_is_history_and_told(target: Contract) -> None:
    call = ToolCall("c", "f", "{}")
    made = Turn(Role.ASSISTANT, None, calls=(call,), results=(ToolResult("c", "1"),), model_calls=0)
    document, codes = written(target, ASKED, made)
    assert "response" not in document and "no_model_call" in codes


@BOTH
def test_what_a_runtime_noted_is_no_message_and_told(target: Contract) -> None:
    document, codes = written(target, ASKED, Turn(Role.EVENT, "noted"), Turn(Role.ASSISTANT, "a"))
    assert "noted" not in json.dumps(document) and "mark_dropped" in codes


@BOTH
def test_the_usage_of_all_is_that_of_the_only_answer(target: Contract) -> None:
    totals = Totals(Usage(tokens_in=5, tokens_out=2))
    document, codes = written(target, ASKED, Turn(Role.ASSISTANT, "a"), totals=totals)
    assert 5 in document["response"]["usage"].values() and "usage_dropped" not in codes
    again = Turn(Role.ASSISTANT, "b")
    document, _ = written(target, ASKED, Turn(Role.ASSISTANT, "a"), ASKED, again, totals=totals)
    assert "usage" not in document["response"]


@BOTH
def test_an_image_that_lies_beside_the_source_is_left_out_and_told(target: Contract) -> None:
    turn = Turn(Role.USER, (Text("see"), Media("image", "pictures/a.png")))
    document, codes = written(target, turn)
    assert document["messages"][0]["content"][1] == {"type": "text", "text": "[image omitted: pictures/a.png]"}
    assert "media_omitted" in codes


@BOTH
def test_what_steps_and_threads_hold_besides_is_told(target: Contract) -> None:
    call = ToolCall("c", "f", "{}", extra={"a": 1})
    result = ToolResult("c", "1", extra={"a": 1})
    costly = ModelCall(cost_usd=0.5, finish_reason="stop", usage=Usage(tokens_in=1), started_at=1.0)
    first = Turn(
        Role.ASSISTANT, None, calls=(call,), results=(result,), call=costly, reasoning_effort="low", extra={"a": 1}
    )
    _, codes = written(target, ASKED, first, Turn(Role.ASSISTANT, "a", timestamp="2026"), notes="n", trajectory_id="t")
    assert {"step_fields_dropped", "usage_dropped", "finish_reason_dropped", "timestamps_dropped"} <= codes
    assert "metadata_dropped" in codes


@BOTH
def test_calls_that_made_no_step_are_told(target: Contract) -> None:
    assert target.writer is not None
    episode = Episode("capture", Thread((ASKED,)), reward=1.0, omitted=(Turn(Role.ASSISTANT),))
    done = target.writer.write(episode, Options())
    assert {loss.code for loss in done.losses} == {"step_fields_dropped", "reward_dropped"}


@BOTH
def test_token_ids_and_half_a_surrogate_pair_stand_in_one_document(target: Contract) -> None:
    tokens = Tokens(array("q", [1, 2]), array("q", [3]), array("d", [-0.5]))
    answer = Turn(Role.ASSISTANT, "\ud800", call=ModelCall(tokens=tokens))
    document, codes = written(target, Turn(Role.USER, "x"), answer)
    if target is CHAT:
        assert document["response"]["choices"][0]["message"]["prompt_token_ids"] == [1, 2]
    else:
        assert "tokens_dropped" in codes


def test_token_ids_of_a_capture_are_numbers_of_a_list() -> None:
    tokens = Tokens(array("q", [1]), array("q", [3]), array("d", [-0.5]))
    document, _ = written(CHAT, ASKED, Turn(Role.ASSISTANT, "a", call=ModelCall(tokens=tokens)))
    assert document["response"]["choices"][0]["message"]["generation_token_ids"] == [3]


def test_reasoning_that_only_its_provider_reads_is_lost_in_chat_and_told() -> None:
    document, codes = written(CHAT, ASKED, Turn(Role.ASSISTANT, "a", thoughts=(Thought(encrypted="E"),)))
    assert "reasoning_content" not in document["response"]["choices"][0]["message"]
    assert "reasoning_dropped" in codes


def test_a_thought_of_nothing_makes_no_block() -> None:
    document, _ = written(MESSAGES, ASKED, Turn(Role.ASSISTANT, "a", thoughts=(Thought(),)))
    assert document["response"]["content"] == [{"type": "text", "text": "a"}]


def test_an_empty_answer_has_no_blocks() -> None:
    document, _ = written(MESSAGES, ASKED, Turn(Role.ASSISTANT, ""))
    assert document["response"]["content"] == []


@pytest.mark.parametrize("through", [RESPONSES, GYM], ids=lambda contract: contract.name)
def test_tools_of_responses_are_offered_in_chat(through: Contract) -> None:
    tools = [
        {"type": "custom", "name": "sh", "description": "d"},
        {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True},
        {"type": "web_search"},
    ]
    request = {"input": "x", "tools": tools}
    document = (
        request
        if through is RESPONSES
        else {"responses_create_params": request, "response": {"object": "response", "output": []}}
    )
    done = converted(document, through, CHAT)
    offered = done.value.get("request", done.value)["tools"]
    assert offered[0] == {"type": "custom", "custom": {"name": "sh", "description": "d"}}
    assert offered[1]["function"]["strict"] is True and len(offered) == 2
    assert "tool_definition_not_function" in done.codes
    strict = converted(document, through, MESSAGES)
    assert strict.value.get("request", strict.value)["tools"][-1]["strict"] is True


@BOTH
def test_no_tools_offered_is_not_the_same_as_nobody_knows(target: Contract) -> None:
    assert written(target, ASKED, agent=Agent(tools=()))[0]["tools"] == []
    assert "tools" not in written(target, ASKED)[0]


def test_a_tool_of_the_other_side_has_the_words_of_this_one() -> None:
    chat = Tool("f", {"type": "function", "function": {"name": "f"}}, "chat")
    document, _ = written(MESSAGES, ASKED, agent=Agent(tools=(chat,)))
    assert document["tools"] == [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]


def test_calls_of_other_kinds_are_functions_and_told() -> None:
    turn = Turn(Role.ASSISTANT, None, calls=(ToolCall("c", "n", "{}", kind="mcp_call"),))
    for target in (CHAT, MESSAGES):
        assert "item_type_mapped" in written(target, ASKED, turn)[1]


def test_a_trajectory_is_a_request_and_its_last_answer() -> None:
    steps: list[Row] = [
        {"step_id": 1, "source": "system", "message": "S"},
        {"step_id": 2, "source": "user", "message": "x"},
        {
            "step_id": 3,
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": "k", "function_name": "f", "arguments": {"a": "é"}}],
            "observation": {"results": [{"source_call_id": "k", "content": "out"}]},
        },
        {"step_id": 4, "source": "agent", "message": "done", "reasoning_content": "R"},
    ]
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": steps,
    }
    pair = converted(document, ATIF, CHAT).value
    assert [each["role"] for each in pair["request"]["messages"]] == ["system", "user", "assistant", "tool"]
    assert pair["response"]["choices"][0]["message"] == {
        "role": "assistant",
        "content": "done",
        "reasoning_content": "R",
    }
    row = converted(document, ATIF, SFT).value
    assert [each.get("weight") for each in row["messages"]] == [None, None, 1, None, 1]
