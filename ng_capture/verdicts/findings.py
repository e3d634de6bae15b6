"""A defect as users see it: with its severity and one sentence that holds the numbers."""

from collections.abc import Callable, Sequence

import msgspec

from ng_capture.records.defects import Defect
from ng_capture.verdicts.reasons import REASONS, Severity, severity_of


class Finding(Defect, frozen=True, kw_only=True, omit_defaults=True):
    """One fault with its severity and message; the other fields are those of the defect."""

    severity: Severity
    message: str


def find(defect: Defect, *, aside: bool = False) -> Finding:
    """The finding of a defect; `aside` tells that it stands off the delivered chain and masks nothing."""
    message = _MESSAGES.get(defect.reason, _meaning)(defect)
    if aside:
        message += " (off the delivered chain: masks nothing here)"
    return Finding(**msgspec.structs.asdict(defect), severity=severity_of(defect.reason), message=message)


def _meaning(defect: Defect) -> str:
    """What the registry says, with whatever place the defect has."""
    subject = f"call {defect.call}: " if defect.call is not None else ""
    detail = f" ({defect.detail})" if defect.detail else ""
    return f"{subject}{REASONS[defect.reason].meaning}{detail}"


def _prefix_mismatch(defect: Defect) -> str:
    new = f"new {defect.found}" if defect.found is not None else "the new prompt ends there"
    return (
        f"call {defect.call} leaves its parent {defect.parent} at token {defect.first_difference:,} of "
        f"{defect.tokens:,} (held {defect.expected}, {new})"
    )


def _named(calls: Sequence[str] | None) -> str:
    """Some ids in words; all of them are in the finding's `calls`."""
    shown = list(calls or ())
    more = f" and {len(shown) - 8} more" if len(shown) > 8 else ""
    if not more and len(shown) > 1:
        return f"{', '.join(shown[:-1])} and {shown[-1]}"
    return ", ".join(shown[:8]) + more


def _plural(count: int | None, one: str) -> str:
    return f"{count:,} {one}" if count == 1 else f"{count or 0:,} {one}s"


def _value(defect: Defect) -> str:
    return f"call {defect.call}: log probability {defect.found} at position {defect.position} of its generation"


def _capture_incomplete(defect: Defect) -> str:
    if defect.call is not None:
        return f"call {defect.call} {defect.detail}"
    return (
        f"{_plural(defect.count, 'mark')} without a call id" if defect.count else f"marked incomplete: {defect.detail}"
    )


def _digest_mismatch(defect: Defect) -> str:
    if defect.detail == "length":
        return f"call {defect.call}: the record says {defect.expected} ids, its own are {defect.found}"
    return f"call {defect.call}: the record's digest {str(defect.expected)[:12]} is not that of its ids"


def _detail(defect: Defect) -> str:
    return f" ({defect.detail})" if defect.detail else ""


_MESSAGES: dict[str, Callable[[Defect], str]] = {
    "torn_tail": lambda d: "the last line is cut: the writer died in an append, that call is lost",
    "missing_newline": lambda d: "the last line is a whole record without its line break",
    "damaged_line": lambda d: f"not exactly one JSON object{_detail(d)}",
    "nul_bytes": lambda d: f"{_plural(d.count, 'zero byte')} where a record was expected",
    "schema_too_new": lambda d: f"record version {d.found}, the newest one understood is {d.expected}",
    "invalid_record": lambda d: f"{f'call {d.call}: ' if d.call else ''}no valid record: {d.detail}",
    "digest_mismatch": _digest_mismatch,
    "conflicting_records": lambda d: f"call {d.call} has {d.count} copies that differ in their {d.detail}",
    "duplicate_record": lambda d: f"{_plural(d.count, 'repeated line')} of {_named(d.calls)}, counted once",
    "rollout_id_mismatch": lambda d: f"call {d.call} names rollout {d.found}, its file is of {d.expected}",
    "foreign_model": lambda d: f"not of the policy model: {_named(d.calls)}",
    "bad_token_id": lambda d: f"call {d.call}: {d.found} at position {d.position} of its {d.detail} is no token id",
    "empty_prompt": lambda d: f"call {d.call} names a parent and has no prompt ids",
    "logprob_length_mismatch": lambda d: (
        f"call {d.call}: {d.logprobs} log probabilities for {_plural(d.tokens, 'generated token')}"
    ),
    "logprob_missing": lambda d: f"call {d.call}: no log probability at position {d.position} of its generation",
    "logprob_not_number": _value,
    "logprob_not_finite": _value,
    "logprob_positive": _value,
    "logprob_sentinel": _value,
    "logprob_all_zero": lambda d: f"call {d.call}: all {d.tokens} log probabilities are 0.0",
    "prefix_mismatch": _prefix_mismatch,
    "parent_missing": lambda d: f"call {d.call} names parent {d.parent}: {d.detail or 'there is no such record'}",
    "parent_unresolved": lambda d: f"the parent of call {d.call} was not known when it was made{_detail(d)}",
    "parent_cycle": lambda d: f"call {d.call} and its parent {d.parent}: the links run in a circle",
    "ambiguous_parent": lambda d: f"call {d.call} extends {_named(d.calls)} equally well",
    "identical_parents": lambda d: f"call {d.call} extends {_named(d.calls)}, which are identical: the first is taken",
    "link_missing": lambda d: f"call {d.call} carries no link to what came before it",
    "delta_unresolvable": lambda d: f"call {d.call} is a delta on parent {d.parent} {d.detail}",
    "prefix_supply_unproven": lambda d: (
        f"call {d.call} asked the engine to start from its parent's tokens, its prompt ids do not prove it"
    ),
    "multiple_roots": lambda d: f"{len(d.calls or ())} first calls and nothing that names the right chain: {d.detail}",
    "multiple_ends": lambda d: f"{len(d.calls or ())} last calls and nothing that names the right one: {d.detail}",
    "ambiguous_retry": lambda d: f"calls {_named(d.calls)} answer one prompt and nothing extends or names one of them",
    "terminal_not_captured": lambda d: (
        f"the scored call {d.call} has no usable record{_detail(d)}"
        if d.call
        else f"the scored call was not captured: {d.detail}"
    ),
    "terminal_ambiguous": lambda d: f"the scored response may be that of {_named(d.calls)}",
    "witness_disagreement": lambda d: f"the scored call is named differently: {d.detail}",
    "terminal_chain_broken": lambda d: f"the chain of the scored call {d.call} holds a fault",
    "terminal_unconfirmed": lambda d: "no record explains the scored response, but no call is missing",
    "capture_incomplete": _capture_incomplete,
    "empty_capture": lambda d: "no record at all",
    "no_generated_tokens": lambda d: f"none of {_plural(d.count, 'call')} generated anything that can be trained",
    "empty_generation": lambda d: f"generated nothing: {_named(d.calls)}",
    "state_unreadable": lambda d: f"the lifecycle file cannot be read{_detail(d)}",
    "retired": lambda d: "the payload was dropped after hand-off, only the tombstone is left",
    "call_without_tokens": lambda d: f"call {d.call} was answered and has no token record",
    "token_count_mismatch": lambda d: (
        f"call {d.call}: the server counted {_plural(d.usage, 'generated token')}, the record has {d.ids}"
    ),
    "stream_truncated": lambda d: f"the stream of call {d.call} has no proper end",
    "http_error": lambda d: f"call {d.call} was not answered ({d.found}); not missed",
    "new_root": lambda d: f"call {d.call} begins a row of its own: {d.detail}",
    "excluded": lambda d: f"call {d.call} carries no loss: {d.detail}",
    "no_predecessor": lambda d: f"the first token of call {d.call} has no predecessor and is context",
    "length_stopped": lambda d: f"stopped at the length limit: {_named(d.calls)}",
    "mixed_weight_versions": lambda d: f"sampled from several weight versions: {d.detail}",
    "abandoned_retry": lambda d: f"asked again and not kept: {_named(d.calls)}",
    "after_terminal": lambda d: f"later than the scored call: {_named(d.calls)}",
    "off_path": lambda d: f"on another chain than the delivered one: {_named(d.calls)}",
}
