"""Rollouts that share a seed, against a naive count."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.verdicts.health.seeds import SharedSeeds

Seeds = list[list[str]]


def shared(seeds_of_rollouts: Seeds) -> int | None:
    seeds = SharedSeeds()
    for each in seeds_of_rollouts:
        seeds.add(each)
    return seeds.rollouts()


def naive(seeds_of_rollouts: Seeds) -> int | None:
    """Rollouts with a seed that stands among those of another."""
    if not any(seeds_of_rollouts):
        return None
    others = [{s for other in seeds_of_rollouts if other is not each for s in other} for each in seeds_of_rollouts]
    return sum(not beside.isdisjoint(each) for each, beside in zip(seeds_of_rollouts, others, strict=True))


@pytest.mark.parametrize(
    ("seeds", "rollouts"),
    [
        ([], None),
        ([[], []], None),
        ([["1"]], 0),
        ([["1", "1"]], 0),
        ([["1"], ["2"], []], 0),
        ([["1"], ["1"]], 2),
        ([["1"], ["1"], ["1"]], 3),
        ([["1", "2"], ["1", "2"]], 2),
        ([["1", "2"], ["2", "3"], ["3"], ["4"]], 3),
        ([["1"], ["2"], ["1", "2"]], 3),
    ],
)
def test_a_rollout_counts_once_for_whatever_seeds_it_shares(seeds: Seeds, rollouts: int | None) -> None:
    assert shared(seeds) == naive(seeds) == rollouts


few = st.lists(st.lists(st.sampled_from("123456"), max_size=4), max_size=8)


@given(seeds=few, data=st.data())
def test_in_any_order_as_many_rollouts_share_a_seed(seeds: Seeds, data: st.DataObject) -> None:
    assert shared(seeds) == shared(data.draw(st.permutations(seeds))) == naive(seeds)


@pytest.mark.parametrize(("different", "rollouts"), [(49, 2), (50, 2), (51, None), (200, None)])
@pytest.mark.parametrize("first", [True, False])
def test_of_too_many_different_seeds_nothing_is_said(different: int, rollouts: int | None, first: bool) -> None:
    each_its_own = [[str(number)] for number in range(different)]
    again = ["0"]
    assert shared([again, *each_its_own] if first else [*each_its_own, again]) == rollouts


def test_one_rollout_with_too_many_seeds_is_enough() -> None:
    assert shared([["0"], [str(number) for number in range(60)], ["0"]]) is None
