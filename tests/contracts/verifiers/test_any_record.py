"""What must hold for every record, however it is damaged."""

import copy
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from ng_capture.contracts.interface import Read
from tests.support.atof_events import call, gives, says, user
from tests.support.conversions import as_lines, converted, outcomes_of, read_one
from tests.support.verifiers_records import episode, made, node, row, step, trace

ROW = row(
    [user("hi")],
    [says("", call("c1")), gives(None, "7"), says("<think>R</think>seven")],
    trajectory=[step([says("", call("c1"))], [1], [2], [-0.5])],
    info={"oai_tools": [{"type": "function", "function": {"name": "f"}}]},
    token_usage={"input_tokens": 3.0},
)
EPISODE = episode(
    trace(
        node(None, "user", "hi", "ab"),
        node(0, "assistant", "one", "C", message={"tool_calls": [call("c1")]}),
        node(None, "user", "go on", "d"),
        node(2, "assistant", "two", "E", semantic_parents=[{"node": 1, "type": "compaction"}]),
        calls=[made(1), made(3)],
        tools=[{"type": "function", "name": "f"}],
        stop_condition="max_turns",
    )
)
RECORDS = [ROW, EPISODE]
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 2**70, 1.5, "", "x", "\ud800", [], {}, [[]], {"x": None}, [3], {"role": "tool"}]
)


@settings(deadline=None)
@given(st.data())
def test_a_change_in_any_one_place_never_crashes(data: st.DataObject) -> None:
    record = copy.deepcopy(data.draw(st.sampled_from(RECORDS)))
    place: Any = record
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JUNK)
    for target in ("atif", "gym", "tokens"):
        converted("verifiers", target, [record])


@settings(deadline=None)
@given(st.integers(0, len(as_lines(RECORDS)) - 1), st.binary(max_size=3))
def test_bytes_that_are_struck_anywhere_never_crash(at: int, struck: bytes) -> None:
    data = as_lines(RECORDS)
    for outcome in outcomes_of("verifiers", data[:at] + struck + data[at + len(struck) :]):
        assert isinstance(outcome, Read) or outcome.faults


def test_the_same_records_give_the_same_bytes() -> None:
    once, again = ([each.written for each in converted("verifiers", "atif", RECORDS)] for _ in range(2))
    assert once == again and all(once)


MESSAGES = st.lists(
    st.sampled_from([user("a"), user("b"), says("x"), says("", call("c1")), gives("c1", "7"), gives(None, "8")]),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(MESSAGES, st.data())
def test_a_prefix_of_a_completion_gives_a_prefix_of_the_turns(messages: list[Any], data: st.DataObject) -> None:
    """But for results that come later to a turn that is there."""
    part = messages[: data.draw(st.integers(1, len(messages)))]
    before, after = (read_one("verifiers", [row("Q", each)]).episode.main.turns for each in (part, messages))
    told = [(turn.role, turn.content, turn.calls) for turn in after]
    assert told[: len(before)] == [(turn.role, turn.content, turn.calls) for turn in before]
    for one, other in zip(before, after, strict=False):
        assert other.results[: len(one.results)] == one.results
