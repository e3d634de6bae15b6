"""What may go, and why the rest stays: a decision on each rollout as it lies there now (promises 6 and 8)."""

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.activity import is_locked
from ng_capture.files.listing import Listing, RolloutFiles
from ng_capture.files.names import FileKind, is_rollout_id, shown
from ng_capture.records.snapshot import Snapshot
from ng_capture.retention.asking import Permission
from ng_capture.retention.halfway import HalfMoved
from ng_capture.retention.receipts import Coverage, Delivered, digest_of
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.judge import judge

# clocks of two machines differ a little
_SLACK = 5.0

# no call lies in these; once a rollout is retired, nobody waits for a call that was announced
_NOTHING_HELD = frozenset({FileKind.STATE, FileKind.INTENTS})

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
    `half_moved` tells what is left to do of a rollout that an earlier run began with; `files` are then what waits.
    """

    rollout_id: str
    action: Action
    reason: str | None
    why: str
    files: tuple[FileState, ...]
    newest: float
    snapshot_id: str | None = None
    version: int | None = None
    half_moved: HalfMoved | None = None

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class Planner:
    """Decides for every rollout of a directory; reads, and changes nothing.

    `unfinished` are rollouts that an earlier run left half moved. `waits`: a lock that is held is waited for later on.
    """

    def __init__(
        self,
        listing: Listing,
        permission: Permission,
        coverage: Coverage,
        now: float,
        unfinished: Mapping[str, HalfMoved],
        *,
        waits: bool,
    ) -> None:
        self._listing = listing
        self._permission = permission
        self._coverage = coverage
        self._now = now
        self._unfinished = unfinished
        self._waits = waits

    def plan(self) -> Iterator[PlannedRollout]:
        """Every rollout in natural order of the ids."""
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
        unfinished = self._unfinished.get(files.rollout_id)
        if unfinished is not None:
            waiting = {file.name for file in unfinished.waiting}
            left = tuple(state for state in states if state.name in waiting)
            planned = self._go("trash", files, left, newest, "an earlier run began to move it")
            return msgspec.structs.replace(planned, half_moved=unfinished)
        early = self._by_age(files, states, newest)
        if early is not None:
            return early
        try:
            snapshot = read_snapshot(files, hashed=self._coverage.names(files.rollout_id))
        except SurroundingsError as error:
            return self._keep(files, states, newest, "not_removable", error.message)
        return self._by_content(files, snapshot, states, newest)

    def _by_age(self, files: RolloutFiles, states: tuple[FileState, ...], newest: float) -> PlannedRollout | None:
        """A decision that needs no file opened, None where one does."""
        if newest > self._now + _SLACK:
            return self._keep(files, states, newest, "time_in_future", "a time in the future is never old")
        ages = [self._permission.older_than, self._permission.masked_older_than, self._permission.tombstone_age]
        known = [age for age in ages if age is not None]
        if self._permission.ids is None and (not known or self._now - newest < min(known)):
            return self._young(files, states, newest)
        if not self._waits and is_locked(files):
            return self._keep(files, states, newest, "busy", "another process holds its lock")
        return None

    def _by_content(
        self, files: RolloutFiles, snapshot: Snapshot, states: tuple[FileState, ...], newest: float
    ) -> PlannedRollout:
        if any(defect.reason == "state_unreadable" for defect in snapshot.defects):
            return self._keep(files, states, newest, "state_unreadable", "marks may be lost with it")
        retired = snapshot.state is not None and snapshot.state.retired
        if retired and all(name.kind in _NOTHING_HELD for name in files.names):
            return self._tombstone(files, states, newest)
        newest = max([newest, *(entry.fields.created_at for entry in snapshot.entries)])
        if newest > self._now + _SLACK:
            return self._keep(files, states, newest, "time_in_future", "a record's time lies in the future")
        here = digest_of(snapshot.files)
        receipts = self._coverage.rollouts.get(files.rollout_id, ())
        covered = [each for each in receipts if each.files == here]
        fitting = next((each for each in covered if _sealed_as(each, snapshot)), None)
        if fitting is not None and not (snapshot.state is not None and snapshot.state.incomplete):
            # also where another receipt masks these bytes, as of a tombstone: an output has them
            return self._covered(files, snapshot, states, newest, fitting)
        if here is not None and here in self._coverage.masked.get(files.rollout_id, ()):
            return self._masked(files, states, newest, "masked, as its receipt says")
        if covered:
            why = "its state is another one than the receipt's"
            return self._keep(files, states, newest, "changed_since_receipt", why)
        return self._uncovered(files, snapshot, states, newest, changed=bool(receipts))

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
        receipt: Delivered,
    ) -> PlannedRollout:
        if not self._old(newest, self._permission.older_than):
            return self._young(files, states, newest)
        digests = {file.name: file.sha256 for file in snapshot.files}
        hashed = tuple(msgspec.structs.replace(each, sha256=digests.get(each.name)) for each in states)
        return self._go("trash", files, hashed, newest, "covered by a receipt", receipt.snapshot_id, receipt.version)

    def _uncovered(
        self,
        files: RolloutFiles,
        snapshot: Snapshot,
        states: tuple[FileState, ...],
        newest: float,
        *,
        changed: bool,
    ) -> PlannedRollout:
        """No receipt has these bytes; `changed`: one has others of this rollout."""
        permission = self._permission
        if permission.without_receipt or permission.include_masked:
            judgement = judge(snapshot)
            if judgement.verdict == "masked":
                return self._masked(files, states, newest, f"masked: {', '.join(judgement.reasons)}")
        if changed:
            return self._keep(files, states, newest, "changed_since_receipt", "its bytes are not those of the receipt")
        if not permission.without_receipt:
            return self._keep(files, states, newest, "no_receipt", "no receipt covers it")
        if not self._old(newest, permission.older_than):
            return self._young(files, states, newest)
        return self._go("trash", files, states, newest, "trainable, by age alone: no receipt covers it")

    def _masked(self, files: RolloutFiles, states: tuple[FileState, ...], newest: float, why: str) -> PlannedRollout:
        if not self._permission.include_masked:
            return self._keep(files, states, newest, "masked", why)
        if not self._old(newest, self._permission.masked_older_than):
            return self._young(files, states, newest)
        return self._go("trash", files, states, newest, why)

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
