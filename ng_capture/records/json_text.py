"""Strict JSON for lines and small files: one value, no NaN, UTF-8; escaped lone surrogates are let through and told."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec
import orjson

T = TypeVar("T")

BOM = b"\xef\xbb\xbf"
LEVELS = 254
"""So deep orjson writes a value. What is nested deeper is refused: who reads it would run out of stack somewhere."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Decoded(NamedTuple):
    """A JSON value; `lone_surrogate` tells that one of its texts holds half of a surrogate pair."""

    value: object
    lone_surrogate: bool


class SpelledObject(dict[str, object]):
    """A JSON object with the text that a model wrote for it, character for character."""

    def __init__(self, value: Mapping[str, object], text: str) -> None:
        super().__init__(value)
        self.text = text

    def __reduce__(self) -> tuple[type["SpelledObject"], tuple[dict[str, object], str]]:
        return SpelledObject, (dict(self), self.text)


def decode_json(data: bytes) -> Decoded:
    """The one JSON value that the bytes hold; raises ValueError.

    orjson decides; what it refuses is read again by the standard library, which takes lone surrogates and numbers of
    any size (ingest.md 0, fact 5).
    """
    try:
        decoded = Decoded(orjson.loads(data), False)
    except orjson.JSONDecodeError:
        decoded = _decode_odd(data)
    if data.count(b"[") + data.count(b"{") > LEVELS and is_deep(decoded.value):
        raise ValueError("nested too deeply")
    return decoded


def _decode_odd(data: bytes) -> Decoded:
    try:
        text = data.decode("utf-8")
        if text.startswith("\ufeff"):
            raise ValueError("a byte order mark")
        return Decoded(json.loads(text, parse_constant=_refuse), _has_surrogate(data))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def is_deep(value: object) -> bool:
    """True for a value that is nested deeper than any that is read."""
    try:
        orjson.dumps(value)
    except TypeError:
        # or it holds what orjson does not write whatever its depth
        level = [value]
        for _ in range(LEVELS):
            level = [member for each in level for member in _members_of(each)]
        return bool(level)
    return False


def _members_of(value: object) -> Iterable[object]:
    """What stands in a container, none of anything else."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def encode_json(value: object) -> bytes:
    """Compact JSON; lone surrogates are written escaped."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def decode_exact(data: bytes) -> Any:
    """The value with integers of any size kept exactly; raises ValueError."""
    try:
        return json.loads(data, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def decode_as(data: bytes, kind: type[T]) -> T:
    """The value as a declared type; raises msgspec.DecodeError, also for what is nested too deeply."""
    try:
        return msgspec.json.decode(data, type=kind)
    except RecursionError:
        raise msgspec.DecodeError("nested too deeply") from None


def respell(text: str) -> bytes:
    """The JSON value of a text as one line without spaces, every integer kept exactly; raises ValueError."""
    value = decode_exact(text.encode("utf-8", "surrogatepass"))
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        return encode_json(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def members(text: str) -> Iterator[tuple[str, str]]:
    """Key and spelled value of every member of a JSON object whose text is known to be JSON."""
    decoder = json.JSONDecoder()
    position = _past_space(text, text.index("{") + 1)
    while text[position] != "}":
        key, position = decoder.raw_decode(text, position)
        start = _past_space(text, _past_space(text, position) + 1)
        _, end = decoder.raw_decode(text, start)
        yield key, text[start:end]
        position = _past_space(text, end)
        if text[position] == ",":
            position = _past_space(text, position + 1)


def elements(text: str) -> Iterator[str]:
    """The spelled values of a JSON array whose text is known to be JSON."""
    decoder = json.JSONDecoder()
    position = _past_space(text, text.index("[") + 1)
    while text[position] != "]":
        _, end = decoder.raw_decode(text, position)
        yield text[position:end]
        position = _past_space(text, end)
        if text[position] == ",":
            position = _past_space(text, position + 1)


def _past_space(text: str, position: int) -> int:
    while text[position].isspace():
        position += 1
    return position


def object_in(value: object) -> Mapping[str, object]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> Iterator[Mapping[str, object]]:
    """The objects of a list, none of anything else; other members are passed over."""
    return (member for member in value if isinstance(member, dict)) if isinstance(value, list) else iter(())


def printable(text: str) -> str:
    """The text as UTF-8 can hold it: lone surrogates are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def is_text(text: str) -> bool:
    """False for a text that UTF-8 cannot hold."""
    return printable(text) == text


def told(value: object) -> int | str:
    """A value as a report can hold it: an integer of 64 bits, or the beginning of its text."""
    if type(value) is int and -(2**63) <= value < 2**63:
        return value
    return printable(str(value))[:40]


def _has_surrogate(data: bytes) -> bool:
    return rb"\ud" in data.lower() and _SURROGATE.search(json.dumps(json.loads(data), ensure_ascii=False)) is not None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
