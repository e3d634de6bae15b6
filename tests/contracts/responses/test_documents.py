"""Requests, responses, pairs and lists of items: recognised, read, written (contracts.md 4.0)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.dialects.responses import RESPONSES as DIALECT
from ng_capture.contracts.episode import Opaque, Role
from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Options
from ng_capture.contracts.responses.contract import RESPONSES
from tests.support.converting import converted, episode_of, in_lines, recognised
from tests.support.items import TOKENS, USAGE, call, pair, result, row, said, thought, tool, user

ITEMS = [user("hi"), thought("R"), call(), result(), said("done")]


def response(*output: Any, **members: Any) -> dict[str, Any]:
    return {"id": "r1", "object": "response", "model": "policy", "output": list(output), **members}


@pytest.mark.parametrize("value", [pair([said("ok")]), response(said("ok")), {"input": "hi"}, ITEMS], ids=str)
def test_a_document_is_known_by_its_form(value: object) -> None:
    assert recognised(value) == "responses"


def test_a_finished_row_is_no_bare_response() -> None:
    assert recognised(row()) == "gym"


@pytest.mark.parametrize(
    "value", [3, {"a": 1}, [], [3], [{"type": "wibble"}], {"output": [], "object": "list"}], ids=str
)
def test_what_is_nothing_of_the_kind_is_refused_by_name(value: object) -> None:
    assert converted(value, RESPONSES, GYM).rules == {"responses.document"}


def test_what_says_nothing_is_refused() -> None:
    assert converted({"input": []}, RESPONSES, GYM).rules == {"responses.empty"}


def test_a_text_that_is_no_json_is_refused_with_its_fault() -> None:
    assert converted("{", RESPONSES, GYM).rules == {"responses.json.syntax"}


def test_the_first_item_that_a_model_made_opens_the_output() -> None:
    done = converted(ITEMS, RESPONSES, RESPONSES).value
    assert done["request"]["input"] == ITEMS[:1]
    assert done["response"]["output"] == ITEMS[1:]


def test_a_list_that_no_model_speaks_in_is_all_input() -> None:
    done = converted([user("a"), user("b")], RESPONSES, RESPONSES).value
    assert done == {"request": {"input": [user("a"), user("b")]}}


@pytest.mark.parametrize(
    "value",
    [pair(ITEMS[1:], [user("hi")]), {"response": response(*ITEMS[1:])}, {"request": {"input": "hi", "model": "m"}}],
    ids=["pair", "response", "request"],
)
def test_a_document_written_again_is_the_document(value: object) -> None:
    assert converted(value, RESPONSES, RESPONSES).value == value


def test_documents_a_line_each_are_one_conversation_each() -> None:
    done = converted(in_lines([pair([said("a")]), pair([said("b")])]), RESPONSES, RESPONSES)
    assert [value["response"]["output"][0]["content"][0]["text"] for value in done.values] == ["a", "b"]


def test_a_reward_has_no_place_in_a_pair() -> None:
    assert "reward_dropped" in converted(row(), GYM, RESPONSES).codes


def test_usage_model_and_tools_of_a_response_are_read() -> None:
    whole = response(said("ok"), usage=USAGE, tools=[tool()], status="incomplete")
    episode = episode_of(whole, RESPONSES)
    assert episode.truncated is True
    assert episode.main.agent.model == "policy"
    assert [each.name for each in episode.main.agent.tools or ()] == ["f"]
    assert episode.main.totals is not None
    assert episode.main.totals.usage.cached_tokens == 4


def test_all_items_of_a_response_are_one_turn_of_the_dialect() -> None:
    items = [thought("R"), said("a"), call(**TOKENS), user("odd"), {"type": "wibble"}, result("c1")]
    turn = DIALECT.answered(response(*items), Options()).turn
    assert turn is not None
    assert (turn.role, turn.model_calls, len(turn.calls), len(turn.results)) == (Role.ASSISTANT, 1, 1, 1)
    assert turn.call is not None and turn.call.tokens is not None
    assert [part.kind for part in turn.content or () if isinstance(part, Opaque)] == ["message", "wibble"]


def test_a_response_that_says_nothing_is_no_turn_but_one_that_used_tokens_is() -> None:
    assert DIALECT.answered({}, Options()).turn is None
    turn = DIALECT.answered(response(usage=USAGE), Options()).turn
    assert turn is not None and turn.content is None


def test_the_history_of_a_request_is_copied() -> None:
    told = DIALECT.asked({"instructions": "S", "input": ITEMS, "tools": [tool()], "temperature": 1}, Options())
    assert [turn.copied for turn in told.turns] == [False, False, True, True]
    assert told.parameters == {"temperature": 1}


def test_several_items_of_other_kinds_in_one_turn_are_written_one_by_one() -> None:
    items = [said("a"), {"type": "image_generation_call", "id": "ig", "prompt": "p", "result": "QQ=="}, said("b", "m2")]
    assert converted(pair(items), RESPONSES, RESPONSES).value["response"]["output"] == items


# --- a conversation that goes on

texts = st.sampled_from(["", "a", "<think>b</think>c", "é\n"])
ids = st.sampled_from(["c1", "c2", "c3"])
items = st.one_of(
    texts.map(said),
    texts.map(user),
    texts.map(thought),
    ids.map(call),
    ids.map(result),
    st.sampled_from([said("t", **TOKENS), {"type": "compaction"}, {"type": "mcp_call", "id": "i", "name": "n"}]),
)


@given(st.lists(items, max_size=6), st.lists(items, max_size=3))
def test_a_conversation_that_goes_on_keeps_its_bytes(before: list[Any], more: list[Any]) -> None:
    short = converted({"input": [user("hi"), *before]}, RESPONSES, RESPONSES).value["request"]["input"]
    whole = converted({"input": [user("hi"), *before, *more]}, RESPONSES, RESPONSES).value["request"]["input"]
    assert short == [user("hi"), *before]
    assert whole == [*short, *more]


@given(st.lists(items, min_size=1, max_size=6))
def test_the_same_conversation_gives_the_same_bytes(output: list[Any]) -> None:
    for source, target, value in ((RESPONSES, GYM, pair(output)), (GYM, ATIF, row(output)), (GYM, CHAT, row(output))):
        assert converted(value, source, target).lines == converted(value, source, target).lines


@given(st.lists(items, min_size=1, max_size=6), st.lists(items, max_size=3))
def test_steps_of_a_row_that_goes_on_stay_the_steps_that_they_were(before: list[Any], more: list[Any]) -> None:
    """All but the last, which what comes next may still answer or go on with."""
    short = converted(row(before), GYM, ATIF).value["steps"][:-1]
    whole = converted(row([*before, *more]), GYM, ATIF).value["steps"]
    open_calls = any(item.get("type") == "function_call_output" for item in more)
    assert whole[: len(short)] == short or open_calls
