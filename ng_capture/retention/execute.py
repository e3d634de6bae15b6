"""Carry out a plan, one rollout at a time: lock, look again, announce, retire, move (design.md, promises 6 and 7)."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import RolloutFiles
from ng_capture.files.locking import Busy, exclusive_if_there
from ng_capture.files.names import LOCK_NAME, CaptureName, Compression, FileKind, names_of
from ng_capture.files.reading import CaptureFile
from ng_capture.files.writing import copy_durably, discard, make_directory, move, sync_directory
from ng_capture.retention.halfway import HalfMoved
from ng_capture.retention.plan import FileState, PlannedRollout
from ng_capture.retention.restore import put_state_back
from ng_capture.retention.trash import TrashedFile, TrashedRollout, TrashPlan
from ng_capture.store.retire import retire_under_lock

_FENCED = frozenset({FileKind.TOKENS, FileKind.INTENTS, FileKind.INCOMPLETE, FileKind.STATE})


class Carried(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a planned rollout; `reason` of the registry where it stayed, `failed` where the system refused."""

    rollout_id: str
    done: Literal["trashed", "purged", "kept"]
    reason: str | None
    why: str
    size: int
    failed: bool = False


class Executor:
    """Carries out what was planned for a directory; all that one run trashes is one plan."""

    def __init__(self, directory: str, *, patience: float) -> None:
        self._directory = Path(directory)
        self._patience = patience
        self.plan = TrashPlan.new(directory)
        self._made = False

    def carry_out(self, planned: PlannedRollout, files: RolloutFiles) -> Carried:
        """One rollout; one that cannot be moved never stops the rest."""
        if planned.action == "keep":
            failed = planned.reason == "not_removable"
            return self._kept(planned, planned.reason or "", planned.why, failed=failed)
        lock = str(self._directory / f"{files.rollout_id}.{LOCK_NAME}")
        try:
            with exclusive_if_there(lock, self._patience) as held:
                changed = self._changed(planned) or self._arrived(planned)
                if changed is not None:
                    return self._kept(planned, "changed_since_receipt", changed)
                if planned.action == "purge":
                    return self._purge(planned)
                if planned.half_moved is not None:
                    return self._finish(planned, planned.half_moved)
                return self._trash(planned, files, None if held else lock)
        except Busy as error:
            return self._kept(planned, "busy", error.message)
        except SurroundingsError as error:
            return self._kept(planned, "not_removable", error.message, failed=True)

    def _changed(self, planned: PlannedRollout) -> str | None:
        """Looked at again under the lock: what is not as it was planned, None where all is."""
        for file in planned.files:
            path = self._directory / file.name
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                return f"{file.name} is gone"
            except OSError as error:
                raise SurroundingsError(f"{path}: cannot be looked at: {error.strerror}") from error
            if (status.st_size, status.st_mtime_ns) != (file.size, file.mtime_ns):
                return f"{file.name} was written since it was planned"
            if (
                file.sha256 is not None
                and not file.name.endswith(f".{FileKind.STATE}")
                and _sha256(path) != file.sha256
            ):
                return f"{file.name} no longer has the receipt's digest"
        return None

    def _arrived(self, planned: PlannedRollout, besides: str = "") -> str | None:
        """A file of the rollout that nobody planned for; beside what an earlier run left others may lie, and stay."""
        if planned.half_moved is not None:
            return None
        names = {besides, *(file.name for file in planned.files)}
        for name in map(str, names_of(planned.rollout_id)):
            if name not in names and os.path.lexists(self._directory / name):
                return f"{name} came since it was planned"
        return None

    def _purge(self, planned: PlannedRollout) -> Carried:
        for file in planned.files:
            discard(self._directory / file.name)
        return self._done(planned, "purged")

    def _finish(self, planned: PlannedRollout, begun: HalfMoved) -> Carried:
        # announced again, so that its grace begins now
        begun.plan.announce(begun.rollout)
        return self._move(planned, planned.files, begun.plan)

    def _trash(self, planned: PlannedRollout, files: RolloutFiles, unlocked: str | None) -> Carried:
        """Announce, fence, move; `unlocked` is the lock file that was not there."""
        state_name = str(CaptureName(files.rollout_id, FileKind.STATE, Compression.NONE))
        payload = [file for file in planned.files if file.name != state_name]
        self._make_plan()
        state = next((file for file in planned.files if file.name == state_name), None)
        fenced = any(name.kind in _FENCED and name.compression is Compression.NONE for name in files.names)
        announced = TrashedRollout(
            rollout_id=files.rollout_id,
            why=planned.why,
            files=tuple(map(_trashed, payload)),
            state=None if state is None else _trashed(state),
            tombstone=fenced,
        )
        self.plan.announce(announced)
        if state is not None:
            copy_durably(self._directory / state_name, self.plan.path / state_name)
        if fenced:
            # the fence before the payload: from here on a late writer is refused
            refused = retire_under_lock(self._directory / state_name, planned.snapshot_id, planned.version)
            if refused is not None:
                self._withdraw(announced)
                return self._kept(planned, "changed_since_receipt", refused.why)
        if unlocked is None or not fenced:
            return self._move(planned, payload, self.plan)
        # a writer that came before the fence has made the lock file, and may have written since we looked
        with exclusive_if_there(unlocked, self._patience):
            now = msgspec.structs.replace(planned, files=tuple(payload))
            changed = self._changed(now) or self._arrived(now, besides=state_name)
            if changed is not None:
                put_state_back(self.plan, announced)
                self._withdraw(announced)
                return self._kept(planned, "changed_since_receipt", changed)
            return self._move(planned, payload, self.plan)

    def _withdraw(self, announced: TrashedRollout) -> None:
        self.plan.announce(msgspec.structs.replace(announced, restored=True))

    def _make_plan(self) -> None:
        if not self._made:
            make_directory(self.plan.path)
            self._made = True

    def _move(self, planned: PlannedRollout, payload: Sequence[FileState], plan: TrashPlan) -> Carried:
        for file in payload:
            move(self._directory / file.name, plan.path / file.name)
        # the new names are durable before the old ones are gone for good: whatever the power does, each file has one
        sync_directory(plan.path)
        sync_directory(self._directory)
        return self._done(planned, "trashed")

    def _done(self, planned: PlannedRollout, done: Literal["trashed", "purged"]) -> Carried:
        return Carried(rollout_id=planned.rollout_id, done=done, reason=None, why=planned.why, size=planned.size)

    def _kept(self, planned: PlannedRollout, reason: str, why: str, *, failed: bool = False) -> Carried:
        return Carried(
            rollout_id=planned.rollout_id, done="kept", reason=reason, why=why, size=planned.size, failed=failed
        )


def _trashed(file: FileState) -> TrashedFile:
    return TrashedFile(file.name, file.size, file.mtime_ns)


def _sha256(path: Path) -> str:
    with CaptureFile(str(path), hashed=True) as file:
        return file.sha256
