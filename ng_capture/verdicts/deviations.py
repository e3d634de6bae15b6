"""Where the verdict differs from NeMo Gym 0.7.0's, and why: the table of named deviations (design.md "Judging")."""

from collections.abc import Sequence

from ng_capture.chains.analysis import Analysis
from ng_capture.records.defects import Defect
from ng_capture.records.snapshot import Snapshot
from ng_capture.verdicts.evidence import EVIDENCE_REASONS
from ng_capture.verdicts.policies import errors
from ng_capture.verdicts.reasons import in_order
from ng_capture.verdicts.reference import reference_cannot_read

DEVIATIONS = {
    "own_digest": "every record's own ids are held against its digest and length; the reference checks only parents",
    "conflicting_duplicate": "one call id with two contents masks what is delivered through it, whatever field differs",
    "terminal_evidence": "evidence about the scored call that does not fit masks; item ids speak where others are mute",
    "unfinished_capture": "whatever may mean a lost call or an unreadable line masks the rollout",
    "untrainable_values": "impossible values and the records of other rollouts or models are never trained",
    "raw_call_contradiction": "raw calls without tokens, other usage counts and truncated streams count",
    "parent_never_guessed": "a named parent that is absent is never replaced by the longest fitting prefix",
    "empty_parent_joined": "a call whose parent generated nothing joins through it by verified links",
    "settled_first_retry": "a first call that was asked again and whose survivor is known is no second root",
    "harmless_bytes": "byte order marks, CRLF, blank lines and lone surrogates in text do not mask",
    "off_path_fault": "no error of a call off the scored call's path masks, not even one that the reference refuses",
}
"""Name -> why."""

_OF_A_CALL = {
    "conflicting_records": "conflicting_duplicate",
    "delta_unresolvable": "parent_never_guessed",
    "digest_mismatch": "own_digest",
    "prefix_mismatch": "parent_never_guessed",
    "parent_missing": "parent_never_guessed",
    "parent_cycle": "parent_never_guessed",
    "ambiguous_parent": "parent_never_guessed",
    "multiple_roots": "parent_never_guessed",
    "multiple_ends": "parent_never_guessed",
    "ambiguous_choices": "parent_never_guessed",
    "ambiguous_retry": "parent_never_guessed",
    "beam_search": "raw_call_contradiction",
    "duplicate_key": "raw_call_contradiction",
    "generation_aborted": "raw_call_contradiction",
    "multiple_token_items": "raw_call_contradiction",
    "source_mismatch": "raw_call_contradiction",
    "call_without_tokens": "raw_call_contradiction",
    "response_missing": "raw_call_contradiction",
    "no_generated_tokens": "untrainable_values",
    "stream_truncated": "raw_call_contradiction",
    "token_count_mismatch": "raw_call_contradiction",
}


def masked_by(whole: Sequence[Defect], faults: Sequence[Defect]) -> str:
    """The deviation that masks what the reference delivers: whole rollout, then evidence, then first on the path."""
    if whole:
        first_reason, *_ = in_order(frozenset(defect.reason for defect in whole))
        return _OF_A_CALL.get(first_reason, "unfinished_capture")
    if any(fault.reason in EVIDENCE_REASONS for fault in faults):
        return "terminal_evidence"
    first = next(fault for fault in faults if fault.reason != "terminal_chain_broken")
    return _OF_A_CALL.get(first.reason, "untrainable_values")


def delivered_by(snapshot: Snapshot, analysis: Analysis, path: Sequence[str]) -> str:
    """The deviation that delivers what the reference masks."""
    if reference_cannot_read(snapshot, analysis):
        faulty = any(errors(analysis.errors_of(call)) for call in analysis.calls)
        return "off_path_fault" if faulty else "harmless_bytes"
    if any(analysis.links[call].through for call in path):
        return "empty_parent_joined"
    if analysis.attribution.method == "item_ids":
        return "terminal_evidence"
    if any(call.foreign for call in analysis.calls.values()):
        return "untrainable_values"
    if not analysis.settled.quarantined.isdisjoint(analysis.forest.roots):
        return "settled_first_retry"
    return "parent_never_guessed"
