"""Inputs of tools as a document spells them, where its text is at hand (T-AN-5)."""

import json
from array import array
from typing import Any

import orjson

from ng_capture.records.json_text import SpelledObject, elements, members, respell

_WAY = frozenset({"request", "response", "messages", "content"})
"""What leads from a document of Messages to its blocks."""


def with_spelled_inputs(value: Any, text: str) -> Any:
    """The value of a text of JSON; every input of a `tool_use` block in it knows its own text."""
    return _spelled(value, text) if "tool_use" in text else value


def _spelled(value: Any, text: str) -> Any:
    if isinstance(value, list):
        return [_spelled(member, told) for member, told in zip(value, elements(text), strict=True)]
    if not isinstance(value, dict):
        return value
    called = value.get("type") == "tool_use" and isinstance(value.get("input"), dict)
    if not called and _WAY.isdisjoint(value):
        return value
    told = dict(members(text))
    spelled = {key: _spelled(member, told[key]) if key in _WAY else member for key, member in value.items()}
    return {**spelled, "input": SpelledObject(value["input"], told["input"])} if called else spelled


def encode_spelled(value: object) -> bytes:
    """Compact JSON on one line; objects that know their text stand as that spells them."""
    try:
        return orjson.dumps(value, default=_as_spelled, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
    except (TypeError, ValueError):
        # an integer or half of a surrogate pair that orjson does not write
        return json.dumps(value, separators=(",", ":"), default=_as_spelled).encode("ascii")


def _as_spelled(value: object) -> object:
    if isinstance(value, SpelledObject):
        text = value.text
        return orjson.Fragment(respell(text) if "\n" in text or "\r" in text else text.encode())
    if isinstance(value, array):
        return value.tolist()
    raise TypeError(type(value).__name__)
