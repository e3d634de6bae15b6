"""Thoughts, words, calls and results spelled as items: as they stood, or as Gym takes them (contracts.md 4.0)."""

import json
from collections.abc import Sequence
from typing import Any

from ng_capture.contracts.episode import Content, Json, Opaque, Thought, ToolCall, ToolResult
from ng_capture.contracts.items.parts import rests_in, without, write_content
from ng_capture.contracts.items.pieces import OBJECT_CALLS, OUTPUTS, TEXT_CALLS

Item = dict[str, Any]

_OUTPUT_OF = {
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}


def stood(item: Json | None, *types: str) -> Json | None:
    """What is left of an item of one of these types; None for what another contract left there."""
    return item if item is not None and item.get("type") in types else None


def spell_thought(thought: Thought, new_id: str) -> Item:
    """A reasoning item. Where none stood, what can be read is its summary: that is what Gym's converters look at."""
    rest = stood(thought.item, "reasoning")
    whole: Item = {"type": "reasoning", "id": new_id} if rest is None else dict(rest)
    summary, content = thought.summary, thought.content
    if rest is None and not summary:
        summary, content = content, ()
    if rest is None or summary:
        whole["summary"] = _texts(summary, whole.get("summary"), "summary_text")
    if content:
        whole["content"] = _texts(content, whole.get("content"), "reasoning_text")
    proof = thought.encrypted if thought.encrypted is not None else thought.signature
    return whole if proof is None else {**whole, "encrypted_content": proof}


def _texts(texts: Sequence[str], rests: object, kind: str) -> list[Item]:
    fitting = rests_in(rests, len(texts)) or [{"type": kind}] * len(texts)
    return [{**rest, "text": text} for text, rest in zip(texts, fitting, strict=True)]


def spell_message(role: str, content: Content | None, rest: Json | None, new_id: str | None) -> Item:
    """A message; `rest` is what is left of it as it stood, `new_id` the id of a new one of the output, else None."""
    text_type = "output_text" if role == "assistant" else "input_text"
    if rest is not None and content is None:
        return dict(rest)
    if rest is not None:
        kept = rest.get("content")
        said = write_content(content, kept if isinstance(kept, list) else None, text_type, plain=True)
        return {**without(rest, "content"), "content": said}
    if role != "assistant" or new_id is None:
        said = write_content("" if content is None else content, None, text_type, plain=True)
        return {"type": "message", "role": role, "content": said}
    parts = write_content("" if content is None else content, None, "output_text", plain=False)
    return {"type": "message", "id": new_id, "role": role, "status": "completed", "content": parts}


def spell_call(call: ToolCall, call_id: str | None, new_id: str) -> Item:
    """A call; one of a kind that Responses do not know is a function call. No id is one that stood without."""
    kind = "function_call" if call.kind not in TEXT_CALLS else call.kind
    rest = stood(call.item, kind)
    key = TEXT_CALLS[kind]
    if call.kind in OBJECT_CALLS and (whole := stood(call.item, call.kind)) is not None:
        return dict(whole)
    named_by = "id" if kind == "mcp_call" else "call_id"
    if rest is not None:
        return _filled(rest, named_by, call_id, **{"name": call.name, key: call.arguments})
    if kind == "mcp_call":
        return {"type": kind, "id": call_id, "name": call.name, key: call.arguments}
    return {
        "type": kind,
        "id": new_id,
        "call_id": call_id,
        "name": call.name,
        key: call.arguments,
        "status": "completed",
    }


def _filled(rest: Json, named_by: str, call_id: str | None, **texts: str) -> Item:
    """What is left of an item with what a piece tells of it; what stood there as no text stands there again."""
    told = {key: text for key, text in texts.items() if text and isinstance(rest.get(key, ""), str)}
    return {**rest, **({} if call_id is None else {named_by: call_id}), **told}


def spell_result(result: ToolResult, content: Content | None, call_id: str | None, kind: str, new_id: str) -> Item:
    """The output of a call of that kind; `content` is the result's, as items can hold it."""
    rest = stood(result.item, *OUTPUTS)
    kept = None if rest is None else rest.get("output")
    output = _output(content, kept if isinstance(kept, list) else None, result.extra)
    if rest is not None:
        named_by = "id" if rest["type"] == "local_shell_call_output" else "call_id"
        whole = _filled(rest, named_by, call_id)
        return whole if content is None and not output else {**whole, "output": output}
    output_type = _OUTPUT_OF.get(kind, "function_call_output")
    return {"type": output_type, "id": new_id, "call_id": call_id, "output": output, "status": "completed"}


def _output(content: Content | None, parts: list[Json] | None, extra: Json | None) -> object:
    match content:
        case None:
            return structured_result(extra) or ""
        case (Opaque(kind="output", value=value),) if parts is None:
            return dict(value)
        case (Opaque(kind="value", value=value),) if parts is None:
            return value.get("value")
    return write_content(content, parts, "input_text", plain=True)


def structured_result(extra: Json | None) -> str | None:
    """What Relay leaves beside a result that is no text (contracts.md 2.3), as Gym reads it; None where none is."""
    if extra is None or "tool_result" not in extra:
        return None
    value = extra["tool_result"]
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
