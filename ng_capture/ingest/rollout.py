"""The readings of one rollout -> its calls with their records and links, ready to be written."""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from ng_capture.ingest.candidate import Candidate, begun, candidate_of_call, candidate_of_line, sequence_of
from ng_capture.ingest.capture_line import capture_line
from ng_capture.ingest.held import Held, evidence_of_record
from ng_capture.ingest.links import How, Link, find_links
from ng_capture.ingest.messages import Turns
from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.normalised import LogProbsKind
from ng_capture.ingest.parents import Conversation
from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.interface import Reading, TokenLine
from ng_capture.records.defects import Defect
from ng_capture.records.fingerprint import Beginnings
from ng_capture.records.json_text import encode_json
from ng_capture.records.lineage import Parent
from ng_capture.records.token_record import TokenRecord, as_delta


class RolloutCall(msgspec.Struct, frozen=True, eq=False):
    """One call: what was read of it, its linked record where it gets one, and how its parent was found."""

    candidate: Candidate
    record: TokenRecord | None
    parent: Parent
    how: How | None


class RawLine(msgspec.Struct, frozen=True):
    """A line of `.capture.jsonl` and the call that it tells of."""

    call_id: str | None
    data: bytes


class PreparedRollout(msgspec.Struct, frozen=True, eq=False):
    """All of one rollout. `raw_lines` are those of `.capture.jsonl`."""

    rollout_id: str
    calls: Sequence[RolloutCall]
    raw_lines: Sequence[RawLine]


class Preparing(msgspec.Struct, frozen=True):
    """How records are made: what is known of the log probabilities, and whether prompts are stored as deltas.

    `raw_files` are sources that are the `.capture.jsonl` of the rollout in the store: what is read there lies there.
    """

    log_probs_kind: LogProbsKind | None
    delta: bool
    raw_files: frozenset[str]


def prepare(
    rollout_id: str,
    readings: Iterable[Reading],
    held: Held,
    how: Preparing,
    held_conversations: Callable[[], Iterable[Conversation]] = tuple,
) -> PreparedRollout:
    """Records and links of a rollout, beside what the store holds of it, in the order in which the calls were made.

    `held_conversations` gives those of the calls that the store holds; it is asked where there are new ones.
    """
    candidates: list[Candidate] = []
    raw_lines: dict[RawLine, float] = {}
    beginnings, turns = Beginnings(), Turns()
    for reading in readings:
        if isinstance(reading, TokenLine):
            candidates.append(candidate_of_line(rollout_id, reading))
        elif isinstance(reading, RawExchange):
            named = reading if reading.call_id is not None else named_call(reading)
            calls = normalise(named, log_probs_kind=how.log_probs_kind, turns=turns)
            candidates += [candidate_of_call(rollout_id, call, len(calls), beginnings) for call in calls]
            if reading.file not in how.raw_files:
                # a copy: what the encoder gives keeps many times its size
                raw_lines.setdefault(RawLine(named.call_id, bytes(memoryview(capture_line(named)))), begun(named))
    merged = sorted(_merged(candidates), key=lambda candidate: candidate.started_at)
    new = any(candidate.call_id not in held.calls for candidate in merged)
    links = find_links(merged, held.calls, held_conversations() if new else ())
    linked = [_linked(candidate, links[candidate.call_id]) for candidate in merged]
    if how.delta:
        linked = _as_deltas(linked, held)
    return PreparedRollout(rollout_id, linked, sorted(raw_lines, key=raw_lines.__getitem__))


def named_call(call: RawExchange) -> RawExchange:
    """A call without an id gets one of what it holds: that stays the same in whatever file it comes."""
    content = encode_json([call.request, call.response, call.response_raw, call.started_at])
    return msgspec.structs.replace(call, call_id=f"raw-{hashlib.sha256(content).hexdigest()[:16]}")


def _merged(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """One candidate a call: copies are counted once, what contradicts itself gets no record (N92, N93)."""
    copies: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        copies.setdefault(candidate.call_id, []).append(candidate)
    for group in copies.values():
        told = [each for each in group if each.record is not None]
        evidence = [evidence_of_record(each.record) for each in told if each.record is not None]
        if not all(each.agrees(evidence[0]) for each in evidence):
            yield from (
                msgspec.structs.replace(each, record=None, problems=(*each.problems, "conflicting_records"))
                for each in group
            )
            continue
        best = min(told or group, key=lambda each: (not each.from_record, len(each.problems), each.file, each.line))
        # a record and a raw call tell one call in two ways; only two of a kind are copies
        again = sum(each.from_record == best.from_record for each in group) > 1
        yield msgspec.structs.replace(best, warnings=(*best.warnings, "duplicate_record")) if again else best


def _linked(candidate: Candidate, link: Link) -> RolloutCall:
    record = candidate.record
    if record is not None and not candidate.from_record:
        record = msgspec.structs.replace(
            record,
            parent_resolution=link.parent.resolution,
            parent_call_id=link.parent.parent_call_id,
            parent_resolution_reason=link.parent.reason,
        )
    return RolloutCall(candidate, record, link.parent, link.how)


def _as_deltas(calls: Sequence[RolloutCall], held: Held) -> list[RolloutCall]:
    """Prompts without what the parent's record holds already, where it does (capture-files.md 2.4)."""
    whole = {
        call.record.model_call_id: sequence_of(call.record)
        for call in calls
        if call.record is not None and not call.record.prompt_is_delta
    }
    whole |= {name: call.full for name, call in held.calls.items() if call.full is not None}
    return [_as_delta(call, whole) for call in calls]


def _as_delta(call: RolloutCall, whole: "Mapping[str, array[int]]") -> RolloutCall:
    record = call.record
    parent = None if record is None else whole.get(record.parent_call_id or "")
    if record is None or parent is None or record.prompt_is_delta:
        return call
    return msgspec.structs.replace(call, record=as_delta(record, parent))


def faults_of(calls: Sequence[RolloutCall]) -> Iterator[Defect]:
    """What was wrong with each call, and what was noted, as defects with their place.

    Which of several choices was kept is no fault where a later call goes on with one of them (N63).
    """
    settled = {_whole_call(call.parent.parent_call_id or "") for call in calls}
    for call in calls:
        for fault in _faults(call.candidate):
            if fault.reason != "ambiguous_choices" or fault.call not in settled:
                yield fault


def _whole_call(choice_id: str) -> str:
    """The id of the raw call that a choice is one of."""
    return choice_id.rpartition("#")[0]


def _faults(candidate: Candidate) -> Iterator[Defect]:
    place = Defect(reason="", file=candidate.file, line=candidate.line, byte=candidate.byte, call=candidate.call_id)
    for reason in (*candidate.problems, *candidate.warnings):
        if reason == "ambiguous_choices":
            # a fault of the raw call, which has all of them
            yield place.at(reason=reason, call=_whole_call(candidate.call_id), choices=candidate.choices)
        else:
            yield place.at(reason=reason, detail=", ".join(candidate.missing) if reason == "partial_tokens" else None)
