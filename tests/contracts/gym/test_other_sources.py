"""Episodes of any contract as rows and pairs: what items have no place for is text, or left out, and told."""

import json
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.captures.contracts import CAPTURE
from ng_capture.contracts.episode import (
    Agent,
    Episode,
    Media,
    ModelCall,
    Opaque,
    Role,
    Text,
    Thought,
    Thread,
    Tokens,
    Tool,
    ToolCall,
    ToolResult,
    Totals,
    Turn,
)
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Options, Profile, Refused, Written
from ng_capture.contracts.responses.contract import RESPONSES
from ng_capture.records.usage import Usage
from tests.support.converting import PLAIN, converted
from tests.support.items import TOKENS, agent_step, row, said, trajectory, user

HI = Turn(Role.USER, "hi")


Told = list[tuple[str, str | None]]


def written(*turns: Turn, options: Options = PLAIN, **members: Any) -> tuple[dict[str, Any], Told]:
    """The row of an episode of chat, and its losses by code and detail."""
    thread = {key: members.pop(key) for key in ("agent", "totals") if key in members}
    episode = Episode("chat", Thread((HI, *turns), **thread), **members)
    assert GYM.writer is not None
    done = GYM.writer.write(episode, options)
    assert isinstance(done, Written)
    assert {loss.code for loss in done.losses} <= set(GYM.writer.losses)
    return json.loads(done.documents[0]), [(loss.code, loss.detail) for loss in done.losses]


def output(*turns: Turn, **members: Any) -> tuple[list[Any], Told]:
    value, losses = written(*turns, **members)
    return value["response"]["output"], losses


def model(content: Any = None, **members: Any) -> Turn:
    return Turn(Role.ASSISTANT, content, **members)


def test_a_part_of_another_contract_is_the_text_of_its_json() -> None:
    document = Opaque("document", {"type": "document", "source": {}})
    items, losses = output(model((Text("see"), document)))
    assert [part["text"] for part in items[0]["content"]] == ["see", '{"type":"document","source":{}}']
    assert ("content_type_unsupported", "document") in losses


def test_a_part_of_responses_stays_itself() -> None:
    file = {"type": "input_file", "file_id": "f"}
    items, losses = output(
        model(calls=(ToolCall("c", "f", "{}"),), results=(ToolResult("c", (Opaque("input_file", file),)),))
    )
    assert items[-1]["output"] == [file]
    assert not losses


def test_an_image_of_a_model_is_named_by_its_digest() -> None:
    items, losses = output(model((Media("image", "data:image/png;base64,QQ=="),)))
    assert items[0]["content"][0]["text"].startswith("[image omitted: sha256 ")
    assert ("media_omitted", "image") in losses


def test_a_part_that_atif_had_no_place_for_is_no_image_any_more() -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,QQ=="}
    there = converted(row([said("ok")], [user("") | {"content": [image]}]), GYM, ATIF)
    [message] = converted(there.value, ATIF, GYM).value["responses_create_params"]["input"]
    [part] = message["content"]
    assert part.keys() == {"type", "text"}
    assert part["type"] == "input_text"


def test_an_item_of_no_kind_that_responses_know_is_a_system_message() -> None:
    items, losses = output(model("ok"), Turn(Role.SYSTEM, (Opaque("wibble", {"type": "wibble"}),)))
    assert items[1] == user('{"type":"wibble"}', "system")
    assert ("item_type_opaque", "wibble") in losses


@pytest.mark.parametrize("kind", ["function", "custom_tool_call", "mcp_call", "server_tool_use"])
def test_calls_of_every_kind_are_written(kind: str) -> None:
    items, losses = output(model(calls=(ToolCall("c", "f", "{}", kind),), results=(ToolResult("c", "o"),)))
    types = [item["type"] for item in items]
    wanted = {
        "custom_tool_call": ["custom_tool_call", "custom_tool_call_output"],
        "mcp_call": ["mcp_call"],
    }
    assert types == wanted.get(kind, ["function_call", "function_call_output"])
    assert (("item_type_mapped", kind) in losses) == (kind == "server_tool_use")
    if kind == "mcp_call":
        assert items[0]["output"] == "o"


def test_a_call_without_an_id_gets_one_that_is_told() -> None:
    turn = model(calls=(ToolCall(None, "f", "{}"),), results=(ToolResult(None, "o", is_error=True),))
    [call, result], losses = output(turn)
    assert call["call_id"] == result["call_id"]
    assert {"call_id_unknown", "link_by_position", "is_error_dropped"} <= {code for code, _ in losses}


def test_tokens_of_a_step_without_an_item_that_carries_them_are_told() -> None:
    tokens = Tokens([1], [2], [-1.0])
    custom = ToolCall("c", "f", "raw", "custom_tool_call")
    _, losses = output(model(calls=(custom,), call=ModelCall(tokens=tokens)))
    assert ("tokens_dropped", None) in losses
    _, losses = output(model(calls=(custom,), call=ModelCall(tokens=tokens), model_calls=0))
    assert ("tokens_dropped", None) in losses


@pytest.mark.parametrize("place", [None, "x", 7, -1])
def test_a_note_of_tokens_that_fits_no_item_does_not_count(place: object) -> None:
    note = {"tokens": [{"item": 0, "place": place, "prompt_ids": [9], "completion_ids": [9], "log_probs": [0.0]}]}
    [item], _ = output(model("ok", call=ModelCall(tokens=Tokens([1], [2], [-1.0])), extra=note))
    assert item["generation_token_ids"] == [2]


def test_several_messages_of_one_turn_stay_several() -> None:
    notes = [{"parts": 1, "item": said("")}, {"parts": 1, "item": None}, {"parts": 2}]
    parts = (Text("a"), Opaque("compaction", {"type": "compaction"}), Text("b"), Text("c"))
    items, _ = output(model(parts, extra={"messages": notes}))
    assert [item["type"] for item in items] == ["message", "compaction", "message"]
    assert items[0]["id"] == "m1"
    items, _ = output(model(parts[2:], extra={"messages": notes}))
    assert [len(item["content"]) for item in items] == [2]


def test_marks_of_a_runtime_are_no_part_of_a_conversation() -> None:
    items, losses = output(model("ok"), Turn(Role.EVENT, "started"))
    assert len(items) == 1
    assert ("mark_dropped", None) in losses


def test_instructions_in_parts_are_joined_and_told() -> None:
    told = {"role": "instructions"}
    episode = Episode("messages", Thread((Turn(Role.SYSTEM, (Text("a"), Text(""), Text("b")), extra=told), HI)))
    assert GYM.writer is not None
    done = GYM.writer.write(episode, Options())
    assert isinstance(done, Written)
    assert json.loads(done.documents[0])["responses_create_params"]["instructions"] == "a\nb"
    assert "parts_flattened" in {loss.code for loss in done.losses}
    odd = Episode("messages", Thread((Turn(Role.SYSTEM, (Opaque("x", {}),), extra=told), HI)))
    done = GYM.writer.write(odd, Options())
    assert isinstance(done, Written)
    assert "instructions" not in json.loads(done.documents[0])["responses_create_params"]


def test_tools_of_other_dialects_are_functions_or_told() -> None:
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}}
    tools = (
        Tool("f", {"type": "function", "function": function}, "chat"),
        Tool("web", {"type": "web_search_20250305", "name": "web"}, "messages", function=False),
    )
    value, losses = written(model("ok"), agent=Agent(tools=tools))
    [tool] = value["responses_create_params"]["tools"]
    assert tool == {"type": "function", **function, "strict": False}
    assert ("tool_definition_not_function", "web") in losses


def test_a_function_says_all_that_gym_wants_to_be_told_of_it() -> None:
    value, _ = written(model("ok"), agent=Agent(tools=(Tool("f", {"name": "f"}, "responses"),)))
    wanted = [{"type": "function", "name": "f", "parameters": None, "strict": None}]
    assert value["responses_create_params"]["tools"] == value["response"]["tools"] == wanted


@pytest.mark.parametrize(
    ("finish", "status"), [("stop", "completed"), ("length", "incomplete"), ("content_filter", "incomplete")]
)
def test_how_the_last_call_ended_is_the_status(finish: str, status: str) -> None:
    value, losses = written(model("ok", call=ModelCall(finish_reason=finish, completed_at=7.0)))
    assert (value["response"]["status"], value["response"]["created_at"]) == (status, 7.0)
    assert ("finish_reason_dropped", None) not in losses


def test_an_end_that_no_status_tells_is_told_as_lost() -> None:
    _, losses = written(model("one", call=ModelCall(finish_reason="stop")), model("two"))
    assert ("finish_reason_dropped", None) in losses
    _, losses = written(model("ok", call=ModelCall(finish_reason="eos")))
    assert ("finish_reason_dropped", None) in losses


def test_a_response_is_named_as_the_one_call_named_it() -> None:
    value, losses = written(model("ok", call=ModelCall(response_id="chatcmpl-1")))
    assert value["response"]["id"] == "chatcmpl-1" and ("step_fields_dropped", "model_call") not in losses
    calls = [model(said, call=ModelCall(response_id=said)) for said in ("one", "two")]
    assert ("step_fields_dropped", "model_call") in written(*calls)[1]


def test_counts_that_responses_have_no_name_for_are_told() -> None:
    usage = Usage(tokens_in=5, tokens_out=2, cache_creation_tokens=3)
    extra = {"output_tokens_details": {"audio_tokens": 1}, "server_tool_use": 1}
    value, losses = written(model("ok"), totals=Totals(usage, extra=extra))
    assert value["response"]["usage"]["output_tokens_details"] == {"reasoning_tokens": None, "audio_tokens": 1}
    assert {("cache_write_dropped", "3"), ("usage_dropped", "server_tool_use")} <= set(losses)


def test_calls_that_made_no_step_are_told() -> None:
    _, losses = written(model("ok"), omitted=(model("failed"),))
    assert ("step_fields_dropped", "calls that made no step") in losses


def test_names_of_rollout_agent_and_reward_stand_in_the_row() -> None:
    value, _ = written(model("ok"), rollout_id="7-0", reward=0.5, agent=Agent(name="solver"))
    assert (value["_ng_rollout_id"], value["reward"], value["agent_ref"]["name"]) == ("7-0", 0.5, "solver")
    value, _ = written(model("ok"), options=Options(agent_name="given"))
    assert value["agent_ref"]["name"] == "given"


def test_the_harbor_profile_writes_rewards_texts_as_they_are_and_drops_tools() -> None:
    turn = model(
        "", thoughts=(Thought(content=("R",)),), calls=(ToolCall("c", "f", "nope"), ToolCall(None, "g", "[1]"))
    )
    value, losses = written(
        turn, options=Options(profile=Profile.HARBOR), reward=1.0, agent=Agent(tools=(Tool("f", {}, "chat"),))
    )
    message, first, second = value["response"]["output"]
    assert message["content"][0]["text"] == "<think>R</think>"
    assert (first["arguments"], second["arguments"], value["reward"]) == ("nope", "[1]", 1.0)
    assert ("tools_dropped", None) in losses


def strictly(*turns: Turn, totals: Totals | None = None) -> set[str]:
    assert GYM.writer is not None
    done = GYM.writer.write(Episode("chat", Thread((HI, *turns), totals=totals)), Options(profile=Profile.STRICT))
    return {fault.rule for fault in done.faults} if isinstance(done, Refused) else set()


def test_the_strict_profile_refuses_what_other_contracts_may_hold() -> None:
    assert strictly(model((Opaque("x", {}),))) == {"gym.strict.content"}
    broken = model(calls=(ToolCall("c", "f", "nope"),), results=(ToolResult("c", "o"),))
    assert strictly(broken) == {"gym.strict.arguments"}
    counted = ModelCall(usage=Usage(tokens_in=1, tokens_out=1, tokens_total=2))
    assert strictly(model("a", call=counted), totals=Totals(Usage(tokens_in=1, tokens_out=1))) == set()


def test_a_responses_call_that_was_captured_keeps_its_items() -> None:
    items = [said("a"), {"type": "image_generation_call", "id": "ig", "prompt": "p"}, said("b", "m2", **TOKENS)]
    exchange = {
        "model_call_id": "mc",
        "dialect": "responses",
        "status_code": 200,
        "request": {"input": "hi"},
        "response": {"id": "r", "object": "response", "model": "policy", "output": items},
    }
    done = converted(exchange, CAPTURE, RESPONSES)
    kept = done.value["response"]["output"]
    assert [item["type"] for item in kept] == ["message", "message", "image_generation_call"]
    assert [item.get("id") for item in kept] == ["m1", "m2", "ig"]
    assert kept[1]["generation_token_ids"] == TOKENS["generation_token_ids"]


@pytest.mark.parametrize("note", [3, [0, "x"], ["x"], [5], [0, 0], [1, 0, 2], {"a": 1}])
def test_notes_of_order_that_fit_nothing_do_not_count(note: object) -> None:
    noted = {"item_order": note, "history_order": note, "output_from": note}
    document = trajectory(agent_step("a"), agent_step("b"), extra={"ng_capture": noted})
    output = converted(document, ATIF, GYM).value["response"]["output"]
    assert [item["content"][0]["text"] for item in output] == ["a", "b"]


def test_a_row_of_no_object_is_refused() -> None:
    assert converted([1], GYM, GYM).rules == {"gym.row.type"}
    assert converted('{"a": 1, "a": 2}', GYM, GYM).rules == {"gym.json.duplicate_key"}


def test_a_text_in_half_a_surrogate_pair_is_carried() -> None:
    value = row([said("\ud800")])
    assert converted(json.dumps(value), GYM, GYM).value["response"]["output"] == value["response"]["output"]
