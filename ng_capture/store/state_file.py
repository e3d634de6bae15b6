"""The state of one rollout as a writer holds it: read under the lock, replaced whole (capture-files.md 1.2)."""

import json
from pathlib import Path

import orjson

from ng_capture.errors import RolloutDamaged, SurroundingsError
from ng_capture.files.writing import replace_file
from ng_capture.records.lifecycle import decode_state

_NEW = {
    "entry_digests": {},
    "frozen": False,
    "incomplete": False,
    "indexed_size": 0,
    "retired": False,
    "snapshot_id": "",
    "version": 0,
}


class StateFile:
    """`.tokens.state.json` between the taking of the lock and its release; a missing file means the defaults.

    Raises RolloutDamaged for a file that is no state: it is never rebuilt, since it alone knows whether the rollout is
    retired (case S36).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        raw = read_bytes(path)
        try:
            self.state = decode_state(orjson.dumps(_NEW) if raw is None else raw)
        except ValueError as error:
            raise RolloutDamaged(f"{path}: its state cannot be read: {error}") from error
        self._members = _NEW if raw is None else _NEW | json.loads(raw)

    def replace(self, **members: object) -> None:
        """Put these members in place of those that lie there, durably; every other one stays."""
        self._members = self._members | members
        data = orjson.dumps(self._members, option=orjson.OPT_SORT_KEYS) + b"\n"
        # Gym does not sync it after an append, and a power cut can then leave a file that is no state
        replace_file(self._path, data)
        self.state = decode_state(data)


def read_bytes(path: Path) -> bytes | None:
    """What a small file holds, None where there is none; raises SurroundingsError."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SurroundingsError(f"{path}: cannot be read: {error.strerror}") from error
