"""Raw calls in the three dialects, as a line of `.capture.jsonl` holds them.

row = chat_call("a", [user("hello")], says("hi"), prompt=[1, 2], generation=[3])
exchange(row)                                        # read as the library reads it
write_capture(directory, "r-1", [row, ...])          # r-1.capture.jsonl
streamed(row, [event, ...])                          # the same call with a stream for its response
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ng_capture.ingest.exchange import Exchange, decode_exchange
from ng_capture.ingest.messages import Message, ToolCall
from tests.support.forge import Row, in_lines

MODEL = "policy-8b"


def system(text: str) -> Row:
    return {"role": "system", "content": text}


def user(text: str) -> Row:
    return {"role": "user", "content": text}


def says(text: str | None, **fields: Any) -> Row:
    """What an assistant answered, in the chat dialect."""
    return {"role": "assistant", "content": text, **fields}


def calls(*tools: tuple[str, str, str], text: str = "", **fields: Any) -> Row:
    """An answer that calls tools: each is its id, its name and its arguments as they are spelled."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in tools
    ]
    return says(text, tool_calls=made, **fields)


def result(call_id: str, text: str) -> Row:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def chat_call(
    call_id: str,
    asked: Sequence[Row],
    answer: Row | None,
    *,
    prompt: Sequence[int] | None = None,
    generation: Sequence[int] = (),
    at: float = 0.0,
    tools: object = None,
    finish: str = "stop",
    **fields: Any,
) -> Row:
    """An exchange of the chat dialect, made at second `at`; with `prompt` its message carries NeMo Gym's bundle."""
    message = dict(answer or {})
    if prompt is not None:
        message |= {
            "prompt_token_ids": list(prompt),
            "generation_token_ids": list(generation),
            "generation_log_probs": [-0.25] * len(generation),
        }
    choice = {"index": 0, "message": message, "finish_reason": finish}
    request: Row = {"model": MODEL, "messages": list(asked)}
    return {
        "model_call_id": call_id,
        "dialect": "chat",
        "started_at": at,
        "completed_at": at + 0.5,
        "status_code": 200,
        "request": request if tools is None else {**request, "tools": tools},
        "response": {"id": f"resp-{call_id}", "model": MODEL, "choices": [choice]} if message else None,
        **fields,
    }


def talk(
    *answers: Row, first: Sequence[Row] = (), ids: Sequence[str] = "abcdefgh", about: str = "question"
) -> list[Row]:
    """Calls that go on with one conversation: each asks again with all that was said, and one more user turn."""
    turns, made = list(first), []
    for number, answer in enumerate(answers):
        turns = [*turns, user(f"{about} {number}")]
        made.append(chat_call(ids[number], turns, answer, at=float(number)))
        turns = [*turns, answer]
    return made


def streamed(row: Row, events: Iterable[object], *, done: bool = True) -> Row:
    """The same call with a stream for its response."""
    blocks = [f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n" for event in events]
    return {**row, "response": None, "response_raw": "".join([*blocks, *(["data: [DONE]\n\n"] if done else [])])}


def exchange(row: Row, line: int = 1) -> Exchange:
    """The call as the library reads it."""
    read = decode_exchange(json.dumps(row).encode(), line)
    assert read is not None
    return read


def exchanges(rows: Iterable[Row]) -> list[Exchange]:
    return [exchange(row, line) for line, row in enumerate(rows, 1)]


def spelled_compactly(turns: Iterable[Message]) -> list[Message]:
    """The turns with the arguments of their calls as they are spelled where they were an object: without spaces."""
    return [
        msgspec.structs.replace(turn, tool_calls=tuple(_compact(call) for call in turn.tool_calls)) for turn in turns
    ]


def _compact(call: ToolCall) -> ToolCall:
    return msgspec.structs.replace(call, arguments=json.dumps(json.loads(call.arguments), separators=(",", ":")))


def write_capture(directory: Path, rollout_id: str, rows: Iterable[Row]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    data = in_lines(json.dumps(row).encode() for row in rows)
    (directory / f"{rollout_id}.capture.jsonl").write_bytes(data)
