"""Claims about `policies/`: the exact training rows of every policy, and why there are none."""

import json
from typing import Any

import pytest

from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.judging import Policy
from tests.support.corpus import corpus_folder, ids_in
from tests.support.gym import rows_of
from tests.support.policies import judged_case, notes_of

FILE = corpus_folder("policies") / "cases.json"
CASES: dict[str, Any] = {case["id"]: case for case in json.loads(FILE.read_bytes())} if FILE.exists() else {}
EXPECTED = frozenset({"trajectories", "reasons", "notes", "roots", "chains"})

every_case = pytest.mark.parametrize("case_id", ids_in(FILE, CASES))
every_policy = pytest.mark.parametrize("policy", Policy)


def expected(case_id: str, policy: Policy) -> dict[str, Any]:
    said: dict[str, Any] = CASES[case_id]["expected"][policy]
    unknown = said.keys() - EXPECTED
    assert not unknown, f"the case expects {sorted(unknown)}, which nothing checks"
    return said


def judged(case_id: str, policy: Policy) -> Judgement:
    return judged_case(CASES[case_id], policy)


@every_policy
@every_case
def test_the_rows_have_exactly_these_tokens_masks_and_log_probabilities(case_id: str, policy: Policy) -> None:
    keys = ("calls", "tokens", "loss_mask", "logprobs")
    rows = [{key: row[key] for key in keys} for row in rows_of(judged(case_id, policy))]
    assert rows == expected(case_id, policy)["trajectories"]


@every_policy
@every_case
def test_the_reasons_are_exactly_these(case_id: str, policy: Policy) -> None:
    assert set(judged(case_id, policy).reasons) == set(expected(case_id, policy).get("reasons", ()))


@every_policy
@every_case
def test_the_notes_are_exactly_these(case_id: str, policy: Policy) -> None:
    assert notes_of(judged(case_id, policy)) == set(expected(case_id, policy).get("notes", ()))


@every_policy
@every_case
def test_roots_and_chains_are_counted_where_the_case_counts_them(case_id: str, policy: Policy) -> None:
    said = expected(case_id, policy)
    metrics = judged(case_id, policy).metrics
    counts = {"roots": metrics.roots, "chains": metrics.chains}
    assert {key: counts[key] for key in counts if key in said} == {key: said[key] for key in counts if key in said}


@every_policy
@every_case
def test_every_captured_token_is_trained_context_or_lost(case_id: str, policy: Policy) -> None:
    told = judged(case_id, policy).accounting
    assert told.captured == told.trained + told.context + sum(told.lost.values())


@every_case
def test_all_never_trains_less_than_terminal(case_id: str) -> None:
    trained = [judged(case_id, policy).accounting.trained for policy in (Policy.TERMINAL, Policy.ALL)]
    assert trained[0] <= trained[1]
