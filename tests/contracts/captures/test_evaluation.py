"""Captures as the evaluation view: metrics and steps, no payloads, no ids (contracts.md 5.2 to 5.4)."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.captured import document, put, written
from tests.support.forge import Row
from tests.support.raw_calls import calls, chat_call, says, system, user

COUNTS = ("tokens_in", "tokens_out", "tokens_reasoning", "tokens_total", "cached_tokens", "cache_creation_tokens")


def view(directory: Path, *rows: Row) -> Any:
    return document(put(directory, rows), "eval")


def used(row: Row, **usage: Any) -> Row:
    return {**row, "response": {**row["response"], "usage": usage}}


def test_a_view_has_a_rollout_its_metrics_and_its_steps(tmp_path: Path) -> None:
    told = view(tmp_path, chat_call("a", [user("hi")], says("x")))
    assert list(told) == ["rollout_id", "metrics", "steps"]
    assert told["rollout_id"] == "r-1"
    assert (told["metrics"]["num_calls"], told["metrics"]["num_turns"]) == (1, 1)


def test_nothing_that_was_said_and_no_id_is_in_it(tmp_path: Path) -> None:
    row = chat_call(
        "a", [system("SECRET one"), user("SECRET two")], says("SECRET three"), prompt=[987654], generation=[876543]
    )
    one = written(put(tmp_path, [row]), "eval").written
    assert one is not None
    text = b"".join(one.documents)
    assert b"SECRET" not in text
    assert b"987654" not in text
    assert b"876543" not in text


def test_sums_are_of_what_is_known(tmp_path: Path) -> None:
    told = view(
        tmp_path,
        used(chat_call("a", [user("hi")], says("x"), latency_ms=10.0), prompt_tokens=5, completion_tokens=2),
        chat_call("b", [user("hi"), says("x"), user("on")], says("y"), at=1.0),
    )
    metrics = told["metrics"]
    assert [metrics[name] for name in COUNTS] == [5, 2, None, 7, None, None]
    assert metrics["latency_total_ms"] == 10.0
    assert [step["tokens_in"] for step in told["steps"]] == [5, None]


@pytest.mark.parametrize("name", COUNTS)
def test_what_nobody_counted_is_null(tmp_path: Path, name: str) -> None:
    told = view(tmp_path, chat_call("a", [user("hi")], says("x")))
    assert told["metrics"][name] is None
    assert told["steps"][0][name] is None


def test_turns_are_counted_in_the_conversation_of_a_call(tmp_path: Path) -> None:
    told = view(
        tmp_path,
        chat_call("a", [user("A")], says("1")),
        chat_call("b", [system("other"), user("X")], says("sub"), at=0.7),
        chat_call("c", [user("A"), says("1"), user("B"), user("C")], says("2"), at=1.0),
    )
    assert [step["turn_index"] for step in told["steps"]] == [0, 0, 2]
    assert told["metrics"]["num_turns"] == 2


def test_failed_calls_are_steps_without_a_turn(tmp_path: Path) -> None:
    told = view(
        tmp_path,
        chat_call("a", [user("A")], None, status_code=429, error_category="rate_limit"),
        chat_call("b", [user("A")], says("1"), at=1.0),
        chat_call("c", [user("A"), says("1"), user("B")], None, error_category="connection", status_code=None, at=2.0),
    )
    assert [step["turn_index"] for step in told["steps"]] == [None, 0, None]
    assert told["metrics"]["failed_calls"] == 2
    assert told["metrics"]["error_categories"] == {"connection": 1, "rate_limit": 1}


def test_tools_are_named_with_their_arguments(tmp_path: Path) -> None:
    answer = calls(("k1", "f", '{"a": 1e400, "b": [1]}'), ("k2", "g", "no json"), ("k3", "h", ""), text="")
    told = view(tmp_path, chat_call("a", [user("A")], answer))
    assert told["metrics"]["num_tool_calls"] == 3
    first, second, third = told["steps"][0]["tool_calls"]
    assert (first["call_id"], first["name"]) == ("k1", "f")
    assert second["arguments"] == {"_raw": "no json"}
    assert third["name"] == "h"


@pytest.mark.parametrize(("cached", "hit"), [(None, None), (0, False), (3, True)])
def test_a_cache_hit_is_told_only_where_the_usage_tells_it(
    tmp_path: Path, cached: int | None, hit: bool | None
) -> None:
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    told = view(tmp_path, used(chat_call("a", [user("A")], says("x")), prompt_tokens=5, completion_tokens=1, **details))
    assert told["steps"][0]["cache_hit"] is hit


def test_think_tags_in_a_text_are_no_reasoning(tmp_path: Path) -> None:
    told = view(tmp_path, chat_call("a", [user("A")], says("<think>hm</think>x")))
    assert told["steps"][0]["reasoning_content"] is None
    told = view(tmp_path, chat_call("a", [user("A")], says("x", reasoning_content="hm")))
    assert told["steps"][0]["reasoning_content"] == "hm"


def test_half_of_a_surrogate_pair_is_spelled_out(tmp_path: Path) -> None:
    row = chat_call("\ud83d", [user("A")], says("x", reasoning_content="a\udc00"), error_category="incomplete")
    (step,) = view(tmp_path, row)["steps"]
    assert (step["model_call_id"], step["reasoning_content"]) == ("\\ud83d", "a\\udc00")
