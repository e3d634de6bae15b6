"""How the numbers of a health document are put into words, the same in every format."""

from collections.abc import Iterator
from typing import NamedTuple

from ng_capture.outputs.health.document import Breakdown, HealthDocument, Part
from ng_capture.verdicts.health.distribution import Percentiles
from ng_capture.verdicts.health.metrics import HealthMetrics
from ng_capture.verdicts.health.tally import UNSET
from ng_capture.verdicts.reasons import REASONS


class MaskedBy(NamedTuple):
    """A reason that masks: how many rollouts, the first of them, what to do."""

    reason: str
    rollouts: int
    example: str
    what_to_do: str


class Fact(NamedTuple):
    """A line of numbers under a name."""

    name: str
    value: str


def why_masked(document: HealthDocument) -> list[MaskedBy]:
    """The reasons by number of rollouts, the most frequent first."""
    found = []
    for reason, rollouts in (document.metrics.reasons or {}).items():
        shown = document.examples.get(f"reasons.{reason}", ())
        known = REASONS.get(reason)
        what_to_do = known.what_to_do if known is not None else ""
        found.append(MaskedBy(reason, rollouts, shown[0].rollout_id if shown else "", what_to_do))
    if document.metrics.unexplained:
        shown = document.examples.get("unexplained", ())
        found.append(
            MaskedBy("not told", document.metrics.unexplained, shown[0].rollout_id, "judge the captures themselves")
        )
    return found


def facts(metrics: HealthMetrics) -> Iterator[Fact]:
    """What else is known, in a few lines; what no source tells is left out."""
    yield from _if_any(
        "calls of a rollout",
        ("", _spread(metrics.calls_per_rollout)),
        ("one call only", _fraction(metrics.single_call_fraction)),
        ("although offered tools", _fraction(metrics.tool_single_call_fraction)),
    )
    yield from _if_any(
        "tokens of a call",
        ("prompt", _spread(metrics.prompt_lengths)),
        ("generation", _spread(metrics.generation_lengths)),
    )
    yield from _if_any(
        "chains",
        ("", _count(metrics.chains)),
        ("roots", _count(metrics.roots)),
        ("quarantined", _some(metrics.quarantined_calls)),
        ("empty generations", _some(metrics.empty_generation_calls)),
        ("unresolved parents", _some(metrics.unresolved_parent_calls)),
    )
    terminal = metrics.terminal_attribution
    if terminal is not None:
        yield Fact("scored call", "by " + _listed(terminal.method) + "; chain " + _listed(terminal.chain))
    yield from _if_any(
        "raw calls",
        ("", _count(metrics.raw_calls)),
        ("tokens in", _count(metrics.tokens_in)),
        ("cached", _count(metrics.cached_tokens)),
        ("out", _count(metrics.tokens_out)),
        ("reasoning", _count(metrics.tokens_reasoning)),
        ("without full usage", _some(metrics.calls_with_partial_usage)),
        ("damaged lines", _some(metrics.damaged_lines)),
        ("lines without a call id", _some(metrics.unidentified_lines)),
        ("repeated lines", _some(metrics.repeated_lines)),
    )
    yield from _if_any(
        "latency in ms", ("", _spread(metrics.latency_ms)), ("first token", _spread(metrics.latency_ttft_ms))
    )
    if metrics.error_categories:
        yield Fact("failed calls", _listed(metrics.error_categories))
    if metrics.models:
        yield Fact("models", _listed(metrics.models))
    for model, asked in (metrics.sampling or {}).items():
        told = [f"{name} {_listed(values)}" for name, values in asked.items() if set(values) != {UNSET}]
        yield Fact("sampling", f"{model}: {'; '.join(told) or 'left open by every request'}")


def worst_first(breakdown: Breakdown) -> list[Part]:
    """The parts with the highest share of masked rollouts first."""
    return sorted(breakdown.parts, key=lambda part: -(part.metrics.mask_fraction or 0))


def percent(part: int, whole: int) -> str:
    """`92.0 %`, or `-` of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _if_any(name: str, *told: tuple[str, str | None]) -> Iterator[Fact]:
    known = [f"{word} {value}".strip() for word, value in told if value is not None]
    if known:
        yield Fact(name, ", ".join(known))


def _spread(value: Percentiles | None) -> str | None:
    return None if value is None else f"p50 {value.p50:,} p95 {value.p95:,} max {value.max:,}"


def _fraction(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _count(value: int | None) -> str | None:
    return None if value is None else f"{value:,}"


def _some(value: int | None) -> str | None:
    return f"{value:,}" if value else None


def _listed(counts: dict[str, int]) -> str:
    shown = [f"{name} {number:,}" for name, number in list(counts.items())[:6]]
    return ", ".join([*shown, *([f"and {len(counts) - 6} more"] if len(counts) > 6 else [])])
