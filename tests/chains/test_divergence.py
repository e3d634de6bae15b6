"""Where a prompt leaves what it should begin with, and where the two meet again, against a naive search."""

from array import array
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.chains.divergence import Divergence, diverge
from ng_capture.records.ids import IdSequence, id_list

MEETING = 6
# few ids, so that runs repeat; long enough that two lists can meet
some_ids = st.lists(st.integers(1, 3), max_size=14)
Ids = list[int]


@st.composite
def edges(draw: st.DrawFn) -> tuple[Ids, Ids, Ids]:
    """A parent's prompt, its generation, and a prompt that is made of their pieces and others."""
    prompt, generation = draw(some_ids), draw(some_ids)
    held = prompt + generation
    new: Ids = held[: draw(st.integers(0, len(held)))]
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(held)))
        new = [*new, *draw(some_ids), *held[start : draw(st.integers(start, len(held)))]]
    return prompt, generation, new


def sequence(ids: Ids) -> IdSequence:
    return IdSequence.of(id_list(ids))


def found(prompt: Ids, generation: Ids, new: Ids) -> Divergence | None:
    return diverge(sequence(prompt).extended(id_list(generation)), len(prompt), sequence(new))


def certain(prompt: Ids, generation: Ids, new: Ids) -> Divergence:
    divergence = found(prompt, generation, new)
    assert divergence is not None
    return divergence


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return length


def meetings(held: Ids, new: Ids, common: int) -> Iterator[tuple[int, int]]:
    """Every pair of places behind the difference from which six ids are equal, by the place in the new ids."""
    for there in range(common, len(new) - MEETING + 1):
        for here in range(common, len(held) - MEETING + 1):
            if held[here : here + MEETING] == new[there : there + MEETING]:
                yield here, there


def tails(held: Ids, new: Ids, common: int) -> Iterator[tuple[int, int]]:
    """Where the end of what was held, two ids or more, stands in the new ids; the longest end first."""
    for size in range(len(held) - common, 1, -1):
        for there in range(common, len(new) - size + 1):
            if held[-size:] == new[there : there + size]:
                yield len(held) - size, there


@given(edge=edges())
def test_a_prompt_that_begins_with_all_that_was_held_does_not_diverge(edge: tuple[Ids, Ids, Ids]) -> None:
    prompt, generation, new = edge
    assert (found(prompt, generation, new) is None) == (new[: len(prompt + generation)] == prompt + generation)


@given(edge=edges())
def test_the_place_is_that_of_the_first_difference(edge: tuple[Ids, Ids, Ids]) -> None:
    prompt, generation, new = edge
    held, divergence = prompt + generation, found(*edge)
    if divergence is None:
        return
    common = common_prefix(held, new)
    assert (divergence.common_len, divergence.held_len, divergence.new_len) == (common, len(held), len(new))
    in_prompt = common < len(prompt)
    assert divergence.region == ("prompt" if in_prompt else "generation")
    assert divergence.offset == (common if in_prompt else common - len(prompt))
    assert divergence.new_ends == (new == held[: len(new)])


@given(edge=edges())
def test_the_meeting_point_is_the_first_run_of_six_or_a_longer_end_of_what_was_held(edge: tuple[Ids, Ids, Ids]) -> None:
    prompt, generation, new = edge
    held, divergence = prompt + generation, found(*edge)
    if divergence is None:
        return
    common = divergence.common_len
    first, end = next(meetings(held, new, common), None), next(tails(held, new, common), None)
    alike = common_prefix(held[first[0] :], new[first[1] :]) if first is not None else 0
    expected = end if end is not None and len(held) - end[0] > alike else first
    assert (divergence.held_meets, divergence.new_meets) == (expected or (None, None))


def test_ids_that_repeat_without_end_take_no_quadratic_time() -> None:
    size = 100_000
    divergence = certain([1], [2] * size, [1, *[2] * (size // 2), 3, *[2] * (size // 2)])
    assert (divergence.common_len, divergence.held_meets, divergence.new_meets) == (
        size // 2 + 1,
        size // 2 + 1,
        size // 2 + 2,
    )


@given(edge=edges())
def test_the_runs_that_differ_lead_from_the_difference_to_the_meeting_point(edge: tuple[Ids, Ids, Ids]) -> None:
    prompt, generation, new = edge
    held, divergence = prompt + generation, found(*edge)
    if divergence is None:
        return
    here, there = divergence.common_len + divergence.held_run, divergence.common_len + divergence.new_run
    if divergence.held_meets is None:
        assert (here, there) == (len(held), len(new))
        return
    alike = common_prefix(held[here:], new[there:])
    assert alike >= MEETING or here + alike == len(held)
    assert alike >= 2 and (divergence.held_run or divergence.new_run)


LONG = list(range(100, 120))


@pytest.mark.parametrize(
    ("held_middle", "new_middle", "runs"),
    [
        ([7, 8, 9], [], (3, 0)),
        ([], [7, 8, 9], (0, 3)),
        ([7], [8, 9], (1, 2)),
    ],
)
def test_what_was_left_out_added_or_replaced_is_told_apart(
    held_middle: Ids, new_middle: Ids, runs: tuple[int, int]
) -> None:
    divergence = certain([1, 2], [3, *held_middle, *LONG], [1, 2, 3, *new_middle, *LONG, 50, 51])
    assert (divergence.common_len, divergence.held_run, divergence.new_run) == (3, *runs)


def test_of_several_places_that_fit_the_first_held_one_is_taken() -> None:
    run = [5] * MEETING
    divergence = certain([1], [2, *run, 3, *run], [1, 9, *run])
    assert (divergence.held_meets, divergence.new_meets) == (2, 2)


def test_one_equal_id_at_the_end_is_a_coincidence() -> None:
    divergence = certain([1], [2, 3], [1, 4, 3])
    assert (divergence.held_meets, divergence.new_meets) == (None, None)


def test_two_equal_ids_at_the_end_of_what_was_held_are_a_meeting() -> None:
    divergence = certain([1], [2, 3, 4], [1, 5, 3, 4, 6])
    assert (divergence.held_meets, divergence.new_meets) == (2, 2)


def test_five_equal_ids_in_the_middle_are_no_meeting() -> None:
    run = [10, 11, 12, 13, 14]
    assert certain([1], [2, *run, 3], [1, 4, *run, 5]).held_meets is None


def test_sequences_that_stand_on_one_strand_diverge_like_any_other() -> None:
    """Ids are stored once: a branch and what it leaves share their beginning in memory."""
    root = sequence([1, 2, 3])
    held, branch = root.extended(id_list([4, 5])), root.extended(id_list([6]))
    divergence = diverge(held, 3, branch)
    assert divergence is not None and (divergence.common_len, divergence.offset) == (3, 0)
    assert diverge(held, 3, held.extended(id_list([7]))) is None


def test_the_ids_of_an_edge_are_compared_as_numbers_of_any_size() -> None:
    big = 2**31 - 1
    divergence = certain([0, big], [big - 1], [0, big, big])
    assert divergence.common_len == 2
    assert sequence([0, big]).values() == array("Q", [0, big])
