"""Is every call there? Lifecycle files and raw calls against the records (design.md `unfinished_capture`)."""

import msgspec

from ng_capture.chains.calls import Calls
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import printable
from ng_capture.records.lifecycle import NamedLine
from ng_capture.records.snapshot import Snapshot


class Completeness(msgspec.Struct, frozen=True):
    """What may be missing from a rollout.

    `lost_calls` are known by their ids; `unidentified_marks` counts incomplete marks that name no call; `failed_calls`
    are raw calls that the server did not answer: they are not missed. `incomplete` is NeMo Gym's flag: its state says
    so, or an announced call has no record (capture-files.md 1.5).
    """

    defects: tuple[Defect, ...]
    lost_calls: tuple[str, ...]
    unidentified_marks: int
    failed_calls: tuple[str, ...]
    incomplete: bool = False


def check_completeness(snapshot: Snapshot, calls: Calls, policy_model: str | None) -> Completeness:
    """Every sign that a call has no record."""
    state = snapshot.state
    if state is not None and state.retired:
        retired = Defect(reason="retired", file=_state_file(snapshot), detail=state.snapshot_id or None)
        return Completeness((retired,), (), 0, ())
    lost: dict[str, Defect] = {}
    refused = {refusal.model_call_id for refusal in state.refusals} if state is not None else set()
    for intent in snapshot.intents or ():
        if intent.call_id and intent.call_id not in calls and intent.call_id not in refused:
            lost.setdefault(intent.call_id, _lost(intent, snapshot.intents_file, "was announced but has no record"))
    incomplete = bool(lost) or (state is not None and state.incomplete)
    for mark in snapshot.marks or ():
        if mark.call_id:
            lost.setdefault(mark.call_id, _lost(mark, snapshot.marks_file, "was marked incomplete"))
    for call_id in sorted(map(printable, (state.entry_digests or {}) if state is not None else ())):
        if call_id not in calls:
            detail = "is in the state's index but has no record"
            lost.setdefault(
                call_id,
                Defect(reason="capture_incomplete", file=_state_file(snapshot), call=call_id, detail=detail),
            )
    raw = _raw_defects(snapshot, calls, policy_model)
    defects = [*lost.values(), *_unnamed_marks(snapshot, bool(lost)), *raw.defects]
    if not snapshot.entries:
        # lines that could not be read are the reason then, not that there are none
        if all(defect.reason == "bom" for defect in snapshot.defects):
            defects.append(Defect(reason="empty_capture", file=_tokens_file(snapshot)))
    elif not any(call.generated and not call.foreign for call in calls.values()):
        defects.append(Defect(reason="no_generated_tokens", count=len(calls)))
    unidentified = sum(not mark.call_id for mark in snapshot.marks or ())
    lost_calls = tuple(sorted(call for call in {*lost, *raw.lost} if call not in calls))
    return Completeness(tuple(defects), lost_calls, unidentified, raw.failed, incomplete)


def intents_prove_all(snapshot: Snapshot, calls: Calls) -> bool:
    """True if the announced calls are exactly the recorded ones."""
    return snapshot.intents is not None and {line.call_id for line in snapshot.intents if line.call_id} == set(calls)


class _RawDefects(msgspec.Struct, frozen=True):
    defects: tuple[Defect, ...]
    lost: tuple[str, ...]
    failed: tuple[str, ...]


def _raw_defects(snapshot: Snapshot, calls: Calls, policy_model: str | None) -> _RawDefects:
    """Raw calls that were answered and have no tokens, and those that were not answered."""
    told = {*calls, *(call.entry.choice_of for call in calls.values())}
    answered: dict[str, Defect] = {}
    failed: dict[str, Defect] = {}
    for raw in snapshot.raw_calls or ():
        if raw.call_id in told:
            continue
        place = Defect(reason="http_error", file=snapshot.capture_file, line=raw.line, byte=raw.byte, call=raw.call_id)
        if not raw.answered and not raw.lost:
            failed.setdefault(raw.call_id, place.at(found=raw.error_category or raw.status_code))
        elif policy_model is None or raw.model in (None, policy_model):
            if raw.lost:
                reason = "stream_truncated" if raw.stream_truncated else "response_missing"
                answered.setdefault(raw.call_id, place.at(reason=reason))
            elif raw.has_token_ids:
                detail = "has token ids in its raw call but no record"
                answered.setdefault(raw.call_id, place.at(reason="capture_incomplete", detail=detail))
            else:
                answered.setdefault(raw.call_id, place.at(reason="call_without_tokens"))
    for call_id in answered:
        failed.pop(call_id, None)
    return _RawDefects((*answered.values(), *failed.values()), tuple(answered), tuple(sorted(failed)))


def _unnamed_marks(snapshot: Snapshot, explained: bool) -> list[Defect]:
    """The rollout is marked and no mark, or no call, says for which call."""
    unnamed = [mark for mark in snapshot.marks or () if not mark.call_id]
    if unnamed:
        first = unnamed[0]
        place = Defect(reason="capture_incomplete", file=snapshot.marks_file, line=first.line, byte=first.byte)
        return [place.at(count=len(unnamed), detail="without a call id")]
    if snapshot.marks is not None and not snapshot.marks:
        return [Defect(reason="capture_incomplete", file=snapshot.marks_file, detail="an empty mark")]
    state = snapshot.state
    if state is not None and state.incomplete and not explained:
        return [Defect(reason="capture_incomplete", file=_state_file(snapshot), detail="the state says so")]
    covered, size = (state.indexed_size if state is not None else None), snapshot.tokens_size or 0
    if covered is not None and covered > size and not explained:
        detail = f"the state covers {covered} bytes of records, {size} are there"
        return [Defect(reason="capture_incomplete", file=_state_file(snapshot), detail=detail)]
    return []


def _lost(line: NamedLine, file: str, detail: str) -> Defect:
    return Defect(
        reason="capture_incomplete", file=file, line=line.line, byte=line.byte, call=line.call_id, detail=detail
    )


def _state_file(snapshot: Snapshot) -> str:
    return f"{snapshot.rollout_id}.tokens.state.json"


def _tokens_file(snapshot: Snapshot) -> str:
    return f"{snapshot.rollout_id}.tokens.jsonl"
