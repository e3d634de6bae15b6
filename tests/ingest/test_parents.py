"""Which call a request continues, by the conversation that it sends again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.ingest.parents import presumed_parents
from tests.support.forge import Row
from tests.support.raw_calls import calls, chat_call, exchanges, result, says, system, talk, user

SYSTEM = system("You mend querns.")


def parents(*rows: Row) -> dict[str, str | None]:
    return presumed_parents(exchanges(rows))


def test_a_conversation_is_a_chain() -> None:
    rows = talk(says("one"), says("two"), says("three"), first=[SYSTEM])
    assert parents(*rows) == {"a": None, "b": "a", "c": "b"}


def test_a_retry_is_another_answer_to_the_same_prompt_and_the_kept_one_is_continued() -> None:
    asked = [SYSTEM, user("go")]
    first = chat_call("a", asked, says("dropped"), at=1.0)
    again = chat_call("b", asked, says("kept"), at=2.0)
    then = chat_call("c", [*asked, says("kept"), user("on")], says("end"), at=3.0)
    assert parents(first, again, then) == {"a": None, "b": None, "c": "b"}


def test_of_two_equal_answers_the_last_is_continued() -> None:
    asked = [user("go")]
    rows = [chat_call(name, asked, says("same"), at=float(at)) for at, name in enumerate("ab")]
    assert parents(*rows, chat_call("c", [*asked, says("same"), user("on")], says("end"), at=3.0))["c"] == "b"


def test_a_retry_in_the_middle_has_the_parent_of_the_call_that_it_repeats() -> None:
    rows = talk(says("one"), says("two"), first=[SYSTEM])
    again = chat_call("c", rows[1]["request"]["messages"], says("two, again"), at=5.0)
    assert parents(*rows, again) == {"a": None, "b": "a", "c": "a"}


def test_a_side_call_begins_a_conversation_of_its_own() -> None:
    rows = talk(says("one"), says("two"), first=[SYSTEM])
    side = chat_call("t", [system("You name conversations."), user("name it")], says("Querns"), at=0.5)
    assert parents(rows[0], side, rows[1]) == {"a": None, "t": None, "b": "a"}


def test_two_conversations_beside_one_another_are_two_chains() -> None:
    ours = talk(says("one"), says("two"), says("three"), first=[SYSTEM])
    theirs = talk(says("1"), says("2"), says("3"), first=[system("You help.")], ids="xyz", about="riddle")
    mixed = [row for pair in zip(ours, theirs, strict=True) for row in pair]
    assert parents(*mixed) == {"a": None, "b": "a", "c": "b", "x": None, "y": "x", "z": "y"}


def test_an_edited_answer_is_still_followed() -> None:
    rows = talk(says("one"), says("two"), first=[SYSTEM])
    rows[1]["request"]["messages"][2] = says("something else")
    assert parents(*rows) == {"a": None, "b": "a"}


def test_a_shortened_tool_result_is_still_followed() -> None:
    asked = [SYSTEM, user("go")]
    calling = calls(("k1", "look_up", "{}"))
    rows = [
        chat_call("a", asked, calling, at=0.0),
        chat_call("b", [*asked, calling, result("k1", "a long result")], says("so"), at=1.0),
        chat_call("c", [*asked, calling, result("k1", "a ..."), says("so"), user("on")], says("end"), at=2.0),
    ]
    assert parents(*rows) == {"a": None, "b": "a", "c": "b"}


def test_a_compacted_history_continues_the_last_call_with_the_same_system_prompt() -> None:
    rows = talk(says("one"), says("two"), first=[SYSTEM])
    compacted = chat_call("c", [SYSTEM, user("summary: all went well"), user("on")], says("end"), at=9.0)
    assert parents(*rows, compacted)["c"] == "b"


def test_a_side_call_with_the_same_instructions_begins_a_conversation_of_its_own() -> None:
    """The conversation goes on as it stood: nothing was compacted."""
    rows = talk(says("one"), says("two"), says("three"), first=[SYSTEM])
    side = chat_call("t", [SYSTEM, user("a title, please"), user("now")], says("Querns"), at=0.5)
    assert parents(rows[0], side, *rows[1:]) == {"a": None, "t": None, "b": "a", "c": "b"}


def test_an_answer_that_was_cut_and_gone_on_with_has_the_parent_that_both_halves_tell() -> None:
    asked = [SYSTEM, user("go")]
    rows = [
        chat_call("a", asked, says("half"), at=0.0),
        chat_call("b", [*asked, says("half")], says(" done"), at=1.0),
        chat_call("c", [*asked, says("half done"), user("on")], says("end"), at=2.0),
    ]
    assert parents(*rows) == {"a": None, "b": "a", "c": "b"}


def test_the_call_that_asked_what_stands_before_an_edited_answer_comes_before_one_that_shares_more() -> None:
    asked = [SYSTEM, user("go")]
    rows = [
        chat_call("a", asked, says("one"), at=0.0),
        chat_call("b", [*asked, says("one"), user("on")], says("two"), at=1.0),
        chat_call("c", [*asked, says("one, edited"), user("on")], says("end"), at=2.0),
    ]
    assert parents(*rows)["c"] == "a"


def test_a_request_that_shares_nothing_has_no_parent() -> None:
    rows = talk(says("one"), first=[])
    assert parents(*rows, chat_call("b", [user("another thing")], says("x"), at=5.0)) == {"a": None, "b": None}


def test_a_call_without_an_answer_is_continued_by_what_it_asked() -> None:
    asked = [SYSTEM, user("go")]
    rows = [chat_call("a", asked, None), chat_call("b", [*asked, user("hello?")], says("yes"), at=1.0)]
    assert parents(*rows) == {"a": None, "b": "a"}


def test_calls_that_say_no_time_were_made_in_the_order_of_their_lines() -> None:
    rows = [row | {"started_at": None} for row in talk(says("one"), says("two"), says("three"))]
    assert parents(*rows) == {"a": None, "b": "a", "c": "b"}


@given(order=st.permutations(range(5)))
def test_the_order_of_the_lines_changes_nothing(order: list[int]) -> None:
    rows = talk(*map(says, ["one", "two", "three", "four", "five"]), first=[SYSTEM])
    assert parents(*[rows[place] for place in order]) == {"a": None, "b": "a", "c": "b", "d": "c", "e": "d"}


@pytest.mark.parametrize("answers", [200])
def test_a_long_conversation_is_followed_to_its_end(answers: int) -> None:
    rows = talk(*[says(f"answer {n}") for n in range(answers)], ids=[f"c{n}" for n in range(answers)])
    assert parents(*rows) == {f"c{n}": f"c{n - 1}" if n else None for n in range(answers)}


def test_of_no_calls_there_are_no_parents() -> None:
    assert presumed_parents([]) == {}
