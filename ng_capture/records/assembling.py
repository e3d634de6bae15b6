"""A response put together from its events, as far as what was said goes (capture-files.md 7.2)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ng_capture.records.json_text import object_in
from ng_capture.records.stream_chunks import completion, continued, detailed, native

_DELTAS = (("text", "text"), ("thinking", "thinking"), ("signature", "signature"), ("partial_json", "json"))
# a tuple: the type of an event may be anything, also what has no hash
_LAST_RESPONSES = ("response.completed", "response.incomplete", "response.failed")


def assemble(events: Iterable[Mapping[str, object]]) -> Mapping[str, object]:
    """The response that the events stream, in the shape of its dialect; empty where they stream none."""
    events = list(events)
    whole = [event for event in events if isinstance(event.get("response"), dict)]
    if whole:
        last = [event for event in whole if event.get("type") in _LAST_RESPONSES]
        return object_in((last or whole)[-1]["response"])
    if any(event.get("type") == "message_start" for event in events):
        return _message(events)
    if any(event.get("choices") for event in events):
        return completion(events)
    if any(isinstance(event.get("token"), dict) for event in events):
        return detailed(events)
    if any("output_ids" in event or "meta_info" in event for event in events):
        return native(events)
    if any("completion_probabilities" in event or "tokens" in event for event in events):
        return continued(events)
    return completion(events)


def _message(events: Iterable[Mapping[str, object]]) -> Mapping[str, object]:
    """A message of content blocks, by their index."""
    told: dict[str, object] = {}
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        index = event.get("index")
        if event.get("type") == "message_start":
            told |= object_in(event.get("message"))
        elif event.get("type") == "content_block_start" and isinstance(index, int):
            blocks[index] = {**object_in(event.get("content_block")), "json": ""}
        elif event.get("type") == "content_block_delta" and isinstance(index, int) and index in blocks:
            _add_delta(blocks[index], object_in(event.get("delta")))
        elif event.get("type") == "message_delta":
            told["usage"] = {**object_in(told.get("usage")), **_known(object_in(event.get("usage")))}
            told |= {**_known(object_in(event.get("delta"))), **_known(event, "type", "delta", "usage")}
    return {**told, "content": [_closed(blocks[index]) for index in sorted(blocks)]}


def _known(values: Mapping[str, object], *without: str) -> Mapping[str, object]:
    return {key: value for key, value in values.items() if value is not None and key not in without}


def _add_delta(block: dict[str, Any], delta: Mapping[str, object]) -> None:
    for key, place in (
        ("text", "text"),
        ("thinking", "thinking"),
        ("signature", "signature"),
        ("partial_json", "json"),
    ):
        if isinstance(delta.get(key), str):
            block[place] = str(block.get(place) or "") + str(delta[key])


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    text = block.pop("json")
    if text:
        try:
            block["input"] = json.loads(text)
        except (ValueError, RecursionError):
            block["input"] = {"_raw": text}
    return block
