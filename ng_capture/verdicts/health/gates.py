"""Is a run still acceptable? Limits on metrics, and checks that no limit switches off (reasons.md, Completeness)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

import msgspec

from ng_capture.verdicts.health.metrics import HealthMetrics
from ng_capture.verdicts.health.names import as_object, number_of
from ng_capture.verdicts.health.tally import Example

GYM_MIN_SAMPLES = 50
"""Below so many judged rollouts NeMo Gym does not look at the mask fraction (capture-files.md 6.5)."""

_COUNTED_BY = {
    "mask_fraction": "masked",
    "quarantined_fraction": "quarantined_calls",
    "delivered_fraction": "undelivered",
    "delivered_fraction_mean": "undelivered",
    "trained_fraction": "masked",
    "trainable": "masked",
    "single_call_fraction": "single_call_rollouts",
    "tool_single_call_fraction": "tool_single_calls",
    "generated_tokens_lost": "masked",
    "with_calls": "without_capture",
}


class Bound(StrEnum):
    """What a limit limits."""

    MIN = "min"
    MAX = "max"
    MAX_DROP = "max_drop"


class Gate(msgspec.Struct, frozen=True):
    """A limit on a metric; not judged below `min_samples` rollouts with a verdict."""

    metric: str
    bound: Bound
    limit: float
    min_samples: int = 0


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a gate or check; `baseline` is the value of the earlier run. Unknown values are null, and fail."""

    name: str
    status: Literal["passed", "failed", "not_judged"]
    message: str
    bound: Bound | None = None
    value: float | None = None
    limit: float | None = None
    baseline: float | None = None
    rollouts: tuple[str, ...] = ()


def judge_gates(
    gates: Iterable[Gate],
    metrics: HealthMetrics,
    examples: Mapping[str, Sequence[Example]],
    baseline: Mapping[str, Any] | None,
) -> list[CheckResult]:
    """The result of every gate, in order."""
    told = as_object(metrics)
    samples = (metrics.trainable or 0) + (metrics.masked or 0)
    return [_judged(gate, told, samples, baseline or {}, examples) for gate in gates]


def check_run(metrics: HealthMetrics, examples: Mapping[str, Sequence[Example]]) -> list[CheckResult]:
    """The checks over a whole run: they hold whatever limits are given."""
    return list(_checks(metrics, examples))


def _judged(
    gate: Gate,
    told: Mapping[str, Any],
    samples: int,
    baseline: Mapping[str, Any],
    examples: Mapping[str, Sequence[Example]],
) -> CheckResult:
    value = number_of(told, gate.metric)
    before = number_of(baseline, gate.metric) if gate.bound is Bound.MAX_DROP else None
    status: Literal["passed", "failed", "not_judged"] = "passed" if _holds(gate, value, before) else "failed"
    message = _message(gate, told, value, before)
    if samples < gate.min_samples:
        status, message = "not_judged", f"not judged: {samples} rollouts with a verdict, at least {gate.min_samples}"
    failed = status == "failed"
    return CheckResult(
        name=gate.metric,
        status=status,
        message=message,
        bound=gate.bound,
        value=value,
        limit=gate.limit,
        baseline=before,
        rollouts=_ids(examples.get(_COUNTED_BY.get(gate.metric, gate.metric), ())) if failed else (),
    )


def _holds(gate: Gate, value: float | None, before: float | None) -> bool:
    """True if the limit is kept; what is not known keeps no limit."""
    if value is None or (gate.bound is Bound.MAX_DROP and before is None):
        return False
    if gate.bound is Bound.MAX_DROP:
        assert before is not None
        return _drop(before, value) <= gate.limit
    # as Gym compares: the limit itself is still good
    return value <= gate.limit if gate.bound is Bound.MAX else value >= gate.limit


def _drop(before: float, value: float) -> float:
    """The difference as decimals have it: 0.8 - 0.7 is 0.1."""
    return round(before - value, 12)


def _message(gate: Gate, told: Mapping[str, Any], value: float | None, before: float | None) -> str:
    shown, limit = (spelled(number, other) for number, other in ((value, gate.limit), (gate.limit, value)))
    if gate.bound is Bound.MAX_DROP:
        drop = None if value is None or before is None else _drop(before, value)
        shown_drop = spelled(drop, gate.limit)
        return f"{shown}  was {spelled(before, value)}, dropped by {shown_drop}, at most {limit}"
    words = "at most" if gate.bound is Bound.MAX else "at least"
    if gate.metric != "mask_fraction" or value is None:
        return f"{shown}  {words} {limit}"
    return f"{shown}  {words} {limit}  ({told['masked']} of {told['masked'] + told['trainable']})"


def spelled(number: float | None, beside: float | None = None) -> str:
    """A number as it is shown, with as many digits as tell it apart from another beside it."""
    if number is None:
        return "unknown"
    if isinstance(number, int) or (number.is_integer() and isinstance(beside, int)):
        return f"{int(number):,}"
    short = f"{number:,.3f}"
    return repr(number) if beside is not None and number != beside and short == f"{beside:,.3f}" else short


def _checks(metrics: HealthMetrics, examples: Mapping[str, Sequence[Example]]) -> Iterator[CheckResult]:
    here = metrics.rollouts - metrics.retired - metrics.unread
    nothing = not metrics.with_capture
    # what was handed off is no longer here to be judged, what cannot be read has its own exit code
    if here or not metrics.rollouts:
        yield CheckResult(
            name="no_calls_captured",
            status="failed" if nothing else "passed",
            message=f"{here - metrics.with_calls} of {here} rollouts have no captured call",
            rollouts=_ids(examples.get("without_capture", ())) if nothing else (),
        )
    if here and not nothing and metrics.trainable is not None:
        yield CheckResult(
            name="no_trainable_rollouts",
            status="passed" if metrics.trainable else "failed",
            message=f"{metrics.trainable} of {here} rollouts are trainable",
            rollouts=() if metrics.trainable else _ids(examples.get("masked", ())),
        )
    for name, number, ids, words in (
        ("missing_captures", metrics.missing_rollouts, metrics.missing_captures, "have no capture"),
        ("orphan_captures", metrics.orphan_rollouts, metrics.orphan_captures, "were captured and not asked for"),
    ):
        if number is not None:
            yield CheckResult(
                name=name,
                status="failed" if number else "passed",
                message=f"{number} rollouts {words} ({metrics.expected_rollouts} were asked for)",
                rollouts=ids or (),
            )


def _ids(examples: Iterable[Example]) -> tuple[str, ...]:
    return tuple(example.rollout_id for example in examples)
