"""A response put together from its events, as far as what was said goes (capture-files.md 7.2)."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ng_capture.records.json_text import object_in, objects_in

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
    return _completion(events)


def _completion(events: Iterable[Mapping[str, object]]) -> Mapping[str, object]:
    """A chat completion: texts joined, tool calls by their index."""
    told: dict[str, object] = {}
    texts: dict[str, list[str]] = {}
    calls: dict[int, dict[str, Any]] = {}
    finish: object = None
    choices = False
    for event in events:
        told |= {key: event[key] for key in ("id", "model", "usage") if event.get(key) is not None}
        for choice in list(objects_in(event.get("choices")))[:1]:
            choices = True
            finish = choice.get("finish_reason") or finish
            delta = object_in(choice.get("delta"))
            for key in ("content", "reasoning_content", "reasoning", "refusal"):
                if isinstance(delta.get(key), str):
                    texts.setdefault(key, []).append(str(delta[key]))
            for piece in objects_in(delta.get("tool_calls")):
                _add_call(calls, piece)
    if not choices:
        return told
    message: dict[str, object] = {"role": "assistant", **{key: "".join(parts) for key, parts in texts.items()}}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {**told, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _add_call(calls: dict[int, dict[str, Any]], piece: Mapping[str, object]) -> None:
    index = piece.get("index")
    call = calls.setdefault(
        index if isinstance(index, int) else len(calls), {"function": {"name": "", "arguments": ""}}
    )
    function = object_in(piece.get("function"))
    if piece.get("id"):
        call["id"] = piece["id"]
    if isinstance(function.get("name"), str):
        call["function"]["name"] = function["name"] or call["function"]["name"]
    if isinstance(function.get("arguments"), str):
        call["function"]["arguments"] += function["arguments"]


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
            told |= {key: value for key, value in object_in(event.get("delta")).items() if value is not None}
    return {**told, "content": [_closed(blocks[index]) for index in sorted(blocks)]}


def _add_delta(block: dict[str, Any], delta: Mapping[str, object]) -> None:
    for key, place in (("text", "text"), ("thinking", "thinking"), ("partial_json", "json")):
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
