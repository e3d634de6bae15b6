"""The likely cause of a broken edge: messages, text and ids weighed, and how sure the evidence is."""

from typing import Any

import pytest

from ng_capture.outputs.explain.causes import CAUSES
from ng_capture.outputs.explain.edge import Edge
from ng_capture.outputs.explain.ids_only import by_ids
from ng_capture.outputs.explain.likely import Likely, by_place, likely_cause
from tests.support.edges import edge, of_ids
from tests.support.forge import Row
from tests.support.raw_calls import calls, chat_call, exchange, says, system, user
from tests.support.vocabulary import Vocabulary

PROMPT, STOP = [10, 11, 12], 2
LONG = list(range(50, 62))
LOOK = ("k1", "look_up", '{"word": "quern"}')


def answered(generation: list[int], new: list[int], **known: Any) -> Edge:
    """An edge by ids whose generation stands as `new` in the next prompt."""
    return of_ids(PROMPT, generation, [*PROMPT, *new], **known)


def raw(answer: Row | None, copy: Row | None = None, asked: list[Row] | None = None) -> dict[str, Any]:
    """The raw calls of an edge: the answer, and how it was sent back (as it came, if not said otherwise)."""
    asked = asked or [user("go")]
    child = chat_call("b", [*asked, copy or answer or says(""), user("on")], says("end"))
    return {"parent": exchange(chat_call("a", asked, answer)), "child": exchange(child)}


# By ids alone

RETOLD = [[20, 21, *LONG, STOP], [22, *LONG, STOP, 9]]


@pytest.mark.parametrize(
    ("generation", "new", "known", "cause"),
    [
        (*RETOLD, {}, "noncanonical_merge"),
        ([30, 20, 21, *LONG, STOP], [30, 22, *LONG, STOP, 9], {}, "noncanonical_merge"),
        ([20, *LONG, STOP], [22, *LONG, STOP, 9], {}, "missing_prefix_space"),
        ([20, 21, 22, *LONG, STOP], [*LONG, STOP, 9], {}, "reasoning_stripped_by_template"),
        ([20, STOP], [20, 3, 9], {}, "other_stop_token"),
        ([20, 5, STOP], [20, STOP, 9], {}, "trailing_space_stripped"),
        ([20, STOP, 40, 41, 42], [20, STOP, 9], {"stops": frozenset({STOP})}, "tokens_after_stop"),
        ([20, 21, 22], [20, 23, 9], {"finish_reason": "length"}, "truncated_mid_character"),
        ([20, 21, 22], [20, 23, 9], {"finish_reason": "max_tokens", **raw(None)}, "truncated_mid_character"),
        ([20, 21, 22], [20, 23, 9], {"finish_reason": "length", **raw(says("x"))}, "truncated_mid_character"),
        ([20, 21], [3, 9], {"finish_reason": "length", **raw(says("", reasoning="x"))}, "truncated_in_reasoning"),
        ([20, 21, STOP], [20], {}, None),
        ([20, 21, 22, 23, STOP], [24, 25, 26], {}, None),
        ([30, *LONG, STOP], [30, 22, *LONG, STOP], {}, None),
        ([20, 21, *LONG, STOP], [22, *LONG, STOP, 9], raw(says("x")), "noncanonical_merge"),
        ([30, 20, *LONG, STOP], [30, 22, *LONG, STOP, 9], raw(calls(LOOK, text="x\n")), "tool_separator_newline_added"),
        ([30, 20, 21, *LONG, STOP], [30, 22, *LONG, STOP, 9], raw(calls(LOOK)), "noncanonical_merge"),
        ([30, 20, 21, STOP, 31], [30, 22, 23, 24], raw(calls(LOOK)), "tool_json_compact"),
        ([30, 20, 21, *LONG, STOP], [30, 22, *LONG, 8, 9], raw(calls(LOOK)), "tool_json_compact"),
        (*RETOLD, raw(calls((*LOOK[:2], '{"word":"quern"}'))), "tool_json_compact"),
        (*RETOLD, raw(calls((*LOOK[:2], "{cut"))), "tool_json_compact"),
        (*RETOLD, raw(calls((*LOOK[:2], "[" * 300 + "]" * 300))), "tool_json_compact"),
        (*RETOLD, raw(calls((*LOOK[:2], '{"word": "\\u00e9"}'))), "noncanonical_merge"),
    ],
)
def test_ids_say_of_an_answer_what_they_can(
    generation: list[int], new: list[int], known: dict[str, Any], cause: str | None
) -> None:
    assert by_ids(answered(generation, new, **known)) == cause


@pytest.mark.parametrize(
    ("prompt", "generation", "new", "known", "cause"),
    [
        ([10, 11], [*LONG, STOP], [10, 12, *LONG[1:], STOP], {}, "leading_newline_merges_with_prompt"),
        (
            *([10, 11], [*LONG, STOP], [10, 12, *LONG[1:], STOP]),
            raw(says("ern"), asked=[user("go"), says("The qu")]),
            "generation_continued_across_cut",
        ),
        ([10, 11], [*LONG, STOP], [10, *LONG, STOP], {}, "empty_think_block_dropped"),
        ([10, 11, *LONG], [STOP], [10, 12, *LONG, STOP], {}, None),
        ([10, 11, *LONG], [STOP], [10, *LONG, STOP], raw(says("x")), None),
        (
            *([10, 11, *LONG], [STOP], [10, *LONG, STOP]),
            raw(says("x"), asked=[user("go"), says("y", reasoning_content="why"), user("on")]),
            "reasoning_stripped_by_template",
        ),
        ([10, 11], [STOP], [13, 14], {}, None),
    ],
)
def test_ids_say_of_a_prompt_what_they_can(
    prompt: list[int], generation: list[int], new: list[int], known: dict[str, Any], cause: str | None
) -> None:
    assert by_ids(of_ids(prompt, generation, new, **known)) == cause


# By place, where nothing else says anything


@pytest.mark.parametrize(
    ("prompt", "generation", "new", "known", "cause"),
    [
        (PROMPT, [20, 21], [*PROMPT, 20], {}, "rollback"),
        (PROMPT, [20, 21], [10], {}, "rollback"),
        (PROMPT, [20, 21], [*PROMPT, 22], {}, "assistant_text_edited"),
        (PROMPT, [20, 21], [*PROMPT, 22], raw(None), "assistant_text_edited"),
        (PROMPT, [20, 21], [*PROMPT, 22], raw(says("x")), "noncanonical_merge"),
        (PROMPT, [20, 21], [*PROMPT, 22], raw(calls(LOOK)), "tool_json_compact"),
        (PROMPT, [20, 21], [13, 14, 15, 16], {}, "another_conversation"),
        ([*PROMPT, *LONG], [20], [10, 13], {}, "history_compacted"),
        (PROMPT, [20], [10, 13, 12, 20], {"first_prompt_len": 3}, "system_prompt_changed"),
        ([*PROMPT, 14, *LONG], [20], [*PROMPT, 15, *LONG, 20], {"first_prompt_len": 2}, "earlier_turn_edited"),
        (
            *([*PROMPT, 14, 15, *LONG], [20], [*PROMPT, 16, *LONG, 20, 21]),
            {"first_prompt_len": 2},
            "old_tool_result_shortened",
        ),
    ],
)
def test_a_place_has_its_most_frequent_cause(
    prompt: list[int], generation: list[int], new: list[int], known: dict[str, Any], cause: str
) -> None:
    assert by_place(of_ids(prompt, generation, new, **known)) == cause


def test_in_the_first_prompt_a_tool_is_told_from_a_text_by_the_tokenizer() -> None:
    words = Vocabulary("<|stop|>")
    held = ['{"name": "', "one", '", "parameters": {}, "function": 1}', "go"]
    new = [held[0], "two", *held[2:], "<|stop|>"]
    known: dict[str, Any] = {"first_prompt_len": 4}
    assert by_place(edge(words, held, ["<|stop|>"], new, **known)) == "tools_changed"
    assert by_place(edge(words, held, ["<|stop|>"], new, text=False, **known)) == "system_prompt_changed"
    held, new = ["Be ", "brief."], ["Be ", "kind.", "<|stop|>"]
    assert by_place(edge(words, held, ["<|stop|>"], new, **known)) == "system_prompt_changed"


# All together


def test_what_messages_show_is_likely_without_a_tokenizer() -> None:
    found = answered([20, 21, STOP], [22, STOP, 9], **raw(says("yes"), says("no")))
    assert likely_cause(found) == Likely("assistant_text_edited", "likely")


def test_what_only_ids_show_is_open() -> None:
    assert likely_cause(answered([20, STOP], [20, 3, 9])) == Likely("other_stop_token", "open")
    assert likely_cause(answered([20, 21], [20])) == Likely("rollback", "open")


def test_a_block_that_moved_is_seen_by_its_ids() -> None:
    block = list(range(100, 130))
    found = of_ids([1, *block, *LONG], [STOP], [1, *LONG, STOP, *block])
    assert likely_cause(found) == Likely("tools_block_moves", "open")


WORDS = ["Yes", ",", " it", " is", ".", "<|stop|>"]


def text_edge(generation: list[str], new: list[str], **known: Any) -> Edge:
    return edge(Vocabulary("<|stop|>"), ["Q"], generation, ["Q", *new, "On."], **known)


def test_what_the_text_shows_is_likely() -> None:
    assert likely_cause(text_edge(["Y", "es", *WORDS[1:]], WORDS)) == Likely("noncanonical_merge", "likely")


def test_what_neither_text_nor_messages_show_is_open() -> None:
    assert likely_cause(text_edge(WORDS, ["No", *WORDS[1:]])) == Likely("assistant_text_edited", "open")
    known = raw(says("Yes"))
    assert likely_cause(text_edge(WORDS, ["No", *WORDS[1:]], **known)) == Likely("noncanonical_merge", "open")


def test_whether_harness_or_template_stripped_is_decided_by_the_messages() -> None:
    held, new = ["Yes.", " ", "<|stop|>"], ["Yes.", "<|stop|>"]
    harness = text_edge(held, new, **raw(says("Yes. "), says("Yes.")))
    template = text_edge(held, new, **raw(says("Yes. ")))
    assert likely_cause(harness) == Likely("content_stripped_by_harness", "likely")
    assert likely_cause(template) == Likely("trailing_space_stripped", "likely")


def test_whether_harness_or_template_dropped_reasoning_is_decided_by_the_messages() -> None:
    held, new = ["<think>", "I know.", "</think>", *WORDS], WORDS
    harness = text_edge(held, new, **raw(says("Yes", reasoning_content="I know."), says("Yes")))
    template = text_edge(held, new, **raw(says("Yes", reasoning_content="I know.")))
    assert likely_cause(harness) == Likely("reasoning_dropped_by_harness", "likely")
    assert likely_cause(template) == Likely("reasoning_stripped_by_template", "likely")


def test_the_text_at_the_first_difference_decides_before_a_change_of_the_messages_elsewhere() -> None:
    """The harness edited the end of the answer; before that it was tokenised otherwise."""
    found = text_edge(["Y", "es", *WORDS[1:]], WORDS, **raw(says("Yes, it is."), says("Yes, it is")))
    assert likely_cause(found) == Likely("noncanonical_merge", "likely")


def test_in_a_prompt_the_messages_decide_before_the_text() -> None:
    words = Vocabulary("<|stop|>")
    parent = exchange(chat_call("a", [system("one"), user("go")], says("yes")))
    child = exchange(chat_call("b", [system("two"), user("go"), says("yes"), user("on")], says("end")))
    asked = ["<think>", "x", "</think>", "one"]
    found = edge(words, asked, ["yes"], ["one", "yes"], parent=parent, child=child, first_prompt_len=len(asked))
    assert likely_cause(found) == Likely("system_prompt_changed", "likely")


def test_at_the_boundary_the_text_decides_before_the_messages() -> None:
    found = edge(
        Vocabulary("<|stop|>"), ["Q", "\n"], ["\n", *WORDS], ["Q", "\n\n", *WORDS], **raw(says("\nYes"), says("Yes"))
    )
    assert likely_cause(found).cause == "leading_newline_merges_with_prompt"


@pytest.mark.parametrize("text", [True, False])
def test_every_cause_that_is_found_is_in_the_list(text: bool) -> None:
    pieces = ["Y", "es", "<think>", "</think>", " ", "{", '"a"', "}", "<|stop|>", "\ufffd"]
    for first in pieces:
        for second in pieces:
            if first != second:
                found = text_edge([first, *WORDS], [second, *WORDS], text=text)
                assert likely_cause(found).cause in CAUSES


def test_a_plain_text_in_place_of_the_stop_token_is_a_template_that_leaves_it_out() -> None:
    words = Vocabulary("<|stop|>")
    found = edge(words, ["go"], ["yes", "<|stop|>"], ["go", "yes", "\nuser: on"], **raw(says("yes")))
    assert likely_cause(found) == Likely("stop_token_missing", "open")
