"""A defect as users see it: with its severity and one sentence that holds the numbers."""

from collections.abc import Sequence
from string import Formatter

import msgspec

from ng_capture.records.defects import Defect
from ng_capture.verdicts.reasons import REASONS, Severity, severity_of


class Finding(Defect, frozen=True, kw_only=True, omit_defaults=True):
    """One fault with its severity and message; the other fields are those of the defect."""

    severity: Severity
    message: str


def find(defect: Defect, *, aside: bool = False) -> Finding:
    """The finding of a defect; `aside` tells that it stands off the delivered chain and masks nothing."""
    message = _special(defect) or _told(defect) or _meaning(defect)
    if aside:
        message += " (off the delivered chain: masks nothing here)"
    return Finding(**msgspec.structs.asdict(defect), severity=severity_of(defect.reason), message=message)


def _told(defect: Defect) -> str | None:
    """The sentence with the numbers, where the defect has all that it takes."""
    template, words = _TEMPLATES.get(defect.reason), _words(defect)
    if template is None or any(words[name] is None for _, name, _, _ in Formatter().parse(template) if name):
        return None
    return template.format_map(words)


def escaped(text: str) -> str:
    """The text in ASCII, every other character as its number in four digits or more."""
    return "".join(letter if letter.isascii() else f"\\u{ord(letter):04x}" for letter in text)


def _words(defect: Defect) -> dict[str, object]:
    """The fields of a defect as a sentence takes them; `note` is the detail in brackets, where there is one."""
    words = msgspec.structs.asdict(defect)
    words["calls"] = _named(defect.calls or ())
    words["several"] = len(defect.calls or ())
    words["note"] = f" ({defect.detail})" if defect.detail else ""
    words["records"] = _counted(defect.count, "call")
    words["lines"] = _counted(defect.count, "line")
    words["generated"] = _counted(defect.tokens, "generated token")
    words["used"] = _counted(defect.usage, "generated token")
    return words


def _named(calls: Sequence[str]) -> str:
    """Some ids in words; all of them are in the finding's `calls`."""
    if len(calls) > _SHOWN:
        return f"{', '.join(calls[:_SHOWN])} and {len(calls) - _SHOWN} more"
    return " and ".join(filter(None, (", ".join(calls[:-1]), *calls[-1:])))


def _counted(count: int | None, one: str) -> str:
    return f"{count or 0:,} {one}{'' if count == 1 else 's'}"


def _special(defect: Defect) -> str | None:
    """Sentences whose form depends on what the defect has."""
    call = defect.call
    if defect.reason == "prefix_mismatch":
        new = "the new prompt ends there" if defect.found is None else f"new {defect.found}"
        place = f"token {defect.first_difference:,} of {defect.tokens:,}"
        return f"call {call} leaves its parent {defect.parent} at {place} (held {defect.expected}, {new})"
    if defect.reason == "capture_incomplete":
        if call is not None:
            return f"call {call} {defect.detail}"
        return f"marked incomplete: {_counted(defect.count, 'mark') + ' ' if defect.count else ''}{defect.detail}"
    if defect.reason == "terminal_not_captured":
        note = f" ({defect.detail})" if defect.detail else ""
        return f"the scored call {call} has no usable record{note}" if call else f"the scored call: {defect.detail}"
    if defect.reason == "bad_rollout_id" and isinstance(defect.found, str):
        # look-alike letters are told apart by their numbers alone
        shown = escaped(defect.found)
        return f"{shown} must not become a file name" + (f" ({defect.detail})" if defect.detail else "")
    if defect.reason == "digest_mismatch" and defect.detail == "length":
        return f"call {call}: the record says {defect.expected} ids, its own are {defect.found}"
    if defect.reason == "parent_missing":
        return f"call {call} names parent {defect.parent}: {defect.detail or 'there is no such record'}"
    return None


def _meaning(defect: Defect) -> str:
    """What the registry says, with whatever place the defect has."""
    subject = f"call {defect.call}: " if defect.call is not None else ""
    detail = f" ({defect.detail})" if defect.detail else ""
    return f"{subject}{REASONS[defect.reason].meaning}{detail}"


_SHOWN = 8

_TEMPLATES = {
    "torn_tail": "the last line is cut: the writer died in an append, that call is lost",
    "missing_newline": "the last line is a whole record without its line break",
    "damaged_line": "not exactly one JSON object{note}",
    "nul_bytes": "{count} zero bytes where a record was expected",
    "schema_too_new": "record version {found}, the newest one understood is {expected}",
    "case_collision": "{found} differs from {expected} in nothing but upper and lower case",
    "rollout_frozen": "{detail}",
    "invalid_record": "no valid record: {detail}",
    "digest_mismatch": "call {call}: the record's digest {expected:.12} is not that of its ids",
    "conflicting_records": "call {call} has {count} copies that differ in their {detail}",
    "duplicate_record": "{lines} repeated, counted once: {calls}",
    "rollout_id_mismatch": "call {call} names rollout {found}, its file is of {expected}",
    "foreign_model": "not of the policy model: {calls}",
    "bad_token_id": "call {call}: {found} at position {position} of its {detail} is no token id",
    "empty_prompt": "call {call} names a parent and has no prompt ids",
    "logprob_length_mismatch": "call {call}: {logprobs} log probabilities for {generated}",
    "logprob_missing": "call {call}: no log probability at position {position} of its generation",
    "logprob_not_number": "call {call}: {found} at position {position} is no log probability",
    "logprob_not_finite": "call {call}: log probability {found} at position {position}",
    "logprob_positive": "call {call}: log probability {found} at position {position} is above 1e-6",
    "logprob_sentinel": "call {call}: log probability {found} at position {position} was never sampled",
    "logprob_all_zero": "call {call}: all {tokens} log probabilities are 0.0",
    "parent_unresolved": "the parent of call {call} was not known when it was made{note}",
    "parent_cycle": "call {call} and its parent {parent}: the links run in a circle",
    "ambiguous_parent": "call {call} extends {calls} equally well",
    "identical_parents": "call {call} extends {calls}, which are identical: the first is taken",
    "link_missing": "call {call} carries no link to what came before it",
    "delta_unresolvable": "call {call} is a delta on parent {parent} {detail}",
    "prefix_supply_unproven": "call {call} asked the engine to start from its parent's tokens, its ids do not prove it",
    "multiple_roots": "{several} first calls and nothing that names the right chain: {detail}",
    "multiple_ends": "{several} last calls and nothing that names the right one: {detail}",
    "ambiguous_retry": "calls {calls} answer one prompt and nothing extends or names one of them",
    "ambiguous_choices": "call {call} has {choices} choices and nothing extends or names one of them",
    "terminal_ambiguous": "the scored response may be that of {calls}",
    "witness_disagreement": "the scored call is named differently: {detail}",
    "terminal_chain_broken": "the chain of the scored call {call} holds a fault",
    "terminal_unconfirmed": "no record explains the scored response, but no call is missing",
    "empty_capture": "no record at all",
    "no_generated_tokens": "{records} and nothing that can be trained was generated",
    "empty_generation": "generated nothing: {calls}",
    "state_unreadable": "the lifecycle file cannot be read{note}",
    "retired": "the payload was dropped after hand-off, only the tombstone is left",
    "call_without_tokens": "call {call} was answered and has no token record",
    "token_count_mismatch": "call {call}: the server counted {used}, the record has {ids}",
    "stream_truncated": "the stream of call {call} has no proper end",
    "http_error": "call {call} was not answered ({found}); not missed",
    "new_root": "call {call} begins a row of its own: {detail}",
    "excluded": "call {call} carries no loss: {detail}",
    "routed_experts_missing": "no routed experts, so none in the row: {calls}",
    "response_missing": "call {call} was answered, and what was captured of it is no answer",
    "no_predecessor": "the first token of call {call} has no predecessor and is context",
    "length_stopped": "stopped at the length limit: {calls}",
    "mixed_weight_versions": "sampled from several weight versions: {detail}",
    "abandoned_retry": "asked again and not kept: {calls}",
    "after_terminal": "later than the scored call: {calls}",
    "off_path": "on another chain than the delivered one: {calls}",
}
