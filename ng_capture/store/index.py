"""The index of a rollout's records, brought up to date with their file; only looks (capture-files.md 1.4)."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ng_capture.errors import ConflictingRecord, RolloutDamaged, SurroundingsError
from ng_capture.records.defects import Defect
from ng_capture.records.lifecycle import StoreState
from ng_capture.records.token_entry import Unreadable
from ng_capture.records.token_record import readable_entry

_NO_JSON = Defect(reason="damaged_line")


class Index(msgspec.Struct, frozen=True):
    """What is known of the file of records.

    `digests` are those of the lines by call id; `size` is where the last whole record ends in bytes, `recovered` counts
    the records that the state did not know. `torn` is what a killed writer left behind `size`; without it `open_line`
    tells that the last record has no line break.
    """

    digests: Mapping[str, str]
    size: int
    recovered: int = 0
    torn: bytes = b""
    open_line: bool = False


def current_index(tokens: Path, state: StoreState) -> Index:
    """The index of the state and of what lies behind it; what the state covers is not read again.

    Raises RolloutDamaged for a file that ends before its index does or holds what is no record, ConflictingRecord for
    two contents of one call.
    """
    digests = dict((state.entry_digests or {}) if state.has_index else {})
    start = (state.indexed_size or 0) if state.has_index else 0
    before, data = _behind(tokens, start)
    offset = recovered = 0
    # at line feeds only: bytes.splitlines knows other line ends
    for piece in data.split(b"\n"):
        line, end = piece.strip(), offset + len(piece) + 1
        if line:
            try:
                call = readable_entry(line).call_id
            except Unreadable as error:
                if error.defect == _NO_JSON and not data[end:].strip():
                    return Index(digests, start + offset, recovered, torn=data[offset:])
                raise RolloutDamaged(f"{tokens}: byte {start + offset}: {error.defect.reason}") from error
            digest = line_digest(line)
            if digests.setdefault(call, digest) != digest:
                raise ConflictingRecord(f"{tokens}: byte {start + offset}: call {call} has two contents")
            recovered += 1
        offset = end
    # the last piece has no line break; where there is none, what the index covers may end without one (case S20)
    open_line = bool(line) if data else before not in (b"", b"\n")
    return Index(digests, start + len(data), recovered, open_line=open_line)


def line_digest(line: bytes) -> str:
    """SHA-256 of a line without its line break, in hex (capture-files.md 1.1)."""
    return hashlib.sha256(line).hexdigest()


class _Behind(NamedTuple):
    """The last byte of what is indexed, empty where nothing is, and the bytes behind it."""

    last: bytes
    data: bytes


def _behind(tokens: Path, start: int) -> _Behind:
    """What stands where the index ends; raises RolloutDamaged where the file does not reach that far (case S17)."""
    try:
        with open(tokens, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start - 1, 0))
            found = file.read()
    except FileNotFoundError:
        size, found = 0, b""
    except OSError as error:
        raise SurroundingsError(f"{tokens}: cannot be read: {error.strerror}") from error
    if start > size:
        raise RolloutDamaged(f"{tokens}: has {size} bytes, and its index covers {start}")
    return _Behind(found[:1], found[1:]) if start else _Behind(b"", found)
