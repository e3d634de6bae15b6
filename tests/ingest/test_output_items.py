"""What an answer says as the items of a record."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.ingest.candidate import candidate_of_call
from ng_capture.ingest.evidence.answers import answers_of
from ng_capture.ingest.links import find_links
from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.output_items import Output, as_text, output_of, without_tokens
from ng_capture.records.assembling import assemble
from ng_capture.records.fingerprint import Beginnings
from ng_capture.records.streams import DONE
from ng_capture.records.token_record import encode_record
from tests.support.candidates import candidates
from tests.support.dialects import ARGUMENTS, DIALECTS, REQUESTS, RESPONSES, STREAMS
from tests.support.engines import ENGINES
from tests.support.forge import Row
from tests.support.raw_calls import calls, chat_call, result, says, user

REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "I should look."}]}
CALL = {"type": "function_call", "call_id": "k1", "name": "look_up"}


def output(response: Row, carrier: int | None = None) -> Output:
    return output_of(answers_of({}, response)[0], carrier)


def said(items: Any) -> list[str]:
    """Kind and words of every item."""
    told = []
    for item in items:
        words = [part["text"] for part in item.get("content", item.get("summary", []))]
        told.append(f"{item['type']}: {' '.join(words)}{item.get('name', '')}")
    return told


SPOKEN = ["reasoning: I should look.", "message: Let me look.", "function_call: look_up"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_of_every_dialect_is_the_same_items(dialect: str) -> None:
    items = output(RESPONSES[dialect]).items
    assert said(items) == SPOKEN
    assert items[0] == REASONING
    assert json.loads(items[2]["arguments"]) == json.loads(ARGUMENTS)  # type: ignore[arg-type]
    assert {key: items[2][key] for key in CALL} == CALL


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_streamed_answer_has_the_items_of_the_whole_one(dialect: str) -> None:
    assert said(output(dict(assemble([*STREAMS[dialect], DONE]))).items) == SPOKEN


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_request_that_sends_the_answer_again_finds_its_call(dialect: str) -> None:
    whole = REQUESTS[dialect]
    key = "input" if dialect == "responses" else "messages"
    turns = whole[key]
    first = next(place for place, turn in enumerate(turns) if turn.get("role") == "assistant" or "summary" in turn)
    then = next(
        place
        for place, turn in enumerate(turns)
        if ("call_id" in turn and turn["type"] == "function_call_output")
        or turn.get("role") == "tool"
        or any(part.get("type") == "tool_result" for part in parts(turn))
    )
    asked, again = {**whole, key: turns[:first]}, {**whole, key: turns[: then + 1]}
    rows = [
        {
            "model_call_id": "a",
            "dialect": dialect,
            "request": {**asked, "input_ids": [1]},
            "response": with_tokens(RESPONSES[dialect], [1]),
        },
        {
            "model_call_id": "b",
            "dialect": dialect,
            "request": {**again, "input_ids": [1, 2]},
            "response": with_tokens(RESPONSES[dialect], [1, 2]),
        },
    ]
    found = find_links(candidates({**row, "status_code": 200} for row in rows), {})
    # NeMo Gym's fingerprint takes in the thinking blocks of a request, and no reasoning items of an answer
    how = "presumed" if dialect == "messages" else "conversation"
    assert (found["b"].how, found["b"].parent.parent_call_id) == (how, "a")


def parts(turn: Row) -> list[Row]:
    content = turn.get("content")
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def with_tokens(response: Row, prompt: list[int]) -> Row:
    """The response with tokens beside its choices, where engines put them."""
    tokens = {"prompt_token_ids": prompt, "generation_token_ids": [2], "generation_log_probs": [-0.5]}
    if "choices" in response:
        choice = response["choices"][0]
        return {**response, "choices": [{**choice, "message": {**choice["message"], **tokens}}]}
    if "content" in response:
        # as LMDeploy does, whose requests may have the ids of the prompt
        return {**response, "output_ids": [2], "meta_info": {"output_token_logprobs": [[-0.5, 2]]}}
    return {**response, "output": [*response["output"][:-1], {**response["output"][-1], **tokens}]}


@pytest.mark.parametrize("arguments", ['{"word": "quern"}', {"word": "quern"}, '{"word":"quern"}', None, 7])
def test_arguments_are_text_however_they_were_sent(arguments: Any) -> None:
    message = calls(("k", "f", arguments), text="x")
    (item,) = [item for item in output({"choices": [{"message": message}]}).items if item["type"] == "function_call"]
    assert isinstance(item["arguments"], str)
    wanted = {} if arguments is None else arguments if not isinstance(arguments, str) else json.loads(arguments)
    assert json.loads(item["arguments"]) == wanted


@pytest.mark.parametrize("key", ["text", "generated_text", "content"])
def test_an_answer_of_plain_text_is_a_message(key: str) -> None:
    assert said(output({key: "A mill."}).items) == ["message: A mill."]


@pytest.mark.parametrize("content", ["A mill.", [{"type": "text", "text": "A mill."}, {"type": "image"}]])
def test_content_may_be_text_or_parts(content: Any) -> None:
    assert said(output({"choices": [{"message": says(content)}]}).items) == ["message: A mill."]


@pytest.mark.parametrize(
    "response",
    [{}, {"choices": [{"message": says("")}]}, {"choices": [{"message": says(None)}]}, {"output": []}, {"content": []}],
)
def test_an_answer_that_says_nothing_has_no_items_and_no_carrier(response: Row) -> None:
    assert (list(output(response).items), output(response).carrier) == ([], None)


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_is_an_item_under_either_name(key: str) -> None:
    assert said(output({"choices": [{"message": says("x", **{key: "I think."})}]}).items)[0] == "reasoning: I think."


@pytest.mark.parametrize(("carrier", "wanted"), [(None, 2), (0, 0), (1, 1), (2, 2), (3, 2), (-1, 2)])
def test_the_carrier_is_the_item_whose_tokens_were_read_else_the_last(carrier: int | None, wanted: int) -> None:
    assert output(RESPONSES["responses"], carrier).carrier == wanted


def test_items_of_a_record_have_no_token_fields() -> None:
    tokens = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-1.0], "routed_experts": 1}
    assert without_tokens({"type": "message", **tokens}) == {"type": "message"}
    (item,) = output({"output": [{"type": "message", "content": [], **tokens}]}).items
    assert item == {"type": "message", "content": []}


def test_a_call_keeps_the_fields_that_we_do_not_know() -> None:
    odd = {"type": "web_search_call", "id": "w", "action": {"query": "quern"}}
    assert list(output({"output": [odd]}).items) == [odd]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_every_engine_answers_has_items_that_are_json(engine: str) -> None:
    for call in normalise(ENGINES[engine].call):
        record = candidate_of_call("r-1", call, 1, Beginnings()).record
        assert record is not None
        assert json.loads(encode_record(record))["output_items"] == record.output_items
        assert record.token_item_index in (None, *range(len(record.output_items)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("\ud800"),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("\udfff"), inner),
    max_leaves=8,
)


@given(JSON)
def test_text_of_any_value_can_be_written_as_utf_8(value: Any) -> None:
    json.dumps(as_text(value), ensure_ascii=False).encode()


@given(JSON, JSON, JSON)
def test_any_answer_has_items(content: Any, tools: Any, output_value: Any) -> None:
    for response in (
        {"choices": [{"message": {"content": content, "tool_calls": tools, "reasoning": output_value}}]},
        {"output": output_value},
        {"content": content},
    ):
        found = output(response)
        assert found.carrier is None or 0 <= found.carrier < len(found.items)


def test_a_tool_result_between_answer_and_question_is_no_answer() -> None:
    calling = calls(("k1", "f", "{}"))
    rows = [
        chat_call("a", [user("q")], calling, prompt=[1], generation=[2], at=1.0),
        chat_call("b", [user("q"), calling, result("k1", "r")], says("x"), prompt=[1, 2, 3], generation=[4], at=2.0),
    ]
    assert find_links(candidates(rows), {})["b"].how == "conversation"
