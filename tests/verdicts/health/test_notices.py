"""Signs that a run is not well, from their thresholds on."""

from typing import Any

import pytest
from hypothesis import given

from ng_capture.verdicts.health.metrics import HealthMetrics
from ng_capture.verdicts.health.names import is_number, number_of
from ng_capture.verdicts.health.notices import notices
from ng_capture.verdicts.health.tally import Tally
from tests.support.rollout_health import RAW_ONLY, Run, measures, metrics_of, of_runs, rollout, runs, tally_of


def run_with(**changed: Any) -> HealthMetrics:
    """A run of 100 rollouts with 1,000 calls that is well but for what is changed."""
    rollouts = dict.fromkeys(("rollouts", "with_calls", "with_capture", "trainable"), 100)
    calls = dict.fromkeys(("calls", "n_calls", "raw_calls"), 1000)
    return metrics_of(**(rollouts | calls | changed))


def shown(metrics: HealthMetrics) -> list[tuple[str, float | None]]:
    return [(notice.metric, notice.value) for notice in notices(metrics)]


def reasons(**counts: int) -> dict[str, Any]:
    return {"reasons": counts}


def asked(**values: dict[str, int]) -> dict[str, Any]:
    return {"sampling": {"m": values}}


def test_a_run_that_is_well_shows_no_sign() -> None:
    assert shown(run_with()) == []


def test_of_a_run_of_which_nothing_is_known_nothing_is_said() -> None:
    assert shown(Tally().metrics()) == shown(Tally(judged=False).metrics()) == []
    assert shown(metrics_of(rollout("1-0", verdict=None, reasons=(), measures=measures()))) == []


@pytest.mark.parametrize(
    ("fine", "sign", "metric", "value"),
    [
        (reasons(), reasons(empty_capture=1), "reasons.empty_capture", 1),
        ({"missing_rollouts": 0}, {"missing_rollouts": 1}, "missing_rollouts", 1),
        (reasons(capture_incomplete=1), reasons(capture_incomplete=2), "reasons.capture_incomplete", 2),
        (reasons(http_error=9), reasons(call_without_tokens=1), "reasons.call_without_tokens", 1),
        (reasons(prefix_mismatch=2), reasons(prefix_mismatch=3), "reasons.prefix_mismatch", 3),
        (reasons(parent_unresolved=2), reasons(parent_unresolved=3), "reasons.parent_unresolved", 3),
        (reasons(multiple_roots=2), reasons(multiple_roots=3), "reasons.multiple_roots", 3),
        (reasons(ambiguous_retry=2), reasons(ambiguous_retry=3), "reasons.ambiguous_retry", 3),
        (reasons(terminal_not_captured=2), reasons(terminal_not_captured=3), "reasons.terminal_not_captured", 3),
        (
            {"tool_single_call_fraction": 0.5},
            {"tool_single_call_fraction": 0.51},
            "tool_single_call_fraction",
            0.51,
        ),
        ({"zero_logprob_calls": 0}, {"zero_logprob_calls": 1}, "zero_logprob_calls", 1),
        (
            {"findings": {"logprob_all_zero": 9, "torn_tail": 9}},
            {"findings": {"logprob_sentinel": 1}},
            "findings",
            1,
        ),
        ({"findings": {}}, {"findings": {"logprob_missing": 4, "logprob_positive": 2}}, "findings", 4),
        ({"findings": {}}, {"findings": {"schema_too_new": 1}}, "findings.schema_too_new", 1),
        (reasons(), reasons(no_generated_tokens=1), "reasons.no_generated_tokens", 1),
        ({"length_stopped_calls": 100}, {"length_stopped_calls": 101}, "length_stopped_calls", 101),
        ({"empty_generation_calls": 50}, {"empty_generation_calls": 51}, "empty_generation_calls", 51),
        ({"quarantined_fraction": 0.1}, {"quarantined_fraction": 0.11}, "quarantined_fraction", 0.11),
        (
            {"error_categories": {"auth": 25, "timeout": 25, "incomplete": 900}},
            {"error_categories": {"auth": 25, "timeout": 26}},
            "error_categories",
            51,
        ),
        ({"damaged_lines": 0}, {"damaged_lines": 1}, "damaged_lines", 1),
        ({"calls_with_partial_usage": 100}, {"calls_with_partial_usage": 101}, "calls_with_partial_usage", 101),
        ({"models": {"m": 9}}, {"models": {"m": 9, "judge": 1}}, "models", 2),
        ({"shared_seed_rollouts": 0}, {"shared_seed_rollouts": 2}, "shared_seed_rollouts", 2),
        ({"abandoned": 0}, {"abandoned": 1}, "abandoned", 1),
        ({"running": 0}, {"running": 1}, "running", 1),
        ({"retired": 99}, {"retired": 100, "with_calls": 0, "with_capture": 0}, "retired", 100),
    ],
)
def test_a_sign_is_shown_from_its_threshold_on(
    fine: dict[str, Any], sign: dict[str, Any], metric: str, value: float
) -> None:
    assert shown(run_with(**fine)) == []
    assert shown(run_with(**sign)) == [(metric, value)]


@pytest.mark.parametrize(
    ("reason", "fine"),
    [
        ("torn_tail", 1),
        ("missing_newline", 1),
        ("partial_tokens", 0),
        ("link_missing", 2),
        ("multiple_ends", 2),
        ("witness_disagreement", 2),
        ("terminal_ambiguous", 2),
    ],
)
def test_a_sign_that_several_reasons_show_tells_how_many_rollouts_show_it(reason: str, fine: int) -> None:
    assert shown(run_with(**reasons(**{reason: fine}))) == []
    (notice,) = notices(run_with(**reasons(**{reason: fine + 1})))
    assert notice.metric.startswith("reasons.") and notice.value == fine + 1


def test_reasons_that_show_one_sign_add_up_to_its_threshold() -> None:
    assert shown(run_with(**reasons(missing_newline=1))) == []
    assert len(shown(run_with(**reasons(missing_newline=1, torn_tail=1)))) == 1


def test_without_a_captured_call_the_address_is_the_one_thing_to_look_at() -> None:
    (notice,) = notices(run_with(with_calls=0, with_capture=0, reasons={"empty_capture": 100}))
    assert (notice.metric, notice.value) == ("with_calls", 0)
    assert "/ng-rollout/<rollout id>/training-token-capture/v1" in notice.look_at


@pytest.mark.parametrize("gone", [{"retired": 40, "unread": 60}, {"unread": 100}])
def test_what_was_handed_off_or_could_not_be_read_lacks_no_calls(gone: dict[str, int]) -> None:
    assert shown(run_with(with_calls=0, with_capture=0, **gone)) == []


def test_lines_that_cannot_be_read_went_through_the_capture_address() -> None:
    assert shown(run_with(with_calls=0, with_capture=1, reasons={"torn_tail": 1})) == []


def test_helper_models_that_are_told_apart_are_no_surprise() -> None:
    assert shown(run_with(models={"m": 9, "judge": 1}, lost_by_reason={"foreign_model": 4})) == []


# How requests sample


@pytest.mark.parametrize(
    "values",
    [
        asked(temperature={"1": 9}),
        asked(temperature={"unset": 9}),
        asked(temperature={"0.7": 9}, top_p={"unset": 9}),
        asked(top_p={"1": 9}, top_k={"-1": 4, "0": 3, "unset": 2}, min_p={"0": 9}),
        asked(presence_penalty={"0": 9}, frequency_penalty={"unset": 8, "0": 1}, repetition_penalty={"1": 9}),
        asked(seed={"1": 1, "2": 1, "3": 1}),
        asked(seed={"unset": 9}),
        asked(seed={"1": 1, "other": 99}),
        {"sampling": {"m": {"temperature": {"1": 9}}, "judge": {"temperature": {"0.5": 9}}}},
    ],
)
def test_requests_that_leave_the_policys_distribution_alone_show_no_sign(values: dict[str, Any]) -> None:
    assert shown(run_with(**values)) == []


@pytest.mark.parametrize(
    "values",
    [
        asked(temperature={"1": 9, "0.5": 1}),
        asked(temperature={"1": 9, "unset": 1}),
        asked(top_p={"0.95": 9}),
        asked(top_p={"1": 9, "0.95": 1}),
        asked(top_k={"20": 1}),
        asked(min_p={"0.05": 9}),
        asked(min_p={"0.05": 1, "unset": 9}),
        asked(presence_penalty={"0.5": 9}),
        asked(frequency_penalty={"0.5": 9}),
        asked(repetition_penalty={"1.05": 9}),
        {"sampling": {"m": {"temperature": {"1": 9}}, "judge": {"top_p": {"0.9": 9}}}},
    ],
)
def test_requests_that_override_the_policys_sampling_are_found(values: dict[str, Any]) -> None:
    (notice,) = notices(run_with(**values))
    assert (notice.metric, notice.value) == ("sampling", None)
    assert "overrides the policy's sampling" in notice.means


def test_requests_that_always_take_the_likeliest_token_are_found() -> None:
    (notice,) = notices(run_with(**asked(temperature={"0": 9})))
    assert (notice.metric, notice.value) == ("sampling", None)
    assert "temperature 0" in notice.means
    assert len(notices(run_with(**asked(temperature={"0": 9, "1": 1})))) == 2


# All of them


def test_the_worst_comes_first() -> None:
    found = shown(run_with(running=1, missing_rollouts=2, reasons={"empty_capture": 3, "prefix_mismatch": 9}))
    assert [metric for metric, _ in found] == [
        "reasons.empty_capture",
        "missing_rollouts",
        "reasons.prefix_mismatch",
        "running",
    ]


@of_runs
@given(run=runs() | runs(RAW_ONLY))
def test_every_notice_says_what_it_means_and_where_to_look_and_tells_a_number_of_its_metric(run: Run) -> None:
    metrics = tally_of(run).metrics()
    told = {name: getattr(metrics, name) for name in metrics.__struct_fields__}
    for notice in notices(metrics):
        assert notice.means and notice.look_at
        if notice.metric == "sampling" or (notice.metric.startswith("reasons.") and metrics.unexplained):
            assert notice.value is None
        elif notice.metric != "with_calls":
            assert notice.value and is_number(notice.metric) and number_of(told, notice.metric.partition(".")[0])
