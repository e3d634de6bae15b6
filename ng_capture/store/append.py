"""Write the records of one rollout as NeMo Gym's writer does (capture-files.md 1.3 to 1.6).

Unlike the reference it finishes what a killed writer began, ends an open last line before the next one, and marks the
rollout incomplete where it cuts off a record that nobody brings again.
"""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ng_capture.errors import ConflictingRecord, InvalidRecord, RolloutFrozen, RolloutRetired
from ng_capture.files.locking import exclusive
from ng_capture.files.names import LOCK_NAME, FileKind
from ng_capture.files.reading import CaptureFile, open_line
from ng_capture.files.writing import append_bytes, cut_file, sync_directory
from ng_capture.records.lifecycle import can_be_named, decode_call_lines
from ng_capture.records.token_record import TokenRecord, encode_record
from ng_capture.store.index import Index, current_index, line_digest
from ng_capture.store.state_file import StateFile, read_bytes

PATIENCE = 30.0


class RolloutWriter:
    """The writer of one rollout in a directory that is there; any number of them, in any processes, may write at once.

    Every method holds the rollout's lock, and what it returned from is on the disk. Each raises RolloutRetired, Busy
    where another process keeps the lock, SurroundingsError, and RolloutDamaged where what lies there is no capture.
    """

    def __init__(self, directory: Path, rollout_id: str) -> None:
        self.directory = directory
        self.rollout_id = rollout_id

    def begin_call(self, *call_ids: str) -> None:
        """Announce calls before they are made: one that never gets its record masks the rollout (1.6).

        Raises RolloutFrozen, InvalidRecord for an id that fits on no line of its own.
        """
        _check_names(call_ids)
        with self._locked() as state:
            _refuse_if_frozen(self.rollout_id, state)
            _add_names(self._path(FileKind.INTENTS), call_ids)

    def append(self, *records: TokenRecord) -> None:
        """Add records in their order; one that lies there already, byte for byte, is not added again.

        Raises RolloutFrozen; InvalidRecord for one that would not be read back; ConflictingRecord for a call that has
        another content, and the rollout is incomplete then. Where it refuses one, none of them was added.
        """
        lines = [_Line(record.model_call_id, self._encoded(record)) for record in records]
        with self._locked() as state:
            _refuse_if_frozen(self.rollout_id, state)
            index = self._index(state)
            digests = dict(index.digests)
            new = []
            for line in lines:
                digest = line_digest(line.data)
                if line.call_id not in digests:
                    new.append(line.data)
                elif digests[line.call_id] != digest:
                    _mark(state)
                    raise ConflictingRecord(f"{self.rollout_id}: call {line.call_id} has another content already")
                digests[line.call_id] = digest
            added = len(new) + (index.recovered if state.state.has_index else 0)
            known = state.state.indexed_size if state.state.has_index else None
            size = self._write(state, index, b"".join(line + b"\n" for line in new))
            if size != known:
                # last: it can be rebuilt from the records, they not from it
                state.replace(entry_digests=digests, indexed_size=size, version=state.state.version + added)

    def mark_incomplete(self, call_id: str = "") -> None:
        """Say that a call was lost, or that its record must not be trusted; a frozen rollout takes it too (1.5)."""
        if call_id:
            _check_names([call_id])
        marks = self._path(FileKind.INCOMPLETE)
        with self._locked() as state:
            if not state.state.incomplete or call_id not in _names_in(read_bytes(marks) or b""):
                # first: it alone masks the rollout for the reference (case S28)
                _mark(state)
            _add_names(marks, [call_id])

    def digests(self) -> Mapping[str, str]:
        """The digest of the line of every call that has a record, whether the index knows it or not (1.1)."""
        with self._locked() as state:
            return current_index(self._path(FileKind.TOKENS), state.state).digests

    @contextlib.contextmanager
    def _locked(self) -> Iterator[StateFile]:
        with exclusive(str(self.directory / f"{self.rollout_id}.{LOCK_NAME}"), PATIENCE):
            state = StateFile(self._path(FileKind.STATE))
            if state.state.retired:
                raise RolloutRetired(f"{self.rollout_id} is retired: its records are gone")
            yield state

    def _path(self, kind: FileKind) -> Path:
        return self.directory / f"{self.rollout_id}.{kind}"

    def _encoded(self, record: TokenRecord) -> bytes:
        if record.rollout_id != self.rollout_id:
            raise InvalidRecord(f"a record of {record.rollout_id!r} for {self.rollout_id}", "rollout_id_mismatch")
        line = encode_record(record)
        _check_names([record.model_call_id])
        # a copy: what the encoder gives keeps many times its size
        return bytes(memoryview(line))

    def _index(self, state: StateFile) -> Index:
        try:
            return current_index(self._path(FileKind.TOKENS), state.state)
        except ConflictingRecord:
            # once: the reference moves the version at every try
            if not state.state.incomplete:
                _mark(state)
            raise

    def _write(self, state: StateFile, index: Index, text: bytes) -> int:
        """Put whole lines behind the last whole record; gives the size of the file up to its last whole record."""
        tokens = self._path(FileKind.TOKENS)
        size = index.size + index.open_line + len(text)
        if index.open_line:
            text = b"\n" + text
        if text and index.torn:
            if text.startswith(index.torn):
                # the same record comes again: what its writer had no time for is all that is missing
                text = text[len(index.torn) :]
            else:
                # before the cut: those bytes are all that tells of a call that was lost
                _mark(state)
                cut_file(tokens, index.size)
        if text or index.recovered:
            # what a killed writer wrote may not be on the disk yet: it is synced with the rest before it is told of
            append_bytes(tokens, text)
        return size


class _Line(msgspec.Struct, frozen=True):
    call_id: str
    data: bytes


def add_raw_lines(path: Path, lines: Sequence[bytes]) -> None:
    """Durably add those exchanges that a `.capture.jsonl` does not hold, byte for byte; a line of them that a killed
    writer began is finished.

    Raises Busy and SurroundingsError.
    """
    with exclusive(str(path), PATIENCE):
        there, begun = _lines_in(path)
        new = [line for line in dict.fromkeys(lines) if _digest(line) not in there]
        # of the line that was begun only its end; nothing of another one, which must take no other with it
        ended = next((line for line in new if begun and line.startswith(begun)), begun)
        parts = [ended[len(begun) :]] if begun else []
        parts += [line for line in new if line is not ended]
        text = b"\n".join([*parts, b""]) if new else b""
        # without a new one, too: a writer that was killed may not have brought bytes and name to the disk
        append_bytes(path, text)
        sync_directory(path.parent)


def append_raw_line(path: Path, line: bytes) -> None:
    """Durably add one exchange to a `.capture.jsonl`, under an exclusive lock on that file (capture-files.md 7.1).

    A last line that a killed writer left open is finished where it comes again, else ended first, so that it takes no
    other with it. Raises Busy and SurroundingsError.
    """
    with exclusive(str(path), PATIENCE):
        append_bytes(path, _behind(open_line(str(path)), line + b"\n"))
        # taking the lock made the file where there was none
        sync_directory(path.parent)


class _RawLines(NamedTuple):
    """The digests of the lines of a file, and the last one where it has no line break."""

    there: set[bytes]
    begun: bytes


def _lines_in(path: Path) -> _RawLines:
    there, begun = set(), b""
    with CaptureFile(str(path)) as file:
        for line in file.lines():
            if line.terminated:
                there.add(_digest(line.data[:-1]))
            else:
                begun = line.data
    return _RawLines(there, begun)


def _digest(line: bytes) -> bytes:
    return hashlib.sha256(line).digest()


def _refuse_if_frozen(rollout_id: str, state: StateFile) -> None:
    if state.state.frozen:
        raise RolloutFrozen(f"{rollout_id} is already frozen: it takes no further calls")


def _mark(state: StateFile) -> None:
    state.replace(incomplete=True, version=state.state.version + 1)


def _check_names(call_ids: Sequence[str]) -> None:
    """Raises InvalidRecord for an id that is none."""
    for call_id in call_ids:
        if not can_be_named(call_id):
            raise InvalidRecord(f"{call_id!r} is no call id: it must stand alone on a line", "invalid_record")


def _names_in(data: bytes) -> set[str]:
    return {line.call_id for line in decode_call_lines(data)}


def _add_names(path: Path, names: Sequence[str]) -> None:
    """Durably add the names that a sidecar does not hold; one that a killed writer began to write is finished."""
    data = read_bytes(path) or b""
    end = data.rfind(b"\n") + 1
    held, begun = _names_in(data[:end]), data[end:]
    text = b"".join(name.encode() + b"\n" for name in dict.fromkeys(names) if name not in held)
    text = _behind(begun, text)
    if names:
        # without a new one, too: a writer that was killed may not have brought bytes and name to the disk
        there = path.exists()
        append_bytes(path, text)
        if there:
            sync_directory(path.parent)


def _behind(begun: bytes, text: bytes) -> bytes:
    """What is missing where the text is what a killed writer began to write, else the text on a line of its own."""
    if not begun or not text:
        return text
    return text[len(begun) :] if text.startswith(begun) else b"\n" + text
