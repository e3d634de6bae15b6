"""What may go, and why the rest stays: a decision on each rollout as it lies there now (promises 6 and 8)."""

import os
import stat
from collections.abc import Container, Iterator
from typing import Literal

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.activity import is_locked
from ng_capture.files.listing import Listing, RolloutFiles
from ng_capture.files.names import FileKind, is_rollout_id, shown
from ng_capture.records.snapshot import Snapshot
from ng_capture.retention.asking import Permission
from ng_capture.retention.receipts import Coverage, Delivered, digest_of
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.judge import judge

# clocks of two machines differ a little
_SLACK = 5.0
_ALWAYS_LEFT = frozenset({FileKind.STATE})
_PAYLOAD = frozenset({FileKind.TOKENS, FileKind.CAPTURE})
_HALF_MOVED = "was retired, and its payload is still here"

Action = Literal["trash", "purge", "keep"]


class FileState(msgspec.Struct, frozen=True):
    """A file as it was when the plan was made; `sha256` where a receipt asks for it."""

    name: str
    size: int
    mtime_ns: int
    sha256: str | None = None


class PlannedRollout(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one rollout. `reason` is of the registry for what is kept, None for what goes; `why` in words.

    `purge` is for what nobody could want back: a tombstone past its age. `newest` is the time that its age counts
    from, in seconds since 1970; `snapshot_id` and `version` of the receipt are compared with the state under the lock.
    """

    rollout_id: str
    action: Action
    reason: str | None
    why: str
    files: tuple[FileState, ...]
    newest: float
    snapshot_id: str | None = None
    version: int | None = None

    @property
    def half_moved(self) -> bool:
        return self.action == "trash" and self.why == _HALF_MOVED

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class Planner:
    """Decides for every rollout of a directory; reads, and changes nothing.

    `announced` are rollouts that some manifest in the trash names: one of them may have been left half moved.
    """

    def __init__(
        self,
        listing: Listing,
        permission: Permission,
        coverage: Coverage,
        now: float,
        announced: Container[str] = frozenset(),
    ) -> None:
        self._listing = listing
        self._announced = announced
        self._permission = permission
        self._coverage = coverage
        self._now = now

    def plan(self) -> Iterator[PlannedRollout]:
        """Every rollout in natural order of the ids; where space is asked for, the oldest first."""
        asked = self._permission.ids
        for files in self._listing:
            if asked is None or files.rollout_id in asked:
                yield self.decide(files)

    def decide(self, files: RolloutFiles) -> PlannedRollout:
        """The decision on one rollout as it lies there now."""
        try:
            found = [os.lstat(files.path(name)) for name in files.names]
        except OSError as error:
            return self._keep(files, (), 0.0, "busy", f"changes while it is looked at: {error.strerror}")
        states = tuple(
            FileState(shown(str(name)), status.st_size, status.st_mtime_ns)
            for name, status in zip(files.names, found, strict=True)
        )
        newest = max(status.st_mtime for status in found)
        if any(stat.S_ISLNK(status.st_mode) for status in found):
            return self._keep(files, states, newest, "symbolic_link", "a link where a file was expected: not followed")
        if not is_rollout_id(files.rollout_id):
            return self._keep(files, states, newest, "unknown_file", "its id must not become a file name")
        odd = [file.name for file, status in zip(states, found, strict=True) if not stat.S_ISREG(status.st_mode)]
        if odd:
            return self._keep(files, states, newest, "not_removable", f"{odd[0]} is no regular file")
        if files.rollout_id in self._announced and self._half_moved(files):
            return self._go("trash", files, states, newest, _HALF_MOVED)
        early = self._by_age(files, states, newest)
        if early is not None:
            return early
        try:
            snapshot = read_snapshot(files, hashed=files.rollout_id in self._coverage.rollouts)
        except SurroundingsError as error:
            return self._keep(files, states, newest, "not_removable", error.message)
        return self._by_content(files, snapshot, states, newest)

    def _half_moved(self, files: RolloutFiles) -> bool:
        """True for a rollout that is retired while its payload is still here: an earlier run was killed."""
        if all(name.kind in _ALWAYS_LEFT for name in files.names):
            return False
        try:
            state = read_snapshot(files.only({FileKind.STATE})).state
        except SurroundingsError:
            return False
        return state is not None and state.retired

    def _by_age(self, files: RolloutFiles, states: tuple[FileState, ...], newest: float) -> PlannedRollout | None:
        """A decision that needs no file opened, None where one does."""
        if newest > self._now + _SLACK:
            return self._keep(files, states, newest, "time_in_future", "a time in the future is never old")
        ages = [self._permission.older_than, self._permission.masked_older_than, self._permission.tombstone_age]
        known = [age for age in ages if age is not None]
        if self._permission.ids is None and (not known or self._now - newest < min(known)):
            return self._keep(files, states, newest, "young", self._aged(newest))
        if is_locked(files):
            return self._keep(files, states, newest, "busy", "another process holds its lock")
        return None

    def _by_content(
        self, files: RolloutFiles, snapshot: Snapshot, states: tuple[FileState, ...], newest: float
    ) -> PlannedRollout:
        if any(defect.reason == "state_unreadable" for defect in snapshot.defects):
            return self._keep(files, states, newest, "state_unreadable", "marks may be lost with it")
        payload = [name for name in files.names if name.kind not in _ALWAYS_LEFT]
        if snapshot.state is not None and snapshot.state.retired:
            if any(name.kind in _PAYLOAD for name in payload):
                return self._go("trash", files, states, newest, _HALF_MOVED)
            return self._tombstone(files, states, newest)
        newest = max([newest, *(entry.fields.created_at for entry in snapshot.entries)])
        if newest > self._now + _SLACK:
            return self._keep(files, states, newest, "time_in_future", "a record's time lies in the future")
        covered = self._coverage.rollouts.get(files.rollout_id, ())
        if covered:
            return self._covered(files, snapshot, states, newest, covered)
        return self._uncovered(files, snapshot, states, newest)

    def _tombstone(self, files: RolloutFiles, states: tuple[FileState, ...], newest: float) -> PlannedRollout:
        age = self._permission.tombstone_age
        if age is None or self._now - newest < age:
            return self._keep(files, states, newest, "retired", "the tombstone that refuses late writers")
        return self._go("purge", files, states, newest, "a tombstone past its age")

    def _covered(
        self,
        files: RolloutFiles,
        snapshot: Snapshot,
        states: tuple[FileState, ...],
        newest: float,
        receipts: tuple[Delivered, ...],
    ) -> PlannedRollout:
        here = digest_of(snapshot.files)
        same = [each for each in receipts if each.files == here]
        fitting = next((each for each in same if _sealed_as(each, snapshot)), None)
        marked = snapshot.state is not None and snapshot.state.incomplete
        if fitting is None or marked:
            why = "its state is another one than the receipt's" if same else "its bytes are not those of the receipt"
            return self._keep(files, states, newest, "changed_since_receipt", why)
        if not self._old(newest, self._permission.older_than):
            return self._keep(files, states, newest, "young", self._aged(newest))
        digests = {file.name: file.sha256 for file in snapshot.files}
        hashed = tuple(msgspec.structs.replace(each, sha256=digests.get(each.name)) for each in states)
        return self._go("trash", files, hashed, newest, "covered by a receipt", fitting.snapshot_id, fitting.version)

    def _uncovered(
        self, files: RolloutFiles, snapshot: Snapshot, states: tuple[FileState, ...], newest: float
    ) -> PlannedRollout:
        permission = self._permission
        if files.rollout_id in self._coverage.masked and not permission.include_masked:
            return self._keep(files, states, newest, "masked", "masked, as its receipt says")
        if not permission.without_receipt and not permission.include_masked:
            return self._keep(files, states, newest, "no_receipt", "no receipt covers it")
        judgement = judge(snapshot)
        if judgement.verdict == "masked":
            why = f"masked: {', '.join(judgement.reasons)}"
            if not permission.include_masked:
                return self._keep(files, states, newest, "masked", why)
            if not self._old(newest, permission.masked_older_than):
                return self._young(files, states, newest)
            return self._go("trash", files, states, newest, why)
        if not permission.without_receipt:
            return self._keep(files, states, newest, "no_receipt", "no receipt covers it")
        if not self._old(newest, permission.older_than):
            return self._young(files, states, newest)
        return self._go("trash", files, states, newest, "trainable, by age alone: no receipt covers it")

    def _old(self, newest: float, limit: float | None) -> bool:
        """Old enough; what was asked for by its id is, whatever its age."""
        if limit is None:
            return self._permission.ids is not None
        return self._now - newest >= limit

    def _young(self, files: RolloutFiles, states: tuple[FileState, ...], newest: float) -> PlannedRollout:
        return self._keep(files, states, newest, "young", self._aged(newest))

    def _aged(self, newest: float) -> str:
        return f"last written {max(0.0, self._now - newest) / 86_400:.1f} days ago"

    def _keep(
        self, files: RolloutFiles, states: tuple[FileState, ...], newest: float, reason: str, why: str
    ) -> PlannedRollout:
        return PlannedRollout(
            rollout_id=files.rollout_id, action="keep", reason=reason, why=why, files=states, newest=newest
        )

    def _go(
        self,
        action: Action,
        files: RolloutFiles,
        states: tuple[FileState, ...],
        newest: float,
        why: str,
        snapshot_id: str | None = None,
        version: int | None = None,
    ) -> PlannedRollout:
        return PlannedRollout(
            rollout_id=files.rollout_id,
            action=action,
            reason=None,
            why=why,
            files=states,
            newest=newest,
            snapshot_id=snapshot_id,
            version=version,
        )


def _sealed_as(receipt: Delivered, snapshot: Snapshot) -> bool:
    """True if the rollout was not sealed when it was delivered, or is that snapshot still."""
    state = snapshot.state
    told = (receipt.snapshot_id, receipt.version)
    return receipt.snapshot_id is None or (state is not None and (state.snapshot_id, state.version) == told)
