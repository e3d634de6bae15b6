"""The further cases of policies-and-exports.md 4.1, which no file holds: T38 to T50, as rows."""

from pathlib import Path

import pytest

from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.judging import Policy
from tests.support.forge import Forge, Row
from tests.support.judging import judged, rows_of

every_policy = pytest.mark.parametrize("policy", Policy)


def arrays(judgement: Judgement) -> list[tuple[list[int], list[int]]]:
    return [(row["tokens"], row["loss_mask"]) for row in rows_of(judgement)]


def noted(judgement: Judgement) -> set[str]:
    return {finding.reason for finding in judgement.findings}


def test_t38_a_foreign_model_is_left_out_where_the_policys_is_named(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="A")
    forge.root([40], [41], id="J", model="judge")
    first.then([4], [5], id="B")
    forge.write(tmp_path)
    assert arrays(judged(tmp_path, policy=Policy.STRICT, policy_model="policy-8b")) == [
        ([1, 2, 3, 4, 5], [0, 0, 1, 0, 1])
    ]
    assert judged(tmp_path, policy=Policy.STRICT).reasons == ("multiple_roots",)


def test_t39_every_span_keeps_the_version_of_its_weights(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="A", weight_version=3).then([4], [5], id="B", weight_version=4)
    forge.write(tmp_path)
    (row,) = rows_of(judged(tmp_path))
    versions = [-1] * len(row["tokens"])
    for span in row["spans"]:
        if span["kind"] == "gen":
            versions[span["start"] : span["end"]] = [span["weight_version"]] * (span["end"] - span["start"])
    assert versions == [-1, -1, 3, -1, 4]


def test_t40_the_experts_of_a_token_are_those_of_the_pass_that_read_it(tmp_path: Path) -> None:
    """The row of a turn's last token comes from the next prompt's pass, the very last one is missing."""
    forge = Forge()
    first = forge.root([1, 2], [3], id="A", routed_experts=[[[1]], [[2]], [[0]]])
    first.then([4], [5], id="B", routed_experts=[[[11]], [[12]], [[13]], [[14]], [[0]]])
    forge.write(tmp_path)
    assert rows_of(judged(tmp_path))[0]["routed_experts"] == [[[1]], [[2]], [[13]], [[14]], None]


@every_policy
def test_t44_a_positive_log_probability_is_never_trained(tmp_path: Path, policy: Policy) -> None:
    forge = Forge()
    forge.root([1, 2], [3], generation_log_probs=[0.3])
    forge.write(tmp_path)
    judgement = judged(tmp_path, policy=policy)
    assert rows_of(judgement) == [] and "logprob_positive" in judgement.reasons


@every_policy
def test_t45_a_run_of_zeros_is_accepted_with_a_warning(tmp_path: Path, policy: Policy) -> None:
    """Of more than three tokens: a few certain ones are nothing to warn of (reasons.md)."""
    for length, warned in ((4, True), (3, False)):
        forge = Forge()
        forge.root([1, 2], range(3, 3 + length), generation_log_probs=[0.0] * length)
        forge.write(tmp_path)
        judgement = judged(tmp_path, policy=policy)
        assert [mask for _, mask in arrays(judgement)] == [[0, 0] + [1] * length]
        assert ("logprob_all_zero" in noted(judgement)) is warned


def test_t46_the_rows_of_a_fork_share_one_rollout(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="A")
    first.then([4], [5], id="B")
    first.then([9], [10], id="S")
    forge.write(tmp_path)
    rows = rows_of(judged(tmp_path, policy=Policy.ALL), forge.row(reward=0.5))
    assert [row["row_weight"] for row in rows] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    told: list[Row] = [
        {key: row[key] for key in ("rollout_trainable_tokens", "n_trajectories", "reward")} for row in rows
    ]
    assert told == [{"rollout_trainable_tokens": 3, "n_trajectories": 2, "reward": 0.5}] * 2


def test_t47_an_answer_behind_stripped_history_is_not_trained_there(tmp_path: Path) -> None:
    """The same token under another prefix (I4)."""
    forge = Forge()
    forge.root([1, 2], [7, 3], id="A").broken([1, 2, 3, 4], [5], id="B")
    forge.write(tmp_path)
    rows = arrays(judged(tmp_path, forge.row(forge.calls[-1]), Policy.ALL))
    assert rows == [([1, 2, 3, 4, 5], [0, 0, 0, 0, 1]), ([1, 2, 7, 3], [0, 0, 1, 1])]


@every_policy
def test_t49_identical_records_in_two_files_are_one_call(tmp_path: Path, policy: Policy) -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="A")
    forge.write(tmp_path, intents=False, state=False)
    forge.write(tmp_path, intents=False, state=False, compression=".gz")
    judgement = judged(tmp_path, policy=policy)
    (row,) = rows_of(judgement)
    assert (row["calls"], row["tokens"], row["loss_mask"]) == (["A"], [1, 2, 3], [0, 0, 1])
    assert [source["name"] for source in row["sources"]] == ["r-1.tokens.jsonl", "r-1.tokens.jsonl.gz"]


@every_policy
def test_t50_a_torn_last_line_leaves_no_row_under_any_policy(tmp_path: Path, policy: Policy) -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="A")
    forge.write(tmp_path)
    path = tmp_path / "r-1.tokens.jsonl"
    path.write_bytes(path.read_bytes() + b'{"schema_version": 1, "mod')
    judgement = judged(tmp_path, policy=policy)
    assert rows_of(judgement) == [] and "torn_tail" in judgement.reasons
    assert list(judgement.analysis.calls) == ["A"] and judgement.accounting.lost == {"torn_tail": 1}
