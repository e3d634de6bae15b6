"""Rewards, advantages and weights of rows."""

import math
import tempfile
from pathlib import Path

import pytest

from ng_capture.outputs.export.choices import AdvantageOf, Export, RewardSplit, Weight
from ng_capture.outputs.export.flat import FlatRow, flat_row
from ng_capture.outputs.export.rewards import Scored, advantages, group_of, reward_of, rewarded
from ng_capture.outputs.training_rows import training_rows
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.judging import Policy
from tests.support.forge import Forge
from tests.support.judging import judged


def group(*rewards: float | None, group_id: str | None = "g") -> list[Scored]:
    return [Scored(f"r-{number}", group_id, reward) for number, reward in enumerate(rewards)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (AdvantageOf.MEAN_CENTRED, [-0.5, 0.5]),
        (AdvantageOf.LOO, [-1.0, 1.0]),
        # as TRL makes it: the sample's deviation and 1e-4
        (AdvantageOf.GRPO, [-0.7070, 0.7070]),
    ],
)
def test_the_advantage_is_over_the_others_of_the_group(how: AdvantageOf, expected: list[float]) -> None:
    found = advantages(group(0.0, 1.0), how)
    assert list(found.values()) == [pytest.approx(value, abs=1e-4) for value in expected]


def test_groups_do_not_mix_and_who_has_no_group_has_no_advantage() -> None:
    scored = [Scored("a", "1", 1.0), Scored("b", "1", 0.0), Scored("c", "2", 1.0), Scored("d", "2", 1.0)]
    found = advantages([*scored, Scored("e", None, 1.0)], AdvantageOf.MEAN_CENTRED)
    assert found == {"a": 0.5, "b": -0.5, "c": 0.0, "d": 0.0, "e": None}


def test_who_has_no_reward_neither_votes_nor_gets_an_advantage() -> None:
    assert advantages(group(1.0, None, 0.0), AdvantageOf.MEAN_CENTRED) == {"r-0": 0.5, "r-1": None, "r-2": -0.5}


@pytest.mark.parametrize("how", [AdvantageOf.LOO, AdvantageOf.GRPO])
def test_one_alone_has_nobody_to_be_compared_with(how: AdvantageOf) -> None:
    assert advantages(group(1.0), how) == {"r-0": None}


def test_no_advantage_is_asked_for() -> None:
    assert advantages(group(1.0), AdvantageOf.NONE) == {}


def test_reward_and_group_stand_where_the_user_says() -> None:
    row = decode_row(b'{"reward": 1, "_ng_task_index": 7, "meta": {"score": 0.25, "task": "t", "bad": "x"}}')
    export = Export(reward_field="meta.score", group_by="meta.task")
    assert (reward_of(row, export), group_of(row, export)) == (0.25, "t")
    assert (reward_of(row, Export()), group_of(row, Export(group_by="task"))) == (1.0, "7")
    for nothing in ("meta.bad", "meta.none", "meta.score.deeper", "reward.x"):
        assert reward_of(row, Export(reward_field=nothing)) is None
    assert group_of(row, Export(group_by="nowhere")) is None


def test_a_number_that_is_none_is_no_reward() -> None:
    row = decode_row(b'{"a": true, "b": 1e400, "c": 1%b, "reward": 1%b}' % (b"0" * 400, b"0" * 400))
    for field in ("a", "b", "c", None):
        assert reward_of(row, Export(reward_field=field)) is None


def fork() -> list[FlatRow]:
    """Case T13 under `all`: a shared first turn, two ends; the rows train 2 tokens and 1."""
    forge = Forge("r-1")
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5], id="b")
    first.then([9], [10], id="s")
    with tempfile.TemporaryDirectory() as directory:
        forge.write(Path(directory))
        judgement = judged(Path(directory), policy=Policy.ALL)
    return [flat_row(made) for made in training_rows(judgement, decode_row(b'{"reward": 0.9}'))]


@pytest.mark.parametrize(
    ("split", "expected"),
    [(RewardSplit.FULL, [0.9, 0.9]), (RewardSplit.SHARE, [0.6, 0.3]), (RewardSplit.LAST, [0.0, 0.9])],
)
def test_the_reward_of_a_rollout_in_its_rows(split: RewardSplit, expected: list[float]) -> None:
    rows = rewarded(fork(), Export(reward=split), None)
    assert [row.head.reward for row in rows] == [pytest.approx(value) for value in expected]


def test_a_rollout_counts_once_or_every_token_does() -> None:
    rows = rewarded(fork(), Export(), 0.5)
    assert [row.head.row_weight for row in rows] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert math.fsum(row.head.row_weight for row in rows) == pytest.approx(1.0)
    assert {row.head.advantage for row in rows} == {0.5} and {row.head.n_trajectories for row in rows} == {2}
    assert [row.head.row_weight for row in rewarded(fork(), Export(weight=Weight.TOKEN), None)] == [1.0, 1.0]
