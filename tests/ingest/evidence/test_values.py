"""What an id and a log probability may be."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.ingest.evidence.values import all_zero, are_ids, log_prob_faults

BAD_IDS = [-1, 2**31, 2**64, float(2**64), 5.0, True, False, None, "5", [1], {}, math.nan]


@pytest.mark.parametrize("bad", BAD_IDS, ids=repr)
def test_what_is_no_plain_integer_in_range_is_no_id(bad: object) -> None:
    assert not are_ids([bad])
    assert not are_ids([1, bad, 2])


@given(st.lists(st.integers(0, 2**31 - 1)))
def test_plain_integers_in_range_are_ids(ids: list[object]) -> None:
    assert are_ids(ids)


FAULTS = [
    (None, "logprob_missing"),
    ("-0.5", "logprob_not_number"),
    (True, "logprob_not_number"),
    ([-0.5], "logprob_not_number"),
    (math.nan, "logprob_not_finite"),
    (-math.inf, "logprob_not_finite"),
    (math.inf, "logprob_not_finite"),
    (-(10**400), "logprob_not_finite"),
    (0.25, "logprob_positive"),
    (3, "logprob_positive"),
    (-9999.0, "logprob_sentinel"),
    (-9999, "logprob_sentinel"),
    (-3.4028235e38, "logprob_sentinel"),
]


@pytest.mark.parametrize(("value", "fault"), FAULTS, ids=[repr(value)[:20] for value, _ in FAULTS])
def test_a_value_that_is_no_log_probability_is_named_wherever_it_stands(value: object, fault: str) -> None:
    for values in ([value, -0.5], [-0.5, value], [value] * 2):
        assert log_prob_faults(values) == (fault,)


def test_every_fault_is_named_once() -> None:
    assert log_prob_faults([None, 0.5, None, math.nan]) == ("logprob_missing", "logprob_not_finite", "logprob_positive")


@given(st.lists(st.floats(-9998, 1e-6) | st.integers(-9998, 0)))
def test_numbers_up_to_rounding_above_zero_are_log_probabilities(values: list[object]) -> None:
    assert log_prob_faults(values) == ()


@pytest.mark.parametrize(
    ("values", "zero"),
    [([0.0] * 4, True), ([0, -0.0, 0.0, 0.0], True), ([0.0] * 3, False), ([0.0, 0.0, 0.0, -1e-9], False)],
)
def test_more_than_three_zeros_and_nothing_else(values: list[object], zero: bool) -> None:
    assert all_zero(values) is zero
