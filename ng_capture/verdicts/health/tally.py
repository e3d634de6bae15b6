"""Adds up the health of rollouts as they go by; holds counts and a few examples, never the rollouts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ng_capture.natural_order import NaturalKey, natural_key
from ng_capture.records.usage import UNKNOWN_USAGE, total_usage
from ng_capture.verdicts.accounting import Accounting
from ng_capture.verdicts.findings import Finding
from ng_capture.verdicts.health.distribution import Distribution
from ng_capture.verdicts.health.measures import Measures, RawMeasures, SamplingCount
from ng_capture.verdicts.health.metrics import METRICS, SUMS_OF_GYM, HealthMetrics, TerminalCounts
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.verdicts.health.seeds import SharedSeeds
from ng_capture.verdicts.metrics import Metrics

_EXAMPLES = 5
_VALUES = 50
UNSET = "unset"
OTHER = "other"


class Example(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rollout that shows something, and where to look."""

    rollout_id: str
    directory: str | None = None
    file: str | None = None
    line: int | None = None
    message: str | None = None


class Expected(msgspec.Struct, frozen=True):
    """What was asked for against what came; `missing_ids` and `orphan_ids` are None where only a number was given."""

    rollouts: int
    missing: int
    orphans: int
    missing_ids: tuple[str, ...] | None = None
    orphan_ids: tuple[str, ...] | None = None


class Tally:
    """The sums over some rollouts; what no source tells stays unknown.

    `judged` is False where no tokens are wanted, so that nothing has a verdict. In whatever order rollouts are added,
    the outcome is the same.
    """

    def __init__(self, *, judged: bool = True) -> None:
        self._examples: dict[str, list[tuple[NaturalKey, Example]]] = {}
        self._verdicts = {"trainable": 0, "masked": 0} if judged else {}
        counted = dict.fromkeys(("rollouts", "with_calls", "with_capture", "retired", "unread"), 0)
        self._sums: Counter[str] = Counter(counted | self._verdicts)
        self._counts: dict[str, Counter[str]] = {"reasons": Counter()} if judged else {}
        self._distributions: dict[str, Distribution] = {}
        self._usage = UNKNOWN_USAGE
        self._sampling: dict[str, dict[str, Counter[str]]] = {}
        self._seeds = SharedSeeds()

    @property
    def examples(self) -> dict[str, tuple[Example, ...]]:
        """The first rollouts that count for a metric, by its name; for a reason, by `reasons.<name>`."""
        return {name: tuple(example for _, example in shown) for name, shown in sorted(self._examples.items())}

    def add(self, rollout: RolloutHealth) -> None:
        """Count one rollout; of a retired one there is nothing more to count."""
        self._sum("rollouts", 1)
        if rollout.retired:
            self._sum("retired", 1)
            return
        example = Example(rollout.rollout_id)
        self._add_verdict(rollout, example)
        if rollout.findings is not None:
            self._add_findings(rollout.findings, rollout)
        if rollout.metrics is not None:
            self._add_gym(rollout.metrics, example)
        if rollout.accounting is not None:
            self._add_accounting(rollout.accounting)
        if rollout.measures is not None:
            self._add_measures(rollout.measures, example)
        self._sum("with_calls", rollout.with_calls)
        self._sum("with_capture", rollout.captured)
        if not rollout.captured:
            self._show("without_capture", example)
        if rollout.calls is not None:
            self._spread("calls_per_rollout", [rollout.calls])
            self._sum("single_call_rollouts", rollout.calls == 1, example)
            self._sum("counted_rollouts", rollout.calls > 0)

    def add_missing(self, number: int) -> None:
        """Count rollouts of which only the number is known."""
        self._sum("rollouts", number)
        if self._verdicts and number:
            self._sum("masked", number)
            self._count("reasons", {"empty_capture": number})
            self._count("findings", {"empty_capture": number})
        self._distributions.setdefault("calls_per_rollout", Distribution()).add_many(0, number)

    def add_unread(self, rollout_id: str) -> None:
        """Count a rollout whose files the machine could not read."""
        self._sums.update({"rollouts": 1, "unread": 1})
        self._show("unread", Example(rollout_id))

    def metrics(self, expected: Expected | None = None) -> HealthMetrics:
        """All metrics of what was added."""
        sums, counts = self._sums, self._counts
        told: dict[str, Any] = dict.fromkeys(METRICS) | {name: sums[name] for name in METRICS if name in sums}
        told |= {name: _by_number(counts[name]) for name in METRICS if name in counts}
        told |= {name: spread.percentiles() for name, spread in self._distributions.items()}
        told |= msgspec.structs.asdict(self._usage)
        told |= self._fractions()
        if expected is not None:
            told |= {
                "expected_rollouts": expected.rollouts,
                "missing_rollouts": expected.missing,
                "orphan_rollouts": expected.orphans,
                "missing_captures": expected.missing_ids,
                "orphan_captures": expected.orphan_ids,
            }
        if "method" in counts:
            told["terminal_attribution"] = TerminalCounts(_by_number(counts["method"]), _by_number(counts["chain"]))
        if "latency_total_us" in sums:
            told["latency_total_ms"] = sums["latency_total_us"] / 1000
        told["shared_seed_rollouts"] = self._seeds.rollouts()
        if self._sampling:
            told["sampling"] = {
                model: {name: _by_number(values) for name, values in sorted(asked.items())}
                for model, asked in sorted(self._sampling.items())
            }
        return HealthMetrics(**told)

    def _add_verdict(self, rollout: RolloutHealth, example: Example) -> None:
        if rollout.verdict is None:
            return
        masked = rollout.verdict == "masked"
        self._sum("trainable", not masked)
        self._sum("masked", masked, example)
        self._count("reasons", dict.fromkeys(rollout.reasons or (), 1) if masked else {})
        self._sum("unexplained", masked and not rollout.reasons, example)
        for reason in rollout.reasons or () if masked else ():
            self._show(f"reasons.{reason}", _example(rollout, reason))
        if rollout.measures is not None and rollout.watched:
            self._sum("running", rollout.activity == "running", example)
            self._sum("abandoned", rollout.activity == "abandoned", example)

    def _add_findings(self, findings: Iterable[Finding], rollout: RolloutHealth) -> None:
        reasons = dict.fromkeys((finding.reason for finding in findings if finding.severity != "info"), 1)
        self._count("findings", reasons)
        for reason in reasons:
            self._show(f"findings.{reason}", _example(rollout, reason))

    def _add_gym(self, metrics: Metrics, example: Example) -> None:
        for name in SUMS_OF_GYM:
            # a rollout without a chain has none of them: it adds nothing
            self._sum(name, getattr(metrics, name) or 0, example)
        self._count("parent_link_failures", metrics.parent_link_failures or {})
        for failure in metrics.parent_link_failures or ():
            self._show(f"parent_link_failures.{failure}", example)
        self._sum("capture_incomplete", metrics.capture_incomplete, example)
        terminal = metrics.terminal_attribution
        if terminal is not None:
            self._count("method", {terminal.method: 1})
            self._count("chain", {terminal.chain or "none": 1})
        fraction = metrics.delivered_fraction
        if metrics.generated_tokens_captured and fraction is not None and 0 <= fraction <= 1:
            # whole numbers: their sum does not depend on the order (Gym rounds the fraction to 4 digits)
            self._sum("delivered_parts", round(fraction * 10_000))
            self._sum("delivered_from", 1)
            self._sum("undelivered", fraction < 1, example)

    def _add_accounting(self, accounting: Accounting) -> None:
        self._sum("generated_tokens_sampled", accounting.captured)
        self._sum("generated_tokens_trained", accounting.trained)
        self._sum("generated_tokens_context", accounting.context)
        self._sum("generated_tokens_lost", sum(accounting.lost.values()))
        self._count("lost_by_reason", accounting.lost)

    def _add_measures(self, measures: Measures, example: Example) -> None:
        self._sum("calls", measures.calls)
        self._count("models", measures.models)
        self._spread("prompt_lengths", measures.prompt_lengths)
        self._spread("generation_lengths", measures.generation_lengths)
        self._sum("zero_logprob_calls", measures.zero_logprob_calls, example)
        self._sum("repeated_lines", measures.repeated_lines, example)
        if measures.tools is not None:
            self._sum("tool_rollouts", measures.tools)
            self._sum("tool_single_calls", measures.tools and measures.calls == 1, example)
        if measures.raw is not None:
            self._add_raw(measures.raw, example)

    def _add_raw(self, raw: RawMeasures, example: Example) -> None:
        self._sum("raw_calls", raw.calls)
        self._sum("length_stopped_calls", raw.length_stopped_calls, example)
        self._sum("repeated_lines", raw.repeated_lines, example)
        self._sum("damaged_lines", raw.damaged_lines, example)
        self._sum("unidentified_lines", raw.unidentified_lines, example)
        self._sum("calls_with_partial_usage", raw.calls_with_partial_usage, example)
        self._count("error_categories", raw.error_categories)
        for category in raw.error_categories:
            self._show(f"error_categories.{category}", example)
        self._usage = total_usage([self._usage, raw.usage])
        if raw.latencies:
            self._sum("latency_total_us", sum(round(value * 1000) for value in raw.latencies))
        self._spread("latency_ms", map(round, raw.latencies))
        self._spread("latency_ttft_ms", map(round, raw.ttfts))
        for asked in raw.sampling:
            self._add_sampling(asked)
        self._seeds.add(asked.value for asked in raw.sampling if asked.parameter == "seed" and asked.value is not None)

    def _add_sampling(self, asked: SamplingCount) -> None:
        values = self._sampling.setdefault(asked.model, {}).setdefault(asked.parameter, Counter())
        _keep_first(values, UNSET if asked.value is None else asked.value, asked.calls)

    def _fractions(self) -> dict[str, float | None]:
        sums = self._sums
        return {
            "mask_fraction": _share(sums["masked"], sums["masked"] + sums["trainable"]),
            "quarantined_fraction": _share(sums["quarantined_calls"], sums["n_calls"]),
            "delivered_fraction": _share(sums["generated_tokens_delivered"], sums["generated_tokens_captured"]),
            "delivered_fraction_mean": _share(sums["delivered_parts"], sums["delivered_from"] * 10_000),
            "trained_fraction": _share(sums["generated_tokens_trained"], sums["generated_tokens_sampled"]),
            "single_call_fraction": _share(sums["single_call_rollouts"], sums["counted_rollouts"]),
            "tool_single_call_fraction": _share(sums["tool_single_calls"], sums["tool_rollouts"]),
        }

    def _sum(self, name: str, value: int, example: Example | None = None) -> None:
        # a name that stands in the sums is known, if only as 0
        self._sums[name] += int(value)
        if value and example is not None:
            self._show(name, example)

    def _count(self, name: str, counts: Mapping[str, int]) -> None:
        self._counts.setdefault(name, Counter()).update(counts)

    def _spread(self, name: str, values: Iterable[int]) -> None:
        self._distributions.setdefault(name, Distribution()).add(values)

    def _show(self, name: str, example: Example) -> None:
        shown = self._examples.setdefault(name, [])
        key = natural_key(example.rollout_id)
        if any(other == key for other, _ in shown):
            return
        if len(shown) == _EXAMPLES and key >= shown[-1][0]:
            return
        shown.append((key, example))
        shown.sort(key=lambda pair: pair[0])
        del shown[_EXAMPLES:]


def _keep_first(values: Counter[str], value: str, number: int) -> None:
    """Count a value; of too many different ones the last go to `other`, so that no order matters."""
    values[value] += number
    given = values.keys() - {UNSET, OTHER}
    if len(given) > _VALUES:
        # a seed of its own for every call is no list that anyone reads
        values[OTHER] += values.pop(max(given))


def _example(rollout: RolloutHealth, reason: str) -> Example:
    first = next((finding for finding in rollout.findings or () if finding.reason == reason), None)
    if first is None:
        return Example(rollout.rollout_id)
    return Example(rollout.rollout_id, rollout.directory, first.file, first.line, first.message)


def _by_number(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
