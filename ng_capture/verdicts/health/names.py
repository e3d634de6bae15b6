"""Metrics by name, as gates and baselines ask for them: `masked`, `reasons.torn_tail`, `latency_ms.p95`."""

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import msgspec

from ng_capture.verdicts.health.distribution import Percentiles
from ng_capture.verdicts.health.metrics import HealthMetrics, TerminalCounts
from ng_capture.verdicts.reasons import REASONS

_NO_NUMBER = frozenset({"sampling"})
_NEVER_OF_A_ROLLOUT = frozenset({"no_calls_captured", "missing_captures", "orphan_captures", "no_trainable_rollouts"})
_JUDGED = [
    reason
    for reason in REASONS.values()
    if not reason.section.startswith("gc") and reason.name not in _NEVER_OF_A_ROLLOUT
]
# Gym's own strings (reasons.md); names of models are the only ones that nobody can list
_GYM = """
parent_link_failures: parent_unresolved missing_resolution parent_digest_mismatch parent_call_id_missing
parent_link_failures: parent_call_id_missing_recovered duplicate_call_id_conflict delta_chain_unreconstructable
error_categories: timeout rate_limit auth not_found client_error upstream_error cancelled connection exception
error_categories: incomplete capture_parse_error context_length_exceeded stream_truncated
terminal_attribution: method.explicit method.declared method.response_id method.content_cumulative
terminal_attribution: method.content_output method.item_ids method.none
terminal_attribution: chain.delivered chain.broken chain.not_captured chain.error chain.none
"""


def _members() -> dict[str, set[str]]:
    members = {
        "reasons": {each.name for each in _JUDGED if each.severity == "error"},
        "findings": {each.name for each in _JUDGED if each.severity != "info"},
        "lost_by_reason": {each.name for each in _JUDGED},
    }
    for line in _GYM.strip().splitlines():
        metric, _, names = line.partition(": ")
        members.setdefault(metric, set()).update(names.split())
    return members


_MEMBERS = _members()


def is_number(name: str) -> bool:
    """True for a name that stands for one number of the metrics, whatever their values are."""
    metric, dot, member = name.partition(".")
    hint = get_type_hints(HealthMetrics).get(metric)
    if hint is None or metric in _NO_NUMBER or (dot and not member):
        return False
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if Percentiles in kinds:
        return member in Percentiles.__struct_fields__
    if metric in _MEMBERS and member:
        return member in _MEMBERS[metric]
    if TerminalCounts in kinds:
        return False
    return not member or any(getattr(kind, "__origin__", None) is dict for kind in kinds)


def number_of(metrics: Mapping[str, Any], name: str) -> float | None:
    """The number of that name, None where it is unknown or none; a list counts, an object of counts sums up.

    `metrics` is the object of a health document. What an object of counts does not have did not occur: 0.
    """
    if not is_number(name):
        return None
    metric, _, member = name.partition(".")
    value = metrics.get(metric)
    if metric in ("reasons", "lost_by_reason") and metrics.get("unexplained"):
        # some rollout is masked for a reason that nothing tells: it may be this one
        return None
    if metric == "terminal_attribution" and value is not None:
        what, _, member = member.partition(".")
        value = value.get(what)
    if isinstance(value, dict):
        value = value.get(member, 0) if member else sum(value.values())
    if isinstance(value, list | tuple):
        return len(value)
    number: float | None = value
    return number


def as_object(metrics: HealthMetrics) -> dict[str, Any]:
    """The metrics as they stand in a document."""
    told: dict[str, Any] = msgspec.to_builtins(metrics)
    return told
