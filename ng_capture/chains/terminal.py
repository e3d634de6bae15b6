"""Which call was scored: witnesses, never a guess (capture-files.md 5, design.md `terminal_evidence`)."""

from collections.abc import Iterable, Sequence

import msgspec

from ng_capture.chains.calls import Call, Calls
from ng_capture.records.fingerprint import (
    FINGERPRINT_VERSION,
    Unfingerprintable,
    assistant_fingerprint,
    last_run,
    trailing_run,
)
from ng_capture.records.rollout_row import Evidence, told_id


class Witness(msgspec.Struct, frozen=True):
    """What one kind of evidence says: the call it names, or the several it cannot tell apart."""

    method: str
    call: str | None = None
    candidates: tuple[str, ...] = ()


class Attribution(msgspec.Struct, frozen=True, kw_only=True):
    """The scored call as the witnesses name it.

    `call` and `method` are None where none is named; `notes` are Gym's (capture-files.md 5). `missing` is a call id and
    `missing_response` a declared response id that no record has, `disagreeing` and `possible` the calls that witnesses
    name apart; `unexplained` tells that there is a scored response and that nothing of it fits any record.
    """

    call: str | None = None
    method: str | None = None
    notes: tuple[str, ...] = ()
    missing: str | None = None
    missing_response: str | None = None
    disagreeing: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    declared_ambiguous: bool = False
    unexplained: bool = False
    declared: bool = False

    @property
    def reason(self) -> str:
        return ",".join(self.notes)


def attribute(calls: Calls, evidence: Evidence) -> Attribution:
    """Ask the witnesses in Gym's order; item ids speak only where every other witness is silent."""
    notes: list[str] = []
    witnesses: list[Witness] = []
    missing = None
    if evidence.explicit is not None:
        if evidence.explicit in calls:
            witnesses.append(Witness("explicit", evidence.explicit, (evidence.explicit,)))
        else:
            notes.append("explicit_terminal_not_captured")
            missing = evidence.explicit
    if evidence.declared is not None:
        declared = _by_response_id(calls, "declared", evidence.declared)
        if declared.call is None:
            notes.append("declared_ambiguous" if declared.candidates else "declared_terminal_not_captured")
            return Attribution(
                notes=tuple(notes),
                missing=missing,
                missing_response=None if declared.candidates else evidence.declared,
                possible=declared.candidates,
                declared_ambiguous=bool(declared.candidates),
                declared=True,
            )
        witnesses.append(declared)
    if evidence.response is None:
        notes.append("no_response_object")
        found = []
    else:
        found = [_response_id(calls, evidence, notes), _content(calls, evidence, notes)]
    witnesses += [witness for witness in found if witness.call is not None]
    possible = tuple(sorted({call for witness in found for call in witness.candidates}))
    if not witnesses and not possible:
        by_item = _item_ids(calls, evidence)
        witnesses += [by_item] if by_item.call is not None else []
        possible = by_item.candidates
    verdict = _agreed(witnesses, calls, notes)
    named = verdict.call is not None
    disagreeing = () if named else tuple(sorted({witness.call for witness in witnesses if witness.call is not None}))
    silent = not witnesses and not possible
    return Attribution(
        call=verdict.call,
        method=verdict.method if named else None,
        notes=tuple(notes),
        missing=missing,
        disagreeing=disagreeing,
        possible=() if named else possible,
        unexplained=silent and _says_something(notes),
        declared=evidence.declared is not None,
    )


def _says_something(notes: Sequence[str]) -> bool:
    """True if the scored response could be compared with the records, by id or by content, and fits none."""
    return "response_id_no_match" in notes or "no_content_match" in notes


def _agreed(witnesses: Sequence[Witness], calls: Calls, notes: list[str]) -> Witness:
    """The first witness, if all name one sequence."""
    if not witnesses:
        return Witness("none")
    if _collapse([witness.call for witness in witnesses if witness.call is not None], calls) is None:
        named = ";".join(f"{witness.method}={witness.call}" for witness in witnesses)
        notes.append(f"witness_disagreement[{named}]")
        return Witness("none")
    if len(witnesses) > 1:
        notes.append("corroborated_by=" + "+".join(witness.method for witness in witnesses[1:]))
    return witnesses[0]


def _response_id(calls: Calls, evidence: Evidence, notes: list[str]) -> Witness:
    named = told_id(evidence.response.get("id")) if evidence.response else None
    if named is None:
        notes.append("response_has_no_id")
        return Witness("response_id")
    witness = _by_response_id(calls, "response_id", named)
    if witness.call is None:
        notes.append("response_id_ambiguous" if witness.candidates else "response_id_no_match")
    return witness


def _by_response_id(calls: Calls, method: str, response_id: str) -> Witness:
    return _witness(method, [call.id for call in calls.values() if call.fields.response_id == response_id], calls)


def _content(calls: Calls, evidence: Evidence, notes: list[str]) -> Witness:
    """Fingerprints of the whole output and of its trailing block against the records'."""
    output = evidence.output
    if not output:
        notes.append("response_has_no_output")
        return Witness("content_output")
    try:
        target = assistant_fingerprint(output)
        run = trailing_run(output)
        tail = assistant_fingerprint(run) if run and len(run) < len(output) else ""
    except Unfingerprintable:
        notes.append("response_output_unfingerprintable")
        return Witness("content_output")
    if not target:
        notes.append("no_model_authored_output")
        return Witness("content_output")
    cumulative = [call.id for call in calls.values() if _continues_as(call, target)]
    own = [call.id for call in calls.values() if _own_fingerprint(call) in {target, tail} - {""}]
    method = "content_cumulative" if cumulative else "content_output"
    witness = _witness(method, sorted({*cumulative, *own}), calls)
    if witness.call is None:
        notes.append("content_ambiguous" if witness.candidates else "no_content_match")
    return witness


def _continues_as(call: Call, target: str) -> bool:
    fields = call.fields
    return fields.continuation_fingerprint == target and fields.fingerprint_version in (None, FINGERPRINT_VERSION)


def _own_fingerprint(call: Call) -> str:
    try:
        return assistant_fingerprint(call.fields.output_items)
    except Unfingerprintable:
        return ""


def _item_ids(calls: Calls, evidence: Evidence) -> Witness:
    """The record that owns the last item of the last run of model-authored items of the response."""
    named = next((_item_id(item) for item in reversed(last_run(evidence.output))), None)
    if named is None:
        return Witness("item_ids")
    owners = [call.id for call in calls.values() if named in map(_item_id, call.fields.output_items)]
    return _witness("item_ids", owners, calls)


def _item_id(item: object) -> str | None:
    value = item.get("id") if isinstance(item, dict) else None
    return value if isinstance(value, str) and value else None


def _witness(method: str, candidates: list[str], calls: Calls) -> Witness:
    """What the records that fit say; witnesses are records, so that a call with two digests is two sequences."""
    agreed = None if any(calls[call].several_stamps for call in candidates) else _collapse(candidates, calls)
    return Witness(method, agreed, tuple(sorted(candidates)))


def _collapse(candidates: Iterable[str], calls: Calls) -> str | None:
    """The one call, or the smallest id of several that hold one sequence, else None."""
    ids = sorted(set(candidates))
    if len(ids) < 2:
        return ids[0] if ids else None
    first = calls[ids[0]]
    return ids[0] if all(_same_sequence(first, calls[other]) for other in ids[1:]) else None


def _same_sequence(one: Call, other: Call) -> bool:
    """Equal by digest and length as recorded, else by the ids themselves."""
    stamps = [(call.fields.digest, call.fields.cum_len) for call in (one, other)]
    if any(digest and length is not None for digest, length in stamps):
        return stamps[0] == stamps[1]
    return _stored_ids(one) == _stored_ids(other)


def _stored_ids(call: Call) -> tuple[str, bytes]:
    prompt = call.prompt.digest() if call.prompt is not None else call.entry.suffix.text.decode()
    return prompt, call.entry.generation.text
