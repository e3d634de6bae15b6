"""The output of a Responses stream put together from its deltas, for one that ended without saying it whole."""

from collections.abc import Iterable, Mapping
from typing import Any

from ng_capture.records.json_text import object_in
from ng_capture.records.stream_chunks import add_text

Event = Mapping[str, object]
Grown = dict[str, Any]

# what a delta adds to: the item that it makes where none was announced, the list that it stands in, its part, its text
_IN_PARTS = {
    "response.output_text": ("message", "content", "output_text", "text"),
    "response.refusal": ("message", "content", "refusal", "refusal"),
    "response.reasoning_text": ("reasoning", "content", "reasoning_text", "text"),
    "response.reasoning_summary_text": ("reasoning", "summary", "summary_text", "text"),
}
_WHOLE = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
    "response.mcp_call_arguments": ("mcp_call", "arguments"),
}


def output_of(events: Iterable[Event]) -> list[Mapping[str, object]]:
    """The items in their order, as far as they came; an item that ended is as its last event says."""
    items: dict[object, Grown] = {}
    for event in events:
        kind = event.get("type")
        item = event.get("item")
        if isinstance(item, dict) and kind in ("response.output_item.added", "response.output_item.done"):
            items[_key(event, item)] = dict(item)
        elif isinstance(kind, str):
            _add(items, event, *kind.rpartition(".")[::2])
    return [items[key] for key in sorted(items, key=_place)]


def _add(items: dict[object, Grown], event: Event, growing: str, step: str) -> None:
    """Add a delta to its item, or put what its end says in its place."""
    if growing in _IN_PARTS:
        kind, listed, part_kind, field = _IN_PARTS[growing]
        text = _text(event, field, step)
        if text is not None:
            made = {"type": kind, "role": "assistant"} if kind == "message" else {"type": kind}
            item = items.setdefault(_key(event, {}), made)
            _grow(_part(item, event, listed, part_kind), field, text, step)
    elif growing in _WHOLE:
        kind, field = _WHOLE[growing]
        text = _text(event, field, step)
        if text is not None:
            _grow(items.setdefault(_key(event, {}), {"type": kind}), field, text, step)


def _text(event: Event, field: str, step: str) -> str | None:
    told = event.get("delta") if step == "delta" else event.get(field) if step == "done" else None
    return told if isinstance(told, str) else None


def _grow(whole: Grown, field: str, text: str, step: str) -> None:
    if step == "delta":
        add_text(whole, field, text)
    else:
        whole[field] = text


def _part(item: Grown, event: Event, listed: str, kind: str) -> Grown:
    """The part of an item that an event is about, made where it is not there; a list of its own, never the event's."""
    index = event.get("summary_index" if listed == "summary" else "content_index")
    at = index if type(index) is int and index >= 0 else 0
    told = item.get(listed)
    parts = [dict(object_in(part)) for part in told] if isinstance(told, list) else []
    if at >= len(parts):
        at = len(parts)
        parts.append({"type": kind})
    item[listed] = parts
    return parts[at]


def _key(event: Event, item: Event) -> object:
    """What names an item: its place in the output, else its id."""
    index = event.get("output_index")
    if type(index) is int:
        return index
    named = event.get("item_id", item.get("id"))
    return named if isinstance(named, str) else None


def _place(key: object) -> tuple[bool, int]:
    """Items that tell their place, then the others as they came."""
    return (False, key) if isinstance(key, int) else (True, 0)
