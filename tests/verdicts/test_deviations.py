"""Claims about the named deviations: each has a small rollout on which NeMo Gym 0.7.0 gives the other verdict."""

import json
from pathlib import Path

import pytest

from ng_capture.files.listing import list_rollouts
from ng_capture.records.rollout_row import decode_row
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.deviations import DEVIATIONS
from ng_capture.verdicts.judge import Judgement, judge
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.deviation_cases import CASES, TOKENS, A, B, DeviationCase
from tests.support.entries import lines

every_case = pytest.mark.parametrize("case", [pytest.param(case, id=case.claim) for case in CASES])


def judged(case: DeviationCase, folder: Path) -> Judgement:
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    row = decode_row(json.dumps({"_ng_rollout_id": "0-0", **case.row}).encode())
    return judge(read_snapshot(list_rollouts([str(folder)]).get("0-0")), row.evidence, case.judging)


@every_case
def test_the_deviation_is_named(case: DeviationCase, tmp_path: Path) -> None:
    judgement = judged(case, tmp_path)
    assert (judgement.verdict, judgement.deviation) == (case.verdict, case.deviation), judgement.reasons


@every_case
def test_the_reason_is_given_where_it_masks(case: DeviationCase, tmp_path: Path) -> None:
    reasons = judged(case, tmp_path).reasons
    assert case.reason in reasons if case.reason is not None else not reasons


def test_every_deviation_of_the_table_has_a_case_and_every_case_a_deviation_of_the_table() -> None:
    assert {case.deviation for case in CASES} == DEVIATIONS.keys()


def test_every_deviation_says_why() -> None:
    assert all(DEVIATIONS.values())


def test_a_healthy_rollout_deviates_in_nothing(tmp_path: Path) -> None:
    judgement = judged(DeviationCase("", "", {TOKENS: lines([A, B])}), tmp_path)
    assert (judgement.verdict, judgement.deviation) == ("trainable", None)


@pytest.mark.parametrize("policy", [Policy.STRICT, Policy.ALL])
def test_only_the_policy_of_the_reference_can_deviate_from_it(policy: Policy, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.deviation == "own_digest")
    assert judged(DeviationCase("", "", case.files, judging=Judging(policy)), tmp_path).deviation is None
