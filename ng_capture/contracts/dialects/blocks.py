"""Blocks of Messages: each as a thought, a part, a call or a result (contracts.md 4.1, 4.2)."""

from collections.abc import Iterable, Iterator

from ng_capture.contracts.dialects.fields import arguments_text, joined, opaque, others, text_in
from ng_capture.contracts.dialects.media import data_url, media_type_of, parse_data_url
from ng_capture.contracts.episode import Json, Media, Opaque, Part, Text, Thought, ToolCall, ToolResult
from ng_capture.records.json_text import object_in

THINKING = ("thinking", "redacted_thinking")
RESULT = "tool_result"
UNREAD = "_raw"
"""Where NeMo Gym keeps the text of an input that is no JSON (contracts.md 4.7)."""
_HELD = {
    "text": ("text",),
    "image": ("source",),
    "thinking": ("thinking", "signature"),
    "redacted_thinking": ("data",),
    "tool_use": ("id", "name", "input"),
}


def kind_of(block: object) -> object:
    """The type of a block, None for what is none."""
    return object_in(block).get("type")


def blocks_of(content: object) -> list[object]:
    """The blocks of a content: a text is one block, what is no content is one that is opaque."""
    if isinstance(content, list):
        return content
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else [content]


def is_reordered(blocks: Iterable[object]) -> bool:
    """True where a turn, which thinks, speaks and calls in this order, does not say the order of the blocks."""
    ranks = [0 if kind in THINKING else 2 if kind == "tool_use" else 1 for kind in map(kind_of, blocks)]
    return ranks != sorted(ranks)


def thought_of(block: Json) -> Thought:
    """A thinking block."""
    if block.get("type") == "redacted_thinking":
        return Thought(encrypted=text_in(block, "data"), redacted=True)
    text = block.get("thinking")
    return Thought(summary=(text,) if isinstance(text, str) else (), signature=text_in(block, "signature"))


def tool_call_of(block: Json) -> ToolCall:
    """A tool that is called."""
    given = block.get("input")
    unread = given.get(UNREAD) if isinstance(given, dict) and len(given) == 1 else None
    return ToolCall(
        call_id=text_in(block, "id"),
        name=text_in(block, "name") or "",
        arguments=unread if isinstance(unread, str) else arguments_text(given),
    )


def result_of(block: Json) -> ToolResult:
    """A tool result: no content, and an empty one, are an empty text (T-AN-1)."""
    content, failed = block.get("content"), block.get("is_error")
    blocks = blocks_of(content)
    said = content if isinstance(content, str) else joined(map(part_of, blocks))
    rests = [rest_of(each) for each in blocks] if isinstance(content, list) and blocks else None
    rest: dict[str, object] = dict(others(block, "type", "tool_use_id", "content", "is_error") or {})
    if rests is not None and (isinstance(said, str) or any(len(each) > 1 for each in rests)):
        rest["blocks"] = rests
    return ToolResult(
        call_id=text_in(block, "tool_use_id"),
        content="" if said is None else said,
        is_error=failed if isinstance(failed, bool) else None,
        item=rest or None,
    )


def part_of(value: object) -> Part:
    """A block that is said: text, image, or one that only Messages knows."""
    block = object_in(value)
    match block.get("type"):
        case "text" if isinstance(text := block.get("text"), str):
            return Text(text)
        case "image":
            media = next(_image(object_in(block.get("source"))), None)
            if media is not None:
                return media
    return opaque(str(block.get("type", "unknown")), value)


def _image(source: Json) -> Iterator[Media]:
    kind, data, url = text_in(source, "media_type"), text_in(source, "data"), text_in(source, "url")
    if source.get("type") == "base64" and kind and data and parse_data_url(data_url(kind, data)):
        yield Media("image", data_url(kind, data), kind)
    elif source.get("type") == "url" and url and not url.startswith("data:"):
        yield Media("image", url, media_type_of(url))


def rest_of(value: object) -> Json:
    """A block without what its turn holds of it."""
    block = object_in(value)
    kind = block.get("type")
    if kind not in (*THINKING, "tool_use") and isinstance(part_of(value), Opaque):
        # an opaque part holds all of it
        return {"type": kind} if "type" in block else {}
    held = _HELD[str(kind)]
    return {key: told for key, told in block.items() if key not in held or not _is_held(key, told)}


def _is_held(key: str, value: object) -> bool:
    match key:
        case "input" | "source":
            return isinstance(value, dict)
        case "text" | "thinking":
            return isinstance(value, str)
    return isinstance(value, str) and bool(value)
