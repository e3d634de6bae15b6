"""Read the long documents that ng-capture writes: one entry a line between the first line and the last."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from ng_capture.errors import UsageError
from ng_capture.files.reading import CaptureFile, Line
from ng_capture.outputs.receipt import RECEIPT_SCHEMA
from ng_capture.outputs.report import REPORT_SCHEMA
from ng_capture.records.json_text import BOM, decode_as

Entry = TypeVar("Entry", bound=msgspec.Struct)
Options = TypeVar("Options", bound=msgspec.Struct)

DOCUMENT_HEADS = tuple(b'{"schema":"%b"' % schema.encode() for schema in (REPORT_SCHEMA, RECEIPT_SCHEMA))
_RECEIPT_HEAD = DOCUMENT_HEADS[1]
_END = b"]"


class TextLine(NamedTuple):
    """A line with something in it, without its line break."""

    number: int
    data: bytes


class _Whole(msgspec.Struct, Generic[Entry], frozen=True):
    rollouts: list[Entry]


class _Output(msgspec.Struct, frozen=True):
    name: str
    size: int
    rows: int
    sha256: str


class _Head(msgspec.Struct, Generic[Options], frozen=True):
    tool_version: str
    options: Options


class _NoOptions(msgspec.Struct, frozen=True):
    """Whatever was chosen."""


class _Tail(msgspec.Struct, frozen=True):
    output: _Output


def text_lines(lines: Iterable[Line]) -> Iterator[TextLine]:
    """The lines that hold something; a byte order mark is passed over."""
    for line in lines:
        data = (line.data.removeprefix(BOM) if line.number == 1 else line.data).strip()
        if data:
            yield TextLine(line.number, data)


def entries(path: str, lines: Iterable[TextLine], kind: type[Entry]) -> Iterator[Entry]:
    """The rollouts of a document; raises UsageError for one that is cut, or that nobody here wrote."""
    try:
        for line in lines:
            entry = line.data.removesuffix(b",")
            if entry.startswith(_END):
                return
            if not entry.startswith(DOCUMENT_HEADS):
                yield decode_as(entry, kind)
            elif entry.endswith(b"}"):
                # all of it in one line: somebody wrote it anew
                yield from decode_as(entry, _Whole[kind]).rollouts  # type: ignore[valid-type]
                return
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not as ng-capture writes it: {error}") from error
    raise UsageError(f"{path}: the document is cut")


class ReceiptFile:
    """A receipt on disk; raises UsageError for a file that is none, or is cut."""

    def __init__(self, path: str) -> None:
        self.path = path
        first = last = b""
        with CaptureFile(path) as file:
            for line in text_lines(file.lines()):
                first = first or line.data
                last = line.data
        if not first.startswith(_RECEIPT_HEAD):
            raise UsageError(f"{path}: no receipt", hint="OUT.receipt.json stands beside what rebuild wrote")
        tail = last if last.startswith(b"{") else b"{" + last.removeprefix(_END + b",")
        try:
            self.output = decode_as(tail, _Tail).output
        except msgspec.DecodeError as error:
            raise UsageError(f"{path}: the receipt is cut: {error}") from error

    def options(self, kind: type[Options]) -> Options:
        """The options that decided what is in the output; raises UsageError for options of another kind."""
        return self._head(kind).options

    @property
    def tool_version(self) -> str:
        """The version of ng-capture that wrote it."""
        return self._head(_NoOptions).tool_version

    def _head(self, kind: type[Options]) -> _Head[Options]:
        with CaptureFile(self.path) as file:
            first = next(text_lines(file.lines())).data
        # the head is the beginning of an object that ends many lines later
        text = first if first.endswith(b"}") else first.removesuffix(b"[").rstrip(b",") + b"[]}"
        try:
            return decode_as(text, _Head[kind])  # type: ignore[valid-type]
        except msgspec.DecodeError as error:
            raise UsageError(f"{self.path}: options that are not understood: {error}") from error

    def describes(self, output: Path) -> bool:
        """True if the file is the output of this receipt, byte for byte."""
        if not output.is_file() or output.stat().st_size != self.output.size:
            return False
        with CaptureFile(str(output), hashed=True) as file:
            return file.sha256 == self.output.sha256

    def rollouts(self, kind: type[Entry]) -> Iterator[Entry]:
        """Its entries, one at a time."""
        with CaptureFile(self.path) as file:
            yield from entries(self.path, text_lines(file.lines()), kind)
