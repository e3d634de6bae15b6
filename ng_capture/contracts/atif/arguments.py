"""Arguments of calls: the text that a model wrote, and the object that ATIF wants of it (contracts.md 3.4, 4; 3.6)."""

import json
from functools import reduce

import msgspec

from ng_capture.contracts.episode import Json
from ng_capture.records.json_text import decode_exact, is_deep

_ROOM = 32
"""So many levels of a document stand above arguments, sub-agents counted, before it is too deep to be read."""


class Arguments(msgspec.Struct, frozen=True):
    """The object of a text; `wrapped` where the text was none, `raw` where writing it again gives other characters."""

    value: Json
    wrapped: bool = False
    raw: str | None = None


def spelled_arguments(value: object) -> str:
    """The text of arguments where nobody knows how the model wrote it."""
    return json.dumps(value, ensure_ascii=False)


def arguments_object(text: str) -> Arguments:
    """The object that a text of arguments is; another value stands in `value`, a text that is no JSON in `raw`."""
    value, wrapped = _object(text)
    return Arguments(value, wrapped, None if spelled_arguments(value) == text else text)


def arguments_text(value: Json, raw: str | None) -> str:
    """The text that the model wrote, if it is still the text of this object; else the object written out."""
    if raw is not None and _canonical(arguments_object(raw).value) == _canonical(value):
        return raw
    return spelled_arguments(value)


def _object(text: str) -> tuple[Json, bool]:
    try:
        value = decode_exact(text.encode())
        spelled_arguments(value).encode()
    except (ValueError, RecursionError):
        # no JSON, or half of a surrogate pair, which only the text can hold: spelled out
        return {"raw": text}, True
    if is_deep(reduce(lambda inner, _: [inner], range(_ROOM), value)):
        return {"raw": text}, True
    return (value, False) if isinstance(value, dict) else ({"value": value}, True)


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True)
