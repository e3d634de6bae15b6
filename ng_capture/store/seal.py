"""Freeze a rollout as NeMo Gym does, under its lock and in its state form (capture-files.md 1.4 and 1.5).

Unlike the reference it never cuts a file, and it never creates an id: a rollout that is damaged stays as it is.
"""

import hashlib
import json
import uuid
from pathlib import Path

import msgspec
import orjson

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.locking import exclusive
from ng_capture.files.names import LOCK_NAME, CaptureName, Compression, FileKind, is_rollout_id
from ng_capture.files.reading import CaptureFile
from ng_capture.files.writing import replace_file
from ng_capture.records.lifecycle import StoreState, decode_state
from ng_capture.records.token_entry import Unreadable
from ng_capture.records.token_record import readable_entry

PATIENCE = 10.0

_NO_STATE = b'{"entry_digests":{},"indexed_size":0}'


class Sealed(msgspec.Struct, frozen=True):
    """The frozen snapshot of a rollout."""

    snapshot_id: str
    version: int


class NotSealed(msgspec.Struct, frozen=True):
    """Why a rollout was left as it is."""

    why: str


def seal(files: RolloutFiles, patience: float = PATIENCE) -> Sealed | NotSealed:
    """Freeze one rollout; a second call gives the same snapshot.

    Raises Busy where another process keeps the lock, SurroundingsError where the state cannot be written.
    """
    if not is_rollout_id(files.rollout_id):
        return NotSealed("its id must not become a file name")
    tokens = files.of_kind(FileKind.TOKENS)
    if not tokens:
        return NotSealed("it has no token records")
    if tokens != [CaptureName(files.rollout_id, FileKind.TOKENS, Compression.NONE)]:
        return NotSealed("it is compressed: no writer uses it")
    with exclusive(str(Path(files.directory, f"{files.rollout_id}.{LOCK_NAME}")), patience):
        return _sealed_under_lock(files, tokens[0])


def _sealed_under_lock(files: RolloutFiles, tokens: CaptureName) -> Sealed | NotSealed:
    path = Path(files.path(CaptureName(files.rollout_id, FileKind.STATE, Compression.NONE)))
    try:
        raw = path.read_bytes() if path.exists() else _NO_STATE
        state = decode_state(raw)
    except ValueError:
        return NotSealed("its state cannot be read")
    if state.retired:
        return NotSealed("it is retired")
    index = _index(files.path(tokens), state)
    if isinstance(index, NotSealed):
        return index
    if state.frozen and state.snapshot_id and not index.recovered:
        return Sealed(state.snapshot_id, state.version)
    version = state.version + (index.recovered if state.has_index else 0) + (not state.frozen)
    sealed = Sealed(state.snapshot_id or uuid.uuid4().hex, version)
    members = json.loads(raw)
    members.update(
        entry_digests=index.digests,
        frozen=True,
        incomplete=state.incomplete,
        indexed_size=index.size,
        retired=False,
        snapshot_id=sealed.snapshot_id,
        version=sealed.version,
    )
    try:
        data = orjson.dumps(members, option=orjson.OPT_SORT_KEYS) + b"\n"
    except TypeError:
        return NotSealed("its state cannot be written again")
    replace_file(path, data)
    return sealed


class _Index(msgspec.Struct, frozen=True):
    digests: dict[str, str]
    size: int
    recovered: int


def _index(path: str, state: StoreState) -> _Index | NotSealed:
    """The digest of every line, the indexed ones read again: what is sealed was seen whole."""
    known = (state.entry_digests or {}) if state.has_index else {}
    covered = (state.indexed_size or 0) if state.has_index else 0
    digests: dict[str, str] = {}
    size = recovered = 0
    with CaptureFile(path) as file:
        for line in file.lines():
            size = line.offset + len(line.data)
            data = line.data.strip()
            if not data:
                continue
            if not line.terminated:
                return NotSealed(f"line {line.number} has no line break")
            try:
                call_id = readable_entry(data).call_id
            except Unreadable as error:
                return NotSealed(f"line {line.number}: {error.defect.reason}")
            recovered += line.offset >= covered
            digest = hashlib.sha256(data).hexdigest()
            if digests.setdefault(call_id, digest) != digest or known.get(call_id, digest) != digest:
                return NotSealed(f"line {line.number}: call {call_id} has two contents")
    if not known.keys() <= digests.keys() or (state.has_index and (state.indexed_size or 0) > size):
        return NotSealed("records of its index are gone")
    return _Index(digests, size, recovered)
