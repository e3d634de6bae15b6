"""Sums over the calls of a rollout, and over rollouts (capture-files.md 7.4, contracts.md 5.2)."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ng_capture.outputs.steps.reading import ReadCall
from ng_capture.records.usage import Usage, total_usage


class CallMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """NeMo Gym's sums of what is known, null where nothing is."""

    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    cached_tokens: int | None
    latency_total_ms: float | None
    num_calls: int


class StepTotals(CallMetrics, frozen=True, kw_only=True):
    """The same and what else the calls tell.

    `failed_calls` were not answered; `error_categories` counts whatever the server or the capture complains of.
    `num_turns` are distinct turns, null where no call has one.
    """

    cache_creation_tokens: int | None
    calls_with_partial_usage: int
    num_turns: int | None
    num_tool_calls: int
    failed_calls: int
    error_categories: dict[str, int]


def metrics_of(calls: Sequence[ReadCall]) -> CallMetrics:
    """The metrics of distinct calls."""
    told = msgspec.structs.asdict(_usage(calls))
    del told["cache_creation_tokens"]
    return CallMetrics(**told, latency_total_ms=_latency(calls), num_calls=len(calls))


def totals_of(calls: Sequence[ReadCall], turns: Iterable[int | None]) -> StepTotals:
    """All totals of distinct calls and their turns."""
    known = {turn for turn in turns if turn is not None}
    categories = Counter(read.call.error_category for read in calls if read.call.error_category is not None)
    return StepTotals(
        **msgspec.structs.asdict(metrics_of(calls)),
        cache_creation_tokens=_usage(calls).cache_creation_tokens,
        calls_with_partial_usage=sum(read.raw.answered and read.raw.usage.partial for read in calls),
        num_turns=len(known) or None,
        num_tool_calls=sum(len(read.call.tool_calls) for read in calls),
        failed_calls=sum(not read.raw.answered for read in calls),
        error_categories=dict(sorted(categories.items())),
    )


def _usage(calls: Iterable[ReadCall]) -> Usage:
    return total_usage(read.raw.usage for read in calls)


def _latency(calls: Iterable[ReadCall]) -> float | None:
    known = [read.raw.latency_ms for read in calls if read.raw.latency_ms is not None]
    # exact, whatever the order
    return math.fsum(known) if known else None
