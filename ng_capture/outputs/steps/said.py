"""What a response calls and thinks, as NeMo Gym's records hold it (capture-files.md 7.3, contracts.md 5.2)."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw

from ng_capture.ingest.sources.fields import text_of
from ng_capture.records.json_text import encode_json, object_in, objects_in, printable, respell

_THINKING = ("thinking", "redacted_thinking")


class ToolUse(msgspec.Struct, frozen=True):
    """A tool that was called; `arguments` is the JSON value, `{"_raw": text}` where they are none."""

    call_id: str | None
    name: str | None
    arguments: Raw


def tool_uses_in(response: Mapping[str, object]) -> Iterator[ToolUse]:
    """The tools that a response calls, those of all its choices."""
    if isinstance(response.get("output"), list):
        for item in objects_in(response["output"]):
            if item.get("type") == "function_call":
                yield _tool_use(text_of(item, "call_id", "id"), item, item.get("arguments"))
    elif isinstance(response.get("choices"), list):
        for message in _messages(response):
            for call in objects_in(message.get("tool_calls")):
                function = object_in(call.get("function"))
                yield _tool_use(text_of(call, "id"), function, function.get("arguments"))
    else:
        for block in objects_in(response.get("content")):
            if block.get("type") == "tool_use":
                yield _tool_use(text_of(block, "id"), block, block.get("input"))


def reasoning_in(response: Mapping[str, object]) -> str | None:
    """Its thinking: summaries, `reasoning_content` or thinking blocks, a line each; tags in a text are none."""
    return "\n".join(filter(None, _thoughts(response))) or None


def _thoughts(response: Mapping[str, object]) -> Iterator[str | None]:
    if isinstance(response.get("output"), list):
        for item in objects_in(response["output"]):
            if item.get("type") == "reasoning":
                yield from (text_of(part, "text") for part in objects_in(item.get("summary")))
    elif isinstance(response.get("choices"), list):
        yield from (text_of(message, "reasoning_content", "reasoning") for message in _messages(response))
    else:
        for block in objects_in(response.get("content")):
            if block.get("type") in _THINKING:
                yield text_of(block, "thinking")


def spelled(value: object) -> Raw:
    """A decoded value as JSON; null where it is nested deeper than can be written."""
    try:
        return Raw(encode_json(value))
    except RecursionError:
        return Raw(b"null")


def _messages(response: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    return (object_in(choice.get("message")) for choice in objects_in(response.get("choices")))


def _tool_use(call_id: str | None, named: Mapping[str, object], arguments: object) -> ToolUse:
    return ToolUse(call_id, text_of(named, "name"), _arguments(arguments))


def _arguments(value: object) -> Raw:
    if not isinstance(value, str):
        return spelled(value if isinstance(value, dict) else {})
    try:
        return Raw(respell(value))
    except ValueError:
        return spelled({"_raw": printable(value)})
