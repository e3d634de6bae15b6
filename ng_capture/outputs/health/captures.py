"""The health of the rollouts of capture directories: each is read and judged."""

import time
from collections.abc import Iterator
from typing import Literal

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.activity import is_locked, last_change, signature
from ng_capture.files.listing import Listing, RolloutFiles
from ng_capture.files.names import FileKind
from ng_capture.outputs.rows_file import RowsFile, decoded
from ng_capture.outputs.verify import Unread, VerifyTask, judge_task, verify_tasks
from ng_capture.outputs.work import in_order
from ng_capture.verdicts.health.rollout import RolloutHealth, measures_of
from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.judging import Judging

RUNNING_SECONDS = 3600
"""A rollout that ends in an open call is running until nothing was written for so long, and nobody holds its lock."""

_RAW = frozenset({FileKind.CAPTURE, FileKind.CAPTURE_INCOMPLETE})


class Looking(msgspec.Struct, frozen=True):
    """How to look: `raw_only` where no tokens are wanted, `live` beside the writers."""

    judging: Judging
    raw_only: bool = False
    live: bool = False


class HealthTask(msgspec.Struct, frozen=True, eq=False):
    """One rollout to look at."""

    job: VerifyTask
    raw_only: bool


def health_of_captures(
    listing: Listing, rows: RowsFile | None, looking: Looking, jobs: int = 1
) -> Iterator[RolloutHealth | Unread]:
    """Every rollout that has files or a row, in natural order of their ids."""
    return in_order(health_rollout, _tasks(listing, rows, looking), jobs)


def health_rollout(task: HealthTask) -> RolloutHealth | Unread:
    """The health of one rollout; one that cannot be read never stops the rest."""
    job = task.job
    if task.raw_only and job.files is not None:
        raw = job.files.only(_RAW)
        job = msgspec.structs.replace(job, files=raw if raw.names else None)
    try:
        judgement = judge_task(job)
        health = _health(judgement, job)
        return _raw_only(health, judgement) if task.raw_only else health
    except SurroundingsError as error:
        return Unread(job.rollout_id, error.message)


class Watch:
    """Looks at a live directory again and again; a rollout whose files did not change is not read again."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[object, RolloutHealth]] = {}

    def look(self, listing: Listing, rows: RowsFile | None, looking: Looking) -> Iterator[RolloutHealth | Unread]:
        """Every rollout as it is now."""
        for task in _tasks(listing, rows, looking):
            try:
                yield self._look(task)
            except SurroundingsError as error:
                yield Unread(task.job.rollout_id, error.message)

    def _look(self, task: HealthTask) -> RolloutHealth | Unread:
        job = task.job
        # taken before the reading: what is written in between is seen the next time
        now = signature(job.files) if job.files is not None else (), job.row
        before = self._seen.get(job.rollout_id)
        # an open call grows old without a change
        if before is not None and before[0] == now and before[1].activity is None:
            return before[1]
        health = health_rollout(task)
        if isinstance(health, RolloutHealth):
            self._seen[job.rollout_id] = now, health
        return health


def _tasks(listing: Listing, rows: RowsFile | None, looking: Looking) -> Iterator[HealthTask]:
    for job in verify_tasks(listing, rows, looking.judging):
        yield HealthTask(msgspec.structs.replace(job, live=looking.live and _may_be_written(job)), looking.raw_only)


def _may_be_written(job: VerifyTask) -> bool:
    """True unless the end of a last line is torn for good: nobody writes on it any more."""
    try:
        return job.files is None or not _is_old(job.files)
    except SurroundingsError:
        # a file went in between; reading it says so
        return True


def _health(judgement: Judgement, job: VerifyTask) -> RolloutHealth:
    measures = measures_of(judgement, decoded(job.row))
    return RolloutHealth(
        rollout_id=judgement.rollout_id,
        directory=job.directory,
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        findings=tuple(finding for finding in judgement.findings if finding.severity != "info"),
        metrics=judgement.metrics,
        accounting=judgement.accounting,
        measures=measures,
        activity=_activity(job) if measures.unfinished else None,
        watched=True,
    )


def _activity(job: VerifyTask) -> Literal["running", "abandoned"]:
    assert job.files is not None
    return "abandoned" if _is_old(job.files) and not is_locked(job.files) else "running"


def _is_old(files: RolloutFiles) -> bool:
    # a time in the future is never old (design.md, promise 8)
    return time.time() - last_change(files) > RUNNING_SECONDS


def _raw_only(health: RolloutHealth, judgement: Judgement) -> RolloutHealth:
    """What is left where no tokens are wanted: no verdict, and only what is wrong with the raw calls themselves."""
    damage = {defect.reason for defect in judgement.snapshot.defects}
    findings = tuple(finding for finding in health.findings or () if finding.reason in damage)
    return msgspec.structs.replace(
        health, verdict=None, reasons=(), findings=findings, metrics=None, accounting=None, activity=None, watched=False
    )
