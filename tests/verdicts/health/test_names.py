"""Names that gates and baselines may take, and the numbers behind them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.verdicts.health.distribution import Percentiles
from ng_capture.verdicts.health.metrics import METRICS, HealthMetrics, TerminalCounts
from ng_capture.verdicts.health.names import as_object, is_number, number_of
from ng_capture.verdicts.health.tally import Tally
from ng_capture.verdicts.reasons import REASONS
from tests.support.rollout_health import RAW_ONLY, Run, metrics_of, of_runs, rollout, runs, tally_of

TOLD = metrics_of(
    rollouts=7,
    mask_fraction=0.5,
    trained_fraction=1.0,
    latency_total_ms=2.0,
    missing_captures=("a", "b"),
    orphan_captures=(),
    reasons={"torn_tail": 3, "prefix_mismatch": 2},
    findings={"logprob_all_zero": 4, "torn_tail": 3},
    lost_by_reason={"off_path": 9},
    parent_link_failures={},
    error_categories={"auth": 2},
    models={"gpt-4.1": 4, "judge": 1},
    latency_ms=Percentiles(5, 9, 11),
    terminal_attribution=TerminalCounts({"declared": 2, "none": 1}, {"delivered": 2, "none": 1}),
    sampling={"m": {"seed": {"1": 2}}},
)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("rollouts", 7),
        ("mask_fraction", 0.5),
        ("trained_fraction", 1.0),
        ("latency_total_ms", 2.0),
        ("missing_captures", 2),
        ("orphan_captures", 0),
        ("reasons", 5),
        ("reasons.torn_tail", 3),
        ("reasons.nul_bytes", 0),
        ("models", 5),
        ("models.gpt-4.1", 4),
        ("models.other", 0),
        ("findings.logprob_all_zero", 4),
        ("lost_by_reason", 9),
        ("lost_by_reason.off_path", 9),
        ("parent_link_failures.missing_resolution", 0),
        ("error_categories.auth", 2),
        ("latency_ms.p50", 5),
        ("latency_ms.p95", 9),
        ("latency_ms.max", 11),
        ("terminal_attribution.method.none", 1),
        ("terminal_attribution.method.item_ids", 0),
        ("terminal_attribution.chain.delivered", 2),
    ],
)
def test_a_name_stands_for_one_number(name: str, number: float) -> None:
    assert is_number(name)
    found = number_of(as_object(TOLD), name)
    assert (found, type(found)) == (number, type(number))


@pytest.mark.parametrize(
    "name",
    [
        "masks",
        "",
        ".",
        "masked.by",
        "masked.",
        "mask_fraction.p50",
        "missing_captures.a",
        "latency_ms",
        "latency_ms.",
        "latency_ms.p99",
        "latency_ms.p50.p50",
        "reasons.",
        "reasons.torn",
        "reasons.torn_tail.more",
        "reasons.off_path",
        "reasons.no_calls_captured",
        "reasons.missing_captures",
        "reasons.no_trainable_rollouts",
        "reasons.not_removable",
        "findings.symbolic_link",
        "findings.nonsense",
        "findings.off_path",
        "lost_by_reason.nonsense",
        "lost_by_reason.orphan_captures",
        "parent_link_failures.prefix_mismatch",
        "error_categories.500",
        "terminal_attribution",
        "terminal_attribution.method",
        "terminal_attribution.method.",
        "terminal_attribution.method.guess",
        "terminal_attribution.none",
        "terminal_attribution.call.x",
        "sampling",
        "sampling.m",
        "sampling.m.seed.1",
        "__struct_fields__",
    ],
)
def test_a_name_that_stands_for_no_number_is_none(name: str) -> None:
    assert not is_number(name)


def members(name: str) -> list[str]:
    """Names of one metric that stand for a number, whatever it holds."""
    inner = [*Percentiles.__struct_fields__, "x", "auth", "missing_resolution", "method.none", "chain.none"]
    return [each for each in (name, *(f"{name}.{member}" for member in (*inner, *REASONS))) if is_number(each)]


NAMES = [name for metric in METRICS for name in members(metric)]


def test_every_metric_but_the_sampling_parameters_has_a_number() -> None:
    assert {name.partition(".")[0] for name in NAMES} == set(METRICS) - {"sampling"}


@pytest.mark.parametrize("metrics", [Tally().metrics(), Tally(judged=False).metrics()])
def test_what_is_unknown_has_no_number(metrics: HealthMetrics) -> None:
    told = as_object(metrics)
    known = {name for name in NAMES if number_of(told, name) is not None}
    assert {name.partition(".")[0] for name in known} == {
        name for name in METRICS if getattr(metrics, name) is not None
    }


@settings(of_runs, max_examples=15)
@given(run=runs() | runs(RAW_ONLY))
def test_every_name_gives_a_number_or_nothing_of_every_run(run: Run) -> None:
    told = as_object(tally_of(run).metrics())
    for name in NAMES:
        assert type(number_of(told, name)) in (int, float, type(None))


SOME_REASONS = [*REASONS][:6]


@settings(deadline=None)
@given(counts=st.dictionaries(st.sampled_from(SOME_REASONS), st.integers(1, 9)))
def test_the_number_of_an_object_is_the_sum_of_its_members(counts: dict[str, int]) -> None:
    told: dict[str, Any] = {"reasons": counts}
    assert number_of(told, "reasons") == sum(number_of(told, f"reasons.{name}") or 0 for name in SOME_REASONS)


def test_a_metric_that_an_older_document_does_not_have_is_unknown() -> None:
    assert number_of({}, "masked") is number_of({}, "terminal_attribution.method.none") is None


@pytest.mark.parametrize("name", ["reasons", "reasons.torn_tail", "lost_by_reason", "lost_by_reason.off_path"])
def test_where_some_rollout_is_masked_for_nobody_knows_what_no_reason_has_a_number(name: str) -> None:
    told = as_object(metrics_of(rollout("1-0", verdict="masked"), reasons={"torn_tail": 1}, lost_by_reason={}))
    assert number_of(told, name) is None
    assert number_of(told, "masked") == 1


@pytest.mark.parametrize("name", ["latency_ms", "reasons.nonsense", "terminal_attribution", "nonsense"])
def test_what_is_no_name_has_no_number(name: str) -> None:
    assert number_of(as_object(TOLD), name) is None


def test_what_requests_asked_for_is_no_number() -> None:
    assert number_of(as_object(TOLD), "sampling") is None
