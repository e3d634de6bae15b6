"""JSON read with everything that is odd about it told (contracts.md 1.3, last lines; 9.8)."""

import json
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

import msgspec

from ng_capture.contracts.rules import Fault, FaultSeverity, Rule, pointer
from ng_capture.records.json_text import BOM, LEVELS, is_deep, printable

Oddity = Literal["syntax", "bom", "duplicate_key", "non_finite", "surrogate", "imprecise"]

_SEVERITIES: dict[Oddity, FaultSeverity] = {
    "syntax": "error",
    "bom": "warning",
    "duplicate_key": "error",
    "non_finite": "error",
    "surrogate": "error",
    "imprecise": "warning",
}
_MEANINGS: dict[Oddity, str] = {
    "syntax": "the text is not exactly one JSON value",
    "bom": "a byte order mark stands before the JSON; strict readers refuse it",
    "duplicate_key": "an object has a key twice, and readers differ on which counts",
    "non_finite": "NaN and Infinity are no JSON",
    "surrogate": "a text holds half of a surrogate pair, which UTF-8 cannot hold",
    "imprecise": "a number has more digits than a double holds",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Careful(msgspec.Struct, frozen=True):
    """A JSON value with the faults of its text; `value` is None where there is none, `read` tells that there is one."""

    value: Any
    faults: tuple[Fault, ...]
    read: bool


def json_rules(contract: str) -> dict[str, Rule]:
    """The rules on JSON texts by the names that a contract gives them (`atif.json.syntax`)."""
    names: dict[Oddity, str] = {oddity: f"{contract}.json.{oddity}" for oddity in _SEVERITIES}
    return {name: Rule(name, _SEVERITIES[oddity], _MEANINGS[oddity]) for oddity, name in names.items()}


def read_carefully(data: bytes, contract: str, line: int | None = None) -> Careful:
    """The one JSON value of a text; of a key that stands twice the last value counts, as with most readers."""

    def fault(oddity: Oddity, message: str, path: str = "", at: int | None = line) -> Fault:
        return Fault(f"{contract}.json.{oddity}", _SEVERITIES[oddity], message, path, at)

    faults = list[Fault]()
    if data.startswith(BOM):
        faults.append(fault("bom", "a byte order mark at the start"))
        data = data[len(BOM) :]
    odd = _Odd()
    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=odd.pairs, parse_float=odd.number, parse_constant=odd.constant)
        if is_deep(value):
            raise RecursionError
    except UnicodeDecodeError as error:
        return Careful(None, (*faults, fault("syntax", f"byte {error.start} is no UTF-8")), False)
    except json.JSONDecodeError as error:
        at = (line or 1) + error.lineno - 1
        message = f"{error.msg} (column {error.colno})" if text.strip() else "empty: no JSON value"
        return Careful(None, (*faults, fault("syntax", message, at=at)), False)
    except RecursionError:
        return Careful(None, (*faults, fault("syntax", f"nested more than {LEVELS} levels deep")), False)
    except ValueError:
        digits = sys.get_int_max_str_digits()
        return Careful(None, (*faults, fault("syntax", f"an integer of more than {digits:,} digits")), False)
    if odd.found or _SURROGATE.search(text) or "\\ud" in text.lower():
        faults += (fault(oddity, message, path) for oddity, message, path in _oddities(value, odd, ()))
    return Careful(value, tuple(faults), True)


class _Odd:
    """What the parser met, by the objects and numbers that it made; those are kept alive while they are looked for."""

    def __init__(self) -> None:
        self.twice: dict[int, list[str]] = {}
        self.numbers: dict[int, str] = {}
        self._kept: list[object] = []

    @property
    def found(self) -> bool:
        return bool(self._kept)

    def pairs(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        value = dict(pairs)
        if len(value) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.twice[id(value)] = [key for key, count in counts.items() if count > 1]
            self._kept.append(value)
        return value

    def number(self, text: str) -> float:
        value = float(text)
        if math.isinf(value) or not _same(text, value):
            self.numbers[id(value)] = text
            self._kept.append(value)
        return value

    def constant(self, text: str) -> float:
        value = float(text.replace("Infinity", "inf"))
        self.numbers[id(value)] = text
        self._kept.append(value)
        return value


def _same(text: str, value: float) -> bool:
    # quick for what a double writes itself
    if repr(value) == text:
        return True
    try:
        return Decimal(text) == Decimal(repr(value))
    except InvalidOperation:
        return False


def _oddities(value: object, odd: _Odd, path: tuple[str | int, ...]) -> Iterator[tuple[Oddity, str, str]]:
    if isinstance(value, dict):
        for key in odd.twice.get(id(value), ()):
            yield "duplicate_key", f"{printable(key)} stands twice", pointer(*path, printable(key))
        for key, member in value.items():
            if _SURROGATE.search(key):
                yield "surrogate", "a key holds half of a surrogate pair", pointer(*path, printable(key))
            yield from _oddities(member, odd, (*path, printable(key)))
    elif isinstance(value, list):
        for place, member in enumerate(value):
            yield from _oddities(member, odd, (*path, place))
    elif isinstance(value, str):
        if _SURROGATE.search(value):
            yield "surrogate", "half of a surrogate pair", pointer(*path)
    elif isinstance(value, float) and id(value) in odd.numbers:
        text = odd.numbers[id(value)]
        if math.isfinite(value):
            yield "imprecise", f"{text[:40]} is read as {value!r}", pointer(*path)
        else:
            yield "non_finite", f"{text[:40]}", pointer(*path)
