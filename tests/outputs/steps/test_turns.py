"""Which turn a call belongs to."""

from typing import Any

import pytest

from ng_capture.outputs.steps.turn_rule import TurnRule
from ng_capture.outputs.steps.turns import asked_in, turn_indexes
from tests.support.forge import Row
from tests.support.raw_calls import calls, result, says, system, user

both_rules = pytest.mark.parametrize("rule", TurnRule)


def turns(*requests: Any, rule: TurnRule = TurnRule.CHAIN) -> list[int | None]:
    """The turns of calls with these requests; a list stands for its messages."""
    asked = [{"messages": each} if isinstance(each, list) else each for each in requests]
    return turn_indexes([asked_in(each, rule) for each in asked], rule)


def users(*texts: str) -> list[Row]:
    """A conversation in which every user message but the last was answered."""
    told: list[Row] = []
    for text in texts:
        told += [*([says("yes")] if told else []), user(text)]
    return told


def tool_results(*more: Row) -> Row:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k1", "content": "found"}, *more]}


@both_rules
def test_a_call_belongs_to_the_last_user_message_that_it_answers(rule: TurnRule) -> None:
    first, second = users("A"), users("A", "B")
    called = [*first, calls(("k1", "look", "{}")), result("k1", "found")]
    assert turns(first, called, second, rule=rule) == [0, 0, 1]


@both_rules
def test_several_user_messages_at_once_are_several_turns(rule: TurnRule) -> None:
    assert turns(users("A"), users("A", "B", "C"), rule=rule) == [0, 2]


@both_rules
def test_before_the_first_user_message_the_turn_is_0(rule: TurnRule) -> None:
    opening = [system("Be brief.")]
    assert turns(opening, [*opening, *users("A")], rule=rule) == [0, 0]


@both_rules
def test_without_a_user_message_anywhere_no_call_has_a_turn(rule: TurnRule) -> None:
    assert turns([system("Be brief.")], [system("Be brief."), says("ok")], rule=rule) == [None, None]


def test_a_conversation_of_its_own_counts_for_itself() -> None:
    assert turns(users("A", "B"), users("X"), users("A", "B", "C")) == [1, 0, 2]


def test_a_conversation_of_its_own_takes_all_turns_from_the_preview() -> None:
    assert turns(users("A"), users("X"), rule=TurnRule.PREVIEW) == [None, None]


def test_results_of_tools_alone_are_no_turn() -> None:
    asked = [user("A"), says("let me look"), tool_results()]
    assert turns([user("A")], asked) == [0, 0]
    assert turns([user("A")], asked, rule=TurnRule.PREVIEW) == [0, 1]


def test_what_a_user_says_beside_results_is_a_turn() -> None:
    asked = [user("A"), says("let me look"), tool_results({"type": "text", "text": "and hurry"})]
    assert turns([user("A")], asked) == [0, 1]


@both_rules
def test_a_request_of_one_text_is_one_user_message(rule: TurnRule) -> None:
    more = {"input": [user("A"), says("yes"), user("B")], "instructions": "Be brief."}
    assert turns({"input": "A"}, more, rule=rule) == [0, 1]


def test_a_request_that_cannot_be_read_has_no_turn() -> None:
    assert turns(None, {"input": 5}, {}, users("A")) == [None, None, None, 0]
    assert turns(None, users("A"), rule=TurnRule.PREVIEW) == [None, None]


def test_a_request_that_is_nested_too_deeply_has_no_turn() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = {"a": deep}
    said = says("", tool_calls=[{"function": {"name": "look", "arguments": deep}}])
    assert turns([said, user("A")]) == [None]


@pytest.mark.parametrize("held", [{"previous_response_id": "r1"}, {"conversation": {"id": "k"}}])
def test_a_request_that_goes_on_with_what_the_server_keeps_has_no_turn(held: Row) -> None:
    assert turns({"input": "A"}, {"input": "B", **held}) == [0, None]
