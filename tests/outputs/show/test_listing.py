"""The rollouts of a directory, a line each, in any order that is asked for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.outputs.show.listing import RolloutLine, in_order, line_of
from ng_capture.outputs.show.sorting import SortBy
from tests.support.forge import Forge
from tests.support.looking import shown_forge
from tests.support.runs import broken, healthy


def line(rollout_id: str, **told: Any) -> RolloutLine:
    """A trainable rollout of one call, or one that is masked for the reasons given."""
    verdict = "masked" if told.get("reasons") else "trainable"
    nothing: dict[str, Any] = {"reasons": (), "calls": 1, "chains": 1, "tokens": 1, "trained": 1, "reward": None}
    return RolloutLine(
        **{"rollout_id": rollout_id, "verdict": verdict, "models": (), "raw_only": False, **nothing, **told}
    )


def ids(lines: list[RolloutLine]) -> list[str]:
    return [each.rollout_id for each in lines]


def test_a_line_says_verdict_counts_reward_and_models() -> None:
    forge = healthy("2-0")
    forge.calls[0].retry([8, 9], id="x", model="other")
    told = line_of(shown_forge(forge, forge.row(forge.calls[1], reward=0.5)))
    assert (told.rollout_id, told.verdict, told.reasons, told.reward) == ("2-0", "trainable", (), 0.5)
    assert (told.calls, told.chains, told.tokens, told.trained) == (3, 1, 4, 2)
    assert told.models == ("other", "policy-8b") and not told.raw_only


def test_without_a_row_the_reward_is_unknown_and_without_a_name_the_model() -> None:
    forge = Forge()
    forge.root([1], [2], model="")
    told = line_of(shown_forge(forge))
    assert (told.reward, told.models) == (None, ())


def test_a_masked_rollout_says_why_and_trains_nothing() -> None:
    told = line_of(shown_forge(broken("2-0")))
    assert (told.verdict, told.reasons, told.trained, told.tokens) == ("masked", ("prefix_mismatch",), 0, 2)


def test_ids_are_sorted_as_people_count() -> None:
    assert ids(in_order([line("10-0"), line("9-0"), line("2-10"), line("2-9")], SortBy.ID)) == [
        *("2-9", "2-10", "9-0", "10-0"),
    ]


@pytest.mark.parametrize("by", [SortBy.CALLS, SortBy.CHAINS, SortBy.TOKENS, SortBy.TRAINED, SortBy.REWARD])
def test_numbers_are_sorted_from_the_largest_down_and_equals_by_their_ids(by: SortBy) -> None:
    lines = [line("10-0", **{by: 3}), line("4-0", **{by: 7}), line("9-0", **{by: 3}), line("1-0", **{by: 0})]
    assert ids(in_order(lines, by)) == ["4-0", "9-0", "10-0", "1-0"]


def test_what_is_unknown_stands_last_behind_what_is_negative() -> None:
    lines = [line("1-0"), line("2-0", reward=-1.0), line("3-0", reward=0.0), line("4-0")]
    assert ids(in_order(lines, SortBy.REWARD)) == ["3-0", "2-0", "1-0", "4-0"]


def test_reasons_are_sorted_by_name_and_what_has_none_stands_last() -> None:
    lines = [
        line("1-0"),
        line("2-0", reasons=("torn_tail",)),
        line("3-0", reasons=("bom",)),
        line("9-0", reasons=("bom",)),
    ]
    assert ids(in_order(lines, SortBy.REASON)) == ["3-0", "9-0", "2-0", "1-0"]


@given(
    by=st.sampled_from(SortBy),
    told=st.lists(
        st.tuples(st.integers(0, 3), st.none() | st.floats(-1, 1), st.sampled_from(["", "a", "b"])), max_size=6
    ),
    data=st.data(),
)
def test_the_order_in_which_lines_come_changes_nothing(by: SortBy, told: Any, data: st.DataObject) -> None:
    lines = [
        line(f"{number}-0", calls=count, reward=reward, reasons=(reason,) if reason else ())
        for number, (count, reward, reason) in enumerate(told)
    ]
    turned = data.draw(st.permutations(lines))
    assert in_order(turned, by) == in_order(lines, by)
    assert sorted(ids(in_order(lines, by))) == sorted(ids(lines))
