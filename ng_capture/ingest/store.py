"""Bring a prepared rollout into the store: what is there stays, what is new is added, what is lost is said.

Raw calls first, then announcements and marks, then records: whatever kills the run, a call without its record masks the
rollout until a second run brings it, and what will be masked is never trusted (capture-files.md 1.5 and 1.6).
"""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ng_capture.errors import InvalidRecord, RolloutDamaged, RolloutFrozen, RolloutRetired, WriteRefused
from ng_capture.files.names import CaptureName, FileKind, names_of
from ng_capture.files.reading import CaptureFile
from ng_capture.ingest.conflict import OnConflict
from ng_capture.ingest.held import Held, evidence_of_record
from ng_capture.ingest.rollout import PreparedRollout, RolloutCall
from ng_capture.records.defects import Defect
from ng_capture.records.lifecycle import can_be_named
from ng_capture.store.append import RolloutWriter, add_raw_lines

Action = Literal["added", "there", "left_out", "refused"]
"""What became of a call: a new record, the record that was there, none, or none since the rollout takes none."""


class Stored(msgspec.Struct, frozen=True, eq=False):
    """What became of a rollout: its calls with what was done, and what the store refused."""

    calls: Sequence[tuple[RolloutCall, Action]]
    faults: Sequence[Defect] = ()


def store_rollout(
    directory: Path, rollout: PreparedRollout, held: Held, lost: Sequence[str], marked: bool, on_conflict: OnConflict
) -> Stored:
    """Write what is new; `lost` are calls that were torn in their source, `marked`: some other call may be lost.

    Raises SurroundingsError.
    """
    actions = [_action(call, held) for call in rollout.calls]
    conflicts = [
        call for call, action in zip(rollout.calls, actions, strict=True) if action == "there" and not _same(call, held)
    ]
    faults = [_conflict(call) for call in conflicts]
    if conflicts and on_conflict is OnConflict.FAIL:
        return Stored([(call, "refused") for call in rollout.calls], faults)
    if not held.closed:
        _add_raw_lines(directory, rollout, frozenset(call.candidate.call_id for call in conflicts))
    writer = RolloutWriter(directory, rollout.rollout_id)
    new = [
        call.record
        for call, action in zip(rollout.calls, actions, strict=True)
        if action == "added" and call.record is not None
    ]
    missed = [call.candidate.call_id for call in rollout.calls if call.candidate.missed]
    announced = [*(record.model_call_id for record in new), *filter(can_be_named, [*missed, *lost])]
    marked = marked or not all(map(can_be_named, [*missed, *lost]))
    try:
        if new or set(announced) - held.announced - held.calls.keys():
            writer.begin_call(*announced)
        for call in conflicts if on_conflict is OnConflict.MASK else ():
            writer.mark_incomplete(call.candidate.call_id)
        if marked:
            writer.mark_incomplete()
        if new or held.lagging:
            # without a new one, too: what a killed writer left is finished
            writer.append(*new)
    except WriteRefused as error:
        faults.append(_refusal(rollout, error))
        actions = ["refused" if action == "added" else action for action in actions]
    return Stored(list(zip(rollout.calls, actions, strict=True)), faults)


def _action(call: RolloutCall, held: Held) -> Action:
    if call.candidate.call_id in held.calls:
        return "there"
    return "left_out" if call.record is None else "added"


def _same(call: RolloutCall, held: Held) -> bool:
    there = held.calls[call.candidate.call_id]
    return call.record is None or evidence_of_record(call.record).agrees(there.evidence)


def _conflict(call: RolloutCall) -> Defect:
    candidate = call.candidate
    return Defect(
        reason="conflicting_records",
        file=candidate.file,
        line=candidate.line,
        byte=candidate.byte,
        call=candidate.call_id,
        count=2,
        detail="tokens or log probabilities: the store holds others",
    )


def _refusal(rollout: PreparedRollout, error: WriteRefused) -> Defect:
    reasons = {RolloutFrozen: "rollout_frozen", RolloutRetired: "retired", RolloutDamaged: "damaged_line"}
    reason = error.reason if isinstance(error, InvalidRecord) else reasons.get(type(error), "conflicting_records")
    return Defect(reason=reason, file=f"{rollout.rollout_id}.{FileKind.TOKENS}", detail=error.message)


def _add_raw_lines(directory: Path, rollout: PreparedRollout, besides: Collection[str]) -> None:
    """Those that neither the `.capture.jsonl` nor a packed one holds, byte for byte; none of some calls."""
    packed = {
        digest for name in raw_files(rollout.rollout_id) if name.compression for digest in _digests(directory, name)
    }
    wanted = [line.data for line in rollout.raw_lines if line.call_id not in besides]
    lines = [line for line in wanted if hashlib.sha256(line).digest() not in packed]
    if lines:
        add_raw_lines(directory / f"{rollout.rollout_id}.{FileKind.CAPTURE}", lines)


def raw_files(rollout_id: str) -> list[CaptureName]:
    """The names of all files that may hold raw calls of a rollout."""
    return [name for name in names_of(rollout_id) if name.kind is FileKind.CAPTURE]


def _digests(directory: Path, name: CaptureName) -> Iterator[bytes]:
    """Of the lines of a packed file."""
    if not (directory / str(name)).exists():
        return
    with CaptureFile(str(directory / str(name)), name.compression) as file:
        for line in file.lines():
            yield hashlib.sha256(line.data.removesuffix(b"\n")).digest()
