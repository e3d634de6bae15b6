"""How numbers are put into words."""

from typing import Any

import pytest

from ng_capture.outputs.health.by import By
from ng_capture.outputs.health.document import HealthDocument
from ng_capture.outputs.health.run import Question, check_health
from ng_capture.outputs.health.words import Fact, MaskedBy, facts, percent, why_masked, worst_first
from ng_capture.records.usage import Usage
from ng_capture.verdicts.health.measures import SamplingCount
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.verdicts.metrics import Metrics, TerminalAttribution
from ng_capture.verdicts.reasons import REASONS
from tests.support.rollout_health import measures, metrics_of, raw, rollout


def document_of(*rollouts: RolloutHealth, **asked: Any) -> HealthDocument:
    return check_health(rollouts, Question(paths=("runs",), **asked), lambda _: None)


def told(*rollouts: RolloutHealth, **changed: Any) -> dict[str, str]:
    return dict(facts(metrics_of(*rollouts, **changed)))


# Why rollouts are masked


def test_the_most_frequent_reason_comes_first_with_its_first_rollout_and_what_to_do() -> None:
    masked = [rollout(f"{number}-0", reasons=("torn_tail",)) for number in (10, 2)]
    masked.append(rollout("3-0", reasons=("torn_tail", "prefix_mismatch")))
    assert why_masked(document_of(*masked)) == [
        MaskedBy("torn_tail", 3, "2-0", REASONS["torn_tail"].what_to_do),
        MaskedBy("prefix_mismatch", 1, "3-0", REASONS["prefix_mismatch"].what_to_do),
    ]


def test_where_nobody_says_why_the_captures_are_to_be_judged() -> None:
    found = why_masked(document_of(rollout("1-0", reasons=("torn_tail",)), rollout("2-0", verdict="masked")))
    assert found[1] == MaskedBy("not told", 1, "2-0", "judge the captures themselves")


def test_a_reason_of_a_later_version_has_no_advice() -> None:
    assert why_masked(document_of(rollout("1-0", reasons=("not_yet",)))) == [MaskedBy("not_yet", 1, "1-0", "")]


def test_rollouts_that_did_not_come_even_by_name_have_no_example() -> None:
    (reason,) = why_masked(document_of(expected_number=2))
    assert (reason.reason, reason.rollouts, reason.example) == ("empty_capture", 2, "")


def test_where_nothing_is_masked_there_is_no_reason() -> None:
    assert why_masked(document_of(rollout())) == why_masked(document_of(raw_only=True)) == []


# Facts


def test_what_no_source_tells_is_left_out() -> None:
    assert list(facts(document_of().metrics)) == []
    assert told(rollout()) == {}


def test_lengths_of_rollouts_and_calls_are_told() -> None:
    one = measures(calls=1, prompt_lengths=(1200,), generation_lengths=(7,), tools=True)
    three = measures(calls=3, prompt_lengths=(5, 5, 5), generation_lengths=(), tools=False)
    found = told(rollout("1-0", measures=one), rollout("2-0", measures=three))
    assert found["calls of a rollout"] == "p50 1 p95 3 max 3, one call only 0.500, although offered tools 1.000"
    assert found["tokens of a call"] == "prompt p50 5 p95 1,200 max 1,200, generation p50 7 p95 7 max 7"


def test_counts_of_what_is_wrong_are_told_where_there_is_any() -> None:
    well = Metrics(n_calls=2, chains=1, roots=1, quarantined_calls=0)
    assert told(rollout(metrics=well))["chains"] == "1, roots 1"
    bad = Metrics(n_calls=2, chains=2, roots=1, quarantined_calls=3, empty_generation_calls=4)
    found = told(rollout(metrics=bad), unresolved_parent_calls=5)["chains"]
    assert found == "2, roots 1, quarantined 3, empty generations 4, unresolved parents 5"


def test_how_the_scored_call_was_found_is_told() -> None:
    terminal = TerminalAttribution("declared", "a", "", "delivered")
    found = told(rollout("1-0", metrics=Metrics(n_calls=1, terminal_attribution=terminal)))
    assert found["scored call"] == "by declared 1; chain delivered 1"


def test_what_raw_calls_used_is_told_and_what_is_unknown_is_not() -> None:
    used = raw(calls=2, usage=Usage(tokens_in=1500, tokens_out=0))
    assert told(rollout(measures=measures(raw=used)))["raw calls"] == "2, tokens in 1,500, out 0"
    usage = Usage(tokens_in=5, tokens_out=4, tokens_reasoning=3, cached_tokens=0)
    faulty = raw(usage=usage, calls_with_partial_usage=1, damaged_lines=2, unidentified_lines=4, repeated_lines=3)
    assert told(rollout(measures=measures(raw=faulty)))["raw calls"] == (
        "1, tokens in 5, cached 0, out 4, reasoning 3, "
        "without full usage 1, damaged lines 2, lines without a call id 4, repeated lines 3"
    )


def test_latencies_and_failures_are_told() -> None:
    found = told(rollout(measures=measures(raw=raw(latencies=(1200.4, 3.0), error_categories={"auth": 2}))))
    assert found["latency in ms"] == "p50 3 p95 1,200 max 1,200"
    assert found["failed calls"] == "auth 2"
    found = told(rollout(measures=measures(raw=raw(ttfts=(9.0,)))))
    assert found["latency in ms"] == "first token p50 9 p95 9 max 9" and "failed calls" not in found


def test_of_many_models_six_are_told_and_the_others_counted() -> None:
    models = {f"m{number}": 1000 - number for number in range(8)}
    assert told(rollout(measures=measures(models=models)))["models"] == (
        "m0 1,000, m1 999, m2 998, m3 997, m4 996, m5 995, and 2 more"
    )


@pytest.mark.parametrize(("number", "more"), [(6, ""), (7, ", and 1 more")])
def test_six_models_are_all_told(number: int, more: str) -> None:
    models = {f"m{each}": 1 for each in range(number)}
    assert told(rollout(measures=measures(models=models)))["models"] == "m0 1, m1 1, m2 1, m3 1, m4 1, m5 1" + more


def test_how_requests_sample_is_told_by_model() -> None:
    asked = (
        SamplingCount("judge", "seed", None, 2),
        SamplingCount("m", "seed", None, 3),
        SamplingCount("m", "temperature", "0.7", 2),
        SamplingCount("m", "temperature", "1", 1),
        SamplingCount("m", "top_p", "0.9", 3),
    )
    found = list(facts(metrics_of(rollout(measures=measures(raw=raw(sampling=asked))))))
    assert found[-2:] == [
        Fact("sampling", "judge: left open by every request"),
        Fact("sampling", "m: temperature 0.7 2, 1 1; top_p 0.9 3"),
    ]


def test_facts_come_in_one_order() -> None:
    everything = measures(
        models={"m": 1},
        prompt_lengths=(1,),
        raw=raw(latencies=(1.0,), error_categories={"auth": 1}, sampling=(SamplingCount("m", "seed", "1", 1),)),
    )
    metrics = Metrics(n_calls=1, chains=1, terminal_attribution=TerminalAttribution("none", None, "", ""))
    assert [fact.name for fact in facts(metrics_of(rollout(measures=everything, metrics=metrics)))] == [
        "calls of a rollout",
        "tokens of a call",
        "chains",
        "scored call",
        "raw calls",
        "latency in ms",
        "failed calls",
        "models",
        "sampling",
    ]
    assert all(isinstance(fact, Fact) and fact.value for fact in facts(metrics_of(rollout(measures=everything))))


def test_the_part_with_the_highest_share_of_masked_rollouts_comes_first() -> None:
    of_tasks = [rollout("1-0"), rollout("2-0", reasons=("torn_tail",)), rollout("3-0", reasons=("retired",))]
    breakdown = document_of(*of_tasks, rollout("2-1"), by=By.TASK).breakdown
    assert breakdown is not None
    assert [part.key for part in worst_first(breakdown)] == ["2", "1", "3"]


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [(471, 512, "92.0 %"), (0, 5, "0.0 %"), (5, 5, "100.0 %"), (0, 0, "-"), (1, 3, "33.3 %")],
)
def test_a_share_is_told_in_percent(part: int, whole: int, shown: str) -> None:
    assert percent(part, whole) == shown
