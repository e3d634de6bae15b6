"""The JSON values of a source that holds one a line, or one alone over several lines."""

from collections.abc import Iterator
from typing import Any

import msgspec

from ng_capture.contracts.careful_json import read_carefully
from ng_capture.contracts.rules import Fault, has_errors
from ng_capture.contracts.sources import Source

_HARMLESS = ("surrogate",)
"""Errors of a text that a reader can live with: its value is certain."""


_STREAM = (b"data:", b"event:")
"""How an event of a stream begins."""


class Found(msgspec.Struct, frozen=True):
    """A value, None where it cannot be read for certain, the faults of its text, the line where it stands, its text."""

    value: Any
    faults: tuple[Fault, ...]
    line: int | None
    data: bytes = b""

    @property
    def place(self) -> str:
        """How a report names it."""
        return "" if self.line is None else f"line {self.line}"

    @property
    def certain(self) -> bool:
        """False where the text is no JSON, or readers would differ on what it says."""
        return not has_errors(fault for fault in self.faults if fault.rule.rsplit(".", 1)[-1] not in _HARMLESS)


def values_in(source: Source, contract: str) -> Iterator[Found]:
    """Each line as a value; of a file whose first line is none, the whole. A stream is a response that is its text."""
    lines = source.lines(contract)
    first = next(lines, None)
    if first is None:
        yield Found(None, source.document(contract).faults, None)
        return
    if not first.careful.read:
        data = source.read()
        whole = read_carefully(data, contract)
        if whole.read:
            yield Found(whole.value, whole.faults, None, data)
            return
        if first.data.startswith(_STREAM):
            yield _stream(data, whole.faults)
            return
    yield Found(first.value, first.careful.faults, first.number, first.data)
    for line in lines:
        yield Found(line.value, line.careful.faults, line.number, line.data)


def _stream(data: bytes, faults: tuple[Fault, ...]) -> Found:
    """The text of a stream as a response; `faults` are what is told of it where it is no text."""
    try:
        return Found({"response": data.decode()}, (), None)
    except UnicodeDecodeError:
        return Found(None, faults, None)
