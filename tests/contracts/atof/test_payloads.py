"""Payloads of model calls in whichever dialect they are, declared or not (contracts.md 2.2, 2.4)."""

from typing import Any, ClassVar

import pytest

from ng_capture.contracts.episode import Media, Opaque, Turn
from ng_capture.contracts.interface import Options, Read, Thinking
from ng_capture.contracts.sameness import words
from tests.support.atof_events import Event, agent, answer, ask, call, gives, llm, says, user
from tests.support.conversions import codes, read_one

MESSAGES_ANSWER = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "R", "signature": "s"},
        {"type": "text", "text": "yo"},
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}},
    ],
    "stop_reason": "tool_use",
    "usage": {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 3},
}
RESPONSES_ANSWER = {
    "object": "response",
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "R"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yo"}]},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"x":1}'},
    ],
    "usage": {"input_tokens": 102, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 90}},
}
CHAT_ANSWER = answer(
    {**says("yo", call("c1", arguments='{"x": 1}')), "reasoning_content": "R"},
    "tool_calls",
    usage={"prompt_tokens": 102, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 90}},
)
GEMINI_ANSWER = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "R", "thought": True},
                    {"text": "yo"},
                    {"functionCall": {"id": "c1", "name": "f", "args": {"x": 1}}},
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 102,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 1,
        "cachedContentTokenCount": 90,
    },
}


def turns_of(request: Any, response: Any, **fields: Any) -> list[Turn]:
    return list(made_of(request, response, **fields).episode.main.turns)


def made_of(request: Any, response: Any, **fields: Any) -> Read:
    return read_one("atof", agent("a", 0, 9, *llm("l", 1, request, response, **fields), metadata={"version": "1"}))


@pytest.mark.parametrize("response", [CHAT_ANSWER, MESSAGES_ANSWER, RESPONSES_ANSWER, GEMINI_ANSWER])
def test_an_answer_of_any_dialect_gives_reasoning_words_calls_and_counts(response: Event) -> None:
    turn = turns_of(None, response)[-1]
    assert [text for thought in turn.thoughts for text in thought.texts] == ["R"]
    assert turn.content == "yo"
    assert [(each.call_id, each.name, each.value) for each in turn.calls] == [("c1", "f", {"x": 1})]
    assert turn.call is not None
    usage = turn.call.usage
    assert (usage.tokens_in, usage.cached_tokens, usage.tokens_out) == (102, 90, 3)


@pytest.mark.parametrize(
    "request_",
    [
        "hi",
        [user("hi")],
        ask(user("hi")),
        {"content": ask(user("hi")), "headers": {}},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}], "max_tokens": 9},
        {"input": "hi"},
        {"input": [{"role": "user", "content": "hi"}]},
        [{"type": "message", "role": "user", "content": "hi"}],
        {"contents": [{"parts": [{"text": "hi"}]}]},
    ],
)
def test_a_request_of_any_shape_asks_the_same(request_: Any) -> None:
    turns = turns_of(request_, {})
    assert [(turn.role, words(turn.content)) for turn in turns] == [("user", "hi"), ("assistant", "")]


@pytest.mark.parametrize(
    "response",
    [
        "yo",
        {"content": "yo"},
        {"message": says("yo"), "id": "r", "finish_reason": "stop"},
        {"content": "yo", "tool_calls": [], "role": "assistant", "stop_reason": "stop"},
        {"content": [{"type": "text", "text": "yo"}], "tool_calls": []},
        answer(says("yo")),
        answer(says([{"type": "text", "text": "yo"}])),
    ],
)
def test_an_answer_of_any_shape_says_the_same(response: Any) -> None:
    assert words(turns_of(ask(user("hi")), response)[-1].content) == "yo"


@pytest.mark.parametrize("response", [{"message": {**says("yo")}, "id": "r"}, {**says("yo"), "id": "r"}])
def test_a_bare_message_keeps_the_id_and_is_not_told_twice(response: Event) -> None:
    turn = turns_of(ask(user("hi")), response)[-1]
    assert turn.call is not None and turn.call.response_id == "r"
    assert "yo" not in str(turn.item)


class TestWhatNoDialectKnows:
    def test_an_unknown_request_and_answer_are_carried_whole(self) -> None:
        first, last = turns_of({"prompt": "P"}, {"completion": "C"})
        assert first.content == (Opaque("llm_input", {"prompt": "P"}),)
        assert last.content == (Opaque("llm_output", {"completion": "C"}),)

    @pytest.mark.parametrize("request_", [7, [], [3], {"messages": "x"}])
    def test_what_is_no_request_is_carried_and_never_a_crash(self, request_: Any) -> None:
        assert turns_of(request_, "yo")[-1].content == "yo"

    @pytest.mark.parametrize("response", [{}, "", []])
    def test_an_empty_answer_is_a_step_without_words_and_reported(self, response: Any) -> None:
        made = made_of(ask(user("hi")), response)
        assert made.episode.main.turns[-1].content in (None, "")
        assert codes(made) == ["conversation_unavailable"]

    def test_blocks_without_types_are_no_messages(self) -> None:
        (turn,) = turns_of(None, {"content": [{"text": "x"}, 3]})
        assert turn.content == (Opaque("llm_output", {"content": [{"text": "x"}, 3]}),)


class TestWhichDialect:
    RESULT: ClassVar[Event] = user([{"type": "tool_result", "tool_use_id": "c0", "content": "7"}])
    USE: ClassVar[Event] = says([{"type": "tool_use", "id": "c0", "name": "f", "input": {}}])

    @pytest.mark.parametrize("response", ["yo", {}, None, MESSAGES_ANSWER])
    def test_blocks_of_messages_are_read_as_such_whatever_the_answer(self, response: Any) -> None:
        turns = turns_of({"messages": [user("hi"), self.USE, self.RESULT]}, response)
        assert [(each.call_id, each.content) for each in turns[1].results] == [("c0", "7")]

    @pytest.mark.parametrize("name", ["anthropic/messages", "Messages"])
    def test_the_declared_schema_tells_messages(self, name: str) -> None:
        request = {"messages": [{"role": "user", "content": [{"type": "document", "source": {}}]}]}
        turns = turns_of(request, "", data_schema={"name": name, "version": "1"})
        assert isinstance(turns[0].content, tuple)

    def test_a_request_with_roles_of_chat_is_chat_though_it_limits_tokens(self) -> None:
        turns = turns_of({**ask({"role": "system", "content": "S"}, user("hi")), "max_tokens": 9}, {})
        assert [(turn.role, turn.content) for turn in turns[:2]] == [("system", "S"), ("user", "hi")]

    def test_parts_of_chat_declared_as_chat_are_no_blocks_of_messages(self) -> None:
        (turn,) = turns_of(None, {"content": [{"type": "text", "text": "yo"}]}, data_schema={"name": "openai-chat"})
        assert turn.call is not None and turn.call.dialect == "chat"

    def test_a_tools_message_with_any_value_is_its_text(self) -> None:
        history = ask(user("hi"), says(None, call("c1")), gives("c1", {"result": {"n": 1}}))
        assert turns_of(history, "yo")[1].results[0].content == '{"n":1}'


class TestGemini:
    REQUEST: ClassVar[Event] = {
        "systemInstruction": {"parts": [{"text": "S"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "look "}, {"text": "here"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"x": 1}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"ok": True}}}]},
            {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "QQ=="}}, {"text": "!"}]},
            {"role": "user", "parts": [{"fileData": {"fileUri": "gs://x"}}]},
            {"role": "user", "parts": []},
        ],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "object"}}]}],
        "generationConfig": {"temperature": 0},
    }

    def test_a_request_is_read_with_its_tools_images_and_results(self) -> None:
        made = made_of(self.REQUEST, GEMINI_ANSWER)
        turns = made.episode.main.turns
        assert [turn.content for turn in turns[:2]] == ["S", "look here"]
        assert [each.call_id for each in turns[2].calls] == ["f__0"] == [each.call_id for each in turns[2].results]
        assert turns[2].results[0].content == '{"ok":true}'
        assert isinstance(turns[3].content, tuple) and isinstance(turns[3].content[0], Media)
        assert isinstance(turns[4].content, tuple) and isinstance(turns[4].content[0], Opaque)
        assert [tool.name for tool in made.episode.main.agent.tools or ()] == ["f"]

    def test_results_that_carry_ids_are_linked_by_them(self) -> None:
        contents = [
            {"role": "model", "parts": [{"functionCall": {"id": "c9", "name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c9", "name": "f", "response": "seven"}}]},
        ]
        turn = turns_of({"contents": contents}, GEMINI_ANSWER)[0]
        assert [(each.call_id, each.content) for each in turn.results] == [("c9", "seven")]

    @pytest.mark.parametrize("usage", [{}, {"promptTokenCount": 3}, {"thoughtsTokenCount": 4}])
    def test_counts_that_are_not_told_are_unknown(self, usage: Event) -> None:
        turn = turns_of(None, {"candidates": [{"finishReason": "SAFETY"}], "usageMetadata": usage})[-1]
        assert turn.call is not None
        assert (turn.call.usage.tokens_in, turn.call.usage.tokens_out) == (usage.get("promptTokenCount"), None)
        assert turn.call.finish_reason == "content_filter"


def test_the_runtimes_name_of_the_model_counts_and_the_answers_own_stays_beside() -> None:
    profile = {"category_profile": {"model_name": "m"}}
    turn = turns_of(ask(user("hi"), model="asked"), answer(says("yo"), model="m-0301"), **profile)[-1]
    assert turn.call is not None and turn.call.model == "m"
    assert turn.extra is not None and turn.extra["ng_capture"]["response_model"] == "m-0301"


def test_the_effort_that_was_asked_for_stands_on_the_answer() -> None:
    assert turns_of(ask(user("hi"), reasoning_effort="low"), "yo")[-1].reasoning_effort == "low"


def test_think_tags_in_an_answer_of_chat_are_reasoning_and_reported() -> None:
    made = made_of(ask(user("hi")), answer(says("<think>R</think>yo")))
    assert made.episode.main.turns[-1].content == "yo"
    assert [(each.code, each.path) for each in made.losses] == [
        ("think_tags_split", "/l/end/data/choices/0/message/content"),
    ]


def test_think_tags_stay_where_the_user_wants_them_to() -> None:
    stream = agent("a", 0, 9, *llm("l", 1, ask(user("hi")), answer(says("<think>R</think>yo"))))
    made = read_one("atof", stream, Options(thinking=Thinking.KEEP))
    assert made.episode.main.turns[-1].content == "<think>R</think>yo" and made.episode.main.turns[-1].thoughts == ()


def test_of_several_choices_the_first_counts_and_the_others_are_reported() -> None:
    two = {"choices": [{"message": says("A")}, {"message": says("B")}]}
    made = made_of(ask(user("hi")), two)
    assert made.episode.main.turns[-1].content == "A" and codes(made) == ["choice_dropped"]


@pytest.mark.parametrize("arguments", ["nope", "[1]", ""])
def test_arguments_that_are_no_object_are_carried_as_they_stand(arguments: str) -> None:
    turn = turns_of(ask(user("hi")), answer(says(None, call("c1", arguments=arguments))))[-1]
    assert turn.calls[0].arguments == arguments


def test_an_end_whose_start_is_lost_is_still_an_answer() -> None:
    made = read_one("atof", agent("a", 0, 9, llm("l", 1, None, "yo")[1]))
    (turn,) = made.episode.main.turns
    assert turn.content == "yo" and turn.call is not None and turn.call.started_at is None
