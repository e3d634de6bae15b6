"""What a harness did to the conversation between two calls, by their messages alone."""

import pytest

from ng_capture.outputs.explain.message_changes import message_change
from tests.support.forge import Row
from tests.support.raw_calls import calls, chat_call, exchange, result, says, system, user

ASKED = [system("Be brief."), user("go")]
TOOLS = [{"type": "function", "function": {"name": "look_up"}}]
DEEP = '{"a":' * 900 + "1" + "}" * 900
LOOK = ("k1", "look_up", '{"word": "quern", "n": 1}')


def change(
    answer: Row | None,
    then: list[Row],
    *,
    asked: list[Row] = ASKED,
    tools: tuple[object, object] = (None, None),
) -> str | None:
    """What became of a call that asked `asked` and got `answer` in the call that asked `then`."""
    parent = exchange(chat_call("a", asked, answer, tools=tools[0]))
    return message_change(parent, exchange(chat_call("b", then, says("end"), tools=tools[1])))


def copied(answer: Row, copy: Row) -> str | None:
    """What became of an answer that was sent back like this."""
    return change(answer, [*ASKED, copy, user("on")])


@pytest.mark.parametrize("answer", [says("yes"), says("yes", reasoning_content="why"), calls(LOOK), calls(LOOK, LOOK)])
def test_what_was_sent_back_as_it_came_shows_nothing(answer: Row) -> None:
    assert copied(answer, answer) is None


def test_an_answer_that_is_not_known_shows_nothing() -> None:
    assert change(None, [*ASKED, user("on")]) is None


def test_another_system_prompt_is_named_before_all() -> None:
    then = [system("Be kind."), user("gone"), says("no"), user("on")]
    assert change(says("yes"), then) == "system_prompt_changed"
    assert change(says("yes"), [user("go"), says("yes"), user("on")]) == "system_prompt_changed"


def test_other_tools_are_named() -> None:
    then = [*ASKED, says("yes"), user("on")]
    assert change(says("yes"), then, tools=(TOOLS, [*TOOLS, *TOOLS])) == "tools_changed"
    assert change(says("yes"), then, tools=(TOOLS, None)) == "tools_changed"


@pytest.mark.parametrize(
    ("answer", "copy", "cause"),
    [
        (says("yes", reasoning_content="why"), says("yes"), "reasoning_dropped_by_harness"),
        (says("yes", reasoning_content=" \n"), says("yes"), None),
        (says("yes", reasoning_content="why"), says("yes", reasoning_content="how"), "assistant_text_edited"),
        (says("yes"), says("yes", reasoning_content="how"), "assistant_text_edited"),
        (says("yes\n"), says("yes"), "content_stripped_by_harness"),
        (says("yes"), says("yes "), "white_space_changed"),
        (says("oh, yes"), says("oh,\n yes"), "white_space_changed"),
        (says("e\u0301"), says("\u00e9"), "unicode_normalised"),
        (says("yes"), says("no"), "assistant_text_edited"),
        (calls(LOOK), says(""), "tool_call_changed"),
        (says(""), calls(LOOK), "tool_call_changed"),
        (calls(LOOK), calls(("k1", "find", LOOK[2])), "tool_call_changed"),
        (calls(LOOK), calls(LOOK, LOOK), "tool_call_changed"),
        (calls(LOOK), calls(("k2", *LOOK[1:])), None),
        (calls(LOOK), calls((*LOOK[:2], '{"word":"quern","n":1}')), "tool_json_compact"),
        (calls(LOOK), calls((*LOOK[:2], '{"n": 1, "word": "quern"}')), "tool_json_key_order"),
        (calls(LOOK), calls((*LOOK[:2], '{"word": "mill", "n": 1}')), "tool_call_changed"),
        (calls(LOOK), calls((*LOOK[:2], "quern")), "tool_call_changed"),
        (calls((*LOOK[:2], "{cut")), calls(LOOK), "tool_call_changed"),
        (calls((*LOOK[:2], DEEP)), calls((*LOOK[:2], DEEP.replace(":", ": "))), "tool_call_changed"),
    ],
)
def test_what_became_of_the_answer_is_named(answer: Row, copy: Row, cause: str | None) -> None:
    assert copied(answer, copy) == cause


def test_a_turn_of_another_in_the_place_of_the_answer_is_an_edit() -> None:
    assert change(says("yes"), [*ASKED, user("on"), user("and on")]) == "earlier_turn_edited"


def test_turns_that_were_taken_back_are_a_rollback() -> None:
    asked = [*ASKED, says("yes"), user("on")]
    assert change(says("more"), ASKED, asked=asked) == "rollback"
    assert change(says("more"), asked, asked=asked) == "rollback"


HISTORY = [*ASKED, calls(LOOK), result("k1", "a long result"), says("so"), user("on")]


def edited(place: int, turn: Row, *, more: bool = True) -> str | None:
    """What is said of the history with one turn changed, sent back with its answer or without."""
    then = [*HISTORY[:place], turn, *HISTORY[place + 1 :]]
    return change(says("end"), [*then, *([says("end"), user("and on")] if more else [])], asked=HISTORY)


@pytest.mark.parametrize(
    ("place", "turn", "cause"),
    [
        (1, user("go!"), "earlier_turn_edited"),
        (2, calls((*LOOK[:2], '{"word":"quern","n":1}')), "tool_json_compact"),
        (2, calls(("k2", *LOOK[1:])), None),
        (3, result("k1", "a ..."), "old_tool_result_shortened"),
        (3, user("a long result"), "earlier_turn_edited"),
        (4, says("thus"), "assistant_text_edited"),
    ],
)
def test_what_became_of_an_earlier_turn_is_named(place: int, turn: Row, cause: str | None) -> None:
    assert edited(place, turn) == cause


def test_a_history_that_became_shorter_was_compacted() -> None:
    assert edited(3, result("k1", "a ..."), more=False) == "history_compacted"
    assert change(says("end"), [*ASKED[:1], user("summary: so")], asked=HISTORY) == "history_compacted"


def test_the_first_turn_that_changed_decides() -> None:
    then = [*HISTORY[:1], user("go!"), HISTORY[2], result("k1", "a ..."), *HISTORY[4:], says("end"), user("on")]
    assert change(says("end"), then, asked=HISTORY) == "earlier_turn_edited"


def test_halves_of_one_answer_that_became_one_message_are_named() -> None:
    asked = [*ASKED, says("The qu")]
    then = [*ASKED, says("The quern"), user("on")]
    assert change(says("ern"), then, asked=asked) == "generation_continued_across_cut"


def test_a_continued_answer_that_came_back_otherwise_is_an_edit() -> None:
    asked = [*ASKED, says("The qu")]
    assert change(says("ern"), [*ASKED, says("A quern"), user("on"), user("!")], asked=asked) == "assistant_text_edited"
