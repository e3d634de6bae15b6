"""The contract `messages`: what its blocks become elsewhere, and what becomes of others in it (contracts.md 7.2)."""

import json
from typing import Any

import pytest

from ng_capture.contracts.episode import Role
from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.exchanges.sft import SFT
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Contract, Options, Thinking
from ng_capture.contracts.responses.contract import RESPONSES
from tests.support.converting import converted, episode_of, in_lines, json_text
from tests.support.forge import Row

PNG = "data:image/png;base64,AAAA"
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def request(*messages: Row, **fields: Any) -> Row:
    return {"model": "m", "max_tokens": 9, "messages": list(messages), **fields}


def user(content: Any) -> Row:
    return {"role": "user", "content": content}


def assistant(*blocks: Row) -> Row:
    return {"role": "assistant", "content": list(blocks)}


def tool_use(call_id: str = "t1", name: str = "f", **given: Any) -> Row:
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def result(content: Any, call_id: str = "t1", **fields: Any) -> Row:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def response(*blocks: Row, stop_reason: str | None = "end_turn", **fields: Any) -> Row:
    told = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(blocks)}
    return {**told, "stop_reason": stop_reason, "stop_sequence": None, **fields}


def answering(*items: Row, **fields: Any) -> Row:
    """A response of Responses."""
    return {"id": "r", "object": "response", "status": "completed", "model": "m", "output": list(items), **fields}


def items_of(document: Row) -> list[Any]:
    done = converted(document, MESSAGES, RESPONSES).value
    return [*done.get("request", {}).get("input", []), *done.get("response", {}).get("output", [])]


def test_a_result_of_null_is_an_empty_output() -> None:
    *_, output = items_of(request(user("x"), assistant(tool_use()), user([result(None)])))
    assert (output["type"], output["output"]) == ("function_call_output", "")


def test_a_failed_result_is_marked_in_a_row_and_told_as_lost_in_plain_responses() -> None:
    document = request(user("x"), assistant(tool_use()), user([result("boom", is_error=True)]))
    assert items_of(document)[-1]["output"] == "boom"
    assert "is_error_dropped" in converted(document, MESSAGES, RESPONSES).codes
    assert converted(document, MESSAGES, MESSAGES).value["messages"][2]["content"] == [result("boom", is_error=True)]


def test_a_signature_is_encrypted_content_and_back_again() -> None:
    thinking = {"type": "thinking", "thinking": "T", "signature": "s"}
    document = {"request": request(user("x")), "response": response(thinking, {"type": "text", "text": "a"})}
    done = converted(document, MESSAGES, RESPONSES)
    reasoning = done.value["response"]["output"][0]
    assert reasoning["encrypted_content"] == "s" and reasoning["summary"] == [{"type": "summary_text", "text": "T"}]
    back = converted(done.lines[0].decode(), RESPONSES, MESSAGES)
    assert back.value["response"]["content"][0] == thinking


def test_redacted_thinking_is_reasoning_without_a_text_and_back_again() -> None:
    redacted = {"type": "redacted_thinking", "data": "d"}
    done = converted({"response": response(redacted, {"type": "text", "text": "a"})}, MESSAGES, GYM)
    reasoning = done.value["response"]["output"][0]
    assert (reasoning["summary"], reasoning["encrypted_content"]) == ([], "d")
    back = converted(done.lines[0].decode(), GYM, MESSAGES)
    assert back.value["content"][0] == redacted


def test_arguments_are_the_characters_of_the_source() -> None:
    text = (
        '{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":%s}]}],"model":"m"}'
    )
    for given in ('{"b":1,"a":"é"}', '{"b": 1,  "a":"\\u00e9"}', '{"n":1.50,"e":1E5}', "{}"):
        [call] = items_of(text % given)  # type: ignore[arg-type]
        assert call["arguments"] == given
        assert given.encode() in converted(text % given, MESSAGES, MESSAGES).lines[0]


def test_arguments_over_several_lines_are_on_one_line_in_a_document_and_as_they_stood_in_a_call() -> None:
    given = '{\n "a": "é"\n}'
    text = json_text(request(assistant(tool_use(a=0)))).replace('{"a":0}', given)
    [call] = items_of(text)  # type: ignore[arg-type]
    assert call["arguments"] == given
    assert converted(text, MESSAGES, MESSAGES).value == request(assistant(tool_use(a="é")))


@pytest.mark.parametrize(
    "content",
    [[{"type": "text", "text": "a"}], [{"type": "text", "text": "a", "citations": None}, IMAGE], [], "", [IMAGE]],
    ids=json_text,
)
def test_the_content_of_a_result_stands_as_it_stood(content: Any) -> None:
    document = request(user("x"), assistant(tool_use()), user([result(content, cache_control={"type": "ephemeral"})]))
    told = converted(document, MESSAGES, MESSAGES).value["messages"][2]["content"][0]
    assert told == result(content or "", cache_control={"type": "ephemeral"})


def test_usage_counts_what_the_cache_gave_and_took_once() -> None:
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 90,
        "cache_creation_input_tokens": 7,
        "output_tokens": 3,
    }
    document = {"response": response({"type": "text", "text": "a"}, usage=usage)}
    done = converted(document, MESSAGES, RESPONSES)
    told = done.value["response"]["usage"]
    assert (told["input_tokens"], told["input_tokens_details"]["cached_tokens"], told["total_tokens"]) == (102, 90, 105)
    assert "cache_write_dropped" in done.codes
    assert converted(document, MESSAGES, MESSAGES).value["usage"] == usage


def test_counts_of_responses_are_told_apart_in_messages() -> None:
    usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 90}, "output_tokens": 3}
    document = {"response": answering({"type": "message", "role": "assistant", "content": "a"}, usage=usage)}
    told = converted(document, RESPONSES, MESSAGES).value["usage"]
    assert told == {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 3}


def test_more_cached_than_asked_is_not_clamped() -> None:
    usage = {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 90}, "output_tokens": 3}
    document = {"response": answering({"type": "message", "role": "assistant", "content": "a"}, usage=usage)}
    assert converted(document, RESPONSES, MESSAGES).value["usage"]["input_tokens"] is None


def test_one_block_of_text_and_a_text_are_one_turn() -> None:
    text, block = (
        episode_of(request(user(said)), MESSAGES).main.turns[0] for said in ("a", [{"type": "text", "text": "a"}])
    )
    assert (text.role, text.content) == (block.role, block.content) == (Role.USER, "a")


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "text", "data": "x"}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "of tomorrow", "text": 5},
        {"type": "text", "text": 5},
        {"untyped": 1},
        {"value": 1},
        "bare",
        5,
        None,
    ],
    ids=json_text,
)
def test_a_block_that_only_messages_know_is_kept_there_and_told_as_lost_elsewhere(block: Any) -> None:
    document = request(assistant({"type": "text", "text": "a"}, block))
    for target in (RESPONSES, CHAT, SFT):
        assert "content_type_unsupported" in converted(document, MESSAGES, target).codes
    assert converted(document, MESSAGES, MESSAGES).value == document


def test_parts_of_an_output_are_blocks_of_its_result() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    parts = [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PNG}]
    output = {"type": "function_call_output", "call_id": "c", "output": parts}
    done = converted({"input": [{"role": "user", "content": "x"}, call, output]}, RESPONSES, MESSAGES)
    [told] = done.value["messages"][-1]["content"]
    assert told == {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "see"}, IMAGE]}


def test_results_with_images_travel_both_ways() -> None:
    document = request(user("x"), assistant(tool_use()), user([result([{"type": "text", "text": "see"}, IMAGE])]))
    chat = converted(document, MESSAGES, CHAT)
    [_, _, told] = chat.value["messages"]
    assert told["content"] == [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": PNG}}]
    assert converted(chat.lines[0].decode(), CHAT, MESSAGES).value["messages"] == document["messages"]


def test_parallel_calls_are_answered_in_any_order() -> None:
    results = [result("two", "t2"), result("one", "t1")]
    document = request(
        user("x"), assistant(tool_use("t1"), tool_use("t2")), user([*results, {"type": "text", "text": "go"}])
    )
    turns = episode_of(document, MESSAGES).main.turns
    assert [(told.call_id, told.content) for told in turns[1].results] == [("t2", "two"), ("t1", "one")]
    assert converted(document, MESSAGES, MESSAGES).value == document


def test_results_that_come_in_several_messages_belong_to_the_turn_that_called() -> None:
    document = request(
        user("x"), assistant(tool_use("t1"), tool_use("t2")), user([result("one", "t1")]), user([result("two", "t2")])
    )
    [_, calling] = episode_of(document, MESSAGES).main.turns
    assert [told.content for told in calling.results] == ["one", "two"]


def test_a_result_of_no_call_is_told() -> None:
    done = converted(request(user("x"), assistant(tool_use()), user([result("lost", "other")])), MESSAGES, RESPONSES)
    assert "output_unlinked" in done.codes


def test_system_blocks_are_instructions_and_stay_blocks() -> None:
    system = [{"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "B"}]
    document = request(user("x"), system=system)
    assert converted(document, MESSAGES, RESPONSES).value["request"]["instructions"] == "A\nB"
    assert converted(document, MESSAGES, MESSAGES).value == document


def test_system_and_developer_turns_of_others_are_the_system_text() -> None:
    document = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "developer", "content": "D"},
            {"role": "user", "content": "x"},
        ],
    }
    done = converted(document, CHAT, MESSAGES)
    assert done.value["system"] == [{"type": "text", "text": "S"}, {"type": "text", "text": "D"}]
    assert "developer_role" in done.codes


def test_a_later_system_turn_changes_its_place_and_is_told() -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "system", "content": "S"}, {"role": "user", "content": "y"}]
    done = converted({"model": "m", "messages": messages}, CHAT, MESSAGES)
    assert done.value["system"] == "S" and "item_order_changed" in done.codes


def test_neighbours_of_one_side_are_one_message_but_where_they_stood_apart() -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]
    blocks = [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]
    assert converted({"model": "m", "messages": messages}, CHAT, MESSAGES).value["messages"] == [user(blocks)]
    assert converted(request(*messages), MESSAGES, MESSAGES).value["messages"] == messages


def test_a_thought_that_nobody_signed_is_told() -> None:
    said = {"role": "assistant", "content": "a", "reasoning_content": "R"}
    done = converted({"model": "m", "messages": [{"role": "user", "content": "x"}, said]}, CHAT, MESSAGES)
    thinking, _ = done.value["messages"][1]["content"]
    assert thinking == {"type": "thinking", "thinking": "R", "signature": ""} and "signature_unknown" in done.codes


def test_pieces_under_one_signature_are_joined_and_told() -> None:
    summary = [{"type": "summary_text", "text": text} for text in "ab"]
    reasoning = {"type": "reasoning", "summary": summary, "encrypted_content": "E"}
    message = {"type": "message", "role": "assistant", "content": "x"}
    done = converted({"response": answering(reasoning, message)}, RESPONSES, MESSAGES)
    assert done.value["content"][0] == {"type": "thinking", "thinking": "a\nb", "signature": "E"}
    assert "reasoning_segments_joined" in done.codes


def test_the_content_of_reasoning_stands_before_its_summary() -> None:
    reasoning = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    done = converted({"response": answering(reasoning)}, RESPONSES, MESSAGES)
    assert done.value["content"][0]["thinking"] == "long" and "reasoning_summary_dropped" in done.codes


@pytest.mark.parametrize(
    ("arguments", "given", "lost"),
    [("[1]", {"value": [1]}, True), ("nope", {"_raw": "nope"}, True), ("", {}, True), ('{"a":1}', {"a": 1}, False)],
)
def test_arguments_that_are_no_object_are_wrapped(arguments: str, given: Row, lost: bool) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": arguments}
    done = converted({"response": answering(call)}, RESPONSES, MESSAGES)
    assert done.value["content"] == [{"type": "tool_use", "id": "c", "name": "f", "input": given}]
    assert ("arguments_not_object" in done.codes) == lost


def test_an_input_that_was_no_json_is_the_text_that_the_model_wrote() -> None:
    [call] = items_of(request(assistant(tool_use(_raw='{"a": '))))
    assert call["arguments"] == '{"a": '


@pytest.mark.parametrize(
    ("stop", "status", "reason"),
    [
        ("end_turn", "completed", None),
        ("stop_sequence", "completed", None),
        ("max_tokens", "incomplete", "max_output_tokens"),
        ("refusal", "incomplete", "content_filter"),
    ],
)
def test_why_it_stopped_is_told_in_the_words_of_responses(stop: str, status: str, reason: str | None) -> None:
    done = converted({"response": response({"type": "text", "text": "a"}, stop_reason=stop)}, MESSAGES, RESPONSES)
    told = done.value["response"]
    assert (told["status"], (told.get("incomplete_details") or {}).get("reason")) == (status, reason)


def test_why_it_stopped_is_told_in_the_words_of_messages() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
    }
    stops = {
        "stop": "tool_use",
        "tool_calls": "tool_use",
        "length": "max_tokens",
        "content_filter": "refusal",
        "odd": None,
    }
    for finish, stop in stops.items():
        choices = [{"index": 0, "message": message, "finish_reason": finish}]
        assert converted({"choices": choices}, CHAT, MESSAGES).value["stop_reason"] == stop


def test_parameters_have_the_names_of_each_side() -> None:
    choice = {"type": "tool", "name": "f", "disable_parallel_tool_use": True}
    tool = {"name": "f", "input_schema": {"type": "object", "properties": {"a": {}}}, "description": "d"}
    document = request(user("x"), tools=[tool], tool_choice=choice, stop_sequences=["Z"], top_k=4, temperature=0.5)
    chat = converted(document, MESSAGES, CHAT).value
    function = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {}}}}
    assert chat["tools"] == [{"type": "function", "function": function}]
    assert chat["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert (chat["parallel_tool_calls"], chat["stop"], chat["max_tokens"], chat["top_k"]) == (False, ["Z"], 9, 4)
    assert converted(json.dumps(chat), CHAT, MESSAGES).value == document


@pytest.mark.parametrize(
    "choice",
    [{"type": "auto"}, {"type": "any"}, {"type": "none"}, {"type": "auto", "disable_parallel_tool_use": False}],
)
def test_choices_of_tools_go_there_and_back(choice: Row) -> None:
    document = request(user("x"), tools=[{"name": "f", "input_schema": {"type": "object"}}], tool_choice=choice)
    assert converted(document, MESSAGES, MESSAGES).value == document


def test_a_tool_of_the_server_is_lost_and_told() -> None:
    document = request(user("x"), tools=[{"type": "web_search_20250305", "name": "web_search"}])
    for target in (CHAT, RESPONSES):
        done = converted(document, MESSAGES, target)
        assert "tools" not in done.value.get("request", done.value) and "tool_definition_not_function" in done.codes
    assert converted(document, MESSAGES, MESSAGES).value == document


def test_blocks_in_another_order_than_a_turn_has_are_told_and_stand_as_they_stood_in_messages() -> None:
    document = request(assistant(tool_use(), {"type": "text", "text": "after"}))
    assert "item_order_changed" in converted(document, MESSAGES, RESPONSES).codes
    assert converted(document, MESSAGES, MESSAGES).value == document


def test_think_tags_stay_in_a_text_unless_they_are_to_be_split() -> None:
    document = request(assistant({"type": "text", "text": "<think>R</think>a"}))
    assert episode_of(document, MESSAGES).main.turns[0].content == "<think>R</think>a"
    split = converted(document, MESSAGES, CHAT, Options(thinking=Thinking.SPLIT))
    [message] = split.value["messages"]
    assert (message["content"], message["reasoning_content"]) == ("a", "R") and "think_tags_split" in split.codes


def test_a_message_without_a_role_that_is_known_stands_as_it_stood() -> None:
    document = request(user("x"), {"role": "of tomorrow", "content": "y"}, 5)  # type: ignore[arg-type]
    done = converted(document, MESSAGES, MESSAGES)
    assert done.value == document
    assert "content_type_unsupported" in converted(document, MESSAGES, CHAT).codes


def test_fields_that_no_message_has_are_told() -> None:
    said = {"role": "assistant", "content": "a", "tool_calls": [], "reasoning": "R"}
    done = converted(request(user("x"), said), MESSAGES, MESSAGES)
    assert {loss.detail for loss in done.losses} == {"tool_calls", "reasoning"}


@pytest.mark.parametrize("target", [RESPONSES, GYM, CHAT, SFT], ids=lambda target: target.name)
def test_fields_of_blocks_that_others_do_not_have_are_told(target: Contract) -> None:
    marked = {"cache_control": {"type": "ephemeral"}}
    document = request(
        user([{"type": "text", "text": "x", **marked}]),
        assistant({"type": "text", "text": "y", "citations": [{"a": 1}]}, {**tool_use(), "caller": {"type": "direct"}}),
        user([result([{"type": "text", "text": "1"}], **marked), {"type": "text", "text": "z"}]),
    )
    done = converted(document, MESSAGES, target)
    told = {loss.detail for loss in done.losses if loss.code == "step_fields_dropped"}
    assert told == {"cache_control", "citations", "caller"}
    assert converted(document, MESSAGES, MESSAGES).value == document


def test_a_list_of_messages_is_a_conversation_whose_turns_are_output() -> None:
    done = converted([user("x"), assistant({"type": "text", "text": "a"})], MESSAGES, RESPONSES)
    assert len(done.value["request"]["input"]) == len(done.value["response"]["output"]) == 1


def test_lines_are_documents_of_their_own_and_a_bad_one_is_refused_alone() -> None:
    text = in_lines([request(user("x")), {"no": "messages"}, {"messages": []}]) + '{"cut'
    done = converted(text, MESSAGES, MESSAGES)
    assert len(done.lines) == 1
    assert {"messages.shape", "messages.empty"} <= done.rules and len(done.faults) == 3


def test_tokens_have_no_place_in_messages() -> None:
    message = {
        "role": "assistant",
        "content": "a",
        "prompt_token_ids": [1],
        "generation_token_ids": [2],
        "generation_log_probs": [-0.5],
    }
    done = converted({"choices": [{"index": 0, "message": message}]}, CHAT, MESSAGES)
    assert "tokens_dropped" in done.codes and b"token_ids" not in done.lines[0]
