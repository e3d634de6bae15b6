"""A call that may get a record: what was sampled, and what its request shows of the calls before it."""

from array import array
from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.errors import InvalidRecord
from ng_capture.ingest.evidence.answers import answers_of
from ng_capture.ingest.messages import Message
from ng_capture.ingest.normalised import NormalisedCall
from ng_capture.ingest.output_items import as_text, output_of
from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.interface import TokenLine
from ng_capture.records.assembling import assemble
from ng_capture.records.fingerprint import Beginnings, Unfingerprintable, request_items
from ng_capture.records.lifecycle import can_be_named
from ng_capture.records.lineage import NOTHING_TOLD, Asked
from ng_capture.records.token_entry import NOTE, NOTED, TokenEntry, Unreadable
from ng_capture.records.token_record import (
    TokenRecord,
    check_readable,
    check_record,
    measured,
    record_of,
    stamped,
)

UNANSWERED = frozenset({"http_error"})
"""Problems of a call of which no token was sampled: it is not missed."""

_RECORDLESS = UNANSWERED | {
    "bad_token_id",
    "call_without_tokens",
    "invalid_record",
    "logprob_length_mismatch",
    "logprob_missing",
    "logprob_not_finite",
    "logprob_not_number",
    "no_output",
    "partial_tokens",
    "response_missing",
}


class Candidate(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A call as one source tells it. `record` has no link yet, and is None where the store has no form for it.

    `from_record`: the source is a record, no raw call, and keeps the links that it has or lacks. `previous_response` is
    the response that the request goes on with, where the server keeps the conversation.
    """

    call_id: str
    file: str
    line: int
    byte: int | None
    record: TokenRecord | None
    problems: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    choices: int = 1
    from_record: bool = False
    named_parent: str | None = None
    previous_response: str | None = None
    seen: Asked = NOTHING_TOLD
    started_at: float = 0.0
    asked: tuple[Message, ...] = ()
    answer: Message | None = None

    @property
    def conversation(self) -> tuple[Message, ...]:
        return self.asked if self.answer is None else (*self.asked, self.answer)

    @property
    def refused(self) -> bool:
        """True for a call that the server did not answer: no token was sampled."""
        return not UNANSWERED.isdisjoint(self.problems)

    @property
    def missed(self) -> bool:
        """True for a call that was answered and has no record: the rollout is not complete without it."""
        return self.record is None and not self.refused


def candidate_of_call(rollout_id: str, call: NormalisedCall, choices: int, beginnings: Beginnings) -> Candidate:
    """The candidate of one of so many answers of a raw call; `beginnings` are those of the rollout's other calls."""
    raw = call.raw
    problems, record, seen = call.problems, None, NOTHING_TOLD
    try:
        items = request_items(raw.request)
        seen = Asked.of(items, beginnings)
    except (Unfingerprintable, RecursionError):
        items = None
    if _RECORDLESS.isdisjoint(problems):
        record = _record(rollout_id, call, choices, items, beginnings)
        try:
            _check(record)
        except (InvalidRecord, RecursionError) as error:
            reason = error.reason if isinstance(error, InvalidRecord) else "invalid_record"
            problems, record = (*problems, reason), None
    return Candidate(
        call_id=call.call_id,
        file=raw.file,
        line=raw.line,
        byte=raw.byte,
        record=record,
        problems=problems,
        missing=call.missing,
        warnings=call.warnings,
        choices=choices,
        named_parent=raw.parent_call_id,
        previous_response=previous if isinstance(previous := raw.request.get("previous_response_id"), str) else None,
        seen=seen,
        started_at=begun(raw),
        asked=call.messages,
        answer=call.answer,
    )


def begun(raw: RawExchange) -> float:
    """When a call was made as far as its log tells, 0.0 where it does not."""
    return raw.started_at or raw.completed_at or 0.0


def candidate_of_line(rollout_id: str, line: TokenLine) -> Candidate:
    """The candidate of a token record that was made before."""
    entry = line.entry
    faults = tuple(dict.fromkeys(fault.reason for fault in entry.faults))
    record = None
    try:
        check_readable(_without_surrogates(entry))
        told = record_of(entry)
        told = msgspec.structs.replace(
            told, rollout_id=rollout_id, output_items=as_text(told.output_items), extras=as_text(told.extras)
        )
        _check(told)
        record = compact(told)
    except (InvalidRecord, Unreadable) as error:
        reason = error.reason if isinstance(error, InvalidRecord) else error.defect.reason
        record, faults = None, (faults if reason in faults else (*faults, reason))
    return Candidate(
        call_id=entry.call_id,
        file=entry.file,
        line=entry.line,
        byte=entry.byte,
        record=record,
        problems=tuple(fault for fault in faults if fault != "lone_surrogate"),
        warnings=tuple(fault for fault in faults if fault == "lone_surrogate"),
        from_record=True,
        started_at=entry.fields.created_at,
    )


def compact(record: TokenRecord) -> TokenRecord:
    """The record with arrays that take a few bytes a token: all records of a rollout are held at once."""
    return msgspec.structs.replace(
        record,
        prompt_token_ids=array("i", record.prompt_token_ids),
        generation_token_ids=array("i", record.generation_token_ids),
        generation_log_probs=array("d", record.generation_log_probs),
    )


def sequence_of(record: TokenRecord) -> "array[int]":
    """Prompt and generation of a full record."""
    return array("i", record.prompt_token_ids) + array("i", record.generation_token_ids)


def _check(record: TokenRecord) -> None:
    """Raises InvalidRecord for one that would not be read back, or that the files beside it could not name."""
    if not can_be_named(record.model_call_id):
        raise InvalidRecord(f"{record.model_call_id!r} is no call id: it must stand alone on a line", "invalid_record")
    check_record(record)


def _without_surrogates(entry: TokenEntry) -> TokenEntry:
    """Half of a surrogate pair in what was said is spelled out, and no reason to leave the record out."""
    faults = tuple(fault for fault in entry.faults if fault.reason != "lone_surrogate")
    return msgspec.structs.replace(entry, faults=faults)


def _record(
    rollout_id: str, call: NormalisedCall, choices: int, items: Sequence[object] | None, beginnings: Beginnings
) -> TokenRecord:
    raw = call.raw
    answers = answers_of(raw.request, assemble(raw.events) or raw.response)
    output = output_of(next(answer for answer in answers if answer.index == call.choice), call.item_index)
    record = TokenRecord(
        rollout_id=rollout_id,
        model_call_id=call.call_id,
        model=call.model or "",
        prompt_token_ids=call.prompt_token_ids or [],  # type: ignore[arg-type]
        generation_token_ids=call.generation_token_ids or [],  # type: ignore[arg-type]
        generation_log_probs=call.generation_log_probs or [],  # type: ignore[arg-type]
        routed_experts=call.routed_experts,
        output_items=as_text(list(output.items)),  # type: ignore[arg-type]
        token_item_index=output.carrier,
        response_id=call.response_id,
        created_at=raw.completed_at or raw.started_at or 0.0,
        extras={NOTE: _note(call, choices)},
    )
    return compact(measured(record) if items is None else stamped(record, items, beginnings))


def _note(call: NormalisedCall, choices: int) -> Mapping[str, object]:
    """Where the numbers were read, what they are, and what takes away that they may be trained."""
    told: dict[str, object] = {
        "origin": call.origin,
        "prompt_origin": call.prompt_origin,
        "generation_origin": call.generation_origin,
        "log_probs_kind": call.log_probs_kind,
        "problems": [problem for problem in call.problems if problem in NOTED],
        "warnings": list(call.warnings),
    }
    if choices > 1:
        told |= {"choices": choices, "choice": call.choice}
    return told
