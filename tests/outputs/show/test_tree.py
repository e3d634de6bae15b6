"""The calls of a rollout as a flat tree."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from ng_capture.ingest.messages import Message, ToolCall
from ng_capture.outputs.shapes import SHAPES
from ng_capture.outputs.show.tree import CallLine, RolloutTree, tree_of, what_of
from ng_capture.verdicts.judging import Policy
from tests.support.capture import Capture
from tests.support.forge import Forge
from tests.support.looking import shown_files, shown_forge
from tests.support.strategies import captures


def tree(forge: Forge, row: Any = None, **how: Any) -> RolloutTree:
    return tree_of(shown_forge(forge, row, **how))


def marked(told: RolloutTree) -> list[tuple[str, str, str]]:
    return [(line.chain, line.call, line.mark) for line in told.lines]


def line_of(told: RolloutTree, call: str) -> CallLine:
    (found,) = [line for line in told.lines if line.call == call]
    return found


def test_a_chain_is_told_call_by_call() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").then([4, 5], [6, 7], id="b")
    told = tree(forge, forge.row(forge.calls[1], reward=0.25))
    assert (told.rollout_id, told.verdict, told.calls, told.chains, told.reward) == ("r-1", "trainable", 2, 1, 0.25)
    assert told.models == ("policy-8b",)
    assert [(line.number, line.prompt, line.new, line.generated) for line in told.lines] == [(0, 2, 2, 1), (1, 5, 2, 2)]
    assert marked(told) == [("main", "a", "trained"), ("main", "b", "trained")]
    assert [(line.stop, line.what, line.note) for line in told.lines] == [
        (None, "answer a", None),
        (None, "answer b", None),
    ]


def test_a_retry_stands_beside_the_answer_that_was_kept() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5], id="dropped")
    kept = first.then([4], [6], id="kept")
    last = kept.then([7], [8], id="z")
    told = tree(forge, forge.row(last))
    assert [line.call for line in told.lines] == ["a", "dropped", "kept", "z"]
    retry = line_of(told, "dropped")
    assert (retry.mark, retry.note, retry.new, retry.number) == ("retry", "retry of #2, dropped", 1, 1)
    assert line_of(told, "kept").mark == "trained"


def test_every_answer_that_was_asked_again_stands_beside_the_kept_one() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    for name in ("d1", "d2"):
        first.then([4], [ord(name[1])], id=name)
    first.then([4], [9], id="kept").then([5], [6], id="z")
    told = tree(forge)
    assert [(line.call, line.note) for line in told.lines[1:3]] == [
        ("d1", "retry of #3, dropped"),
        ("d2", "retry of #3, dropped"),
    ]


def test_a_first_call_that_was_asked_again_stands_beside_its_survivor() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="dropped")
    kept = forge.root([1, 2], [4], id="kept")
    told = tree(forge, forge.row(kept.then([5], [6], id="z")))
    assert marked(told) == [("main", "dropped", "retry"), ("main", "kept", "trained"), ("main", "z", "trained")]


def test_a_retry_behind_a_dropped_answer_is_told_once() -> None:
    """Of two answers behind one that was not kept, neither stands in a chain."""
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    dropped = first.then([4], [5], id="dropped")
    dropped.then([6], [7], id="z")
    dropped.then([6], [8], id="p")
    kept = first.then([4], [9], id="kept")
    told = tree(forge, forge.row(kept))
    assert [line.call for line in told.lines] == ["a", "dropped", "kept", "z", "p"]
    assert [line.chain for line in told.lines[3:]] == ["aside", "aside"]


def test_branches_stand_under_names_of_their_own_and_say_why_they_are_left_out() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    first.then([9], [10], id="side")
    last = first.then([4], [5], id="b")
    told = tree(forge, forge.row(last))
    assert marked(told) == [("main", "a", "trained"), ("main", "b", "trained"), ("branch-0", "side", "left_out")]
    assert line_of(told, "side").note == "off_path"


def test_what_comes_behind_the_scored_call_is_said_to() -> None:
    forge = Forge()
    scored = forge.root([1, 2], [3], id="a")
    scored.then([4], [5], id="later")
    told = tree(forge, forge.row(scored))
    assert line_of(told, "later").note == "after_terminal"


def test_under_the_policy_all_a_shared_call_is_told_once() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5], id="b")
    first.then([6], [7], id="c")
    told = tree(forge, policy=Policy.ALL)
    assert sorted(line.call for line in told.lines) == ["a", "b", "c"]
    assert {line.mark for line in told.lines} == {"trained"}


def test_a_broken_link_is_named_and_has_no_number_of_new_tokens() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").broken([1, 9, 9], [5], id="b")
    told = tree(forge)
    assert (line_of(told, "b").new, line_of(told, "b").note) == (None, "prefix_mismatch")
    assert [line.mark for line in told.lines] == ["left_out", "left_out"] and told.verdict == "masked"


def test_context_is_told_from_what_is_trained() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a", generation_log_probs=[None]).then([4], [5], id="b")
    told = tree(forge, forge.row(forge.calls[1]), policy=Policy.ALL)
    assert [line.mark for line in told.lines] == ["context", "trained"]


def test_a_call_that_stands_in_no_chain_comes_last_aside() -> None:
    forge = Forge(delta=True)
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5], id="lost", parent_call_id="nowhere")
    told = tree(forge)
    assert marked(told)[-1] == ("aside", "lost", "left_out")
    aside = told.lines[-1]
    assert (aside.prompt, aside.new, aside.generated) == (None, None, 1)


def test_a_call_that_generated_nothing_is_not_a_broken_one() -> None:
    forge = Forge()
    empty = forge.root([1, 2], [3], id="a").then([4], [], id="empty")
    empty.then([5], [6], id="b")
    told = tree(forge)
    assert line_of(told, "b").new == 2
    assert (line_of(told, "empty").prompt, line_of(told, "empty").new, line_of(told, "empty").note) == (4, 1, None)


def test_calls_are_numbered_as_they_were_made_whatever_chain_they_stand_in() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5], id="b")
    forge.root([8], [9], id="sub")
    first.then([4], [7], id="c", created_at=1.0)
    told = tree(forge)
    assert {line.call: line.number for line in told.lines} == {"c": 0, "a": 1, "b": 2, "sub": 3}


def test_how_a_call_ended_and_what_it_did_is_known_by_its_raw_call() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a")
    raw = forge.calls[0].raw()
    raw["response"]["output"] = [
        {"type": "function_call", "call_id": "k", "name": "bash", "arguments": '{"command": "ls -la"}'}
    ]
    raw["response"] |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    told = tree(forge, raw=[raw])
    assert (told.lines[0].stop, told.lines[0].what) == ("max_output_tokens", "bash: ls -la")


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall("k", name, arguments)


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (None, None),
        (Message("assistant", "Hello\n  there."), "Hello there."),
        (Message("assistant", " "), "(nothing)"),
        (Message("assistant", "", "why"), "(reasoning only)"),
        (Message("assistant", "x", tool_calls=(call("bash", '{"command": "ls\\n -la", "n": 1}'),)), "bash: ls -la"),
        (Message("assistant", tool_calls=(call("bash", "{}"),)), "bash"),
        (Message("assistant", tool_calls=(call("bash", '{"n": 5}'),)), "bash: 5"),
        (Message("assistant", tool_calls=(call("bash", '{"a": {"b": [1]}}'),)), 'bash: {"b":[1]}'),
        (Message("assistant", tool_calls=(call("bash", "[1, 2]"),)), "bash: [1,2]"),
        (Message("assistant", tool_calls=(call("bash", "ls -la {"),)), "bash: ls -la {"),
        (Message("assistant", tool_calls=(call("bash", "null"),)), "bash: null"),
        (Message("assistant", tool_calls=(call("bash", "NaN"),)), "bash: NaN"),
        (
            Message("assistant", tool_calls=(call("read", "{}"), call("read", "{}"), call("edit", '{"p": "x"}'))),
            "read x2, edit: x",
        ),
    ],
)
def test_what_a_call_did_is_told_in_a_few_words(answer: Message | None, what: str | None) -> None:
    assert what_of(answer) == what


@pytest.mark.parametrize("arguments", ['{"a":' + "[" * 300 + "]" * 300 + "}", "[" * 5000, "[" * 300 + "]" * 300])
def test_arguments_nested_ever_so_deep_are_told(arguments: str) -> None:
    told = what_of(Message("assistant", tool_calls=(call("bash", arguments),)))
    assert told is not None and told.startswith("bash: ") and "[[[" in told


def test_long_texts_are_cut() -> None:
    for answer in (
        Message("assistant", "x" * 9999),
        Message("assistant", tool_calls=(call("b", '{"a": "' + "x" * 9999 + '"}'),)),
    ):
        assert len(what_of(answer) or "") < 300


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(capture=captures("call whole end"))
def test_whatever_the_capture_every_call_stands_in_its_tree_once(capture: Capture) -> None:
    rollout = shown_files(capture.files(), row=capture.row)
    told = tree_of(rollout)
    calls = rollout.judgement.analysis.calls
    assert sorted(line.call for line in told.lines) == sorted(calls)
    assert sorted(line.number for line in told.lines) == list(range(len(calls)))
    assert told.calls == len(calls)
    trained = {call for row in rollout.judgement.rows for call in row.trained}
    assert {line.call for line in told.lines if line.mark == "trained"} == trained
    assert {line.call for line in told.lines if line.mark == "retry"} <= rollout.judgement.analysis.settled.quarantined
    for line in told.lines:
        link = rollout.judgement.analysis.links.get(line.call)
        if link is not None:
            assert (line.new is None) == (link.fault is not None)
    SHAPES["shown-rollout"].model_validate_json(msgspec.json.encode(told))
