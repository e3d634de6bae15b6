"""Judge rollouts and report on each (design.md: `verify` writes nothing anywhere)."""

from collections.abc import Iterator

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import Listing, RolloutFiles
from ng_capture.files.names import shown
from ng_capture.natural_order import natural_key
from ng_capture.outputs.report import RolloutReport, report_on
from ng_capture.outputs.rows_file import RowsFile, decoded
from ng_capture.outputs.work import in_order
from ng_capture.records.rollout_row import NO_EVIDENCE
from ng_capture.records.snapshot import Snapshot
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.judge import Judgement, judge
from ng_capture.verdicts.judging import Judging


class Unread(msgspec.Struct, frozen=True):
    """A rollout whose files could not be read: the machine's failure, not the capture's."""

    rollout_id: str
    message: str


class VerifyTask(msgspec.Struct, frozen=True, eq=False):
    """One rollout to judge: its files (None where it has only a row), its row, how to judge.

    `live`: beside its writer, so that a last line which is not whole is not there yet.
    """

    rollout_id: str
    files: RolloutFiles | None
    row: bytes | None
    judging: Judging
    live: bool = False

    @property
    def directory(self) -> str | None:
        """Where its files are, as text."""
        return None if self.files is None else shown(self.files.directory)


def verify(
    listing: Listing, rows: RowsFile | None, judging: Judging, jobs: int = 1
) -> Iterator[RolloutReport | Unread]:
    """A report on every rollout that has files or a row, in natural order of their ids."""
    return in_order(verify_rollout, verify_tasks(listing, rows, judging), jobs)


def verify_rollout(task: VerifyTask) -> RolloutReport | Unread:
    """The report on one rollout; one that cannot be read never stops the rest."""
    try:
        return report_on(judge_task(task), decoded(task.row), task.directory)
    except SurroundingsError as error:
        return Unread(task.rollout_id, error.message)


def judge_task(task: VerifyTask, *, hashed: bool = False) -> Judgement:
    """Read and judge one rollout; raises SurroundingsError."""
    snapshot = Snapshot(rollout_id=task.rollout_id)
    if task.files is not None:
        snapshot = read_snapshot(task.files, hashed=hashed, live=task.live)
    row = decoded(task.row)
    return judge(snapshot, row.evidence if row is not None else NO_EVIDENCE, task.judging)


def verify_tasks(listing: Listing, rows: RowsFile | None, judging: Judging) -> Iterator[VerifyTask]:
    """Every rollout that has files or a row, in natural order of their ids."""
    ids = list(listing.ids)
    if rows is not None:
        ids += [name for name in rows.rollout_ids if name not in listing and listing.asks_for(name)]
    for rollout_id in sorted(ids, key=natural_key):
        row = rows.find(rollout_id) if rows is not None else None
        yield VerifyTask(rollout_id, files_of(listing, rollout_id), row, judging)


def files_of(listing: Listing, rollout_id: str) -> RolloutFiles | None:
    """The files of a rollout, None where it has only a row."""
    return listing.get(rollout_id) if rollout_id in listing else None
