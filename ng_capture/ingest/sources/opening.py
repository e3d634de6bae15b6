"""The files of a log: plain or compressed as their first bytes say, standard input among them (ingest.md 4, N91)."""

import os
import shutil
import stat
import sys
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import Compression, FileKind, parse_name, shown
from ng_capture.files.reading import CaptureFile
from ng_capture.ingest.sources.head import Head, sketch
from ng_capture.records.json_text import BOM

STANDARD_INPUT = "-"
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_HEAD = 1 << 16
_LOOKED_AT = 1 << 24


class SourceFile:
    """One file of a log; `name` is what findings call it, `rollout_from` the field that the user says names rollouts.

    `live`: somebody still writes it, a last line without its line break is none yet.
    Standard input and pipes are kept in a temporary file while this object lives: a log is looked at before it is read.
    Raises UsageError for a path that does not exist, SurroundingsError for one that cannot be read.
    """

    def __init__(self, path: str, rollout_from: str | None = None, *, live: bool = False) -> None:
        self.name = shown(path)
        self.rollout_from = rollout_from
        self.live = live
        self.path = self._spooled(path) if path == STANDARD_INPUT or _is_pipe(path) else path
        self._compression = _compression(self.path)

    @property
    def file_name(self) -> str:
        """The last part of the path."""
        return Path(self.name).name

    @property
    def is_empty(self) -> bool:
        return Path(self.path).stat().st_size == 0

    @property
    def compressed(self) -> bool:
        return bool(self._compression)

    def has_beside(self, kind: FileKind) -> bool:
        """True if the rollout that this file is named after has a file of that kind in the same directory."""
        name = parse_name(Path(self.path).name)
        return name is not None and Path(self.path).with_name(f"{name.rollout_id}.{kind}").exists()

    def read_beside(self, kind: FileKind) -> bytes | None:
        """The small file of that kind beside a file that is named after a rollout, None where there is none."""
        if not self.has_beside(kind):
            return None
        name = Path(self.path).name.partition(f".{FileKind.TOKENS}")[0]
        try:
            return Path(self.path).with_name(f"{name}.{kind}").read_bytes()
        except OSError as error:
            raise SurroundingsError(f"{self.name}: {name}.{kind} cannot be read: {error.strerror}") from error

    def open(self) -> CaptureFile:
        return CaptureFile(self.path, self._compression)

    def head(self) -> Head:
        """What the file begins with: its first line that is not blank, and some lines more."""
        text = b""
        if self._compression or _may_be_json(self.path):
            with self.open() as file:
                for line in file.lines():
                    text += line.data.lstrip()
                    if len(text) >= _HEAD:
                        break
        return sketch(self.file_name, text[:_LOOKED_AT].removeprefix(BOM))

    def _spooled(self, path: str) -> str:
        try:
            descriptor, copy = tempfile.mkstemp(prefix="ng-capture-")
            weakref.finalize(self, Path(copy).unlink, missing_ok=True)
            with open(descriptor, "wb") as target:
                if path == STANDARD_INPUT:
                    shutil.copyfileobj(sys.stdin.buffer, target)
                else:
                    with open(path, "rb") as source:
                        shutil.copyfileobj(source, target)
        except OSError as error:
            raise SurroundingsError(f"{self.name}: cannot be read: {error.strerror}") from error
        return copy


def _is_pipe(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (the path may hold bytes that are no UTF-8)
    except FileNotFoundError:
        raise UsageError(f"{shown(path)}: no such file or directory") from None
    except (OSError, ValueError) as error:
        raise SurroundingsError(f"{shown(path)}: cannot be read: {error}") from error
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _compression(path: str) -> Compression:
    start = _start(path)
    if start.startswith(_GZIP):
        return Compression.GZIP
    return Compression.ZSTD if start.startswith(_ZSTD) else Compression.NONE


def _may_be_json(path: str) -> bool:
    """False for what is no text of JSON objects: it may be huge and have no line breaks."""
    return _start(path).removeprefix(BOM).lstrip()[:1] in (b"{", b"[", b"")


def _start(path: str) -> bytes:
    try:
        with _opened(path) as file:
            return file.read(1 << 10)
    except OSError as error:
        raise SurroundingsError(f"{shown(path)}: cannot be read: {error.strerror}") from error


def _opened(path: str) -> BinaryIO:
    return open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0)), "rb")
