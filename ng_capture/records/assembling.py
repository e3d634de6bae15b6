"""A response put together from its events, as far as what was said goes (capture-files.md 7.2)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ng_capture.records.json_text import SpelledObject, object_in
from ng_capture.records.response_stream import output_of
from ng_capture.records.stream_chunks import add_text, completion, continued, detailed, native

_DELTAS = (("text", "text"), ("thinking", "thinking"), ("signature", "signature"), ("partial_json", "json"))
_BLOCKS = ("message_start", "content_block_start")
# a tuple: the type of an event may be anything, also what has no hash
_LAST_RESPONSES = ("response.completed", "response.incomplete", "response.failed")


def assemble(events: Iterable[Mapping[str, object]]) -> Mapping[str, object]:
    """The response that the events stream, in the shape of its dialect; empty where they stream none.

    A stream without its end gives what came of it.
    """
    events = list(events)
    envelope = _envelope(events)
    output = [] if envelope.get("output") else output_of(events)
    if envelope or output:
        return {**envelope, "output": output} if output else envelope
    if any(event.get("type") in _BLOCKS for event in events):
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


def is_rebuilt(events: Iterable[Mapping[str, object]]) -> bool:
    """True where no event of a Responses stream holds the output, so that `assemble` puts it together from deltas."""
    events = list(events)
    return not _envelope(events).get("output") and bool(output_of(events))


def _envelope(events: Sequence[Mapping[str, object]]) -> Mapping[str, object]:
    """The response that an event of a Responses stream holds: that of its end, else the last one."""
    whole = [event for event in events if isinstance(event.get("response"), dict)]
    last = [event for event in whole if event.get("type") in _LAST_RESPONSES]
    return object_in((last or whole)[-1]["response"]) if whole else {}


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
    for key, place in _DELTAS:
        if isinstance(delta.get(key), str):
            add_text(block, place, str(delta[key]))
    if isinstance(delta.get("citation"), dict):
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]


def _closed(block: dict[str, Any]) -> dict[str, Any]:
    """The block with its input; one that is no JSON is kept as text, as NeMo Gym does (contracts.md 4.7)."""
    text = block.pop("json")
    if text:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = {"_raw": text}
        block["input"] = SpelledObject(value, text) if isinstance(value, dict) else value
    return block
