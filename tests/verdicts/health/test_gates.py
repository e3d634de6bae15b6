"""Limits on metrics with NeMo Gym's meaning (capture-files.md 6.5), and the checks that no limit switches off."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.verdicts.health.gates import GYM_MIN_SAMPLES, Bound, CheckResult, Gate, check_run, judge_gates, spelled
from ng_capture.verdicts.health.metrics import METRICS, HealthMetrics
from ng_capture.verdicts.health.names import as_object, is_number, number_of
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.verdicts.health.tally import Expected, Tally
from ng_capture.verdicts.metrics import Metrics
from tests.support.rollout_health import RAW_ONLY, Run, measures, metrics_of, of_runs, rollout, runs, tally_of

EMPTY = rollout("9-0", reasons=("empty_capture",), measures=measures(calls=0))
NUMBERS = [name for name in METRICS if is_number(name)]


def run_of(trainable: int, masked: int = 0) -> Tally:
    """Rollouts with one call each: the trainable ones `1-0`, `2-0`, ..., the masked ones `m1-0`, `m2-0`, ..."""
    good = [rollout(f"{number + 1}-0", measures=measures()) for number in range(trainable)]
    bad = [rollout(f"m{number + 1}-0", reasons=("torn_tail",), measures=measures()) for number in range(masked)]
    return tally_of([*good, *bad])


def judged(gate: Gate, tally: Tally, baseline: dict[str, Any] | None = None) -> CheckResult:
    (result,) = judge_gates([gate], tally.metrics(), tally.examples, baseline)
    return result


# Limits


@pytest.mark.parametrize(
    ("bound", "limit", "status"),
    [
        (Bound.MAX, 1, "failed"),
        (Bound.MAX, 2, "passed"),
        (Bound.MAX, 3, "passed"),
        (Bound.MIN, 1, "passed"),
        (Bound.MIN, 2, "passed"),
        (Bound.MIN, 3, "failed"),
    ],
)
def test_the_limit_itself_is_still_good(bound: Bound, limit: float, status: str) -> None:
    result = judged(Gate("masked", bound, limit), run_of(3, 2), {"masked": 9})
    assert (result.name, result.status, result.bound, result.value, result.limit) == ("masked", status, bound, 2, limit)
    assert result.baseline is None


def test_a_mask_fraction_at_its_limit_is_still_good_as_in_gym() -> None:
    assert judged(Gate("mask_fraction", Bound.MAX, 0.05), run_of(95, 5)).status == "passed"
    assert judged(Gate("mask_fraction", Bound.MAX, 0.05), run_of(94, 6)).status == "failed"


@pytest.mark.parametrize(
    ("before", "limit", "status"),
    [(0.70, 0.1, "passed"), (0.71, 0.1, "failed"), (0.3, 0.1, "passed"), (0.6, 0, "passed"), (0.61, 0, "failed")],
)
def test_a_metric_may_drop_by_its_limit_below_the_earlier_run_and_rise_as_it_likes(
    before: float, limit: float, status: str
) -> None:
    result = judged(Gate("mask_fraction", Bound.MAX_DROP, limit), run_of(2, 3), {"mask_fraction": before})
    assert (result.status, result.baseline, result.value) == (status, before, 0.6)


@pytest.mark.parametrize(("before", "limit", "masked"), [(0.8, 0.1, 7), (0.9, 0.2, 7), (0.4, 0.3, 1)])
def test_a_drop_of_just_the_limit_is_still_good_whatever_binary_fractions_say(
    before: float, limit: float, masked: int
) -> None:
    gate = Gate("mask_fraction", Bound.MAX_DROP, limit)
    result = judged(gate, run_of(10 - masked, masked), {"mask_fraction": before})
    assert result.status == "passed"


@pytest.mark.parametrize("baseline", [None, {}, {"masked": None}])
def test_a_drop_from_what_is_unknown_fails(baseline: dict[str, Any] | None) -> None:
    result = judged(Gate("masked", Bound.MAX_DROP, 9), run_of(2, 3), baseline)
    assert (result.status, result.baseline) == ("failed", None)
    assert result.message == "3  was unknown, dropped by unknown, at most 9"


@pytest.mark.parametrize("bound", Bound)
def test_what_is_unknown_keeps_no_limit(bound: Bound) -> None:
    result = judged(Gate("tokens_in", bound, 0), run_of(3), {"tokens_in": 5})
    assert (result.status, result.value) == ("failed", None)
    assert result.message.startswith("unknown  ")


@settings(of_runs, max_examples=25)
@given(run=runs() | runs(RAW_ONLY), data=st.data())
def test_every_known_number_keeps_a_limit_that_is_itself_and_breaks_a_closer_one(run: Run, data: st.DataObject) -> None:
    tally = tally_of(run)
    told = as_object(tally.metrics())
    name = data.draw(st.sampled_from([name for name in NUMBERS if number_of(told, name) is not None]))
    value = number_of(told, name)
    assert value is not None
    kept = [Gate(name, Bound.MAX, value), Gate(name, Bound.MIN, value), Gate(name, Bound.MAX_DROP, 0)]
    broken = [Gate(name, Bound.MAX, value - 1), Gate(name, Bound.MIN, value + 1), Gate(name, Bound.MAX_DROP, -1)]
    results = judge_gates([*kept, *broken], tally.metrics(), tally.examples, told)
    assert [result.status for result in results] == ["passed"] * 3 + ["failed"] * 3
    assert all(result.message for result in results)


# Samples


@pytest.mark.parametrize(("trainable", "masked", "status"), [(40, 9, "not_judged"), (40, 10, "failed")])
def test_below_so_many_rollouts_with_a_verdict_nothing_is_judged(trainable: int, masked: int, status: str) -> None:
    result = judged(Gate("mask_fraction", Bound.MAX, 0.0, GYM_MIN_SAMPLES), run_of(trainable, masked))
    assert result.status == status


def test_what_was_not_judged_says_how_much_is_missing_and_names_nobody() -> None:
    result = judged(Gate("masked", Bound.MAX, 0, 9), run_of(2, 3))
    assert (result.message, result.rollouts) == ("not judged: 5 rollouts with a verdict, at least 9", ())


def test_rollouts_that_were_handed_off_or_not_read_are_no_samples() -> None:
    tally = run_of(1, 1)
    tally.add(rollout("r", reasons=("retired",)))
    tally.add_unread("u")
    assert judged(Gate("masked", Bound.MAX, 0, 3), tally).status == "not_judged"
    assert judged(Gate("masked", Bound.MAX, 0, 2), tally).status == "failed"


@pytest.mark.parametrize("bound", Bound)
@pytest.mark.parametrize("metric", METRICS)
def test_where_no_tokens_are_wanted_every_limit_is_judged(metric: str, bound: Bound) -> None:
    tally = Tally(judged=False)
    tally.add(rollout(verdict=None, measures=measures()))
    result = judged(Gate(metric, bound, 0), tally)
    assert result.status in ("passed", "failed")
    assert judged(Gate(metric, bound, 0, 1), tally).status == "not_judged"


# Who shows it


@pytest.mark.parametrize(
    "metric", ["masked", "mask_fraction", "trained_fraction", "generated_tokens_lost", "reasons.torn_tail"]
)
def test_a_failed_limit_names_rollouts_that_broke_it(metric: str) -> None:
    assert judged(Gate(metric, Bound.MAX, -1), run_of(2, 3)).rollouts == ("m1-0", "m2-0", "m3-0")


def test_a_kept_limit_names_nobody() -> None:
    assert judged(Gate("masked", Bound.MAX, 3), run_of(2, 3)).rollouts == ()


def test_a_failed_limit_on_what_has_no_example_names_nobody() -> None:
    assert judged(Gate("rollouts", Bound.MAX, 1), run_of(2)).rollouts == ()


HALF = Metrics(n_calls=2, quarantined_calls=1, generated_tokens_captured=4, delivered_fraction=0.5)
ALL = Metrics(n_calls=2, quarantined_calls=0, generated_tokens_captured=4, delivered_fraction=1.0)


@pytest.mark.parametrize(
    ("metric", "shows", "others"),
    [
        ("quarantined_fraction", {"metrics": HALF}, {"metrics": ALL}),
        ("delivered_fraction", {"metrics": HALF}, {"metrics": ALL}),
        ("delivered_fraction_mean", {"metrics": HALF}, {"metrics": ALL}),
        ("single_call_fraction", {"measures": measures(calls=1)}, {"measures": measures(calls=2)}),
        ("tool_single_call_fraction", {"measures": measures(tools=True)}, {"measures": measures(tools=False)}),
    ],
)
def test_a_failed_limit_on_a_fraction_names_those_that_it_counts(
    metric: str, shows: dict[str, Any], others: dict[str, Any]
) -> None:
    tally = tally_of([rollout("1-0", **others), rollout("2-0", **shows)])
    assert judged(Gate(metric, Bound.MAX, -1), tally).rollouts == ("2-0",)


@pytest.mark.parametrize(
    ("metric", "tally", "names"),
    [
        ("trainable", run_of(1, 1), ("m1-0",)),
        ("with_calls", tally_of([EMPTY]), ("9-0",)),
    ],
)
def test_a_limit_from_below_names_those_that_are_not_counted(metric: str, tally: Tally, names: tuple[str, ...]) -> None:
    assert judged(Gate(metric, Bound.MIN, 9), tally).rollouts == names


# Words


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (Gate("masked", Bound.MAX, 1), "3  at most 1"),
        (Gate("masked", Bound.MIN, 4.5), "3  at least 4.500"),
        (Gate("mask_fraction", Bound.MAX, 0.5), "0.600  at most 0.500  (3 of 5)"),
        (Gate("mask_fraction", Bound.MAX, 0.6), "0.600  at most 0.600  (3 of 5)"),
        (Gate("mask_fraction", Bound.MAX, 0.59999), "0.6  at most 0.59999  (3 of 5)"),
        (Gate("mask_fraction", Bound.MAX_DROP, 0.1), "0.600  was 0.800, dropped by 0.200, at most 0.100"),
        (Gate("tokens_in", Bound.MIN, 1000000.0), "unknown  at least 1,000,000.000"),
    ],
)
def test_a_result_says_value_and_limit(gate: Gate, message: str) -> None:
    assert judged(gate, run_of(2, 3), {"mask_fraction": 0.8}).message == message


def test_a_mask_fraction_over_nothing_is_unknown() -> None:
    assert judged(Gate("mask_fraction", Bound.MAX, 0.5), Tally()).message == "unknown  at most 0.500"


@pytest.mark.parametrize(
    ("number", "beside", "shown"),
    [
        (None, 1.0, "unknown"),
        (1234567, None, "1,234,567"),
        (1234567, 0.5, "1,234,567"),
        (3.0, 4, "3"),
        (3.0, None, "3.000"),
        (3.5, 4, "3.500"),
        (0.0512, 0.05, "0.051"),
        (0.05, 0.05, "0.050"),
        (0.0500001, 0.05, "0.0500001"),
        (0.05, 0.0500001, "0.05"),
        (1e9, 1, "1,000,000,000"),
    ],
)
def test_a_number_has_the_digits_that_tell_it_apart(number: float | None, beside: float | None, shown: str) -> None:
    assert spelled(number, beside) == shown


@given(number=st.floats(0, 1), limit=st.floats(0, 1))
def test_a_value_and_a_limit_that_differ_are_never_shown_alike(number: float, limit: float) -> None:
    assert (spelled(number, limit) == spelled(limit, number)) == (number == limit)


# Checks that no limit switches off


def failed(metrics: HealthMetrics, tally: Tally | None = None) -> dict[str, CheckResult]:
    results = check_run(metrics, tally.examples if tally is not None else {})
    return {result.name: result for result in results if result.status == "failed"}


def passed(metrics: HealthMetrics) -> set[str]:
    return {result.name for result in check_run(metrics, {}) if result.status == "passed"}


def test_an_empty_directory_is_never_healthy() -> None:
    assert failed(Tally().metrics()).keys() == {"no_calls_captured"}
    assert failed(Tally(judged=False).metrics()).keys() == {"no_calls_captured"}


def test_a_run_without_a_captured_call_names_its_rollouts() -> None:
    tally = tally_of([EMPTY])
    result = failed(tally.metrics(), tally)["no_calls_captured"]
    assert (result.message, result.rollouts) == ("1 of 1 rollouts have no captured call", ("9-0",))


def test_a_run_with_some_captured_call_says_how_many_have_none() -> None:
    results = check_run(metrics_of(EMPTY, rollout(measures=measures())), {"without_calls": ()})
    told = {result.name: result.message for result in results if result.status == "passed"}
    assert told["no_calls_captured"] == "1 of 2 rollouts have no captured call"


def test_a_run_without_a_trainable_rollout_names_the_masked_ones() -> None:
    tally = run_of(0, 2)
    result = failed(tally.metrics(), tally)["no_trainable_rollouts"]
    assert (result.message, result.rollouts) == ("0 of 2 rollouts are trainable", ("m1-0", "m2-0"))


def test_one_trainable_rollout_is_enough() -> None:
    assert passed(run_of(1, 9).metrics()) == {"no_calls_captured", "no_trainable_rollouts"}


def test_without_a_call_there_is_one_failure_and_not_two() -> None:
    assert failed(metrics_of(EMPTY)).keys() == {"no_calls_captured"}


def test_where_no_tokens_are_wanted_nothing_need_be_trainable() -> None:
    tally = tally_of([rollout(verdict=None, measures=measures())], judged=False)
    assert [result.name for result in check_run(tally.metrics(), {})] == ["no_calls_captured"]
    assert failed(tally.metrics()) == {}


@pytest.mark.parametrize("gone", [rollout(reasons=("retired",)), None])
def test_what_was_handed_off_or_could_not_be_read_is_no_failure(gone: RolloutHealth | None) -> None:
    tally = tally_of([gone] if gone is not None else [])
    if gone is None:
        tally.add_unread("u")
    assert check_run(tally.metrics(), tally.examples) == []


def test_what_was_handed_off_is_not_counted_among_those_that_are_here() -> None:
    tally = run_of(0, 1)
    tally.add(rollout("r", reasons=("retired",)))
    assert failed(tally.metrics())["no_trainable_rollouts"].message == "0 of 1 rollouts are trainable"


def test_what_was_asked_for_and_did_not_come_fails_by_name() -> None:
    metrics = run_of(1).metrics(Expected(3, 2, 1, ("7-0", "8-0"), ("1-0",)))
    found = failed(metrics)
    assert found.keys() == {"missing_captures", "orphan_captures"}
    missing, orphans = found["missing_captures"], found["orphan_captures"]
    assert (missing.message, missing.rollouts) == ("2 rollouts have no capture (3 were asked for)", ("7-0", "8-0"))
    assert orphans.message == "1 rollouts were captured and not asked for (3 were asked for)"
    assert orphans.rollouts == ("1-0",)


def test_what_was_asked_for_by_number_fails_without_names() -> None:
    found = failed(run_of(1).metrics(Expected(3, 2, 0)))
    assert {name: result.rollouts for name, result in found.items()} == {"missing_captures": ()}


def test_a_run_that_is_as_it_was_asked_for_passes() -> None:
    expected = {"missing_captures", "orphan_captures"}
    assert expected <= passed(run_of(1).metrics(Expected(1, 0, 0, (), ())))
    assert not expected & passed(run_of(1).metrics())
