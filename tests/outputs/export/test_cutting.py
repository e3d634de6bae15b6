"""Rows that are too long, stopped at their limit, or hardly trained."""

import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.outputs.export.choices import Export, OnOverflow
from ng_capture.outputs.export.cutting import LeftOut, TooLong, fitted
from ng_capture.outputs.export.flat import FlatRow, flat_row
from ng_capture.outputs.training_rows import training_rows
from tests.support.forge import Forge
from tests.support.judging import judged


def three_turns(finish: str = "stop") -> FlatRow:
    """1 2 -> 3, 4 5 6 -> 7 8, 9 -> 10 (case T03)."""
    forge = Forge("r-1")
    first = forge.root([1, 2], [3], id="a")
    first.then([4, 5, 6], [7, 8], id="b").then([9], [10], id="c")
    with tempfile.TemporaryDirectory() as directory:
        forge.write(Path(directory))
        (row,) = training_rows(judged(Path(directory)), None)
    flat = flat_row(row)
    ends = ("stop", "stop", finish)
    return msgspec.structs.replace(
        flat, head=msgspec.structs.replace(flat.head, finish_reasons=ends, truncated=finish == "length")
    )


ROWS = {finish: three_turns(finish) for finish in ("stop", "length")}


def cut(row: FlatRow, **choices: Any) -> FlatRow:
    found = fitted(row, Export(**choices))
    assert isinstance(found, FlatRow)
    return found


def left_out(row: FlatRow, **choices: Any) -> str:
    found = fitted(row, Export(**choices))
    assert isinstance(found, LeftOut)
    return found.reason


def test_a_row_that_fits_stays_as_it_is() -> None:
    row = three_turns()
    assert fitted(row, Export(max_length=10)) is row


def test_a_cut_keeps_the_first_tokens_and_their_mask() -> None:
    row = cut(three_turns(), max_length=7, on_overflow=OnOverflow.CUT)
    assert (row.tokens, row.loss_mask) == ([1, 2, 3, 4, 5, 6, 7], [0, 0, 1, 0, 0, 0, 1])
    assert [value != 0.0 for value in row.log_probs] == [False, False, True, False, False, False, True]
    assert row.head.spans[-1].end == 7 and row.head.calls == ("a", "b")


def test_a_row_that_was_cut_says_so_and_its_last_call_stopped_at_the_limit() -> None:
    row = cut(three_turns(), max_length=7, on_overflow=OnOverflow.CUT)
    assert row.head.truncated and row.head.finish_reasons == ("stop", "length")
    at_a_turn = cut(three_turns(), max_length=7, on_overflow=OnOverflow.CUT_TURN)
    assert at_a_turn.head.truncated and at_a_turn.head.finish_reasons == ("stop",)


def test_a_cut_at_a_turn_ends_behind_the_last_call_that_fits() -> None:
    row = cut(three_turns(), max_length=7, on_overflow=OnOverflow.CUT_TURN)
    assert (row.tokens, row.loss_mask, row.head.calls) == ([1, 2, 3], [0, 0, 1], ("a",))


def test_what_is_too_long_is_left_out_by_default() -> None:
    assert left_out(three_turns(), max_length=7) == "over_max_length"


@pytest.mark.parametrize("how", [OnOverflow.CUT, OnOverflow.CUT_TURN])
def test_a_cut_that_leaves_nothing_to_train_leaves_no_row(how: OnOverflow) -> None:
    assert left_out(three_turns(), max_length=2, on_overflow=how) == "no_trainable_tokens"


def test_a_run_that_must_lose_nothing_stops_with_the_numbers() -> None:
    with pytest.raises(TooLong, match="10 tokens, at most 7"):
        fitted(three_turns(), Export(max_length=7, on_overflow=OnOverflow.FAIL))


def test_a_last_answer_that_stopped_at_its_limit_carries_no_loss_where_that_is_asked_for() -> None:
    """Case T43: the tokens stay, and the turns before are trained."""
    row = cut(three_turns("length"), mask_truncated=True)
    assert row.loss_mask == [0, 0, 1, 0, 0, 0, 1, 1, 0, 0] and row.log_probs[-1] == 0.0
    assert cut(three_turns("stop"), mask_truncated=True).loss_mask[-1] == 1
    assert cut(three_turns("length")).loss_mask[-1] == 1


def test_half_an_answer_that_a_cut_leaves_carries_no_loss_where_that_is_asked_for() -> None:
    half = cut(three_turns(), max_length=7, on_overflow=OnOverflow.CUT, mask_truncated=True)
    assert half.loss_mask == [0, 0, 1, 0, 0, 0, 0]
    whole = cut(three_turns("length"), max_length=8, on_overflow=OnOverflow.CUT, mask_truncated=True)
    assert whole.loss_mask == [0, 0, 1, 0, 0, 0, 1, 1]
    prompt = cut(three_turns(), max_length=5, on_overflow=OnOverflow.CUT, mask_truncated=True)
    assert prompt.loss_mask == [0, 0, 1, 0, 0]


@given(
    st.builds(
        Export,
        max_length=st.none() | st.integers(2, 11),
        on_overflow=st.sampled_from([OnOverflow.DROP, OnOverflow.CUT, OnOverflow.CUT_TURN]),
        mask_truncated=st.booleans(),
        min_trainable=st.integers(1, 5),
    ),
    st.sampled_from(["stop", "length"]),
)
def test_every_token_that_would_be_trained_is_trained_or_has_a_reason(export: Export, finish: str) -> None:
    row = ROWS[finish]
    found = fitted(row, export)
    trained = 0 if isinstance(found, LeftOut) else found.trained
    assert trained + sum(found.untrained.values()) == row.trained
    assert all(found.untrained.values())


def test_the_reasons_are_told_apart() -> None:
    row = cut(three_turns(), max_length=7, on_overflow=OnOverflow.CUT, mask_truncated=True)
    assert row.untrained == {"over_max_length": 2, "length_stopped": 1}
    out = fitted(three_turns(), Export(max_length=7, on_overflow=OnOverflow.CUT, min_trainable=3))
    assert out.untrained == {"over_max_length": 2, "below_min_trainable": 2}


def test_a_row_with_hardly_a_trained_token_is_left_out() -> None:
    assert left_out(three_turns(), min_trainable=5) == "below_min_trainable"
    assert cut(three_turns(), min_trainable=4).trained == 4
