"""What must hold for every stream, however its lines lie or are damaged."""

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ng_capture.contracts.atof.moments import moment_of
from ng_capture.contracts.episode import Thread
from ng_capture.contracts.interface import Read
from tests.support.atof_events import Event, agent, answer, ask, call, gives, llm, mark, says, tool, user
from tests.support.conversions import as_lines, converted, outcomes_of

HI, CALLS = user("hi"), says(None, call("c1", arguments='{"x": 1}'))
STREAM: list[Event] = [
    *agent(
        "a",
        0,
        90,
        *llm("l1", 1, ask(HI), answer(CALLS)),
        *tool("t1", 3, {"x": 1}, {"result": 7}, call="c1"),
        mark("m", 4, "a", {"n": 1}),
        *agent("b", 3, 9, *llm("lb", 4, ask(user("do")), answer(says("done")), parent="b"), parent="t1"),
        *llm("l2", 20, ask(HI, CALLS, gives("c1", "7")), answer(says("seven"))),
        *llm("l3", 30, ask(HI, CALLS, gives("c1", "7"), says("seven"), user("more")), None),
    ),
    *agent("z", 3, 9, *llm("lz", 4, ask(user("apart")), answer(says("yes")), parent="z")),
]
JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 2**70, 1.5, "", "x", "a", "\ud800", [], {}, [[]], {"x": None}, {"messages": [3]}, {"content": 1}]
)


def seen(events: list[Event]) -> list[Any]:
    """All that reading tells, but for the numbers of lines, as JSON-like values."""
    outcomes = outcomes_of("atof", events)
    return [(outcome.episode if isinstance(outcome, Read) else None, outcome.losses) for outcome in outcomes]


@settings(deadline=None)
@given(st.permutations(STREAM))
def test_the_order_of_lines_means_nothing(events: list[Event]) -> None:
    assert seen(events) == seen(STREAM)


@settings(deadline=None)
@given(st.permutations([{**each, "timestamp": 5} for each in STREAM]))
def test_even_of_one_moment_the_order_of_lines_means_nothing(events: list[Event]) -> None:
    assert seen(events) == seen([{**each, "timestamp": 5} for each in STREAM])


def test_an_event_that_stands_twice_changes_nothing() -> None:
    assert seen([*STREAM, *STREAM]) == seen(STREAM)


@pytest.mark.parametrize("until", range(len(STREAM)))
def test_what_came_first_gives_the_turns_that_come_first(until: int) -> None:
    """But for results, and agents, that come later to a turn that is there."""
    ordered = sorted(
        STREAM, key=lambda each: (each["timestamp"], each["scope_category"] != "end" if "scope_category" in each else 0)
    )
    before, after = turns(ordered[:until]), turns(ordered)
    for name, told in before.items():
        assert after[name][: len(told)] == told


def turns(events: list[Event]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}

    def walk(name: str, thread: Thread) -> None:
        found[name] = [(turn.role, turn.content, turn.calls and turn.calls[0].arguments) for turn in thread.turns]
        for child in thread.subagents:
            walk(child.trajectory_id or "", child)

    for outcome in outcomes_of("atof", events):
        if isinstance(outcome, Read):
            walk(outcome.place, outcome.episode.main)
    return found


def test_the_same_stream_gives_the_same_bytes() -> None:
    once, again = ([each.written for each in converted("atof", "atif", STREAM)] for _ in range(2))
    assert once == again and all(once)


@settings(deadline=None)
@given(st.data())
def test_a_change_in_any_one_place_never_crashes(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(STREAM) - 1))
    changed = json.loads(json.dumps(STREAM[at]))
    place = changed
    while True:
        members = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(members))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(JUNK)
    for target in ("atif", "gym", "chat"):
        converted("atof", target, [*STREAM[:at], changed, *STREAM[at + 1 :]])


@settings(deadline=None)
@given(st.integers(0, len(as_lines(STREAM)) - 1), st.binary(max_size=3))
def test_bytes_that_are_struck_anywhere_never_crash(at: int, struck: bytes) -> None:
    data = as_lines(STREAM)
    for outcome in outcomes_of("atof", data[:at] + struck + data[at + len(struck) :]):
        assert isinstance(outcome, Read) or outcome.faults


class TestMoments:
    @pytest.mark.parametrize(
        "text", ["2026-01-01T00:00:00Z", "2026-01-01t02:00:00.000+02:00", "2025-12-31 22:30:00-01:30"]
    )
    def test_one_moment_in_any_zone_and_spelling_is_one(self, text: str) -> None:
        moment = moment_of(text)
        assert moment is not None and moment.nanos == 1_767_225_600_000_000_000 and not moment.naive

    def test_microseconds_are_spelled_as_rfc_3339(self) -> None:
        moment = moment_of(1_767_225_600_250_000)
        assert moment is not None and moment.spelled == "2026-01-01T00:00:00.250000Z"

    def test_a_leap_second_is_one_and_nanoseconds_count(self) -> None:
        leap, fine = moment_of("2016-12-31T23:59:60Z"), moment_of("1970-01-01T00:00:00.0000000019Z")
        assert leap is not None and fine is not None and fine.nanos == 1

    @pytest.mark.parametrize(
        "value", [None, True, 1.0, -1, 10**18, "", "2026", "2026-01-01T00:60:00Z", "2026-13-01T00:00:00Z"]
    )
    def test_what_is_no_moment_is_none(self, value: Any) -> None:
        assert moment_of(value) is None
