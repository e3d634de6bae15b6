"""What the decoded text around a difference shows, with small made-up vocabularies."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ng_capture.outputs.explain.edge import Edge
from ng_capture.outputs.explain.text_runs import at_boundary, in_answer, in_tools, moved, thought_lost
from tests.support.edges import Pieces, edge
from tests.support.raw_calls import calls, chat_call, exchange, says, user
from tests.support.vocabulary import Vocabulary

STOP, OTHER_STOP, OPEN, CLOSE = "<|stop|>", "<|eot|>", "<|open|>", "<|close|>"
ASKED = ["<|user|>", "Say it.", "<|bot|>"]
THEN = ["<|user|>", "On.", "<|bot|>"]
LONG = [f" word{number}" for number in range(12)]


def vocabulary() -> Vocabulary:
    return Vocabulary(STOP, OTHER_STOP, OPEN, CLOSE, "<|user|>", "<|bot|>", "[THINK]", "[/THINK]")


def answered(held: Pieces, new: Pieces, **known: Any) -> Edge:
    """An edge whose generation was `held` and stands as `new` in the next prompt."""
    return edge(vocabulary(), ASKED, held, [*ASKED, *new, *THEN], **known)


# The end of the generation


def test_another_stop_token_is_named() -> None:
    assert in_answer(answered(["Yes", OTHER_STOP], ["Yes", STOP])) == "other_stop_token"


def test_a_stop_token_that_is_not_there_any_more_is_named() -> None:
    found = edge(vocabulary(), ASKED, ["Yes", STOP], [*ASKED, "Yes", "\n", *THEN])
    assert in_answer(found) == "stop_token_missing"


def test_an_answer_that_says_more_has_not_lost_its_stop_token() -> None:
    assert in_answer(answered(["Yes", STOP], ["Yes", " and more", STOP])) is None


@pytest.mark.parametrize("behind", [[" "], ["\n", "\n"], [b"\xf0"], [b"\x9f", "\n"]])
def test_ids_behind_the_stop_token_are_named(behind: Pieces) -> None:
    assert in_answer(answered(["Yes", STOP, *behind], ["Yes", STOP])) == "tokens_after_stop"


def test_a_text_behind_the_stop_token_is_named_where_it_comes_back_nowhere() -> None:
    behind = [f" junk{number}" for number in range(20)]
    known = vocabulary().ids(STOP)
    found = answered(["Yes", STOP, *behind], ["Yes", STOP], stops=frozenset(known))
    assert in_answer(found) == "tokens_after_stop"


def test_a_control_token_before_a_tool_call_is_no_stop() -> None:
    held = ["Look.", OPEN, '{"a":1}', CLOSE, STOP]
    new = ["Look.", OPEN, '{"a": 1}', CLOSE, STOP]
    assert in_answer(answered(held, new, finish_reason="tool_calls")) == "tool_json_compact"


# Reasoning

TAGS = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
]
every_tag = pytest.mark.parametrize(("opens", "closes"), TAGS)
SAID = ["\n", "Yes", ",", " it", " is", ".", STOP]


@every_tag
def test_reasoning_that_is_left_out_is_named(opens: str, closes: str) -> None:
    found = answered([opens, "I", " know", closes, *SAID], SAID[1:])
    assert in_answer(found) == "reasoning_stripped_by_template"


@every_tag
def test_reasoning_of_which_the_tags_are_left_is_named(opens: str, closes: str) -> None:
    found = answered([opens, "\n", "I", " know", closes, *SAID], [opens, "\n", closes, *SAID])
    assert in_answer(found) == "reasoning_stripped_by_template"


@every_tag
def test_an_empty_block_that_is_left_out_is_named(opens: str, closes: str) -> None:
    assert in_answer(answered([opens, "\n\n", closes, *SAID], SAID[1:])) == "empty_think_block_dropped"


@every_tag
def test_reasoning_that_was_cut_is_named(opens: str, closes: str) -> None:
    found = answered([opens, "I", " kn"], ["", STOP], finish_reason="length")
    assert in_answer(found) == "truncated_in_reasoning"


def test_a_block_that_the_prompt_opened_is_known_by_its_tag() -> None:
    found = edge(vocabulary(), [*ASKED, "<think>"], ["I", " know", "</think>", *SAID], [*ASKED, *SAID[1:]])
    assert found.divergence.region == "prompt" and thought_lost(found) == "reasoning_stripped_by_template"


def test_a_difference_inside_reasoning_that_is_kept_is_none_of_its_causes() -> None:
    found = answered(["<think>", "I", " kn", "ow", "</think>", *SAID], ["<think>", "I", " know", "</think>", *SAID])
    assert in_answer(found) == "noncanonical_merge"


def test_a_tag_in_other_pieces_is_no_reasoning_that_was_left_out() -> None:
    found = answered(["<think>", "I", "</think>", *SAID], ["<thi", "nk>", "I", "</think>", *SAID])
    assert in_answer(found) == "noncanonical_merge"


def test_an_answer_behind_closed_reasoning_is_no_reasoning() -> None:
    found = answered(["<think>", "I", "</think>", "Y", "es", STOP], ["<think>", "I", "</think>", "Yes", STOP])
    assert in_answer(found) == "noncanonical_merge"


# The same text in other pieces


@pytest.mark.parametrize(
    ("held", "new", "cause"),
    [
        (["reg", "ress"], ["regress"], "noncanonical_merge"),
        (["regress"], ["reg", "ress"], "noncanonical_merge"),
        (["ab", "c"], ["a", "bc"], "noncanonical_merge"),
        (["  ", "  x"], ["    ", "x"], "noncanonical_whitespace"),
        (["\n", "\n"], ["\n\n"], "noncanonical_whitespace"),
        (["\t", "x"], ["\tx"], "noncanonical_whitespace"),
        ([b"\xe7", b"\x9f", b"\xb3"], ["\u77f3"], "noncanonical_bytes"),
        (["\u77f3"], [b"\xe7\x9f", b"\xb3"], "noncanonical_merge"),
        (["<", "|open", "|>"], [OPEN], "special_token_spelled_as_text"),
    ],
)
def test_the_same_text_in_other_pieces_is_named(held: Pieces, new: Pieces, cause: str) -> None:
    found = answered([*held, *LONG, STOP], [*new, *LONG, STOP])
    assert (in_answer(found), found.texts_equal) == (cause, True)


@pytest.mark.parametrize(("held", "new"), [(["ab"], ["a", "b"]), (["x", "yab"], ["xy", "ab"]), (["x", "yz"], ["xyz"])])
def test_a_word_whose_last_piece_was_the_last_one_generated_is_the_same_text(held: Pieces, new: Pieces) -> None:
    """No stop token stands behind it: the generation was cut."""
    found = answered(held, [*new, STOP], finish_reason="length")
    assert in_answer(found) == "noncanonical_merge"


@pytest.mark.parametrize(("held", "new"), [(["ab"], ["abc", "d"]), (["abc", "d"], ["ab"])])
def test_a_text_that_only_begins_like_the_other_is_not_the_same(held: Pieces, new: Pieces) -> None:
    found = edge(vocabulary(), ASKED, held, [*ASKED, *new])
    assert in_answer(found) != "noncanonical_merge"


def test_a_token_that_is_added_but_not_special_counts_as_one() -> None:
    words = Vocabulary(STOP, plain_added=("<tool>",))
    found = edge(words, ["Go."], ["<to", "ol>", *LONG, STOP], ["Go.", "<tool>", *LONG, STOP])
    assert in_answer(found) == "special_token_spelled_as_text"


some_text = st.text(st.sampled_from("ab \n\u77f3\u00e9"), min_size=2, max_size=9)
cuts = st.sets(st.integers(1, 26), max_size=5)


def cut_at(text: bytes, places: set[int]) -> list[bytes]:
    ends = [*sorted(place for place in places if place < len(text)), len(text)]
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@settings(max_examples=150)
@given(text=some_text, one=cuts, other=cuts)
def test_any_text_in_any_other_pieces_is_retokenised(text: str, one: set[int], other: set[int]) -> None:
    held, new = cut_at(text.encode(), one), cut_at(text.encode(), other)
    assume(held != new)
    found = answered([*held, *LONG, STOP], [*new, *LONG, STOP])
    assert in_answer(found) in ("noncanonical_merge", "noncanonical_whitespace", "noncanonical_bytes")
    assert found.texts_equal


@settings(max_examples=150)
@given(text=some_text, other=some_text, one=cuts, two=cuts)
def test_another_text_is_never_called_the_same(text: str, other: str, one: set[int], two: set[int]) -> None:
    """Two texts that share no beginning: one in other pieces would be the first difference."""
    assume(text.encode()[0] != other.encode()[0])
    held, new = cut_at(text.encode(), one), cut_at(other.encode(), two)
    found = answered([*held, "!", *LONG, STOP], [*new, "?", *LONG, STOP])
    assert in_answer(found) not in ("noncanonical_merge", "noncanonical_whitespace", "noncanonical_bytes")


# Other bytes for what looked the same


def test_a_decomposed_character_that_came_back_composed_is_named() -> None:
    found = answered(["caf", "e\u0301", *LONG, STOP], ["caf", "\u00e9", *LONG, STOP])
    assert in_answer(found) == "unicode_normalised"


def test_bytes_that_are_no_character_and_came_back_as_the_replacement_are_named() -> None:
    found = answered(["a", b"\xff", *LONG, STOP], ["a", "\ufffd", *LONG, STOP])
    assert in_answer(found) == "invalid_utf8_replaced"


def test_a_character_that_the_limit_cut_is_named() -> None:
    found = answered(["a", b"\xe7"], ["a", "\ufffd", STOP], finish_reason="length")
    assert in_answer(found) == "truncated_mid_character"


def test_a_missing_space_at_the_beginning_is_named() -> None:
    words = Vocabulary(STOP, prefix_space=True)
    found = edge(words, ASKED, ["Yes", *LONG, STOP], [*ASKED, " Yes", *LONG, STOP, *THEN])
    assert in_answer(found) == "missing_prefix_space"


def test_a_space_that_no_tokenizer_puts_there_is_white_space() -> None:
    assert in_answer(answered(["Yes", *LONG, STOP], [" Yes", *LONG, STOP])) == "white_space_changed"


def test_control_tokens_that_are_left_out_of_the_text_are_named() -> None:
    found = answered(["a", OPEN, " b", CLOSE, *LONG, STOP], ["a", " b", *LONG, STOP])
    assert in_answer(found) == "special_token_skipped_in_text"


def test_a_control_token_in_a_text_that_came_back_otherwise_is_not_named() -> None:
    found = answered(["a", OPEN, " b", *LONG, STOP], ["a", " c", *LONG, STOP])
    assert in_answer(found) is None


# Tool calls


def test_a_tool_call_that_was_written_anew_is_named() -> None:
    call = ["Look.\n", '{"name": "f", "args": {"a":', "1", "}}"]
    found = answered([*call, STOP], [call[0], '{"name": "f", "args": {"a": ', *call[2:], STOP])
    assert in_answer(found) == "tool_json_compact"


def test_a_tool_call_that_ends_where_the_old_one_goes_on_is_named() -> None:
    found = answered(['{"a": 1', ', "b": 2', "}", STOP], ['{"a": 1', "}", STOP])
    assert in_answer(found) == "tool_call_changed"


@pytest.mark.parametrize(
    "tag", ["<tool_call>", "<function=f>", "[TOOL_CALLS]", "<|python_tag|>", "<|tool_call_begin|>"]
)
def test_white_space_before_a_tool_call_is_named(tag: str) -> None:
    found = answered(["Look.", "\n", tag, "f()", STOP], ["Look.", "\n\n", tag, "f()", STOP])
    assert in_answer(found) == "tool_separator_newline_added"


def test_a_list_of_tool_calls_that_was_cut_short_is_named() -> None:
    found = answered(['[{"a": 1}', ', {"b": 2}]', STOP], ['[{"a": 1}', STOP])
    assert in_answer(found) == "tool_call_changed"


# White space


@pytest.mark.parametrize("trailing", [" ", "\n", "\n\n  "])
def test_white_space_at_the_end_that_was_trimmed_is_named(trailing: str) -> None:
    assert in_answer(answered(["Yes.", trailing, STOP], ["Yes.", STOP])) == "trailing_space_stripped"
    cut = answered(["Yes.", trailing], ["Yes.", STOP], finish_reason="length")
    assert in_answer(cut) == "trailing_space_stripped"


def test_white_space_inside_the_answer_is_named() -> None:
    found = answered(["Yes.", "\n", "It", *LONG, STOP], ["Yes.", " ", "It", *LONG, STOP])
    assert in_answer(found) == "white_space_changed"


def test_other_words_have_no_cause_here() -> None:
    assert in_answer(answered(["Yes", *LONG, STOP], ["No", *LONG, STOP])) is None


# Where prompt and answer meet


def test_an_answer_that_begins_with_white_space_merges_with_the_prompt() -> None:
    found = edge(vocabulary(), ["Q:", "\n"], ["\n", *LONG, STOP], ["Q:", "\n\n", *LONG, STOP])
    assert at_boundary(found) == "leading_newline_merges_with_prompt"


def test_the_halves_of_an_answer_that_was_continued_merge() -> None:
    found = edge(vocabulary(), ["Q:", "The qu"], ["ern", *LONG, STOP], ["Q:", "The quern", *LONG, STOP])
    assert at_boundary(found) == "generation_continued_across_cut"


def test_a_difference_that_ends_inside_the_prompt_reaches_no_answer() -> None:
    found = edge(vocabulary(), ["Q", ":", *LONG], ["Yes", STOP], ["Q:", *LONG, "Yes", STOP])
    assert at_boundary(found) is None
    assert at_boundary(edge(vocabulary(), ["Q", *LONG], ["Yes", STOP], ["X", *LONG, "Yes", STOP])) is None


# Inside the prompt


TOOLS = [f'{{"name": "tool{number}", "parameters": {{}}}}' for number in range(30)]


def test_a_block_that_stands_further_on_was_moved() -> None:
    found = edge(vocabulary(), [*TOOLS, *LONG, "Go."], ["Yes", STOP], [*LONG, "Go.", "Yes", STOP, *TOOLS, "On."])
    assert moved(found) == "tools_block_moves"


def test_a_block_that_is_gone_was_not_moved() -> None:
    found = edge(vocabulary(), [*TOOLS, *LONG, "Go."], ["Yes", STOP], [*LONG, "Go.", "Yes", STOP, "On."])
    assert moved(found) is None


def test_a_short_block_that_stands_further_on_is_a_coincidence() -> None:
    block = ["b", "c"]
    found = edge(vocabulary(), [*block, *LONG], [STOP], [*LONG, STOP, *block])
    assert moved(found) is None


@pytest.mark.parametrize("around", ["{}", "[{}]"])
def test_a_difference_in_the_description_of_a_tool_is_in_the_tools(around: str) -> None:
    described = ['{"type": "function", "function": {"name": "f', '"}}']
    before, after = around.split("{}")
    words = vocabulary()
    held, new = ([before, described[0], name, described[1], after] for name in ("one", "two"))
    assert in_tools(edge(words, [*held, "Go."], [STOP], [*new, "Go.", STOP]))


def test_a_difference_in_a_text_or_another_object_is_not_in_the_tools() -> None:
    words = vocabulary()
    assert not in_tools(edge(words, ["Be ", "brief."], [STOP], ["Be ", "kind.", STOP]))
    assert not in_tools(edge(words, ['{"date": "', "1", '"}'], [STOP], ['{"date": "', "2", '"}', STOP]))
    assert not in_tools(edge(words, ["[1, ", "2", "]"], [STOP], ["[1, ", "3", "]", STOP]))


# Answers whose calls are known


def test_json_that_is_the_answer_itself_is_no_tool_call() -> None:
    parent = exchange(chat_call("a", [user("go")], says('{"a":1}')))
    found = answered(['{"a":', "1", "}", STOP], ['{"a": ', "1", "}", STOP], parent=parent)
    assert in_answer(found) == "white_space_changed"


def test_json_of_a_call_without_a_tag_is_a_tool_call() -> None:
    parent = exchange(chat_call("a", [user("go")], calls(("k1", "f", '{"a":1}'))))
    found = answered(['{"a":', "1", "}", STOP], ['{"a": ', "1", "}", STOP], parent=parent)
    assert in_answer(found) == "tool_json_compact"
