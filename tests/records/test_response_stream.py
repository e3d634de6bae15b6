"""A Responses stream that ended without its envelope: its output is put together from what came (T-SSE-3)."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.records.assembling import assemble, is_rebuilt
from tests.support.forge import Row

CREATED: Row = {"type": "response.created", "response": {"id": "r", "status": "in_progress", "output": []}}


def event(kind: str, at: int | None = 0, **fields: Any) -> Row:
    return {"type": f"response.{kind}", **({} if at is None else {"output_index": at}), **fields}


def output(*events: Row) -> Any:
    return assemble([CREATED, *events]).get("output")


THINKS: Row = {"type": "reasoning", "id": "rs", "summary": []}
SAYS: Row = {"type": "message", "id": "m", "role": "assistant", "status": "in_progress", "content": []}
CALLS: Row = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": ""}
PIECES = [
    event("output_item.added", 0, item=THINKS),
    event("reasoning_summary_part.added", 0, summary_index=0, part={"type": "summary_text", "text": ""}),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="I "),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="think."),
    event("reasoning_summary_text.delta", 0, summary_index=1, delta="More."),
    event("output_item.added", 1, item=SAYS),
    event("output_text.delta", 1, content_index=0, delta="Let me "),
    event("output_text.delta", 1, content_index=0, delta="look."),
    event("refusal.delta", 1, content_index=1, delta="No."),
    event("output_item.added", 2, item=CALLS),
    event("function_call_arguments.delta", 2, delta='{"a"'),
    event("function_call_arguments.delta", 2, delta=": "),
]
CAME = [
    {**THINKS, "summary": [{"type": "summary_text", "text": "I think."}, {"type": "summary_text", "text": "More."}]},
    {
        **SAYS,
        "content": [{"type": "output_text", "text": "Let me look."}, {"type": "refusal", "refusal": "No."}],
    },
    {**CALLS, "arguments": '{"a": '},
]


def test_what_came_before_the_stream_was_cut_is_the_output() -> None:
    assert assemble([CREATED, *PIECES]) == {"id": "r", "status": "in_progress", "output": CAME}
    assert is_rebuilt([CREATED, *PIECES])


def test_a_stream_without_any_envelope_has_an_output_too() -> None:
    assert assemble(PIECES) == {"output": CAME}


def test_the_events_themselves_stay_as_they_were() -> None:
    before = [repr(each) for each in PIECES]
    output(*PIECES)
    assert [repr(each) for each in PIECES] == before


def test_the_envelope_counts_where_it_has_an_output() -> None:
    end = event("completed", None, response={"id": "r", "output": [{"type": "message"}]})
    assert output(*PIECES, end) == [{"type": "message"}]
    assert not is_rebuilt([CREATED, *PIECES, end])


def test_an_envelope_without_its_items_takes_none_away() -> None:
    end = event("completed", None, response={"id": "r", "status": "completed", "output": []})
    assert assemble([CREATED, *PIECES, end]) == {"id": "r", "status": "completed", "output": CAME}


def test_a_response_of_nothing_is_not_rebuilt() -> None:
    assert assemble([CREATED]) == CREATED["response"]
    assert not is_rebuilt([CREATED]) and not is_rebuilt([])


def test_the_end_of_an_item_or_a_text_is_what_it_says() -> None:
    done = event("output_text.done", 1, content_index=0, text="All.")
    assert output(*PIECES, done)[1]["content"][0] == {"type": "output_text", "text": "All."}
    arguments = event("function_call_arguments.done", 2, arguments="{}")
    assert output(*PIECES, arguments)[2]["arguments"] == "{}"
    item = {**CALLS, "arguments": "{}", "status": "completed"}
    assert output(*PIECES, event("output_item.done", 2, item=item)) == [*CAME[:2], item]


def test_deltas_of_an_item_that_was_not_announced_make_it() -> None:
    assert output(event("output_text.delta", 3, delta="x")) == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
    ]
    assert output(event("custom_tool_call_input.delta", delta="ls")) == [{"type": "custom_tool_call", "input": "ls"}]
    assert output(event("reasoning_text.delta", delta="r")) == [
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "r"}]}
    ]


def test_items_stand_in_the_order_of_their_places_and_are_told_apart_by_id_else() -> None:
    late, early = event("output_text.delta", 1, delta="b"), event("output_text.delta", 0, delta="a")
    assert [item["content"][0]["text"] for item in output(late, early)] == ["a", "b"]
    named = [event("output_text.delta", None, item_id=each, delta=each) for each in ("m2", "m1", "m2")]
    assert [item["content"][0]["text"] for item in output(*named)] == ["m2m2", "m1"]


@given(text=st.text(max_size=12), cuts=st.lists(st.integers(0, 12), max_size=4).map(sorted))
def test_a_text_is_the_same_however_it_is_cut(text: str, cuts: list[int]) -> None:
    places = [0, *cuts, len(text)]
    deltas = [event("output_text.delta", delta=text[start:end]) for start, end in itertools.pairwise(places)]
    assert output(*deltas)[0]["content"] == [{"type": "output_text", "text": text}]


ODD: list[Any] = [None, True, 5, -1, 0.5, "x", [], {}, [[]], [{}], {"a": []}, 2**70]
KEYS = ["type", "output_index", "item", "item_id", "delta", "content_index", "summary_index", "part", "response"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("key", KEYS)
def test_any_field_of_an_event_may_hold_any_value(key: str, odd: object) -> None:
    for place in range(len(PIECES)):
        events = [CREATED, *PIECES[:place], {**PIECES[place], key: odd}, *PIECES[place + 1 :]]
        assert is_rebuilt(events) == (assemble(events).get("output") not in (None, [], {}))


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("key", ["content", "summary", "arguments", "type"])
def test_any_field_of_an_item_may_hold_any_value(key: str, odd: object) -> None:
    for place, each in enumerate(PIECES):
        if "item" in each:
            output(*PIECES[:place], {**each, "item": {**each["item"], key: odd}}, *PIECES[place + 1 :])
