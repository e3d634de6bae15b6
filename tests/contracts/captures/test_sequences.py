"""Which call a prompt goes on with: the longest sequence that it begins with."""

from hypothesis import given
from hypothesis import strategies as st

from ng_capture.contracts.captures.sequences import Sequences, rest_behind
from ng_capture.contracts.episode import Tokens

IDS = st.lists(st.integers(0, 2), max_size=4)
CALLS = st.lists(st.tuples(IDS, IDS), max_size=5)


def tokens_of(prompt: list[int], generation: list[int]) -> Tokens:
    return Tokens(prompt, generation, [-0.5] * len(generation))


@given(CALLS, IDS)
def test_the_longest_beginning_is_found_and_all_calls_that_have_it(
    calls: list[tuple[list[int], list[int]]], prompt: list[int]
) -> None:
    held = {str(number): tokens_of(*each) for number, each in enumerate(calls)}
    whole = {str(number): [*before, *made] for number, (before, made) in enumerate(calls)}
    fitting = {name: ids for name, ids in whole.items() if prompt[: len(ids)] == ids}
    longest = max(map(len, fitting.values()), default=0)
    expected = [name for name, ids in fitting.items() if len(ids) == longest]
    assert sorted(Sequences(held).beginning(prompt)) == expected


@given(IDS, IDS, IDS)
def test_what_stands_behind_a_call_is_told(before: list[int], made: list[int], rest: list[int]) -> None:
    assert rest_behind([*before, *made, *rest], tokens_of(before, made)) == tuple(rest)
    assert rest_behind([*before, *made, *rest], tokens_of([*before, 9], made)) is None
    assert rest_behind([*before, *made], tokens_of(before, [*made, 9])) is None


def test_ids_that_no_model_has_begin_nothing() -> None:
    held = Sequences({"a": tokens_of([1], [2])})
    assert held.beginning([2**70, 1]) == []
    assert Sequences({"a": tokens_of([2**70], [2])}).beginning([1]) == []
