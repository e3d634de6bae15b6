"""The contract `chat`: what its messages become elsewhere, and what becomes of others in them (contracts.md 7.2)."""

from typing import Any

import pytest

from ng_capture.contracts.episode import Media, Opaque, Role, Text
from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.exchanges.sft import SFT
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Contract, Options, Thinking
from ng_capture.contracts.responses.contract import RESPONSES
from tests.support.converting import Done, converted, episode_of, json_text
from tests.support.forge import Row

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"b":1,"a":"é"}'}}
OTHER = {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
TOKENS = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}


def request(*messages: Row, **fields: Any) -> Row:
    return {"model": "m", "messages": list(messages), **fields}


def user(content: Any = "x") -> Row:
    return {"role": "user", "content": content}


def assistant(content: Any = None, **fields: Any) -> Row:
    return {"role": "assistant", "content": content, **fields}


def tool(content: Any, call_id: str | None = "c1", **fields: Any) -> Row:
    return {"role": "tool", **({} if call_id is None else {"tool_call_id": call_id}), "content": content, **fields}


def completion(*messages: Row, finish: str | None = "stop", **fields: Any) -> Row:
    choices = [{"index": at, "message": each, "finish_reason": finish} for at, each in enumerate(messages)]
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": choices, **fields}


def to_responses(document: Row, options: Options | None = None) -> Done:
    return converted(document, CHAT, RESPONSES, options or Options())


def output_of(document: Row) -> list[Any]:
    output: list[Any] = to_responses(document).value["response"]["output"]
    return output


def texts(item: Row) -> list[str]:
    return [part["text"] for part in item.get("content") or item["summary"]]


def test_every_closed_pair_of_think_tags_is_reasoning() -> None:
    done = to_responses(completion(assistant("<think>a</think>pre<think>b</think>post")))
    reasoning, message = done.value["response"]["output"]
    assert texts(reasoning) == ["a", "b"] and texts(message) == ["prepost"]
    [loss] = [each for each in done.losses if each.code == "think_tags_split"]
    assert (loss.count, loss.detail, loss.severity) == (2, "at 0, 3", "note")


def test_split_tags_go_back_to_where_they_stood() -> None:
    for text in (
        "<think>a</think>pre<think>b</think>post",
        "x<think></think>",
        "<think>\na\n</think>\n\nb",
        "<think>a</think>",
    ):
        document = completion(assistant(text))
        assert converted(document, CHAT, CHAT).value == document
        split = converted(document, CHAT, CHAT, Options(thinking=Thinking.SPLIT)).value["choices"][0]["message"]
        assert "<think>" not in (split["content"] or "")


def test_think_keep_leaves_the_text() -> None:
    done = to_responses(completion(assistant("<think>a</think>x")), Options(thinking=Thinking.KEEP))
    [message] = done.value["response"]["output"]
    assert texts(message) == ["<think>a</think>x"]


@pytest.mark.parametrize("text", ["a</think>b", "<think>a", "<think", "no tags"])
def test_a_tag_without_its_other_half_is_text(text: str) -> None:
    [message] = output_of(completion(assistant(text)))
    assert texts(message) == [text]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_in_a_field_of_its_own_is_kept(field: str) -> None:
    document = completion(assistant("x", **{field: "R"}))
    reasoning, message = output_of(document)
    assert texts(reasoning) == ["R"] and texts(message) == ["x"]
    assert converted(document, CHAT, CHAT).value == document


def test_both_fields_of_one_reasoning_are_one_thought() -> None:
    document = completion(assistant("x", reasoning_content="R", reasoning="R"))
    assert len(output_of(document)) == 2
    assert converted(document, CHAT, CHAT).value == document


def test_the_first_of_several_choices_is_used() -> None:
    done = to_responses(completion(assistant("A"), assistant("B"), assistant("C")))
    [message] = done.value["response"]["output"]
    assert texts(message) == ["A"]
    [loss] = [each for each in done.losses if each.code == "choice_dropped"]
    assert (loss.path, loss.count) == ("/choices/1", 2)


def test_a_call_without_words_makes_no_empty_message() -> None:
    [call] = output_of(completion(assistant(tool_calls=[CALL]), finish="tool_calls"))
    assert (call["type"], call["arguments"]) == ("function_call", '{"b":1,"a":"é"}')


@pytest.mark.parametrize("where", ["message", "choice", "response"])
def test_tokens_stand_on_the_last_item(where: str) -> None:
    document = completion(assistant("x", tool_calls=[CALL], **(TOKENS if where == "message" else {})))
    if where == "choice":
        document["choices"][0].update(TOKENS)
    if where == "response":
        document.update(TOKENS)
    message, call = output_of(document)
    assert "generation_token_ids" not in message and {key: call[key] for key in TOKENS} == TOKENS


def test_tokens_as_vllm_serves_them_are_read() -> None:
    choice = {"index": 0, "message": assistant("x"), "token_ids": [3], "logprobs": {"content": [{"logprob": -0.5}]}}
    for served in ({"choices": [{**choice, "prompt_token_ids": [1]}]}, {"choices": [choice], "prompt_token_ids": [1]}):
        [message] = output_of(served)
        assert (message["prompt_token_ids"], message["generation_token_ids"]) == ([1], [3])
        assert message["generation_log_probs"] == [-0.5]


def test_tokens_without_all_their_log_probabilities_are_left_out_and_told() -> None:
    choice = {
        "index": 0,
        "message": assistant("x"),
        "token_ids": [3, 4],
        "logprobs": {"content": [{"logprob": -0.5}, {}]},
    }
    done = to_responses({"choices": [choice], "prompt_token_ids": [1]})
    assert "tokens_incomplete" in done.codes and b"token_ids" not in done.lines[0]


def test_one_or_two_of_three_token_fields_are_left_out_and_told() -> None:
    message = {"type": "message", "role": "assistant", "content": "a", "prompt_token_ids": [1]}
    done = converted({"response": {"object": "response", "output": [message]}}, RESPONSES, CHAT)
    assert "tokens_incomplete" in done.codes and b"token_ids" not in done.lines[0]


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_why_it_stopped_goes_there_and_back(finish: str, status: str, reason: str | None) -> None:
    done = to_responses(completion(assistant("x"), finish=finish))
    told = done.value["response"]
    assert (told["status"], (told.get("incomplete_details") or {}).get("reason")) == (status, reason)
    back = converted(done.lines[0].decode(), RESPONSES, CHAT).value
    assert back["choices"][0]["finish_reason"] == finish


def test_a_refusal_is_a_refusal_on_both_sides() -> None:
    document = completion(assistant(None, refusal="no"))
    done = to_responses(document)
    assert done.value["response"]["output"][0]["content"] == [{"type": "refusal", "refusal": "no"}]
    back = converted(done.lines[0].decode(), RESPONSES, CHAT).value["choices"][0]["message"]
    assert back == {"role": "assistant", "content": None, "refusal": "no"}
    assert converted(document, CHAT, MESSAGES).value["content"] == [{"type": "text", "text": "no"}]


def test_words_beside_a_refusal_stay() -> None:
    document = completion(assistant("half", refusal="no"))
    assert converted(document, CHAT, CHAT).value == document


def test_parallel_calls_keep_their_results_in_the_order_in_which_they_came() -> None:
    document = request(user(), assistant(tool_calls=[CALL, OTHER]), tool("two", "c2"), tool("one", "c1"), user("go"))
    turn = episode_of(document, CHAT).main.turns[1]
    assert [(each.call_id, each.content) for each in turn.results] == [("c2", "two"), ("c1", "one")]
    assert converted(document, CHAT, CHAT).value == document


def test_results_that_name_no_call_are_linked_by_their_place_and_told() -> None:
    document = request(user(), assistant(tool_calls=[CALL, OTHER]), tool("1", None), tool("2", None))
    done = to_responses(document)
    outputs = [each["call_id"] for each in done.value["request"]["input"] if each["type"] == "function_call_output"]
    assert outputs == ["c1", "c2"] and "link_by_position" in done.codes and "link_ambiguous" not in done.codes


def test_fewer_results_than_calls_without_a_name_are_ambiguous() -> None:
    done = to_responses(request(user(), assistant(tool_calls=[CALL, OTHER]), tool("1", None)))
    assert "link_ambiguous" in done.codes


def test_a_result_of_no_call_is_told_and_kept() -> None:
    for document in (request(user(), tool("lost", "zz")), request(tool("lost", None))):
        done = to_responses(document)
        assert "output_unlinked" in done.codes and b'"lost"' in done.lines[0]


def test_an_id_that_is_given_again_links_to_the_call_that_waits() -> None:
    document = request(assistant(tool_calls=[CALL]), tool("first"), assistant(tool_calls=[CALL]), tool("second"))
    turns = episode_of(document, CHAT).main.turns
    assert [[each.content for each in turn.results] for turn in turns] == [["first"], ["second"]]


def test_a_second_result_of_one_call_stays_with_it() -> None:
    document = request(assistant(tool_calls=[CALL]), tool("first"), tool("again"), user())
    assert [each.content for each in episode_of(document, CHAT).main.turns[0].results] == ["first", "again"]
    assert converted(document, CHAT, CHAT).value == document


def test_a_call_without_an_id_gets_one_of_what_it_calls() -> None:
    nameless = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    document = request(user(), assistant(tool_calls=[nameless]))
    once, again = converted(document, CHAT, MESSAGES), converted(document, CHAT, MESSAGES)
    assert once.lines == again.lines and "call_id_unknown" in once.codes
    assert once.value["messages"][1]["content"][0]["id"].startswith("toolu_")


def test_roles_of_the_system_and_of_developers_are_told_apart() -> None:
    document = request({"role": "system", "content": "S"}, {"role": "developer", "content": "D"}, user())
    assert [turn.role for turn in episode_of(document, CHAT).main.turns] == [Role.SYSTEM, Role.DEVELOPER, Role.USER]
    assert [item["role"] for item in to_responses(document).value["request"]["input"]] == [
        "system",
        "developer",
        "user",
    ]
    assert converted(document, CHAT, CHAT).value == document


def test_instructions_and_the_system_turns_behind_them_are_one_system_message() -> None:
    turns = [{"role": "system", "content": [{"type": "input_text", "text": "S"}, {"type": "input_text", "text": "T"}]}]
    turns.append({"role": "developer", "content": "D"})
    done = converted({"instructions": "I", "input": [*turns, {"role": "user", "content": "x"}]}, RESPONSES, CHAT)
    assert done.value["messages"][0] == {"role": "system", "content": "I\n\nS\nT\n\nD"}
    assert {"developer_role", "parts_flattened"} <= done.codes


def test_system_turns_with_what_is_no_text_stay_apart_from_instructions() -> None:
    image = {"type": "input_image", "image_url": "https://x/y.png"}
    done = converted(
        {"instructions": "I", "input": [{"role": "system", "content": [image]}, {"role": "user", "content": "x"}]},
        RESPONSES,
        CHAT,
    )
    assert [each["role"] for each in done.value["messages"]] == ["system", "system", "user"]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}},
        {"type": "image_url", "image_url": "https://x/y.png"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}, "uuid": "u"},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav", "more": 1}},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": None}},
        {"type": "file", "file": {"file_id": "f"}},
        {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": 5},
        {"type": "refusal", "refusal": "no"},
        "a bare text",
        5,
        None,
    ],
    ids=json_text,
)
def test_any_part_stands_as_it_stood(part: Any) -> None:
    document = request(user([{"type": "text", "text": "see"}, part]), assistant(tool_calls=[CALL]), tool([part]))
    assert converted(document, CHAT, CHAT).value == document


def test_parts_are_texts_media_and_what_only_chat_knows() -> None:
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
        {"type": "file", "file": {}},
    ]
    [turn] = episode_of(request(user(parts)), CHAT).main.turns
    assert turn.content == (
        Text("see"),
        Media("image", "data:image/png;base64,AA", "image/png"),
        Media("audio", "data:audio/wav;base64,AA", "audio/wav"),
        Opaque("file", {"type": "file", "file": {}}),
    )
    [written] = converted(request(user(parts)), CHAT, MESSAGES).value["messages"]
    assert [block["type"] for block in written["content"]] == ["text", "image", "text", "text"]
    assert "AA" not in written["content"][2]["text"]


def test_content_that_is_neither_text_nor_parts_stands_as_it_stood() -> None:
    document = request(user({"odd": 1}), assistant("x"))
    assert converted(document, CHAT, CHAT).value["messages"][0]["content"] in ([{"odd": 1}], {"odd": 1})


def test_a_sound_that_was_said_is_kept() -> None:
    audio = {"id": "a", "data": "AA", "transcript": "hello", "expires_at": 5}
    document = completion(assistant(None, audio=audio))
    assert converted(document, CHAT, CHAT).value == document
    assert "content_type_unsupported" in converted(document, CHAT, MESSAGES).codes


def test_custom_tools_are_called_there_and_back() -> None:
    custom = {"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}
    tools = [{"type": "custom", "custom": {"name": "sh", "description": "d"}}]
    document = request(user(), assistant(tool_calls=[custom]), tools=tools)
    done = to_responses(document)
    assert done.value["request"]["input"][1]["type"] == "custom_tool_call"
    assert converted(done.lines[0].decode(), RESPONSES, CHAT).value["messages"][1]["tool_calls"] == [custom]
    assert converted(document, CHAT, CHAT).value == document


def test_calls_of_before_tools_stay_what_they_were() -> None:
    function = {"name": "f", "parameters": {"type": "object"}}
    document = request(
        user(),
        assistant(None, function_call={"name": "f", "arguments": "{}"}),
        {"role": "function", "name": "f", "content": "1"},
        functions=[function],
        function_call={"name": "f"},
    )
    done = converted(document, CHAT, CHAT).value
    assert done["messages"] == document["messages"]
    assert done["tools"] == [{"type": "function", "function": function}]
    assert done["tool_choice"] == {"type": "function", "function": {"name": "f"}}
    assert episode_of(document, CHAT).main.turns[1].results[0].content == "1"


def test_calls_that_are_json_text_or_bare_are_calls() -> None:
    calls = [json_text(CALL), {"name": "g", "arguments": {"a": 1}}, "no json", "[1]"]
    [turn] = episode_of([assistant(tool_calls=calls)], CHAT).main.turns
    told = [(call.call_id, call.name, call.arguments) for call in turn.calls]
    assert told == [("c1", "f", '{"b":1,"a":"é"}'), (None, "g", '{"a": 1}'), (None, "", "no json"), (None, "", "{}")]


def test_parameters_have_the_names_of_each_side() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}, "strict": True}}
    document = request(
        user(),
        max_completion_tokens=5,
        reasoning_effort="low",
        verbosity="high",
        response_format=schema,
        tool_choice="required",
        tools=[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}],
        logit_bias={"5": 1},
    )
    done = to_responses(document)
    told = done.value["request"]
    assert (told["max_output_tokens"], told["reasoning"], told["tool_choice"]) == (5, {"effort": "low"}, "required")
    assert told["text"] == {
        "verbosity": "high",
        "format": {"type": "json_schema", "name": "n", "schema": {}, "strict": True},
    }
    assert {(loss.code, loss.detail) for loss in done.losses} == {("request_fields_dropped", "logit_bias")}
    back = converted(done.lines[0].decode(), RESPONSES, CHAT).value
    limit = {"max_tokens": 5}
    kept = {key: value for key, value in document.items() if key not in ("logit_bias", "max_completion_tokens")}
    assert back == {**kept, **limit}


def test_parameters_that_chat_does_not_have_are_told() -> None:
    fields = {
        "include": ["x"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "truncation": None,
        "background": True,
    }
    done = converted({"input": "x", **fields}, RESPONSES, CHAT)
    lost = {loss.detail for loss in done.losses if loss.code == "request_fields_dropped"}
    assert lost == {"include", "reasoning.summary", "background"}


def test_both_names_of_a_limit_stay() -> None:
    document = request(user(), max_tokens=5, max_completion_tokens=6)
    assert converted(document, CHAT, CHAT).value == document


def test_the_counts_of_a_call_are_kept_whatever_their_names() -> None:
    usage = {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 3, "audio_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 1, "accepted_prediction_tokens": 4},
        "queue_time": 0.5,
    }
    document = completion(assistant("x"), usage=usage)
    assert converted(document, CHAT, CHAT).value == document
    told = to_responses(document).value["response"]["usage"]
    assert (told["input_tokens"], told["output_tokens"], told["total_tokens"]) == (5, 2, 7)
    assert told["output_tokens_details"]["reasoning_tokens"] == 1


def test_a_count_that_is_not_known_is_not_written() -> None:
    assert "usage" not in converted(completion(assistant("x")), CHAT, CHAT).value


def test_what_a_server_adds_to_an_answer_stays_in_chat() -> None:
    document = completion(assistant("x", annotations=[{"a": 1}]), created=5, system_fingerprint="fp", service_tier="x")
    document["choices"][0]["logprobs"] = {"content": []}
    assert converted(document, CHAT, CHAT).value == document


@pytest.mark.parametrize("target", [RESPONSES, GYM, MESSAGES, SFT], ids=lambda target: target.name)
def test_fields_of_messages_that_others_do_not_have_are_told(target: Contract) -> None:
    document = request(
        {
            "role": "user",
            "name": "bob",
            "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
        },
        assistant("a", annotations=[1], type="message", tool_calls=[{**CALL, "index": 0, "extra_content": {"a": 1}}]),
        tool("1", name="f", note=5),
        assistant("b", annotations=[], audio=None, weight=1),
        assistant("c", weight=0.5),
    )
    done = converted(document, CHAT, target)
    told = {loss.detail for loss in done.losses if loss.code == "step_fields_dropped"}
    assert told == {"name", "cache_control", "annotations", "extra_content", "note", "weight"}


def test_a_row_of_a_data_set_is_a_conversation_whose_turns_are_output() -> None:
    row = {
        "messages": [user(), assistant("a", tool_calls=[CALL])],
        "tools": "[]",
        "rollout_id": "r",
        "reward": 1,
        "more": 5,
    }
    done = converted(row, CHAT, GYM)
    assert done.value["reward"] == 1.0 and done.value["response"]["output"]
    assert episode_of(row, CHAT).rollout_id == "r"
    assert {loss.detail for loss in converted(row, CHAT, CHAT).losses if loss.code == "row_fields_dropped"} == {"more"}


@pytest.mark.parametrize("tools", ['[{"type": "function", "function": {"name": "f"}}]', "no json", 5, None])
def test_tools_of_a_row_may_stand_as_json_text(tools: Any) -> None:
    found = episode_of({"messages": [user()], "tools": tools}, CHAT).main.agent.tools
    assert [tool.name for tool in found or ()] == (["f"] if isinstance(tools, str) and tools.startswith("[") else [])


@pytest.mark.parametrize(
    "document", [{"choices": []}, {"request": {}}, {"request": 5, "response": None}, [], {"messages": []}]
)
def test_a_document_of_nothing_is_refused(document: Any) -> None:
    done = converted(document, CHAT, RESPONSES)
    assert not done.lines and done.rules == {"chat.empty"}


@pytest.mark.parametrize("document", [5, "x", None, {"a": 1}, {"choices": 5}, {"messages": "x"}])
def test_what_is_no_chat_is_refused_by_name(document: Any) -> None:
    done = converted(json_text(document), CHAT, RESPONSES)
    assert not done.lines and done.rules == {"chat.shape"}


def test_a_message_that_is_none_stands_as_it_stood() -> None:
    document = request(user(), {"role": "of tomorrow", "content": "y"})
    assert converted(document, CHAT, CHAT).value == document
    assert "content_type_unsupported" in converted(document, CHAT, MESSAGES).codes
