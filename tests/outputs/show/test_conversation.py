"""The conversation of a rollout, each turn once, in the order in which it was held."""

from pathlib import Path
from typing import Any

from ng_capture.ingest.messages import Message
from ng_capture.outputs.show.conversation import conversation
from tests.support.forge import Forge, Row
from tests.support.looking import shown, shown_forge
from tests.support.raw_calls import calls, chat_call, result, says, system, talk, user, write_capture
from tests.support.vocabulary import Vocabulary


def said(rollout: Any, tokenizer: Any = None) -> list[tuple[str, str]]:
    return [(turn.role, turn.text) for turn in conversation(rollout, tokenizer)]


def chain_of(rows: list[Row], *, scored: str | None = None) -> Any:
    """Calls that extend one another by ids, with these raw calls beside their records."""
    forge = Forge()
    call = forge.root([1, 2], [3], id=rows[0]["model_call_id"])
    for row in rows[1:]:
        call = call.then([4, 5], [6], id=row["model_call_id"])
    named = {each.id: each for each in forge.calls}.get(scored or "", call)
    return shown_forge(forge, forge.row(named), raw=rows)


def test_every_turn_is_told_once() -> None:
    rows = talk(says("one"), says("two"), says("three"), first=[system("Be brief.")])
    assert said(chain_of(rows)) == [
        ("system", "Be brief."),
        *(("user", "question 0"), ("assistant", "one")),
        *(("user", "question 1"), ("assistant", "two")),
        *(("user", "question 2"), ("assistant", "three")),
    ]


def test_tool_calls_and_their_results_are_turns() -> None:
    asked = [user("go")]
    calling = calls(("k1", "look_up", "{}"), text="I look.", reasoning_content="why")
    rows = [
        chat_call("a", asked, calling, at=0.0),
        chat_call("b", [*asked, calling, result("k1", "found")], says("so"), at=1.0),
    ]
    turns = list(conversation(chain_of(rows), None))
    assert [turn.role for turn in turns] == ["user", "assistant", "tool", "assistant"]
    assert (turns[1].reasoning, turns[1].tool_calls[0].name, turns[2].text) == ("why", "look_up", "found")


def test_the_delivered_chain_is_told_and_what_comes_behind_the_scored_call_is_not() -> None:
    rows = talk(says("one"), says("two"))
    assert said(chain_of(rows, scored="a")) == [("user", "question 0"), ("assistant", "one")]


def without_answers() -> Forge:
    """Records that say nothing but ids."""
    forge = Forge()
    silent: Row = {"output_items": [], "token_item_index": None}
    forge.root([1, 2], [3, 4], id="a", **silent).then([5, 6, 7], [8, 9], id="b", **silent)
    return forge


def test_without_raw_calls_the_tokens_between_stand_for_what_was_asked() -> None:
    assert said(shown_forge(without_answers())) == [
        ("prompt", "[2 tokens]"),
        ("assistant", "[2 tokens]"),
        ("prompt", "[3 tokens]"),
        ("assistant", "[2 tokens]"),
    ]


def test_without_raw_calls_and_with_a_tokenizer_they_are_text() -> None:
    words = Vocabulary("<|stop|>")
    words.ids("Q: ", "go", "ye", "s", "\nQ: ", "on", "?", "en", "d")
    assert said(shown_forge(without_answers()), words.tokenizer) == [
        ("prompt", "Q: go"),
        ("assistant", "yes"),
        ("prompt", "\nQ: on?"),
        ("assistant", "end"),
    ]


def test_answers_that_records_know_are_told_between_the_tokens() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").then([], [6], id="b")
    assert said(shown_forge(forge)) == [("prompt", "[2 tokens]"), ("assistant", "answer a"), ("assistant", "answer b")]


def test_of_a_masked_rollout_its_main_chain_is_told() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").broken([1, 9], [5], id="b")
    forge.root([8], [9], id="c")
    rollout = shown_forge(forge, raw=True)
    assert rollout.judgement.verdict == "masked"
    assert said(rollout) == [("user", "request 0"), ("assistant", "answer a")]


def test_where_there_is_no_chain_all_calls_are_told_in_the_order_in_which_they_were_made() -> None:
    forge = Forge()
    forge.root([1, 2], [], id="z")
    forge.root([3], [], id="a")
    rollout = shown_forge(forge)
    assert rollout.judgement.main_chain == ()
    assert [text for role, text in said(rollout) if role == "assistant"] == ["answer z", "answer a"]


def test_a_call_that_cannot_be_put_together_says_what_its_record_knows() -> None:
    forge = Forge(delta=True)
    forge.root([1, 2], [], id="a").then([4], [5], id="b", parent_call_id="nowhere")
    assert said(shown_forge(forge)) == [("prompt", "[2 tokens]"), ("assistant", "answer a"), ("assistant", "answer b")]
    forge.calls[1].fields |= {"output_items": [], "token_item_index": None}
    assert said(shown_forge(forge)) == [("prompt", "[2 tokens]"), ("assistant", "answer a")]


def test_raw_calls_alone_are_a_conversation(tmp_path: Path) -> None:
    asked = [user("go")]
    rows = [
        chat_call("a", asked, says("yes"), prompt=[1], generation=[2], at=0.0),
        chat_call("b", [*asked, says("yes"), user("on")], says("end"), prompt=[1, 2, 3], generation=[4], at=1.0),
    ]
    write_capture(tmp_path, "r-1", rows)
    assert list(conversation(shown(tmp_path), None)) == [
        Message("user", "go"),
        Message("assistant", "yes"),
        Message("user", "on"),
        Message("assistant", "end"),
    ]


def test_a_raw_call_whose_request_is_not_known_leaves_its_tokens() -> None:
    rows = talk(says("one"), says("two"))
    rows[1]["request"] = None
    assert said(chain_of(rows)) == [
        ("user", "question 0"),
        ("assistant", "one"),
        ("prompt", "[2 tokens]"),
        ("assistant", "two"),
    ]
