"""One conversation in the three dialects: its requests, its responses, its responses as events of a stream."""

from typing import Any

from ng_capture.ingest.messages import Message, ToolCall
from tests.support.forge import Row

DIALECTS = ("chat", "responses", "messages")
ARGUMENTS = '{"word": "quern"}'
FOUND = "a hand mill"

CALLING = Message("assistant", "Let me look.", "I should look.", (ToolCall("k1", "look_up", ARGUMENTS),))
TURNS = (
    Message("system", "Be brief."),
    Message("user", "What is a quern?"),
    CALLING,
    Message("tool", FOUND, call_id="k1"),
    Message("assistant", "A hand mill."),
)
"""The conversation in the one form of the library. An answer that thinks, speaks and calls a tool is its third turn."""

_CALLING_ITEMS: list[Row] = [
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I should look."}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
    {"type": "function_call", "call_id": "k1", "name": "look_up", "arguments": ARGUMENTS},
]
_CALLING_BLOCKS: list[Row] = [
    {"type": "thinking", "thinking": "I should look."},
    {"type": "text", "text": "Let me look."},
    {"type": "tool_use", "id": "k1", "name": "look_up", "input": {"word": "quern"}},
]
_CALLING_MESSAGE: Row = {
    "role": "assistant",
    "content": "Let me look.",
    "reasoning_content": "I should look.",
    "tool_calls": [{"id": "k1", "type": "function", "function": {"name": "look_up", "arguments": ARGUMENTS}}],
}

REQUESTS: dict[str, Row] = {
    "chat": {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is a quern?"},
            _CALLING_MESSAGE,
            {"role": "tool", "tool_call_id": "k1", "content": FOUND},
            {"role": "assistant", "content": "A hand mill."},
        ]
    },
    "responses": {
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "What is a quern?"}]},
            *_CALLING_ITEMS,
            {"type": "function_call_output", "call_id": "k1", "output": FOUND},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A hand mill."}]},
        ],
    },
    "messages": {
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": "What is a quern?"},
            {"role": "assistant", "content": _CALLING_BLOCKS},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k1", "content": FOUND}]},
            {"role": "assistant", "content": [{"type": "text", "text": "A hand mill."}]},
        ],
    },
}

RESPONSES: dict[str, Row] = {
    "chat": {"id": "c1", "model": "m", "choices": [{"message": _CALLING_MESSAGE, "finish_reason": "tool_calls"}]},
    "responses": {"id": "c1", "model": "m", "output": _CALLING_ITEMS},
    "messages": {"id": "c1", "model": "m", "content": _CALLING_BLOCKS, "stop_reason": "tool_use"},
}
"""The answer that calls the tool."""

STOPS = {"chat": "tool_calls", "responses": None, "messages": "tool_use"}


def delta(finish: str | None = None, **said: Any) -> Row:
    """An event of a chat stream."""
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def call_piece(index: int, call_id: str | None = None, **function: str) -> Row:
    """An event of a chat stream with a piece of a tool call."""
    return delta(tool_calls=[{"index": index, **({"id": call_id} if call_id else {}), "function": function}])


def of_block(kind: str, index: int, **fields: Any) -> Row:
    """An event of a messages stream about one of its blocks."""
    return {"type": f"content_block_{kind}", "index": index, **fields}


STREAMS: dict[str, list[Row]] = {
    "chat": [
        delta(role="assistant", content=""),
        delta(reasoning_content="I "),
        delta(reasoning_content="should look."),
        delta(content="Let me "),
        delta(content="look."),
        call_piece(0, "k1", name="look_up", arguments=""),
        call_piece(0, arguments=ARGUMENTS[:5]),
        call_piece(0, arguments=ARGUMENTS[5:]),
        delta(finish="tool_calls"),
        {"id": "c1", "model": "m", "choices": [], "usage": {"completion_tokens": 9}},
    ],
    "responses": [
        {"type": "response.created", "response": {"id": "c1", "output": []}},
        {"type": "response.output_text.delta", "delta": "Let me look."},
        {"type": "response.completed", "response": RESPONSES["responses"]},
    ],
    "messages": [
        {"type": "message_start", "message": {"id": "c1", "model": "m", "content": [], "stop_reason": None}},
        of_block("start", 0, content_block={"type": "thinking", "thinking": ""}),
        of_block("delta", 0, delta={"type": "thinking_delta", "thinking": "I "}),
        of_block("delta", 0, delta={"type": "thinking_delta", "thinking": "should look."}),
        {"type": "ping"},
        of_block("start", 1, content_block={"type": "text", "text": ""}),
        of_block("delta", 1, delta={"type": "text_delta", "text": "Let me look."}),
        of_block("start", 2, content_block={"type": "tool_use", "id": "k1", "name": "look_up", "input": {}}),
        of_block("delta", 2, delta={"type": "input_json_delta", "partial_json": ARGUMENTS[:7]}),
        of_block("delta", 2, delta={"type": "input_json_delta", "partial_json": ARGUMENTS[7:]}),
        of_block("stop", 2),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": {}},
        {"type": "message_stop"},
    ],
}
"""The same answer as a stream."""
