"""What the small files beside token records say of calls that are lost (capture-files.md 1.2, 1.6)."""

from collections.abc import Container, Iterator

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import FileKind, shown
from ng_capture.files.reading import CaptureFile
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import printable
from ng_capture.records.lifecycle import NamedLine, StoreState, decode_call_lines, decode_state

LIFECYCLE = frozenset({FileKind.STATE, FileKind.INTENTS, FileKind.INCOMPLETE})


def is_retired(files: RolloutFiles) -> bool:
    """True for what stays of a rollout that was handed off; raises SurroundingsError."""
    return _state(files)[1].retired


def lost_calls_beside(files: RolloutFiles, recorded: Container[str]) -> list[Defect]:
    """A defect for every call that was announced, marked or indexed and has no record; raises SurroundingsError."""
    unreadable, state = _state(files)
    refused = {refusal.model_call_id for refusal in state.refusals}
    lost: dict[str, Defect] = {}
    for line in _lines(files, FileKind.INTENTS):
        if line.call_id and line.call_id not in recorded and line.call_id not in refused:
            announced = _lost(files, FileKind.INTENTS, "was announced but has no record")
            lost.setdefault(line.call_id, announced.at(call=line.call_id, line=line.line))
    marks = list(_lines(files, FileKind.INCOMPLETE))
    for line in marks:
        if line.call_id:
            marked = _lost(files, FileKind.INCOMPLETE, "was marked incomplete")
            lost.setdefault(line.call_id, marked.at(call=line.call_id, line=line.line))
    for call_id in sorted(map(printable, state.entry_digests or ())):
        if call_id not in recorded:
            indexed = _lost(files, FileKind.STATE, "is in the state's index but has no record")
            lost.setdefault(call_id, indexed.at(call=call_id))
    unnamed = any(not mark.call_id for mark in marks) or (not marks and bool(files.of_kind(FileKind.INCOMPLETE)))
    if unnamed:
        lost[""] = _lost(files, FileKind.INCOMPLETE, "the rollout is marked so")
    elif state.incomplete and not lost:
        lost[""] = _lost(files, FileKind.STATE, "the rollout is marked so")
    return [*unreadable, *lost.values()]


def _lost(files: RolloutFiles, kind: FileKind, detail: str) -> Defect:
    return Defect(reason="capture_incomplete", file=f"{shown(files.rollout_id)}.{kind}", detail=detail)


def _state(files: RolloutFiles) -> tuple[list[Defect], StoreState]:
    for name in files.of_kind(FileKind.STATE):
        with CaptureFile(files.path(name)) as file:
            try:
                return [], decode_state(file.read())
            except ValueError as error:
                return [Defect(reason="state_unreadable", file=name.shown, detail=str(error))], StoreState()
    return [], StoreState()


def _lines(files: RolloutFiles, kind: FileKind) -> Iterator[NamedLine]:
    for name in files.of_kind(kind):
        with CaptureFile(files.path(name)) as file:
            yield from decode_call_lines(file.read())
