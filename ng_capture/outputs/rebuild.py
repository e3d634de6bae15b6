"""Rebuild what can be trusted: finished rows with tokens, or training rows, and the receipt that covers them."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

import msgspec

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.listing import Listing
from ng_capture.files.names import FileKind
from ng_capture.outputs.chunks import Chunk, joined
from ng_capture.outputs.delivery import deliver, deliver_unjudged
from ng_capture.outputs.export.choices import NO_CHOICE, AdvantageOf
from ng_capture.outputs.export.cutting import LeftOut, TooLong
from ng_capture.outputs.export.fitting import scored
from ng_capture.outputs.export.formats.interface import Record
from ng_capture.outputs.export.made import Made, make
from ng_capture.outputs.export.rewards import Scored, advantages, group_of
from ng_capture.outputs.export.text.messages import make_messages
from ng_capture.outputs.export.text.pairs import Candidate, paired
from ng_capture.outputs.pairing import NOWHERE, Place, candidate_of, make_pair, placed
from ng_capture.outputs.rebuilding import Masked, Rebuild, Shape
from ng_capture.outputs.receipt import ReceiptRollout, receipt_rollout
from ng_capture.outputs.rows_file import RowsFile, decoded
from ng_capture.outputs.steps.attachment import attachment
from ng_capture.outputs.training_rows import TableRow, training_rows
from ng_capture.outputs.verify import VerifyTask, files_of, judge_task, verify_tasks
from ng_capture.outputs.work import in_order
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.records.snapshot import Snapshot
from ng_capture.store.seal import NotSealed, Sealed, seal
from ng_capture.verdicts.judge import Judgement


class RebuildTask(msgspec.Struct, frozen=True, eq=False):
    """One rollout to rebuild; `error` is set for a row that names none. `advantage` is that over its group.

    `place` is for preference pairs.
    """

    job: VerifyTask
    rebuild: Rebuild
    error: str | None = None
    advantage: float | None = None
    place: Place = NOWHERE


class Rebuilt(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What came of one rollout: its lines or table rows, its entry in the receipt, what the user must be told.

    `receipt` is None for a row that belongs to no rollout and for a rollout that could not be read. `failure` is what
    the machine did not do: read its files, or lock them for sealing. `partner` is the rollout that shares a row with
    this one, `unit` what must not be torn apart: its group, or itself. `ungrouped` is that of Made.
    """

    unit: str
    partner: str | None = None
    lines: list[list[Chunk]] = []
    table: list[TableRow] = []
    records: list[Record] = []
    left_out: tuple[LeftOut, ...] = ()
    trained: int = 0
    untrained: Mapping[str, int] = {}
    ungrouped: int = 0
    receipt: ReceiptRollout | None = None
    calls: int = 0
    notice: str | None = None
    failure: str | None = None

    @property
    def rows(self) -> int:
        """How many rows there are of it."""
        return len(self.lines) + len(self.table) + len(self.records)


def rebuild(
    listing: Listing,
    rows: RowsFile | None,
    how: Rebuild,
    jobs: int = 1,
    wanted: Callable[[VerifyTask], bool] | None = None,
) -> Iterator[Rebuilt]:
    """Every rollout rebuilt: finished rows in the order of their file, everything else in natural order of the ids.

    `wanted` chooses those that come out; all have their vote in their groups.
    """
    how = msgspec.structs.replace(how, copied=jobs > 1)
    tasks = (task for task in _tasks(listing, rows, how) if wanted is None or wanted(task.job))
    if how.export.advantage is not AdvantageOf.NONE:
        # all of a group have to be known before the first of them is written
        votes = filter(None, in_order(score_rollout, _tasks(listing, rows, how), jobs))
        found = advantages(votes, how.export.advantage)
        tasks = (msgspec.structs.replace(task, advantage=found.get(task.job.rollout_id)) for task in tasks)
    if how.shape is Shape.PAIRS:
        candidates = filter(None, in_order(pair_rollout, _tasks(listing, rows, how), jobs))
        pairing = paired(candidates, how.export.min_gap)

        def find(rollout_id: str) -> VerifyTask:
            return _task(listing, rows, how, rollout_id)

        tasks = (msgspec.structs.replace(task, place=placed(pairing, task.job, find)) for task in tasks)
    return in_order(rebuild_rollout, tasks, jobs)


def unit_of(job: VerifyTask, how: Rebuild) -> str:
    """What must not be torn apart: the group of a rollout, itself where it has none."""
    try:
        return _unit(job.rollout_id, decoded(job.row), how)
    except ValueError:
        return job.rollout_id


def _unit(rollout_id: str, row: RolloutRow | None, how: Rebuild) -> str:
    group_id = None if row is None else group_of(row, how.export)
    return rollout_id if group_id is None else group_id


def pair_rollout(task: RebuildTask) -> Candidate | None:
    """What one rollout may be in a pair of its group."""
    with _limits_told(task.job):
        return candidate_of(task.job, task.rebuild)


@contextlib.contextmanager
def _limits_told(job: VerifyTask) -> Iterator[None]:
    """Raises UsageError where a row is too long and none may be left out."""
    try:
        yield
    except TooLong as error:
        raise UsageError(f"{job.rollout_id}: {error}", hint="a higher --max-length, or --on-overflow drop") from error


def score_rollout(task: RebuildTask) -> Scored | None:
    """The vote of one rollout in its group; None for one that is not exported, or cannot be read."""
    try:
        with _limits_told(task.job):
            return scored(judge_task(task.job), decoded(task.job.row), task.rebuild)
    except SurroundingsError:
        return None


def rebuild_rollout(task: RebuildTask) -> Rebuilt:
    """One rollout rebuilt; one that cannot be read or sealed never stops the rest."""
    job, how = task.job, task.rebuild
    if task.error is not None:
        return _refused(job, how, task.error, None)
    sealing = _sealed(job) if how.sealing and job.files is not None else _Sealing()
    if sealing.sealed is not None and job.files is not None:
        job = msgspec.structs.replace(job, files=job.files.including(FileKind.STATE))
    try:
        judgement, row = judge_task(job, hashed=True), decoded(job.row)
        with _limits_told(job):
            made = _made(judgement, row, msgspec.structs.replace(task, job=job))
    except SurroundingsError as error:
        return _refused(job, how, error.message, error.message)
    return Rebuilt(
        unit=_unit(job.rollout_id, row, how),
        partner=made.partner,
        lines=[[joined(line)] for line in made.lines] if how.copied else made.lines,
        table=made.table,
        records=made.records,
        left_out=made.left_out,
        trained=judgement.accounting.trained if made.trained is None else made.trained,
        untrained=made.untrained,
        ungrouped=made.ungrouped,
        receipt=receipt_rollout(judgement, row, job.directory, sealing.sealed),
        calls=len(judgement.analysis.calls),
        notice=sealing.notice,
        failure=sealing.failure,
    )


class _Sealing(msgspec.Struct, frozen=True):
    sealed: Sealed | None = None
    notice: str | None = None
    failure: str | None = None


def _sealed(job: VerifyTask) -> _Sealing:
    """Freeze a rollout first; where that fails it is rebuilt all the same, unsealed, and named."""
    assert job.files is not None
    try:
        sealed = seal(job.files)
    except SurroundingsError as error:
        return _Sealing(failure=f"{job.rollout_id}: not sealed: {error.message}")
    if isinstance(sealed, NotSealed):
        return _Sealing(notice=f"{job.rollout_id}: not sealed: {sealed.why}")
    return _Sealing(sealed)


def _made(judgement: Judgement, row: RolloutRow | None, task: RebuildTask) -> Made:
    job, how = task.job, task.rebuild
    if how.shape is Shape.MESSAGES:
        return make_messages(judgement, row, job.files, how)
    if how.shape is Shape.PAIRS:
        return make_pair(judgement, job, how, task.place)
    if how.shape is Shape.ROLLOUTS:
        if judgement.verdict == "masked" and how.masked is Masked.DROP:
            return Made()
        return Made(lines=deliver(judgement, row, job.row, _calls(job, how, judgement.snapshot)))
    if how.shape is not Shape.ROWS or how.export != NO_CHOICE:
        return make(judgement, row, job.row, how, task.advantage)
    rows = training_rows(judgement, row)
    if how.table:
        return Made(table=[each.as_table_row() for each in rows])
    # long arrays from where they lie
    return Made(lines=[each.as_json() for each in rows])


def _refused(job: VerifyTask, how: Rebuild, error: str, failure: str | None) -> Rebuilt:
    keep = how.shape is Shape.ROLLOUTS and how.masked is Masked.KEEP and job.row is not None
    lines = [deliver_unjudged(job.row, error, _calls(job, how))] if keep and job.row is not None else []
    return Rebuilt(unit=unit_of(job, how), lines=[[joined(line)] for line in lines], failure=failure)


def _calls(job: VerifyTask, how: Rebuild, snapshot: Snapshot | None = None) -> bytes | None:
    """What a row tells of its rollout's model calls, where that is wanted and the row names a rollout."""
    return attachment(job.rollout_id, job.files, snapshot) if how.attach_calls and job.rollout_id else None


def _task(listing: Listing, rows: RowsFile | None, how: Rebuild, rollout_id: str) -> VerifyTask:
    row = None if rows is None else rows.find(rollout_id)
    return VerifyTask(rollout_id, files_of(listing, rollout_id), row, how.judging)


def _tasks(listing: Listing, rows: RowsFile | None, how: Rebuild) -> Iterator[RebuildTask]:
    if rows is None or how.shape is not Shape.ROLLOUTS:
        for job in verify_tasks(listing, rows, how.judging):
            yield RebuildTask(job, how)
        return
    for line in rows.rows():
        if line.fault is not None and line.fault.broken:
            continue
        rollout_id = line.rollout_id or ""
        if line.rollout_id is not None and not listing.asks_for(rollout_id):
            continue
        job = VerifyTask(rollout_id, files_of(listing, rollout_id), line.data, how.judging)
        yield RebuildTask(job, how, line.fault.message if line.fault is not None else None)
