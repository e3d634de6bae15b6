"""The oracle of the dialects: as the converters of NeMo Gym give it, but for differences that are named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ng_capture.contracts.exchanges.chat import CHAT
from ng_capture.contracts.exchanges.messages import MESSAGES
from ng_capture.contracts.exchanges.sft import SFT
from ng_capture.contracts.interface import Contract
from ng_capture.contracts.recognition import recognise
from ng_capture.contracts.responses.contract import RESPONSES
from ng_capture.records.assembling import assemble
from ng_capture.records.streams import stream_events
from tests.support.converting import converted, file_converted
from tests.support.corpus import corpus_folder, json_lines
from tests.support.forge import Row

ORACLE = corpus_folder("contracts") / "oracle"
ITEMS = ("reasoning", "message", "function_call", "function_call_output")
SPELLED = "arguments are spelled as in the document, not written anew (T-AN-5)"
TAGS = "reasoning stands in its own field, not between think tags in the text"
REFUSED = "the peer refuses it"
ORDER = "a turn thinks, speaks, calls: the text stands first, and the loss is told (item_order_changed)"


class Same(msgspec.Struct, frozen=True):
    """What is compared: `wrap` makes a document of the input, `ours` and `theirs` take out what both say."""

    source: Contract
    target: Contract
    wrap: Callable[[Any], Any]
    ours: Callable[[Any], Any]
    theirs: Callable[[Any], Any]


def alike(value: Any) -> Any:
    """Without what is the same in other words: nulls, ids and states of items (those of the peer are random, or none),
    a text as the one block of a message (T-AN-7)."""
    if isinstance(value, list):
        return [alike(each) for each in value]
    if not isinstance(value, dict):
        return value
    dropped = ("id", "status") if value.get("type") in ITEMS else ()
    kept = {key: alike(each) for key, each in value.items() if each is not None and key not in dropped}
    match kept:
        case {"role": "user" | "assistant", "content": [{"type": "text", "text": str(text), **rest}]} if not rest:
            return {**kept, "content": text}
    return kept


def only(*keys: str) -> Callable[[Row], Row]:
    """Of an object only these fields."""
    return lambda value: {key: value.get(key) for key in keys}


def as_it_is(value: Any) -> Any:
    return value


def without_zeros(response: Row) -> Row:
    """Without the usage that the peer writes where there is none: zero is no count (design.md, unknown is null)."""
    known = only("role", "type", "content", "stop_reason", "usage")(response)
    zeros = {"input_tokens": 0, "output_tokens": 0}
    return {**known, "usage": None} if known["usage"] == zeros else known


def completion_of(case: Row) -> Row:
    choice = {"message": case["message"], "finish_reason": case.get("finish_reason")}
    return {"choices": [choice], "usage": case.get("usage")}


FILES = {
    "anthropic_request_to_responses": Same(MESSAGES, RESPONSES, as_it_is, lambda done: done["request"], as_it_is),
    "anthropic_response_to_responses": Same(
        MESSAGES,
        RESPONSES,
        lambda case: {"response": case},
        lambda done: only("output", "usage", "incomplete_details")(done["response"]),
        only("output", "usage", "incomplete_details"),
    ),
    "responses_response_to_anthropic": Same(
        RESPONSES,
        MESSAGES,
        lambda case: {"response": {"object": "response", **case}},
        only("role", "type", "content", "stop_reason", "usage"),
        without_zeros,
    ),
    # model and limit are options of the peer
    "responses_request_to_anthropic": Same(RESPONSES, MESSAGES, as_it_is, as_it_is, only("system", "messages")),
    "responses_request_to_chat": Same(RESPONSES, CHAT, as_it_is, as_it_is, as_it_is),
    "chat_completion_to_responses": Same(
        CHAT,
        RESPONSES,
        completion_of,
        lambda done: only("output", "usage", "status", "incomplete_details")(done["response"]),
        as_it_is,
    ),
    "chat_messages_to_responses_items": Same(
        CHAT,
        RESPONSES,
        as_it_is,
        lambda done: done["request"]["input"] + done.get("response", {}).get("output", []),
        as_it_is,
    ),
}


def of_user(*parts: Row) -> Row:
    return {"type": "message", "role": "user", "content": list(parts)}


def called(**fields: Any) -> Row:
    return {"type": "function_call", "call_id": "t1", "name": "f", **fields}


def spoken(role: str, content: Any = None, **fields: Any) -> Row:
    return {"role": role, **({} if content is None else {"content": content}), **fields}


def asked(*items: Row, **fields: Any) -> Row:
    """A request as the first oracle file gives them."""
    return {"model": "m", "max_output_tokens": 10, "input": list(items), **fields}


def answered(*blocks: Row) -> Row:
    return {"role": "assistant", "type": "message", "content": list(blocks), "stop_reason": "tool_use"}


def thought(text: str, **fields: Any) -> Row:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], **fields}


def output_text(*texts: str) -> Row:
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "role": "assistant", "content": parts}


FUNCTION = {
    "type": "function",
    "name": "f",
    "description": "d",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}
CALL = {"type": "function", "id": "c1", "function": {"name": "f", "arguments": '{"x":1}'}}

DIFFERENCES: dict[str, dict[str, tuple[str, Any]]] = {
    "anthropic_request_to_responses": {
        "image url source": (
            REFUSED,
            asked(of_user({"type": "input_image", "detail": "auto", "image_url": "https://example.test/a.png"})),
        ),
        "thinking + text + tool_use": (
            SPELLED,
            asked(
                thought("T", encrypted_content="s"),
                {"type": "message", "role": "assistant", "content": "x"},
                called(arguments='{"b":1,"a":"é"}'),
            ),
        ),
        "tool_result content null": (
            REFUSED,
            asked({"type": "function_call_output", "call_id": "t1", "output": ""}),
        ),
        "redacted_thinking": (REFUSED, asked({"type": "reasoning", "summary": [], "encrypted_content": "zz"})),
        "document block": (
            REFUSED,
            asked(of_user({"type": "input_text", "text": '{"type":"document","source":{}}'})),
        ),
        "empty content list disappears": ("a message of nothing stays one", asked(of_user())),
        "tools and tool_choice any; stop_sequences, top_k, thinking, metadata dropped": (
            "metadata and calls one at a time have a place in Responses",
            asked(
                {"type": "message", "role": "user", "content": "x"},
                tool_choice="required",
                parallel_tool_calls=False,
                metadata={"user_id": "u"},
                temperature=0.5,
                tools=[FUNCTION],
            ),
        ),
        "server tool definition becomes a plain function": (
            "a tool that the server runs is no function: it is lost, and told (tool_definition_not_function)",
            asked({"type": "message", "role": "user", "content": "x"}),
        ),
    },
    "anthropic_response_to_responses": {
        "thinking, two texts, tool_use, cache usage": (
            f"texts of two blocks stay two; cached tokens are counted among the input (T-AN-6); {SPELLED}",
            {
                "output": [
                    thought("T", encrypted_content="s"),
                    output_text("a", "b"),
                    called(arguments='{"x":1}'),
                ],
                "usage": {
                    "input_tokens": 102,
                    "input_tokens_details": {"cached_tokens": 90},
                    "output_tokens": 3,
                    "output_tokens_details": {},
                    "total_tokens": 105,
                },
            },
        ),
        "redacted_thinking": (REFUSED, {"output": [{"type": "reasoning", "summary": [], "encrypted_content": "q"}]}),
        "text after tool_use": (ORDER, {"output": [output_text("z"), called(arguments="{}")]}),
    },
    "responses_response_to_anthropic": {
        "arguments not JSON": (
            REFUSED,
            answered({"type": "tool_use", "id": "c1", "name": "f", "input": {"_raw": "nope"}}),
        ),
        "arguments JSON list": (
            REFUSED,
            answered({"type": "tool_use", "id": "c1", "name": "f", "input": {"value": [1]}}),
        ),
        "usage with cache": (
            "what was read from the cache is not counted among the input (T-AN-10)",
            {
                **spoken("assistant", "hi", type="message", stop_reason="end_turn"),
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 3},
            },
        ),
    },
    "responses_request_to_anthropic": {
        "remote image url": (REFUSED, {"messages": [spoken("user", [IMAGE])]}),
        "custom_tool_call": (
            REFUSED,
            {"messages": [spoken("assistant", [{"type": "tool_use", "id": "c", "name": "n", "input": {"_raw": "x"}}])]},
        ),
    },
    "responses_request_to_chat": {
        "full loop, developer + instructions": (
            TAGS,
            {
                "messages": [
                    spoken("system", "I\n\nD"),
                    spoken("user", "u"),
                    spoken("assistant", "a", reasoning_content="T1\nT2", tool_calls=[CALL]),
                    spoken("tool", "o", tool_call_id="c1"),
                    spoken("user", "more"),
                ]
            },
        ),
        "reasoning only tail": (
            TAGS,
            {"messages": [spoken("user", "u"), spoken("assistant", reasoning_content="T")]},
        ),
        "reasoning content and encrypted dropped": (
            "the content of reasoning can be read, so it is kept",
            {"messages": [spoken("user", "u"), spoken("assistant", "x", reasoning_content="C")]},
        ),
        "mcp_call item": (
            REFUSED,
            {
                "messages": [
                    spoken(
                        "assistant",
                        tool_calls=[{"id": "m", "type": "function", "function": {"name": "n", "arguments": "{}"}}],
                    )
                ]
            },
        ),
        "include field": (REFUSED, {"messages": [spoken("user", "x")]}),
        "partial training tokens": (REFUSED, {"messages": [spoken("assistant", "a")]}),
    },
    "chat_messages_to_responses_items": {
        "user image_url": (
            REFUSED,
            [of_user({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA"})],
        ),
    },
}


def cases(name: str) -> list[Any]:
    return [pytest.param(case, id=f"{name}: {case['case']}") for case in json_lines(ORACLE / f"{name}.jsonl")]


@pytest.mark.parametrize("case", [case for name in FILES for case in cases(name)])
def test_it_is_converted_as_gym_does_or_as_the_table_says(case: Row) -> None:
    name = case["converter"]
    same = FILES[name]
    ours = alike(same.ours(converted(same.wrap(case["input"]), same.source, same.target).value))
    theirs = alike(same.theirs(case["output"])) if "output" in case else None
    difference = DIFFERENCES.get(name, {}).get(case["case"])
    if difference is None:
        assert ours == theirs
    else:
        assert ours == alike(difference[1])
        assert ours != theirs


def test_the_table_names_cases_of_the_oracle_only() -> None:
    for name, differences in DIFFERENCES.items():
        assert differences.keys() <= {case["case"] for case in json_lines(ORACLE / f"{name}.jsonl")}


SIGNED = "messages: thinking+signature, tool_use json deltas"


@pytest.mark.parametrize("case", cases("sse_reassembly"))
def test_streams_are_put_together_as_gym_does_with_their_signatures(case: Row) -> None:
    ours = without_object(assemble(stream_events(case["input"])))
    theirs = without_object(case["output"])
    if case["case"] == SIGNED:
        # T-SSE-1: the peer loses it
        theirs["content"][0]["signature"] = "SIG"
    assert ours == theirs


def without_object(response: Any) -> Row:
    """Without what the peer writes of itself: the kind of a response, the kind of a call that was not streamed."""
    told = {key: each for key, each in response.items() if key != "object" and each is not None}
    for choice in told.get("choices", ()):
        message = choice["message"]
        message["tool_calls"] = [{**call, "type": "function"} for call in message.get("tool_calls", ())]
    return told


FILES_READ = sorted(
    path
    for folder in ("atif/valid", "atof", "gym_rollouts", "verifiers")
    for path in (ORACLE.parent / folder).rglob("*.json*")
    if not path.name.endswith(".metadata.json")
)


@pytest.mark.parametrize("target", [CHAT, MESSAGES, SFT], ids=lambda target: target.name)
@pytest.mark.parametrize("path", FILES_READ, ids=lambda path: path.name)
def test_real_files_are_written_and_what_is_written_is_read_again(path: Path, target: Contract) -> None:
    [found] = recognise([str(path)], None).sources
    done = file_converted(path, found.contract, target)
    # the third line of the traces holds none
    assert done.lines and {each.rule for each in done.faults if each.severity == "error"} <= {"verifiers.traces.none"}
    again = CHAT if target is SFT else target
    text = b"".join(line + b"\n" for line in done.lines).decode()
    back = converted(text, again, again)
    assert len(back.lines) == len(done.lines)
    assert file_converted(path, found.contract, target).lines == done.lines
