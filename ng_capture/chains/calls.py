"""Entries -> distinct calls, each with what is wrong with it (capture-files.md 4, steps 1 and 2)."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import orjson

from ng_capture.records.defects import Defect
from ng_capture.records.ids import IdSequence
from ng_capture.records.json_text import encode_json, printable, told
from ng_capture.records.raw_call import RawCall
from ng_capture.records.routed_experts import check_routed_experts
from ng_capture.records.token_entry import EntryFields, TokenEntry

IDS_IN_DOUBT = frozenset(
    {
        "bad_token_id",
        "delta_unresolvable",
        "digest_mismatch",
        "duplicate_key",
        "empty_prompt",
        "invalid_record",
        "multiple_token_items",
        "parent_cycle",
        "rollout_id_mismatch",
        "source_mismatch",
        "stream_truncated",
        "token_count_mismatch",
    }
)
"""Faults of a call's own record that take it out of every row."""

LOGPROBS_UNUSABLE = frozenset(
    {
        "logprob_length_mismatch",
        "logprob_missing",
        "logprob_not_finite",
        "logprob_not_number",
        "logprob_positive",
        "logprob_sentinel",
    }
)
"""Faults that leave a call as context: its ids are believed, its log probabilities are not."""

NOT_SAMPLED = frozenset({"beam_search", "generation_aborted"})
"""Faults that leave a call as context: its ids are believed, but are no whole answer that the policy sampled."""


class Call(msgspec.Struct, frozen=True, eq=False):
    """One distinct call.

    `prompt` and `full` are None where the sequence cannot be put together. `repeats` are the lines that hold the same
    record again; `conflict` is set for a call id that has two contents, `several_stamps` where their digests differ,
    too. `foreign`: of another than the policy's model.
    """

    entry: TokenEntry
    prompt: IdSequence | None
    full: IdSequence | None
    faults: tuple[Defect, ...] = ()
    repeats: tuple[int, ...] = ()
    conflict: Defect | None = None
    several_stamps: bool = False
    foreign: bool = False

    @property
    def id(self) -> str:
        return self.entry.call_id

    @property
    def fields(self) -> EntryFields:
        return self.entry.fields

    @property
    def generated(self) -> int:
        return self.entry.generated

    @property
    def weight_version(self) -> int | str | None:
        """The weights that sampled the generation: a number or a name; anything else is unknown."""
        value = self.entry.fields.weight_version
        return told(value) if type(value) in (int, str) else None

    @property
    def placed(self) -> bool:
        """True for a call that can stand in a chain: its sequence is known and it generated something."""
        return self.full is not None and self.entry.generated > 0

    @property
    def reasons(self) -> frozenset[str]:
        return frozenset(fault.reason for fault in self.faults)

    @property
    def in_doubt(self) -> bool:
        """True if the ids are not to be believed: such a call is in no row."""
        return self.full is None or not IDS_IN_DOUBT.isdisjoint(self.reasons)

    @property
    def trainable(self) -> bool:
        """True if the generated tokens may carry loss."""
        return not self.in_doubt and not self.foreign and (LOGPROBS_UNUSABLE | NOT_SAMPLED).isdisjoint(self.reasons)

    def with_fault(self, defect: Defect) -> "Call":
        """The call with one more fault, located."""
        return msgspec.structs.replace(self, faults=(*self.faults, self.entry.locate(defect)))


Calls = Mapping[str, Call]


def distinct_calls(
    entries: Iterable[TokenEntry],
    rollout_id: str,
    raw_calls: Sequence[RawCall] | None,
    capture_file: str,
    policy_model: str | None,
) -> dict[str, Call]:
    """One call per id, in the order of their ids, checked against its own digest and its raw calls.

    Deltas are left without a sequence (see `deltas`). Of a call id with two contents one that is its own digest's
    stands, then the one whose content hashes lowest, so that the order of the lines does not matter.
    """
    copies: dict[str, list[TokenEntry]] = {}
    for entry in entries:
        copies.setdefault(entry.call_id, []).append(entry)
    raw: dict[str, list[RawCall]] = {}
    for raw_call in raw_calls or ():
        raw.setdefault(raw_call.call_id, []).append(raw_call)
    calls = {}
    for call_id in sorted(copies):
        call = _one_call(copies[call_id])
        faults = [call.entry.locate(fault) for fault in call.entry.faults]
        faults += [call.entry.locate(fault) for fault in _own_faults(call, rollout_id)]
        faults += _raw_faults(call, raw.get(call_id, ()), capture_file)
        noted = {fault.reason: fault for fault in call.entry.noted}
        faults += [call.entry.locate(noted[reason]) for reason in noted.keys() - {fault.reason for fault in faults}]
        foreign = policy_model is not None and call.fields.model != policy_model
        calls[call_id] = msgspec.structs.replace(call, faults=tuple(faults), foreign=foreign)
    return calls


def digest_fault(fields: EntryFields, full: IdSequence) -> Defect | None:
    """The defect of a record whose digest, or else whose length, is not its own ids' (deviation `own_digest`)."""
    if fields.digest:
        own = full.digest()
        if own != fields.digest:
            return Defect(reason="digest_mismatch", expected=printable(fields.digest), found=own)
    if fields.cum_len is not None and fields.cum_len != len(full):
        return Defect(reason="digest_mismatch", expected=told(fields.cum_len), found=len(full), detail="length")
    return None


def experts_fault(fields: EntryFields, full: IdSequence) -> Defect | None:
    """The defect of routed experts that fit no shape, or not these tokens."""
    return None if fields.routed_experts is None else check_routed_experts(fields.routed_experts, len(full))


def has_experts(call: Call) -> bool:
    """True for a call whose routed experts fit its tokens."""
    return call.fields.routed_experts is not None and "routed_experts_malformed" not in call.reasons


def _one_call(copies: list[TokenEntry]) -> Call:
    first = copies[0]
    if len(copies) == 1:
        return Call(first, first.prompt, first.full)
    copies = sorted(copies, key=lambda entry: (entry.file, entry.line))
    first, lines = copies[0], tuple(entry.line for entry in copies)
    if all(_same(first, other) for other in copies[1:]):
        return Call(first, first.prompt, first.full, repeats=lines[1:])
    chosen = min(copies, key=lambda entry: (_is_doubtful(entry), _content_digest(entry)))
    arrays = {(entry.generation.text, entry.prompt.digest() if entry.prompt else entry.suffix.text) for entry in copies}
    detail = "token ids" if len(arrays) > 1 else "other fields"
    conflict = Defect(reason="conflicting_records", count=len(copies), lines=lines, detail=detail)
    stamps = {(entry.fields.digest, entry.fields.cum_len) for entry in copies}
    return Call(
        chosen,
        chosen.prompt,
        chosen.full,
        conflict=copies[-1].locate(conflict),
        several_stamps=len(stamps) > 1,
    )


def _same(one: TokenEntry, other: TokenEntry) -> bool:
    """True if two lines hold the same record, whatever their spelling."""
    if one.rest != other.rest or one.generation.text != other.generation.text or one.log_probs != other.log_probs:
        return False
    if one.faults != other.faults:
        return False
    if one.prompt is None or other.prompt is None:
        return one.prompt is other.prompt and one.suffix.text == other.suffix.text
    return len(one.prompt) == len(other.prompt) and one.prompt.starts_with(other.prompt)


def _is_doubtful(entry: TokenEntry) -> bool:
    return entry.full is not None and digest_fault(entry.fields, entry.full) is not None


def _content_digest(entry: TokenEntry) -> str:
    content = orjson.dumps(
        [
            encode_json(entry.rest).decode(),
            entry.prompt.digest() if entry.prompt is not None else entry.suffix.text.decode(),
            entry.generation.text.decode(),
            list(entry.log_probs or ()),
        ]
    )
    return hashlib.sha256(content).hexdigest()


def _own_faults(call: Call, rollout_id: str) -> Iterable[Defect]:
    fields = call.fields
    if fields.rollout_id != rollout_id:
        yield Defect(reason="rollout_id_mismatch", expected=rollout_id, found=fields.rollout_id)
    if call.full is not None:
        yield from filter(None, (digest_fault(fields, call.full), experts_fault(fields, call.full)))
    if call.prompt is not None and not len(call.prompt) and (fields.parent_call_id or _unresolved(fields)):
        yield Defect(reason="empty_prompt", parent=fields.parent_call_id)


def _unresolved(fields: EntryFields) -> bool:
    return fields.parent_resolution == "unresolved"


def _raw_faults(call: Call, raw_calls: Iterable[RawCall], file: str) -> Iterable[Defect]:
    """What the raw calls of a token record say against it (deviation `raw_call_contradiction`)."""
    seen = set()
    for raw in raw_calls:
        if raw.stream_truncated:
            defect = Defect(reason="stream_truncated")
        elif raw.usage.tokens_out is not None and raw.usage.tokens_out != call.generated:
            defect = Defect(reason="token_count_mismatch", usage=raw.usage.tokens_out, ids=call.generated)
        else:
            continue
        if defect not in seen:
            seen.add(defect)
            yield defect.at(file=file, line=raw.line, byte=raw.byte, call=call.id)
