"""What a row that NeMo Gym left tells of its rollout (capture-files.md 6.1 to 6.3; reasons.md, its own strings)."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ng_capture.outputs.health.gym_rows import METRICS_KEY, health_of_row
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.verdicts.judging import Policy
from ng_capture.verdicts.metrics import Metrics
from ng_capture.verdicts.reasons import REASONS
from tests.support.capture import Capture
from tests.support.forge import Row
from tests.support.rollout_health import WITH_TOKENS, health_of, row_of
from tests.support.strategies import captures

TOKENS = {"response": WITH_TOKENS}
WELL = {"n_calls": 2, "chains": 1, "roots": 1, "parent_link_failures": {}, "capture_incomplete": False}


def told(row: Row) -> RolloutHealth:
    return health_of_row("r-1", decode_row(json.dumps({"_ng_rollout_id": "r-1", **row}).encode()))


def reasons_of(terminal: Row | None = None, **metrics: Any) -> tuple[str, ...] | None:
    """Why a masked row with these metrics is masked."""
    scored = {"method": "none", "call_id": None, "reason": "", "chain": ""} | (terminal or {})
    return told({METRICS_KEY: WELL | {"terminal_attribution": scored} | metrics, "mask_sample": True}).reasons


# The verdict


def test_the_metrics_are_those_of_the_row() -> None:
    metrics = {"n_calls": 2, "chains": 1, "quarantined_calls": 1, "delivered_fraction": 0}
    health = told({"_ng_token_capture": metrics | {"a later metric": [1]}, **TOKENS})
    assert (health.rollout_id, health.verdict, health.reasons) == ("r-1", "trainable", ())
    assert msgspec.to_builtins(health.metrics) == metrics


@pytest.mark.parametrize(
    ("mask", "verdict"), [(None, "trainable"), (False, "trainable"), (True, "masked"), (1, "masked")]
)
def test_a_row_that_is_marked_is_masked(mask: object, verdict: str) -> None:
    assert told({METRICS_KEY: WELL, "mask_sample": mask, **TOKENS}).verdict == verdict


@pytest.mark.parametrize("fault", [{"error": "nothing recorded"}, {"capture_incomplete": True}])
def test_a_row_that_tells_of_a_fault_is_masked_whatever_became_of_its_mark(fault: Row) -> None:
    health = told({METRICS_KEY: WELL | fault, **TOKENS})
    assert (health.verdict, len(health.reasons or ())) == ("masked", 1)


@pytest.mark.parametrize("response", [{}, {"output": []}, {"output": [{"generation_token_ids": []}]}])
def test_a_row_without_tokens_is_masked_whatever_became_of_its_mark(response: Row) -> None:
    assert told({METRICS_KEY: WELL, "response": response, "mask_sample": False}).verdict == "masked"


@pytest.mark.parametrize(("row", "task"), [({}, None), ({"_ng_task_index": "maths"}, "maths")])
def test_the_place_is_that_of_the_row(row: Row, task: str | None) -> None:
    assert told({**row, **TOKENS}).stands_at.task == (task or "r")


def test_a_row_with_tokens_and_without_metrics_had_them_from_its_agent() -> None:
    health = told(TOKENS)
    assert (health.verdict, health.reasons, health.metrics) == ("trainable", (), None)
    assert told(TOKENS | {"mask_sample": True}).verdict == "masked"


@pytest.mark.parametrize("row", [{}, {"response": {"output": []}}, {METRICS_KEY: None}, {METRICS_KEY: []}])
def test_a_row_with_neither_was_never_rebuilt_and_nobody_says_why(row: Row) -> None:
    health = told(row)
    assert (health.verdict, health.reasons, health.metrics) == ("masked", None, None)


@pytest.mark.parametrize(
    "metrics",
    [
        {},
        {"n_calls": "2"},
        {"n_calls": 2, "chains": 1.5},
        {"n_calls": 2, "terminal_attribution": {"method": "none"}},
        {"n_calls": 2, "parent_link_failures": ["x"]},
        {"n_calls": -1},
        {"n_calls": 2, "generated_tokens_captured": 10**400},
        {"n_calls": 2, "parent_link_failures": {"parent_unresolved": 2**63}},
    ],
)
def test_metrics_of_another_shape_are_none(metrics: Row) -> None:
    assert told({METRICS_KEY: metrics, **TOKENS}).metrics is None
    assert told({METRICS_KEY: metrics}).verdict == "masked"


def test_half_of_a_surrogate_pair_in_what_a_row_tells_is_spelled_out() -> None:
    failures = {"\ud800": 1, "parent_unresolved": 1}
    health = told({METRICS_KEY: WELL | {"error": "empty_capture: \udfff", "parent_link_failures": failures}})
    assert (health.verdict, health.reasons) == ("masked", ("parent_unresolved", "empty_capture"))
    assert health.metrics is not None and health.metrics.parent_link_failures == {"\\ud800": 1, "parent_unresolved": 1}


@pytest.mark.parametrize("fraction", ["1e999", "-1e999"])
def test_a_fraction_without_end_is_not_told(fraction: str) -> None:
    text = json.dumps({"_ng_rollout_id": "r-1", METRICS_KEY: WELL | {"delivered_fraction": "X"}})
    health = health_of_row("r-1", decode_row(text.replace('"X"', fraction).encode()))
    assert health.metrics is None or health.metrics.delivered_fraction is None


# Why it is masked


def test_a_masked_row_that_does_not_say_why_is_unexplained() -> None:
    assert reasons_of() is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("capture contains no token records", "empty_capture"),
        ("nothing recorded", "empty_capture"),
        ("capture produced no trainable generated tokens", "no_generated_tokens"),
        ("RetiredError: rollout r-1 is retired", "retired"),
        ("rollout r-1 is retired", "retired"),
        ("RuntimeError: already retired", "retired"),
        ("torn_tail: the last line is cut", "torn_tail"),
        ("prefix_mismatch", "prefix_mismatch"),
        ("prefix_mismatch: call retired-1 leaves its parent", "prefix_mismatch"),
        ("ValueError: nothing is left of rollout retired-1", None),
        ("no capture key", None),
        ("malformed rollout id: 7", None),
        ("ValueError: something else", None),
        ("", None),
    ],
)
def test_an_error_of_a_build_is_told_by_its_reason(error: str, reason: str | None) -> None:
    assert reasons_of(error=error) == ((reason,) if reason else None)
    assert told({METRICS_KEY: {"n_calls": 0, "error": error}, "mask_sample": True}).reasons == (
        (reason,) if reason else None
    )


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        ("parent_unresolved", "parent_unresolved"),
        ("missing_resolution", "link_missing"),
        ("parent_digest_mismatch", "prefix_mismatch"),
        ("parent_call_id_missing", "parent_missing"),
        ("parent_call_id_missing_recovered", "parent_missing"),
        ("duplicate_call_id_conflict", "conflicting_records"),
        ("delta_chain_unreconstructable", "delta_unresolvable"),
        ("a string of a later version", None),
    ],
)
def test_a_failed_link_is_told_by_its_reason(failure: str, reason: str | None) -> None:
    assert reasons_of(parent_link_failures={failure: 1}) == ((reason,) if reason else None)


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        ("explicit_terminal_not_captured", "terminal_not_captured"),
        ("declared_terminal_not_captured,no_response_object", "terminal_not_captured"),
        ("declared_ambiguous", "terminal_ambiguous"),
        ("response_has_no_id,witness_disagreement[declared=a;content_output=b]", "witness_disagreement"),
        ("response_id_no_match,no_content_match", None),
        ("corroborated_by=content_output", None),
    ],
)
def test_a_note_of_the_witnesses_is_told_by_its_reason(note: str, reason: str | None) -> None:
    assert reasons_of({"reason": note}) == ((reason,) if reason else None)


@pytest.mark.parametrize(
    ("chain", "reason"),
    [("broken", "terminal_chain_broken"), ("not_captured", "terminal_not_captured"), ("error", None), ("", None)],
)
def test_the_status_of_the_scored_chain_is_told_by_its_reason(chain: str, reason: str | None) -> None:
    assert reasons_of({"chain": chain}) == ((reason,) if reason else None)


@pytest.mark.parametrize(
    ("chain", "roots", "chains", "reasons"),
    [
        ("", 2, 2, ("multiple_roots",)),
        ("", 1, 2, ("multiple_ends",)),
        ("", None, 2, ("multiple_ends",)),
        ("", 1, 1, None),
        ("broken", 2, 2, ("terminal_chain_broken",)),
        ("broken", 1, 2, ("terminal_chain_broken",)),
    ],
)
def test_several_chains_mask_where_nothing_names_the_right_one(
    chain: str, roots: int | None, chains: int, reasons: tuple[str, ...] | None
) -> None:
    assert reasons_of({"chain": chain}, roots=roots, chains=chains) == reasons


def test_where_the_scored_chain_is_delivered_its_neighbours_mask_nothing() -> None:
    delivered = {"chain": "delivered", "reason": "declared_ambiguous"}
    beside = {"parent_link_failures": {"parent_unresolved": 1}, "roots": 2, "chains": 3}
    assert reasons_of(delivered, **beside) is None
    assert reasons_of(delivered, capture_incomplete=True, **beside) == ("capture_incomplete",)


def test_without_a_chain_links_and_roots_say_nothing() -> None:
    assert reasons_of(chains=None, roots=2, parent_link_failures={"parent_unresolved": 1}) is None


def test_without_an_attribution_the_links_still_say_why() -> None:
    row = {METRICS_KEY: WELL | {"parent_link_failures": {"missing_resolution": 1}}, "mask_sample": True}
    assert told(row).reasons == ("link_missing",)


def test_what_a_failed_link_began_is_no_second_root_or_end() -> None:
    failed = {"missing_resolution": 1}
    assert reasons_of(roots=2, chains=2, parent_link_failures=failed) == ("link_missing",)
    assert reasons_of(roots=1, chains=2, parent_link_failures=failed) == ("link_missing",)
    assert reasons_of(roots=2, chains=2, parent_link_failures={"of a later version": 1}) == ("multiple_roots",)


def test_all_reasons_are_told_at_once_in_the_order_of_the_registry() -> None:
    metrics = {"error": "nothing recorded", "capture_incomplete": True, "chains": 2, "roots": 2}
    found = reasons_of({"reason": "declared_ambiguous", "chain": "not_captured"}, **metrics)
    assert found is not None and set(found) == {
        "capture_incomplete",
        "empty_capture",
        "multiple_roots",
        "terminal_ambiguous",
        "terminal_not_captured",
    }
    assert list(found) == sorted(found, key=list(REASONS).index)


def test_a_row_that_is_not_masked_has_no_reason() -> None:
    assert told({METRICS_KEY: WELL | {"chains": 2, "roots": 2}, **TOKENS}).reasons == ()


# Rows of captures


@settings(max_examples=100, deadline=None)
@given(capture=captures("call whole end"))
def test_the_row_of_a_judged_rollout_has_its_verdict_and_metrics_and_no_reason_that_it_has_not(
    capture: Capture,
) -> None:
    judged = health_of(capture.files(), capture.row, policy=Policy.TERMINAL)
    health = told(row_of(judged))
    assert health.verdict == judged.verdict
    assert judged.metrics is not None and health.metrics is not None
    fields = Metrics.__struct_fields__
    assert {name: getattr(health.metrics, name) for name in fields} == {
        name: getattr(judged.metrics, name) for name in fields
    }
    assert (health.reasons == ()) == (judged.verdict == "trainable")


@settings(max_examples=60, deadline=None)
@given(capture=captures("call"), data=st.data())
def test_an_error_that_begins_with_our_reason_tells_it_back(capture: Capture, data: st.DataObject) -> None:
    judged = health_of(capture.files(), capture.row)
    assume(judged.reasons)
    reason = data.draw(st.sampled_from(judged.reasons or ()))
    row = row_of(judged)
    row[METRICS_KEY]["error"] = f"{reason}: {data.draw(st.text(max_size=5))}"
    assert reason in (told(row).reasons or ())
