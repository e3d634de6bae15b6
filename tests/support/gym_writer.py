"""A writer that follows NeMo Gym's protocol on disk to the letter (capture-files.md 1.2 to 1.6), in plain Python.

    python -m tests.support.gym_writer DIR SEED SECONDS    # append under shared ids until the time is over

A running writer prints a line for each line that it was told is durable: `append ID CALL`, and `refused ID` where the
rollout was retired or frozen. It begins a new attempt (delete, as Gym does before each dispatch) only where it says so.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.retention import past

State = dict[str, Any]
_NEW: State = {"frozen": False, "retired": False, "incomplete": False, "snapshot_id": "", "version": 0}


class Refused(RuntimeError):
    """The rollout is retired or frozen: nothing was written."""


class GymWriter:
    """The writer of one rollout; every method is one operation of the reference, under the exclusive lock."""

    def __init__(self, directory: Path, rollout_id: str) -> None:
        self.directory = directory
        self.rollout_id = rollout_id

    def path(self, ending: str) -> Path:
        return self.directory / f"{self.rollout_id}.tokens.{ending}"

    def begin_call(self, call_id: str) -> None:
        with self._locked():
            self._writable()
            _append(self.path("intents"), call_id.encode())

    def append(self, call_id: str, line: bytes) -> None:
        """Returns only when the line is on the disk."""
        with self._locked():
            state = self._writable()
            self._sync(state)
            digest = hashlib.sha256(line).hexdigest()
            known = state["entry_digests"].get(call_id)
            if known == digest:
                return
            if known is not None:
                self._write(state | {"incomplete": True, "version": state["version"] + 1}, durably=True)
                raise ValueError(f"call {call_id} has two contents")
            _append(self.path("jsonl"), line)
            state["entry_digests"][call_id] = digest
            size = self.path("jsonl").stat().st_size
            self._write(state | {"indexed_size": size, "version": state["version"] + 1})

    def mark_incomplete(self, call_id: str = "") -> None:
        with self._locked():
            state = self._read()
            if state["retired"]:
                raise Refused(f"{self.rollout_id} is retired")
            self._write(state | {"incomplete": True, "version": state["version"] + 1}, durably=True)
            _append(self.path("incomplete"), call_id.encode())

    def delete(self) -> None:
        """What Gym does for every row that it is about to run: a new attempt begins; the lock file stays."""
        with self._locked():
            for ending in ("jsonl", "incomplete", "intents", "state.json"):
                self.path(ending).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.path("lock"), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _read(self) -> State:
        try:
            state: State = json.loads(self.path("state.json").read_bytes())
        except FileNotFoundError:
            state = {}
        return {**_NEW, "entry_digests": {}, "indexed_size": 0, **state}

    def _writable(self) -> State:
        state = self._read()
        if state["retired"] or state["frozen"]:
            raise Refused(f"{self.rollout_id} is {'retired' if state['retired'] else 'already frozen'}")
        return state

    def _sync(self, state: State) -> None:
        """Index what lies behind the index; a torn tail is cut off, a file below its index is an error."""
        path = self.path("jsonl")
        data = path.read_bytes() if path.exists() else b""
        if state["indexed_size"] > len(data):
            raise ValueError(f"{path} shrank below its index")
        offset = state["indexed_size"]
        for piece in data[offset:].splitlines(keepends=True):
            try:
                call_id = json.loads(piece)["model_call_id"]
            except ValueError:
                os.truncate(path, offset)
                break
            state["entry_digests"][call_id] = hashlib.sha256(piece.strip()).hexdigest()
            state["version"] += 1
            offset += len(piece)
        state["indexed_size"] = offset

    def _write(self, state: State, *, durably: bool = False) -> None:
        descriptor, name = tempfile.mkstemp(prefix=".tokens-state-", dir=self.directory)
        with open(descriptor, "wb") as file:
            file.write(json.dumps(state, sort_keys=True).encode() + b"\n")
            file.flush()
            if durably:
                os.fsync(descriptor)
        Path(name).replace(self.path("state.json"))


def _append(path: Path, line: bytes) -> None:
    with open(path, "ab") as file:
        file.write(line + b"\n")
        file.flush()
        os.fsync(file.fileno())


def main(directory: Path, seed: int, seconds: float) -> None:
    """Append until the time is over, under ids that all writers share and that grow old within some seconds."""
    chance, end, number = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        rollout_id = f"r-{int(time.time() * 10) - chance.randrange(60)}"
        writer = GymWriter(directory, rollout_id)
        call = past(rollout_id, f"w{seed}-{number}").calls[0]
        number += 1
        try:
            writer.begin_call(call.id)
            writer.append(call.id, call.line())
        except Refused:
            print("refused", rollout_id, flush=True)
        else:
            print("append", rollout_id, call.id, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
