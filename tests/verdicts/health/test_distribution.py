"""Percentiles against a sorted list."""

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.verdicts.health.distribution import Distribution, Percentiles


def percentiles(values: Sequence[int]) -> Percentiles | None:
    distribution = Distribution()
    distribution.add(values)
    return distribution.percentiles()


def nearest_rank(values: Sequence[int], percent: int) -> int:
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]


@pytest.mark.parametrize(
    ("values", "p50", "p95", "greatest"),
    [
        ([7], 7, 7, 7),
        ([1, 2], 1, 2, 2),
        ([1, 2, 3], 2, 3, 3),
        (range(1, 101), 50, 95, 100),
        (range(1, 102), 51, 96, 101),
        ([0] * 19 + [9], 0, 0, 9),
        ([0] * 18 + [9] * 2, 0, 9, 9),
        ([2**63 - 1, 0], 0, 2**63 - 1, 2**63 - 1),
    ],
)
def test_a_percentile_is_the_nearest_rank(values: Sequence[int], p50: int, p95: int, greatest: int) -> None:
    assert percentiles(values) == Percentiles(p50, p95, greatest)


@given(values=st.lists(st.integers(0, 20) | st.integers(0, 2**63), min_size=1, max_size=60))
def test_every_percentile_is_a_value_that_occurred_at_its_rank(values: list[int]) -> None:
    found = percentiles(values)
    assert found == Percentiles(nearest_rank(values, 50), nearest_rank(values, 95), max(values))
    assert {found.p50, found.p95, found.max} <= set(values)


@given(values=st.lists(st.integers(0, 5), max_size=30), cuts=st.lists(st.integers(0, 30), max_size=3))
def test_values_that_come_in_parts_and_in_any_order_are_the_same_values(values: list[int], cuts: list[int]) -> None:
    distribution = Distribution()
    places = [0, *sorted(cuts), len(values)]
    for start, end in pairwise(places):
        distribution.add(reversed(values[start:end]))
    assert distribution.percentiles() == percentiles(values)


@given(values=st.lists(st.integers(0, 5), max_size=9), value=st.integers(0, 5), number=st.integers(0, 30))
def test_a_value_that_occurred_many_times_is_that_many_values(values: list[int], value: int, number: int) -> None:
    distribution = Distribution()
    distribution.add_many(value, number)
    distribution.add(values)
    assert distribution.percentiles() == percentiles([*values, *[value] * number])


def test_over_nothing_there_is_none() -> None:
    distribution = Distribution()
    distribution.add_many(7, 0)
    assert distribution.percentiles() is percentiles([]) is None
