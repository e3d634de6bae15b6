"""The steps of one rollout: its model calls, their turns, their totals, and what is missing of them."""

from collections.abc import Iterator

import msgspec

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import FileKind
from ng_capture.outputs.steps.model_call import ModelCall
from ng_capture.outputs.steps.reading import HowToRead, once_each, read_calls
from ng_capture.outputs.steps.totals import StepTotals, totals_of
from ng_capture.outputs.steps.turns import turn_indexes
from ng_capture.records.defects import Defect
from ng_capture.records.snapshot import Snapshot
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.findings import Finding, find
from ng_capture.verdicts.health.measures import is_unread

RAW_KINDS = frozenset({FileKind.CAPTURE, FileKind.CAPTURE_INCOMPLETE})


class Gap(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is not known of the calls, with NeMo Gym's codes (capture-files.md 7.4)."""

    code: str
    detail: str | None = None


class Step(ModelCall, frozen=True, kw_only=True, eq=False):
    """A model call, its turn, and the line that it was read from."""

    turn_index: int | None
    file: str
    line: int


class RolloutSteps(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All steps of a rollout; `findings` name the lines that could not be read and what else was wrong with them."""

    rollout_id: str
    directory: str
    metrics: StepTotals
    steps: tuple[Step, ...]
    repeated_lines: int
    damaged_lines: int
    gaps: tuple[Gap, ...]
    findings: tuple[Finding, ...]

    @property
    def captured(self) -> bool:
        """True where something of its calls is there, or is known to be lost."""
        return bool(self.steps or self.findings)

    @property
    def complete(self) -> bool:
        """False where a call may be missing, so that the totals are too small."""
        return not any(finding.severity == "error" for finding in self.findings)


def read_steps(rollout_id: str, files: RolloutFiles, directory: str, how: HowToRead) -> RolloutSteps:
    """The steps of a rollout's raw calls; nothing else of it is read. Raises SurroundingsError."""
    raw = files.only(RAW_KINDS)
    snapshot = read_snapshot(raw)
    lines = list(read_calls(raw, snapshot, how))
    calls = once_each(lines)
    turns = turn_indexes([read.asked for read in calls], how.turn_rule)
    return RolloutSteps(
        rollout_id=rollout_id,
        directory=directory,
        metrics=totals_of(calls, turns),
        steps=tuple(
            Step(**msgspec.structs.asdict(read.call), turn_index=turn, file=read.file, line=read.raw.line)
            for read, turn in zip(calls, turns, strict=True)
        ),
        repeated_lines=len(lines) - len(calls),
        damaged_lines=damaged_lines(snapshot),
        gaps=tuple(gaps_of(raw, snapshot, len(calls))),
        findings=tuple(map(find, _defects(raw, snapshot))),
    )


def gaps_of(files: RolloutFiles | None, snapshot: Snapshot, calls: int) -> Iterator[Gap]:
    """What NeMo Gym says is missing of so many calls (capture-files.md 7.4)."""
    damaged = damaged_lines(snapshot)
    if damaged:
        yield Gap("model_call_capture_records_unreadable", f"count={damaged}")
    if files is not None and files.of_kind(FileKind.CAPTURE_INCOMPLETE):
        yield Gap("model_call_capture_incomplete")
    elif not calls and not damaged:
        yield Gap("model_call_capture_no_records")


def damaged_lines(snapshot: Snapshot) -> int:
    """Lines of raw calls that could not be read."""
    return sum(is_unread(defect) for defect in snapshot.defects if defect.file in snapshot.capture_files)


def _defects(files: RolloutFiles, snapshot: Snapshot) -> Iterator[Defect]:
    yield from (defect for defect in snapshot.defects if defect.file in snapshot.capture_files)
    for name in files.of_kind(FileKind.CAPTURE_INCOMPLETE):
        yield Defect(reason="capture_incomplete", file=name.shown, detail="a raw call could not be written")
