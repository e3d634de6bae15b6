"""What a reader of a rollout under Gym's protocol does: freeze it, read its records, drop what was read (1.5)."""

from pathlib import Path

import msgspec

from ng_capture.errors import RolloutDamaged
from ng_capture.files.listing import Selection, list_rollouts
from ng_capture.files.locking import exclusive
from ng_capture.files.names import LOCK_NAME, FileKind
from ng_capture.files.writing import discard
from ng_capture.records.lifecycle import decode_call_lines
from ng_capture.records.token_record import TokenRecord, decode_record
from ng_capture.store.retire import retire_under_lock
from ng_capture.store.seal import PATIENCE, NotSealed, seal
from ng_capture.store.state_file import StateFile, read_bytes


class FrozenRollout(msgspec.Struct, frozen=True, eq=False):
    """All records of a frozen rollout in the order of their lines.

    `incomplete`: it is marked so, or a call was announced that has no record. `snapshot_id` and `version` name it.
    """

    records: tuple[TokenRecord, ...]
    incomplete: bool
    snapshot_id: str
    version: int


class TokenSource:
    """The reader of one rollout in a capture directory."""

    def __init__(self, directory: str | Path, rollout_id: str) -> None:
        self.directory = Path(directory)
        self.rollout_id = rollout_id

    def freeze(self) -> FrozenRollout:
        """Freeze the rollout and give what it holds; a second time gives the same.

        Raises RolloutDamaged for a rollout that is not there, is retired, or is not as its writer left it.
        """
        listing = list_rollouts([str(self.directory)], Selection(include=(self.rollout_id,)))
        files = listing.get(self.rollout_id) if self.rollout_id in listing else None
        sealed = NotSealed("it is not there") if files is None else seal(files)
        if isinstance(sealed, NotSealed):
            raise RolloutDamaged(f"{self.rollout_id} cannot be frozen: {sealed.why}")
        # nobody appends any more; who marks it after the freeze has moved the version, and a drop will see that
        lines = (read_bytes(self._path(FileKind.TOKENS)) or b"").split(b"\n")
        records = tuple(decode_record(line) for line in lines if line.strip())
        announced = {line.call_id for line in decode_call_lines(read_bytes(self._path(FileKind.INTENTS)) or b"")}
        dangling = announced - {record.model_call_id for record in records} - {""}
        incomplete = bool(dangling) or StateFile(self._path(FileKind.STATE)).state.incomplete
        return FrozenRollout(records, incomplete, sealed.snapshot_id, sealed.version)

    def drop(self, snapshot_id: str, version: int) -> bool:
        """Delete the records of just this snapshot and leave the tombstone; False where the rollout is another now.

        Raises Busy where another process keeps the lock, SurroundingsError.
        """
        with exclusive(str(self.directory / f"{self.rollout_id}.{LOCK_NAME}"), PATIENCE):
            state = StateFile(self._path(FileKind.STATE)).state
            if not state.frozen or (state.snapshot_id, state.version) != (snapshot_id, version):
                return False
            # the fence first: after a kill between the two a late writer is refused, and a second drop goes on
            retire_under_lock(self._path(FileKind.STATE), snapshot_id, version)
            for kind in (FileKind.TOKENS, FileKind.INTENTS, FileKind.INCOMPLETE):
                discard(self._path(kind))
        return True

    def _path(self, kind: FileKind) -> Path:
        return self.directory / f"{self.rollout_id}.{kind}"
