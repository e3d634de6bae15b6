"""Metrics by name, as gates and baselines ask for them: `masked`, `reasons.torn_tail`, `latency_ms.p95`."""

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import msgspec

from ng_capture.verdicts.health.distribution import Percentiles
from ng_capture.verdicts.health.metrics import HealthMetrics, TerminalCounts
from ng_capture.verdicts.reasons import REASONS

_OF_REASONS = frozenset({"reasons", "findings", "lost_by_reason"})
_NO_NUMBER = frozenset({"sampling"})


def is_number(name: str) -> bool:
    """True for a name that stands for one number of the metrics, whatever their values are."""
    metric, _, member = name.partition(".")
    hint = get_type_hints(HealthMetrics).get(metric)
    if hint is None or metric in _NO_NUMBER:
        return False
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if Percentiles in kinds:
        return member in Percentiles.__struct_fields__
    if TerminalCounts in kinds:
        what, _, key = member.partition(".")
        return what in TerminalCounts.__struct_fields__ and bool(key)
    if any(getattr(kind, "__origin__", None) is dict for kind in kinds):
        return not member or metric not in _OF_REASONS or member in REASONS
    return not member


def number_of(metrics: Mapping[str, Any], name: str) -> float | None:
    """The number of that name, None where it is unknown; a list counts, an object of counts sums up.

    `metrics` is the object of a health document. What an object of counts does not have did not occur: 0.
    """
    metric, _, member = name.partition(".")
    value = metrics.get(metric)
    if metric == "terminal_attribution" and value is not None:
        what, _, member = member.partition(".")
        value = value.get(what)
    if isinstance(value, dict):
        value = value.get(member, 0) if member else sum(value.values())
    if isinstance(value, list | tuple):
        return len(value)
    return float(value) if isinstance(value, float) else value


def as_object(metrics: HealthMetrics) -> dict[str, Any]:
    """The metrics as they stand in a document."""
    told: dict[str, Any] = msgspec.to_builtins(metrics)
    return told
