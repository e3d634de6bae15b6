"""The contract `sft`: rows that trainers load, and what they lose (contracts.md 7.1)."""

import json
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.episode import Episode, Role, Thread, ToolResult, Turn
from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.exchanges.sft import SFT
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Options, Thinking, Written
from ng_capture.contracts.responses.contract import RESPONSES
from tests.support.converting import converted, json_text
from tests.support.forge import Row
from tests.support.templates import KEEPS
from tests.support.tiny_tokenizers import byte_level

TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"b":1,"a":"é"}'}}
OTHER = {"id": "c2", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TALK: list[Row] = [
    {"role": "system", "content": "S"},
    {"role": "user", "content": "x"},
    {"role": "assistant", "content": "", "reasoning_content": "R", "tool_calls": [CALL, OTHER], "weight": 1},
    {"role": "tool", "content": "1", "tool_call_id": "c1"},
    {"role": "tool", "content": "2", "tool_call_id": "c2"},
    {"role": "assistant", "content": "done", "weight": 1},
]
ROW: Row = {"messages": TALK, "tools": json_text([TOOL]), "rollout_id": "r", "reward": 0.5}


def test_a_row_that_is_read_again_is_the_same_row() -> None:
    done = converted(ROW, CHAT, SFT)
    assert done.value == ROW and not done.losses


def test_what_is_not_to_be_learnt_stays_so() -> None:
    row = {**ROW, "messages": [*TALK[:-1], {"role": "assistant", "content": "no", "weight": 0}]}
    assert converted(row, CHAT, SFT).value == row


def test_an_id_that_nobody_knows_is_left_out() -> None:
    calls = [{"type": "function", "function": {"name": "f", "arguments": "{}"}}]
    row = {
        "messages": [
            {"role": "assistant", "content": "", "tool_calls": calls, "weight": 1},
            {"role": "tool", "content": "1"},
        ]
    }
    assert converted(row, CHAT, SFT).value["messages"] == row["messages"]


def test_a_chat_template_renders_a_row() -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level(), chat_template=KEEPS)
    row = converted(ROW, CHAT, SFT).value
    text = tokenizer.apply_chat_template(row["messages"], tools=json.loads(row["tools"]), tokenize=False)
    assert "<think>R</think>" in text and "<|tool|>2<|end|>" in text and text.endswith("<|assistant|>done<|end|>")


def test_every_content_is_a_text_so_that_a_column_has_one_type() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "see "}, image, {"type": "file", "file": {}}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        {"role": "assistant", "content": None, "refusal": "no"},
    ]
    done = converted({"messages": messages}, CHAT, SFT)
    assert [each["content"] for each in done.value["messages"]] == ["see [image][file]", "", "a\nb", "no"]
    assert {"media_omitted", "content_type_unsupported", "parts_flattened"} <= done.codes


def test_what_no_model_wrote_here_has_no_weight() -> None:
    history = {"model": "m", "messages": [*TALK, {"role": "user", "content": "go"}]}
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "new"}}]}
    done = converted({"request": history, "response": answer}, CHAT, SFT)
    assert [each["weight"] for each in done.value["messages"] if each["role"] == "assistant"] == [0, 0, 1]
    assert "copied_context" in done.codes
    step = {"step_id": 2, "source": "agent", "message": "made by rule", "llm_call_count": 0}
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [{"step_id": 1, "source": "user", "message": "x"}, step],
    }
    done = converted(document, ATIF, SFT)
    assert done.value["messages"][1]["weight"] == 0 and "no_model_call" in done.codes


def test_results_that_name_no_call_are_linked_by_their_place_and_told() -> None:
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [
            {
                "step_id": 1,
                "source": "agent",
                "message": "",
                "tool_calls": [{"tool_call_id": "k", "function_name": "f", "arguments": {}}],
                "observation": {"results": [{"source_call_id": None, "content": "out"}]},
            }
        ],
    }
    done = converted(document, ATIF, SFT)
    assert done.value["messages"][1] == {"role": "tool", "content": "out", "tool_call_id": "k"}
    assert "link_by_position" in done.codes


def test_a_result_without_any_call_names_none() -> None:
    turn = Turn(Role.ASSISTANT, results=(ToolResult(None, "lost"),))
    assert SFT.writer is not None
    done = SFT.writer.write(Episode("atif", Thread((turn,))), Options())
    assert isinstance(done, Written) and json.loads(done.documents[0])["messages"] == [
        {"role": "tool", "content": "lost"}
    ]
    assert {loss.code for loss in done.losses} == {"output_unlinked"}


def test_think_tags_stand_where_they_stood_or_in_the_field_of_reasoning() -> None:
    said = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "<think>a</think>b"}]}
    assert converted(said, CHAT, SFT).value["messages"][1]["content"] == "<think>a</think>b"
    split = converted(said, CHAT, SFT, Options(thinking=Thinking.SPLIT)).value["messages"][1]
    assert (split["content"], split["reasoning_content"]) == ("b", "a")


@pytest.mark.parametrize(
    ("blocks", "reasoning", "code"),
    [
        ([{"type": "thinking", "thinking": "T", "signature": "s"}], "T", "reasoning_signature_dropped"),
        ([{"type": "redacted_thinking", "data": "d"}], None, "reasoning_dropped"),
        (
            [{"type": "thinking", "thinking": "T"}, {"type": "thinking", "thinking": "U"}],
            "T\nU",
            "reasoning_segments_joined",
        ),
    ],
)
def test_what_only_a_provider_reads_is_lost_and_told(blocks: list[Row], reasoning: str | None, code: str) -> None:
    content = [*blocks, {"type": "text", "text": "a"}]
    done = converted({"model": "m", "messages": [{"role": "assistant", "content": content}]}, MESSAGES, SFT)
    assert done.value["messages"][0].get("reasoning_content") == reasoning and code in done.codes


def test_a_summary_beside_the_content_of_reasoning_is_lost_and_told() -> None:
    reasoning = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    done = converted({"response": {"object": "response", "output": [reasoning]}}, RESPONSES, SFT)
    assert done.value["messages"][0]["reasoning_content"] == "long" and "reasoning_summary_dropped" in done.codes


def test_developers_are_the_system_and_failures_are_told() -> None:
    document = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "no", "is_error": True}],
            },
        ],
    }
    assert "is_error_dropped" in converted(document, MESSAGES, SFT).codes
    done = converted([{"role": "developer", "content": "D"}, {"role": "user", "content": "x"}], CHAT, SFT)
    assert done.value["messages"][0]["role"] == "system" and "developer_role" in done.codes


@pytest.mark.parametrize(
    ("tool", "function", "lost"),
    [
        (
            {"name": "f", "input_schema": {"type": "object", "properties": {"a": {}}}},
            {"type": "object", "properties": {"a": {}}},
            False,
        ),
        ({"name": "f", "description": "d"}, {"type": "object", "properties": {}}, False),
        ({"type": "web_search_20250305", "name": "web_search"}, {"type": "object", "properties": {}}, True),
    ],
)
def test_tools_are_functions_as_text(tool: Row, function: Row, lost: bool) -> None:
    document = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [tool]}
    done = converted(document, MESSAGES, SFT)
    [told] = json.loads(done.value["tools"])
    assert told["type"] == "function" and told["function"]["name"] == tool["name"]
    assert told["function"]["parameters"] == function and ("tool_definition_not_function" in done.codes) == lost


def test_tokens_and_parameters_have_no_place_and_are_told() -> None:
    tokens = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "a", **tokens}}]}
    document = {
        "request": {"model": "m", "temperature": 1, "messages": [{"role": "user", "content": "x"}]},
        "response": answer,
    }
    done = converted(document, CHAT, SFT)
    assert {"tokens_dropped", "request_fields_dropped"} <= done.codes


def test_the_reward_and_the_id_of_a_row_are_kept() -> None:
    row = {
        "_ng_rollout_id": "7-0",
        "reward": 1.0,
        "responses_create_params": {"input": [{"role": "user", "content": "x"}]},
        "response": {"object": "response", "output": [{"type": "message", "role": "assistant", "content": "a"}]},
    }
    done = converted(row, GYM, SFT)
    assert (done.value["rollout_id"], done.value["reward"]) == ("7-0", 1.0)
    assert "reward_dropped" not in done.codes


def embedded() -> Any:
    child = {"schema_version": "ATIF-v1.7", "trajectory_id": "child", "agent": {"name": "b", "version": "1"}}
    steps = [{"step_id": 1, "source": "user", "message": "sub"}, {"step_id": 2, "source": "agent", "message": "ok"}]
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": [{**steps[0], "message": "x"}, steps[1]],
        "subagent_trajectories": [{**child, "steps": steps}],
    }


@pytest.mark.parametrize("target", [SFT, CHAT, MESSAGES], ids=lambda target: target.name)
def test_sub_agents_are_rows_of_their_own_or_told_as_lost(target: Any) -> None:
    done = converted(embedded(), ATIF, target)
    assert len(done.lines) == 1 and "subagent_dropped" in done.codes
    rows = converted(embedded(), ATIF, target, Options(subagents=True))
    assert len(rows.lines) == 2 and "subagent_dropped" not in rows.codes
    assert b'"sub"' in rows.lines[1]


def test_half_of_a_surrogate_pair_makes_no_row_that_cannot_be_read() -> None:
    text = '{"messages":[{"role":"user","content":"\\ud800"},{"role":"assistant","content":"a\\udfff"}]}'
    [line] = converted(text, CHAT, SFT).lines
    assert json_text(json.loads(line)).encode("utf-8") == line
