"""The sums over many rollouts: in any order the same, held against a naive count, and nothing that no source tells."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ng_capture.natural_order import natural_key
from ng_capture.outputs.health.by import By
from ng_capture.outputs.health.gym_rows import health_of_row
from ng_capture.outputs.health.run import Question, check_health
from ng_capture.outputs.shapes import SHAPES
from ng_capture.outputs.verify import Unread
from ng_capture.records.defects import Defect
from ng_capture.records.rollout_row import decode_row
from ng_capture.records.usage import UNKNOWN_USAGE, Usage
from ng_capture.verdicts.findings import find
from ng_capture.verdicts.health.distribution import Percentiles
from ng_capture.verdicts.health.gates import Bound, Gate
from ng_capture.verdicts.health.measures import SamplingCount
from ng_capture.verdicts.health.metrics import METRICS, HealthMetrics
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.verdicts.health.tally import Example, Expected, Tally
from ng_capture.verdicts.metrics import Metrics, TerminalAttribution
from tests.support.capture import Capture
from tests.support.rollout_health import (
    RAW_ONLY,
    Run,
    health_of,
    health_of_saved_verdict,
    measures,
    metrics_of,
    of_runs,
    raw,
    rollout,
    runs,
    tally_of,
)
from tests.support.strategies import captures

some_runs = runs() | runs(RAW_ONLY)
with_sampling = [
    rollout(name, measures=measures(raw=raw(sampling=(SamplingCount(model, "seed", "1", 1),))))
    for name, model in (("1-0", "b"), ("2-0", "a"))
]


def outcome(tally: Tally) -> tuple[bytes, bytes]:
    """Everything that a tally tells, byte for byte."""
    return msgspec.json.encode(tally.metrics()), msgspec.json.encode(tally.examples)


# The order


@of_runs
@given(run=some_runs, data=st.data())
def test_the_order_of_the_rollouts_changes_nothing(run: Run, data: st.DataObject) -> None:
    assert outcome(tally_of(data.draw(st.permutations(run)))) == outcome(tally_of(run))


def test_the_order_of_the_models_is_not_that_of_the_rollouts() -> None:
    assert outcome(tally_of(with_sampling)) == outcome(tally_of(reversed(with_sampling)))


@settings(max_examples=30, deadline=None)
@given(seeds=st.lists(st.integers(0, 99), min_size=1, max_size=150), data=st.data())
def test_seeds_without_number_are_cut_to_the_same_ones_in_any_order(seeds: list[int], data: st.DataObject) -> None:
    def asked(values: Iterable[int]) -> bytes:
        counts = [(SamplingCount("m", "seed", str(seed), 1),) for seed in values]
        return outcome(tally_of(rollout(measures=measures(raw=raw(sampling=each))) for each in counts))[0]

    assert asked(data.draw(st.permutations(seeds))) == asked(seeds)


@of_runs
@given(run=some_runs)
def test_a_rollout_that_went_through_json_counts_the_same(run: Run) -> None:
    again = (msgspec.json.decode(msgspec.json.encode(each), type=RolloutHealth) for each in run)
    assert outcome(tally_of(again)) == outcome(tally_of(run))


@of_runs
@given(capture=captures("call whole end"))
def test_a_saved_verdict_counts_like_the_capture_it_was_made_of(capture: Capture) -> None:
    saved = health_of_saved_verdict(capture.files(), capture.row)
    # nobody looked whether it is still being written
    seen = msgspec.structs.replace(health_of(capture.files(), capture.row), activity=None, watched=False)
    assert metrics_of(saved) == metrics_of(seen)
    assert tally_of([saved]).examples.keys() == tally_of([seen]).examples.keys()


# Counts add up


@of_runs
@given(run=runs(), unread=st.integers(0, 3), missing=st.integers(0, 3))
def test_every_rollout_is_trainable_masked_handed_off_or_not_read(run: Run, unread: int, missing: int) -> None:
    tally = tally_of(run)
    for number in range(unread):
        tally.add_unread(f"u-{number}")
    tally.add_missing(missing)
    told = tally.metrics()
    assert told.trainable is not None and told.masked is not None
    assert told.rollouts == len(run) + unread + missing
    assert told.rollouts == told.trainable + told.masked + told.retired + told.unread
    assert told.unread == unread
    judged_ones = told.trainable + told.masked
    assert told.mask_fraction == (told.masked / judged_ones if judged_ones else None)
    assert told.with_calls <= told.with_capture <= told.rollouts - told.retired - told.unread
    assert max((told.reasons or {}).values(), default=0) <= told.masked
    assert (told.unexplained or 0) <= told.masked


@of_runs
@given(run=runs(RAW_ONLY))
def test_where_no_tokens_are_wanted_nothing_has_a_verdict(run: Run) -> None:
    told = tally_of(run, judged=False).metrics()
    assert (told.rollouts, told.retired, told.unread) == (len(run), 0, 0)
    assert {told.trainable, told.masked, told.mask_fraction, told.unexplained, told.running} == {None}
    assert told.reasons is None and told.generated_tokens_sampled is None


@of_runs
@given(run=some_runs)
def test_every_token_that_was_sampled_is_trained_context_or_lost(run: Run) -> None:
    told = tally_of(run).metrics()
    parts = (told.generated_tokens_trained, told.generated_tokens_context, told.generated_tokens_lost)
    if told.generated_tokens_sampled is None:
        assert parts == (None, None, None) and told.lost_by_reason is None
        return
    assert told.generated_tokens_sampled == sum(part or 0 for part in parts)
    assert told.generated_tokens_lost == sum((told.lost_by_reason or {}).values())


def sum_of(run: Run, value: Callable[[RolloutHealth], float | None]) -> float | None:
    """The sum over the rollouts that are still here and tell it, None where none does."""
    known = [told for each in run if not each.retired and (told := value(each)) is not None]
    return sum(known) if known else None


def counts_of(run: Run, names: Callable[[RolloutHealth], Iterable[str] | None]) -> dict[str, int] | None:
    told = [found for each in run if not each.retired and (found := names(each)) is not None]
    return dict(Counter(name for found in told for name in found)) if told else None


def gym(name: str) -> Callable[[RolloutHealth], int | None]:
    # a rollout without a chain has none: it adds nothing
    return lambda each: None if each.metrics is None else int(getattr(each.metrics, name) or 0)


def measure(name: str) -> Callable[[RolloutHealth], int | None]:
    return lambda each: None if each.measures is None else getattr(each.measures, name)


def of_raw(name: str) -> Callable[[RolloutHealth], Any]:
    return lambda each: None if each.measures is None or each.measures.raw is None else getattr(each.measures.raw, name)


def used(name: str) -> Callable[[RolloutHealth], int | None]:
    return lambda each: None if of_raw("usage")(each) is None else getattr(of_raw("usage")(each), name)


def spent(name: str) -> Callable[[RolloutHealth], int | None]:
    return lambda each: None if each.accounting is None else getattr(each.accounting, name)


SUMS: dict[str, Callable[[RolloutHealth], float | None]] = {
    "n_calls": gym("n_calls"),
    "chains": gym("chains"),
    "roots": gym("roots"),
    "quarantined_calls": gym("quarantined_calls"),
    "empty_generation_calls": gym("empty_generation_calls"),
    "unresolved_parent_calls": gym("unresolved_parent_calls"),
    "generated_tokens_captured": gym("generated_tokens_captured"),
    "generated_tokens_delivered": gym("generated_tokens_delivered"),
    "capture_incomplete": gym("capture_incomplete"),
    "generated_tokens_sampled": spent("captured"),
    "generated_tokens_trained": spent("trained"),
    "generated_tokens_context": spent("context"),
    "calls": measure("calls"),
    "zero_logprob_calls": measure("zero_logprob_calls"),
    "tool_rollouts": lambda each: None if each.measures is None else each.measures.tools,
    "raw_calls": of_raw("calls"),
    "damaged_lines": of_raw("damaged_lines"),
    "unidentified_lines": of_raw("unidentified_lines"),
    "length_stopped_calls": of_raw("length_stopped_calls"),
    "calls_with_partial_usage": of_raw("calls_with_partial_usage"),
    **{name: used(name) for name in UNKNOWN_USAGE.__struct_fields__},
}
COUNTS: dict[str, Callable[[RolloutHealth], Iterable[str] | None]] = {
    "reasons": lambda each: None if each.verdict is None else each.reasons or (),
    "findings": lambda each: None if each.findings is None else {finding.reason for finding in each.findings},
    "models": lambda each: None if each.measures is None else Counter(each.measures.models).elements(),
    "parent_link_failures": lambda each: (
        None if each.metrics is None else Counter(each.metrics.parent_link_failures or {}).elements()
    ),
    "lost_by_reason": lambda each: None if each.accounting is None else Counter(each.accounting.lost).elements(),
    "error_categories": lambda each: (
        None if of_raw("error_categories")(each) is None else Counter(of_raw("error_categories")(each)).elements()
    ),
}
VALUES: dict[str, Callable[[RolloutHealth], Iterable[int]]] = {
    "calls_per_rollout": lambda each: [each.calls or 0] if each.measures or each.metrics else [],
    "prompt_lengths": lambda each: each.measures.prompt_lengths if each.measures else (),
    "generation_lengths": lambda each: each.measures.generation_lengths if each.measures else (),
    "latency_ms": lambda each: map(round, of_raw("latencies")(each) or ()),
    "latency_ttft_ms": lambda each: map(round, of_raw("ttfts")(each) or ()),
}


@of_runs
@given(run=some_runs)
def test_every_sum_is_that_of_the_rollouts_which_tell_it(run: Run) -> None:
    told = tally_of(run).metrics()
    assert {name: getattr(told, name) for name in SUMS} == {name: sum_of(run, value) for name, value in SUMS.items()}
    repeated = sum_of(run, lambda each: measure("repeated_lines")(each) or 0) or 0
    again = sum_of(run, lambda each: of_raw("repeated_lines")(each) or 0) or 0
    assert (told.repeated_lines or 0) == repeated + again


@of_runs
@given(run=some_runs)
def test_every_count_is_that_of_the_rollouts_with_the_most_frequent_first(run: Run) -> None:
    told = tally_of(run).metrics()
    for name, names in COUNTS.items():
        found, expected = getattr(told, name), counts_of(run, names)
        # of what is judged the reasons are known, if only that there are none
        assert found == ({} if name == "reasons" and expected is None else expected)
        assert list(found or {}) == sorted(found or {}, key=lambda each: (-(found or {})[each], each))


@of_runs
@given(run=some_runs)
def test_every_percentile_is_the_nearest_rank_of_values_that_occurred(run: Run) -> None:
    told = tally_of(run).metrics()
    for name, values in VALUES.items():
        found = sorted(value for each in run if not each.retired for value in values(each))
        ranks = [found[math.ceil(len(found) * percent / 100) - 1] for percent in (50, 95, 100)] if found else None
        assert getattr(told, name) == (None if ranks is None else Percentiles(*ranks))


@of_runs
@given(run=some_runs)
def test_a_fraction_is_the_share_it_is_said_to_be(run: Run) -> None:
    told = tally_of(run).metrics()
    for name, part, whole in (
        ("quarantined_fraction", told.quarantined_calls, told.n_calls),
        ("delivered_fraction", told.generated_tokens_delivered, told.generated_tokens_captured),
        ("trained_fraction", told.generated_tokens_trained, told.generated_tokens_sampled),
        ("single_call_fraction", told.single_call_rollouts, told.with_calls),
    ):
        assert getattr(told, name) == ((part or 0) / whole if whole else None)
    here = [each.metrics for each in run if each.metrics is not None and not each.retired]
    own = [each.delivered_fraction or 0.0 for each in here if each.generated_tokens_captured]
    assert told.delivered_fraction_mean == (pytest.approx(sum(own) / len(own)) if own else None)


# What stands in a document


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is no JSON")


def check_document(rollouts: Iterable[RolloutHealth | Unread], question: Question) -> dict[str, Any]:
    """The health document of some rollouts: strict JSON of the published shape."""
    data = msgspec.json.encode(check_health(rollouts, question, lambda _: None))
    SHAPES["health-document"].model_validate_json(data, strict=True)
    told: dict[str, Any] = json.loads(data, parse_constant=refuse)
    return told


@of_runs
@given(run=some_runs, by=st.none() | st.sampled_from(By), raw_only=st.booleans())
@example(run=with_sampling, by=By.MODEL, raw_only=False)
def test_a_document_is_strict_json_of_the_published_shape(run: Run, by: By | None, raw_only: bool) -> None:
    gates = tuple(Gate("mask_fraction", bound, 0.0) for bound in Bound)
    ids = frozenset({"1-0", "other"})
    for expected in ({}, {"expected_ids": ids}, {"expected_number": 2}):
        question = Question(paths=(".",), gates=gates, by=by, raw_only=raw_only, **expected)
        told = check_document([*run, Unread("u-0", "not to be read")], question)
        assert told["metrics"].keys() == set(METRICS)


numbers = st.integers(-(2**70), 2**70) | st.sampled_from([0, 1, 0.0, -0.5, 1e308, -1e308, 5e-324])
nasty_rows = st.fixed_dictionaries(
    {"n_calls": numbers},
    optional={
        **dict.fromkeys(["chains", "roots", "generated_tokens_captured", "generated_tokens_delivered"], numbers),
        **dict.fromkeys(["delivered_fraction", "quarantined_fraction"], numbers | st.just("infinite")),
        "parent_link_failures": st.dictionaries(st.text(max_size=2), numbers, max_size=2),
    },
)


@of_runs
@given(told=nasty_rows)
@example(told={"n_calls": 1, "generated_tokens_captured": 1, "delivered_fraction": "infinite"})
def test_whatever_numbers_a_row_tells_the_document_is_strict_json(told: dict[str, Any]) -> None:
    text = json.dumps({"_ng_rollout_id": "r-1", "_ng_token_capture": told}).replace('"infinite"', "1e999")
    check_document([health_of_row("r-1", decode_row(text.encode()))], Question(paths=(".",)))


# Examples


@of_runs
@given(run=some_runs)
def test_examples_are_the_first_rollouts_in_natural_order_each_once(run: Run) -> None:
    for name, shown in tally_of(run).examples.items():
        ids = [each.rollout_id for each in shown]
        assert ids == sorted(set(ids), key=natural_key), name
        assert len(ids) <= 5
    ids = sorted((each.rollout_id for each in run if each.verdict == "masked" and not each.retired), key=natural_key)
    assert [each.rollout_id for each in tally_of(run).examples.get("masked", ())] == ids[:5]


def test_of_many_the_first_five_are_shown_whatever_came_first() -> None:
    names = [f"{number}-0" for number in range(30, 0, -1)]
    tally = tally_of(rollout(name, reasons=("torn_tail",)) for name in names)
    assert [each.rollout_id for each in tally.examples["masked"]] == ["1-0", "2-0", "3-0", "4-0", "5-0"]


def test_a_rollout_that_repeats_records_and_raw_calls_is_one_example() -> None:
    repeats = measures(repeated_lines=1, raw=raw(repeated_lines=2))
    tally = tally_of([rollout("1-0", measures=repeats), rollout("2-0", measures=repeats)])
    assert tally.examples["repeated_lines"] == (Example("1-0"), Example("2-0"))
    assert tally.metrics().repeated_lines == 6


def test_the_example_of_a_reason_says_where_to_look() -> None:
    first = find(Defect(reason="torn_tail", file="4-0.tokens.jsonl", line=7))
    again = find(Defect(reason="torn_tail", file="4-0.tokens.jsonl", line=9))
    masked = rollout("4-0", directory="runs", reasons=("torn_tail", "nul_bytes"), findings=(first, again))
    examples = tally_of([masked]).examples
    place = Example("4-0", "runs", "4-0.tokens.jsonl", 7, first.message)
    assert examples["reasons.torn_tail"] == examples["findings.torn_tail"] == (place,)
    assert examples["reasons.nul_bytes"] == (Example("4-0"),)


def shown(**told: Any) -> set[str]:
    return set(tally_of([rollout("1-0", **told)]).examples)


NO_CHAIN = TerminalAttribution("none", None, "", "")


@pytest.mark.parametrize(
    ("told", "names"),
    [
        ({"measures": measures(calls=2)}, set()),
        ({"measures": measures(calls=0), "verdict": None}, {"without_capture"}),
        ({"measures": measures(calls=1)}, {"single_call_rollouts"}),
        ({"measures": measures(calls=1, tools=True)}, {"single_call_rollouts", "tool_single_calls"}),
        ({"measures": measures(calls=1, tools=False)}, {"single_call_rollouts"}),
        ({"measures": measures(calls=2, tools=True)}, set()),
        ({"measures": measures(calls=2, zero_logprob_calls=1)}, {"zero_logprob_calls"}),
        ({"measures": measures(calls=2, raw=raw(length_stopped_calls=1))}, {"length_stopped_calls"}),
        ({"measures": measures(calls=2, raw=raw(damaged_lines=1))}, {"damaged_lines"}),
        ({"measures": measures(calls=2, raw=raw(unidentified_lines=1))}, {"unidentified_lines"}),
        ({"measures": measures(calls=2, raw=raw(calls_with_partial_usage=1))}, {"calls_with_partial_usage"}),
        ({"measures": measures(calls=2, raw=raw(error_categories={"auth": 1}))}, {"error_categories.auth"}),
        ({"metrics": Metrics(n_calls=2, terminal_attribution=NO_CHAIN)}, {"n_calls"}),
        ({"metrics": Metrics(n_calls=2, capture_incomplete=True)}, {"n_calls", "capture_incomplete"}),
        (
            {"metrics": Metrics(n_calls=2, parent_link_failures={"missing_resolution": 1})},
            {"n_calls", "parent_link_failures.missing_resolution"},
        ),
        (
            {"metrics": Metrics(n_calls=2, generated_tokens_captured=4, delivered_fraction=0.75)},
            {"n_calls", "generated_tokens_captured", "undelivered"},
        ),
        (
            {"metrics": Metrics(n_calls=2, generated_tokens_captured=4, delivered_fraction=1.0)},
            {"n_calls", "generated_tokens_captured"},
        ),
    ],
)
def test_a_rollout_is_shown_for_what_counts_in_it(told: dict[str, Any], names: set[str]) -> None:
    assert shown(**told) - {"trainable"} == names


# Unknown is not 0


def known(metrics: HealthMetrics) -> set[str]:
    always = {"rollouts", "with_calls", "with_capture", "trainable", "masked", "retired", "unread", "reasons"}
    return {name for name in METRICS if getattr(metrics, name) is not None} - always


def test_where_only_a_verdict_is_told_nothing_of_its_calls_is() -> None:
    metrics = metrics_of(rollout())
    assert known(metrics) == {"mask_fraction", "unexplained"}
    assert [check.name for check in check_health([rollout()], Question(paths=()), lambda _: None).failed] == []


def test_a_metric_that_one_source_tells_is_known_and_the_others_add_nothing() -> None:
    metrics = metrics_of(rollout("1-0"), rollout("2-0", metrics=Metrics(n_calls=3)))
    assert (metrics.n_calls, metrics.chains, metrics.calls, metrics.raw_calls) == (3, 0, None, None)


def test_a_rollout_without_a_raw_call_file_leaves_raw_calls_unknown_and_an_empty_file_makes_them_0() -> None:
    assert metrics_of(rollout(measures=measures())).raw_calls is None
    metrics = metrics_of(rollout(measures=measures(raw=raw(calls=0))))
    assert (metrics.raw_calls, metrics.damaged_lines, metrics.error_categories) == (0, 0, {})
    assert (metrics.tokens_in, metrics.latency_total_ms, metrics.latency_ms, metrics.sampling) == (None,) * 4


def test_usage_adds_up_over_those_who_told_it() -> None:
    one = rollout("1-0", measures=measures(raw=raw(usage=Usage(tokens_in=5, cached_tokens=0))))
    other = rollout("2-0", measures=measures(raw=raw(usage=Usage(tokens_in=7))))
    metrics = metrics_of(one, other, rollout("3-0"))
    assert (metrics.tokens_in, metrics.cached_tokens, metrics.tokens_out) == (12, 0, None)


def test_latencies_add_up_to_the_microsecond_in_any_order() -> None:
    times = [0.1, 0.2, 0.3, 1e9, 0.001]
    for order in (times, times[::-1]):
        metrics = tally_of(rollout(measures=measures(raw=raw(latencies=(time,)))) for time in order).metrics()
        assert metrics.latency_total_ms == 1_000_000_000.601
        assert metrics.latency_ms == Percentiles(0, 1_000_000_000, 1_000_000_000)


@pytest.mark.parametrize(("reasons", "unexplained"), [(None, 1), ((), 1), (("torn_tail",), 0)])
def test_a_masked_rollout_without_a_reason_is_unexplained(reasons: tuple[str, ...] | None, unexplained: int) -> None:
    metrics = metrics_of(rollout(verdict="masked", reasons=reasons))
    assert (metrics.masked, metrics.unexplained) == (1, unexplained)


def test_reasons_of_a_rollout_that_is_not_masked_do_not_count() -> None:
    tally = tally_of([rollout(verdict="trainable", reasons=("torn_tail",))])
    metrics = tally.metrics()
    assert (metrics.trainable, metrics.reasons, metrics.unexplained) == (1, {}, 0)
    assert tally.examples == {}


def test_infos_are_no_findings_and_a_reason_counts_once_a_rollout() -> None:
    told = [find(Defect(reason=name)) for name in ("off_path", "torn_tail", "torn_tail", "logprob_all_zero")]
    metrics = metrics_of(rollout(findings=tuple(told)), rollout("2-0", findings=()))
    assert metrics.findings == {"logprob_all_zero": 1, "torn_tail": 1}


def test_a_rollout_that_was_handed_off_counts_as_nothing_else() -> None:
    told = measures(calls=3, raw=raw())
    metrics = metrics_of(rollout(reasons=("retired",), verdict="masked", measures=told, metrics=Metrics(n_calls=3)))
    assert (metrics.rollouts, metrics.retired, metrics.masked, metrics.with_calls) == (1, 1, 0, 0)
    assert known(metrics) == set()


@pytest.mark.parametrize(
    ("watched", "activity", "counted"),
    [(False, None, (None, None)), (True, None, (0, 0)), (True, "running", (1, 0)), (True, "abandoned", (0, 1))],
)
def test_who_is_still_writing_is_known_where_somebody_looked(
    watched: bool, activity: str | None, counted: tuple[int | None, int | None]
) -> None:
    tally = tally_of([rollout(reasons=("torn_tail",), measures=measures(), activity=activity, watched=watched)])
    metrics = tally.metrics()
    assert (metrics.running, metrics.abandoned) == counted
    assert ({"running", "abandoned"} & set(tally.examples)) == ({activity} if activity else set())


def test_the_scored_calls_are_counted_by_witness_and_by_chain() -> None:
    told = [
        TerminalAttribution("declared", "a", "", "delivered"),
        TerminalAttribution("declared", "b", "", "broken"),
        NO_CHAIN,
    ]
    rollouts = [
        rollout(f"{number}-0", metrics=Metrics(n_calls=1, terminal_attribution=each))
        for number, each in enumerate(told)
    ]
    terminal = metrics_of(*rollouts, rollout("9-0", metrics=Metrics(n_calls=0))).terminal_attribution
    assert terminal is not None
    assert terminal.method == {"declared": 2, "none": 1}
    assert terminal.chain == {"broken": 1, "delivered": 1, "none": 1}


def test_a_rollout_that_captured_nothing_has_no_delivered_fraction_of_its_own() -> None:
    full = Metrics(n_calls=1, generated_tokens_captured=2, generated_tokens_delivered=1, delivered_fraction=0.5)
    empty = Metrics(n_calls=1, generated_tokens_captured=0, generated_tokens_delivered=0, delivered_fraction=0.0)
    metrics = metrics_of(rollout("1-0", metrics=full), rollout("2-0", metrics=empty))
    assert (metrics.delivered_fraction, metrics.delivered_fraction_mean) == (0.5, 0.5)


# Sampling


def test_requests_add_up_by_model_parameter_and_value() -> None:
    one = (SamplingCount("m", "seed", "1", 2), SamplingCount("m", "seed", None, 1))
    other = (SamplingCount("m", "seed", "1", 3), SamplingCount("n", "top_p", "0.9", 1))
    rollouts = [rollout(f"{at}-0", measures=measures(raw=raw(sampling=each))) for at, each in enumerate((one, other))]
    assert metrics_of(*rollouts).sampling == {"m": {"seed": {"1": 5, "unset": 1}}, "n": {"top_p": {"0.9": 1}}}


def test_of_a_seed_for_every_call_fifty_are_shown_and_the_others_counted() -> None:
    seeds = [f"{number:03}" for number in range(200)]
    counts = tuple(SamplingCount("m", "seed", seed, 1) for seed in [*seeds, None, "199"])
    sampling = metrics_of(rollout(measures=measures(raw=raw(sampling=counts)))).sampling
    assert sampling is not None
    assert sampling["m"]["seed"] == dict.fromkeys(seeds[:50], 1) | {"other": 151, "unset": 1}


def seeded(*seeds_of_rollouts: tuple[str | None, ...]) -> Tally:
    return tally_of(
        rollout(f"{at}-0", measures=measures(raw=raw(sampling=tuple(SamplingCount("m", "seed", s, 1) for s in seeds))))
        for at, seeds in enumerate(seeds_of_rollouts)
    )


@pytest.mark.parametrize(
    ("seeds", "shared"),
    [
        ([("1",), ("2",)], 0),
        ([("1",), ("1",), ("2",)], 2),
        ([("1", "2"), ("2", "3")], 2),
        ([("1", "2"), ("1", "2")], 2),
        ([(None,), (None, "1")], 0),
        ([(None,)], None),
    ],
)
def test_rollouts_that_share_a_seed_are_counted_each_once(
    seeds: list[tuple[str | None, ...]], shared: int | None
) -> None:
    assert seeded(*seeds).metrics().shared_seed_rollouts == shared


@given(seeds=st.lists(st.sets(st.sampled_from(["1", "2", "3"])).map(tuple), max_size=5), data=st.data())
def test_never_more_rollouts_share_a_seed_than_there_are_and_in_any_order_as_many(
    seeds: list[tuple[str, ...]], data: st.DataObject
) -> None:
    shared = seeded(*seeds).metrics().shared_seed_rollouts
    assert (shared or 0) <= len(seeds)
    assert seeded(*data.draw(st.permutations(seeds))).metrics().shared_seed_rollouts == shared


# What was expected


def test_what_was_expected_stands_beside_what_came() -> None:
    metrics = tally_of([rollout()]).metrics(Expected(3, 2, 1, ("7-0", "8-0"), ("r-1",)))
    assert (metrics.expected_rollouts, metrics.missing_rollouts, metrics.orphan_rollouts) == (3, 2, 1)
    assert (metrics.missing_captures, metrics.orphan_captures) == (("7-0", "8-0"), ("r-1",))


@pytest.mark.parametrize(
    ("number", "is_judged", "told"),
    [(2, True, (2, 2, {"empty_capture": 2})), (2, False, (2, None, None)), (0, True, (0, 0, {}))],
)
def test_rollouts_of_which_only_the_number_is_known_are_empty_captures(
    number: int, is_judged: bool, told: tuple[int, int | None, dict[str, int] | None]
) -> None:
    tally = Tally(judged=is_judged)
    tally.add_missing(number)
    metrics = tally.metrics()
    assert (metrics.rollouts, metrics.masked, metrics.reasons) == told
    assert metrics.findings == (told[2] or None)
    assert metrics.calls_per_rollout == (Percentiles(0, 0, 0) if number else None)


def test_a_number_that_was_mistyped_takes_no_memory() -> None:
    tally = tally_of([rollout(measures=measures(calls=2))])
    tally.add_missing(2**62)
    assert tally.metrics().calls_per_rollout == Percentiles(0, 0, 2)


def test_a_rollout_that_could_not_be_read_is_shown_and_not_judged() -> None:
    tally = Tally()
    tally.add_unread("9-0")
    metrics = tally.metrics()
    assert (metrics.rollouts, metrics.unread, metrics.trainable, metrics.masked) == (1, 1, 0, 0)
    assert tally.examples == {"unread": (Example("9-0"),)}
