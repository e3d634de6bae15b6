"""Retire a rollout as NeMo Gym's conditional drop does: the fence first, then the payload (capture-files.md 1.5)."""

import json
import uuid
from pathlib import Path

import msgspec
import orjson

from ng_capture.errors import SurroundingsError
from ng_capture.files.writing import replace_file
from ng_capture.records.lifecycle import decode_state

_NO_STATE = b"{}"


class NotRetired(msgspec.Struct, frozen=True):
    """Why a rollout was left as it is."""

    why: str


def is_retired(state_file: Path) -> bool:
    """True if a state lies there, can be read, and refuses writers."""
    try:
        return decode_state(state_file.read_bytes()).retired
    except (OSError, ValueError):
        return False


def retire_under_lock(state_file: Path, snapshot_id: str | None, version: int | None) -> NotRetired | None:
    """Write the tombstone, durably; None once it stands. The lock is held by the caller.

    A snapshot that is named must be the one that lies there, as the reference compares it. A rollout that was never
    frozen is frozen by the same write: nobody appends to it afterwards.
    """
    try:
        raw = state_file.read_bytes() if state_file.exists() else _NO_STATE
        state = decode_state(raw)
    except ValueError:
        return NotRetired("its state cannot be read")
    except OSError as error:
        raise SurroundingsError(f"{state_file}: cannot be read: {error.strerror}") from error
    if state.retired:
        return None
    if snapshot_id is not None and (state.snapshot_id, state.version) != (snapshot_id, version):
        return NotRetired("its state is another one than the receipt's")
    members = json.loads(raw)
    members.update(
        entry_digests={},
        frozen=True,
        indexed_size=0,
        retired=True,
        snapshot_id=state.snapshot_id or uuid.uuid4().hex,
        version=state.version + (not state.frozen),
    )
    members.setdefault("incomplete", False)
    try:
        data = orjson.dumps(members, option=orjson.OPT_SORT_KEYS) + b"\n"
    except TypeError:
        # a member that is none of ours: numbers beyond 64 bits, half a surrogate pair, endless nesting
        return NotRetired("its state cannot be written again")
    replace_file(state_file, data)
    return None
