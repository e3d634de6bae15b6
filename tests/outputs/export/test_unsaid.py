"""What plain chat messages cannot say of a raw call is named, in every dialect; what they can say is not."""

from typing import Any

import pytest

from ng_capture.outputs.export.text.chat_form import tools_in_chat_form
from ng_capture.outputs.export.text.unsaid import unsaid_in
from tests.support.dialects import DIALECTS, REQUESTS, RESPONSES


@pytest.mark.parametrize("dialect", DIALECTS)
def test_text_thoughts_and_tool_calls_can_be_said(dialect: str) -> None:
    assert unsaid_in(REQUESTS[dialect], RESPONSES[dialect]) is None


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "image_url"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "image"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "content": [{"type": "image"}]}]}]},
            "image",
        ),
        ({"messages": [{"role": "assistant", "content": [{"type": "redacted_thinking"}]}]}, "redacted_thinking"),
        ({"messages": [{"role": "function", "content": "x"}]}, "role function"),
        ({"messages": [{"role": "assistant", "content": None, "function_call": {"name": "f"}}]}, "function_call"),
        ({"messages": ["x"]}, "an item that is no object"),
        ({"input": [{"type": "message", "role": "user", "content": [{"type": "input_image"}]}]}, "input_image"),
        ({"input": [{"type": "function_call_output", "output": [{"type": "input_image"}]}]}, "input_image"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}]},
            "a block that is no object",
        ),
        ({"input": [{"type": "custom_tool_call"}]}, "custom_tool_call"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
        ({"input": "x", "previous_response_id": "r"}, "previous_response_id"),
        ({"input": "x", "conversation": {"id": "c"}}, "conversation"),
        ({"system": [{"type": "document"}], "messages": []}, "document"),
    ],
)
def test_what_would_be_lost_of_a_request_is_named(request_: Any, named: str) -> None:
    assert unsaid_in(request_, {}) == named


@pytest.mark.parametrize(
    ("response", "named"),
    [
        ({"output": [{"type": "web_search_call"}]}, "web_search_call"),
        ({"content": [{"type": "server_tool_use"}]}, "server_tool_use"),
        ({"choices": [{"message": {"role": "assistant", "content": "", "audio": {"id": "a"}}}]}, "audio"),
    ],
)
def test_what_would_be_lost_of_an_answer_is_named(response: Any, named: str) -> None:
    assert unsaid_in({"messages": []}, response) == named


@pytest.mark.parametrize("nonsense", [None, 5, "x", [], [5, None], {"a": 1}])
def test_nonsense_says_nothing(nonsense: Any) -> None:
    told = {"messages": nonsense, "input": nonsense, "system": nonsense, "tools": nonsense}
    assert unsaid_in(told, {"output": nonsense, "content": nonsense, "choices": nonsense}) in (
        None,
        "an item that is no object",
        "a block that is no object",
    )
    assert tools_in_chat_form(told) is None


def test_a_tool_that_the_server_runs_is_a_function_without_parameters() -> None:
    told = tools_in_chat_form({"tools": [{"type": "web_search_20250305", "name": "web_search"}, {"type": "bash"}]})
    assert told is not None and '"name":"web_search"' in told and '"name":"bash"' in told
    assert told.count('"parameters":{"type":"object","properties":{}}') == 2
