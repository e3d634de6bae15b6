"""Turns and threads as steps and trajectories: what stands where, what is noted, what is told as lost (3.4, 3.5)."""

from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.atif.read import read_document
from ng_capture.contracts.episode import (
    Agent,
    Episode,
    ModelCall,
    Opaque,
    Role,
    SubagentRef,
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
from ng_capture.contracts.interface import Options, Refused
from ng_capture.contracts.losses import Loss
from ng_capture.records.usage import Usage
from tests.support.atif import codes, document, put, write_one

HI = Turn(Role.USER, "hi")
KNOWN = Agent("a", "1")
SOUND = Tokens([1, 2], [3], [-0.5])


def episode(*turns: Turn, contract: str = "capture", agent: Agent = KNOWN, **members: Any) -> Episode:
    thread = {name: members.pop(name) for name in ("totals", "session_id", "trajectory_id", "extra") if name in members}
    subagents = members.pop("subagents", ())
    return Episode(contract, Thread(turns or (HI,), agent=agent, subagents=subagents, **thread), **members)


def steps(*turns: Turn, **members: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """The steps of some turns, and the codes of what was lost."""
    value, written = write_one(episode(*turns, **members))
    return value["steps"], codes(written)


def step(turn: Turn) -> tuple[dict[str, Any], list[str]]:
    (value,), lost = steps(turn)
    return value, lost


def back(turn: Turn) -> Turn:
    """The turn that is read of the step of a turn."""
    return read_document(write_one(episode(turn))[0]).main.turns[0]


def agent(content: Any = None, **members: Any) -> Turn:
    return Turn(Role.ASSISTANT, content, **members)


def refused(told: Episode, **options: Any) -> list[tuple[str, str]]:
    assert ATIF.writer is not None
    outcome = ATIF.writer.write(told, Options(**options))
    assert isinstance(outcome, Refused)
    return [(fault.rule, fault.path) for fault in outcome.faults]


# who speaks


def test_instructions_are_a_leading_system_step_that_says_so() -> None:
    turn = Turn(Role.SYSTEM, "S", extra={"role": "instructions"})
    value, lost = step(turn)
    assert value == {
        "step_id": 1,
        "source": "system",
        "message": "S",
        "extra": {"ng_capture": {"role": "instructions"}},
    }
    assert lost == ["instructions_as_system"]
    told = back(turn)
    assert told.role == Role.SYSTEM and (told.extra or {})["role"] == "instructions"


@pytest.mark.parametrize(("role", "lost"), [(Role.DEVELOPER, ["developer_role"]), (Role.EVENT, [])])
def test_who_atif_does_not_know_speaks_as_the_system_and_is_noted(role: Role, lost: list[str]) -> None:
    value, told = step(Turn(role, "x"))
    assert (value["source"], value["extra"]["ng_capture"]) == ("system", {"role": role.value})
    assert told == lost
    assert back(Turn(role, "x")).role == role


def test_what_only_a_model_does_has_no_place_on_another_side() -> None:
    value, lost = step(Turn(Role.USER, "x", thoughts=(Thought(("R",)),), model_calls=1))
    assert "reasoning_content" not in value
    assert lost == ["step_fields_dropped"]


# what is said and thought


def test_an_empty_message_is_told_from_none() -> None:
    call = ToolCall("c1", "f", "{}")
    assert back(agent(None, calls=(call,))).content is None
    assert back(agent("", calls=(call,))).content == ""
    assert back(agent("")).content == ""
    assert back(agent(None)).content is None
    assert step(agent(None))[0]["message"] == ""


def test_one_piece_of_reasoning_is_the_reasoning_of_the_step() -> None:
    value, lost = step(agent("x", thoughts=(Thought(("R",)),)))
    assert value["reasoning_content"] == "R" and "extra" not in value and lost == []


def test_pieces_of_reasoning_are_joined_and_kept() -> None:
    thoughts = (Thought(("a", "b")), Thought((), ("c",), encrypted="e"))
    value, lost = step(agent("x", thoughts=thoughts))
    assert value["reasoning_content"] == "a\nb\nc"
    assert lost == ["reasoning_segments_joined", "reasoning_encrypted_opaque"]
    assert back(agent("x", thoughts=thoughts)).thoughts == thoughts


def test_content_wins_over_its_summary() -> None:
    value, lost = step(agent("x", thoughts=(Thought(("s",), ("c",)),)))
    assert value["reasoning_content"] == "c"
    assert lost == ["reasoning_summary_dropped"]


def test_reasoning_that_nobody_reads_is_no_text() -> None:
    thoughts = (Thought(encrypted="e", redacted=True),)
    value, lost = step(agent("x", thoughts=thoughts))
    assert "reasoning_content" not in value
    assert lost == ["reasoning_encrypted_opaque"]
    assert back(agent("x", thoughts=thoughts)).thoughts == thoughts


def test_items_keep_their_ids() -> None:
    turn = agent("x", thoughts=(Thought(("R",), item={"id": "rs_1"}),), item={"id": "msg_1"})
    assert step(turn)[0]["extra"]["ng_capture"]["items"] == {"message": {"id": "msg_1"}, "reasoning": [{"id": "rs_1"}]}
    assert (back(turn).item, back(turn).thoughts) == (turn.item, turn.thoughts)


def test_a_compaction_is_a_step_that_manages_the_context() -> None:
    turn = Turn(Role.SYSTEM, (Opaque("compaction", {"type": "compaction", "id": "c"}),))
    value, lost = step(turn)
    assert (value["source"], value["message"], lost) == ("system", "", [])
    assert value["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}
    assert back(turn).content == turn.content


def test_an_item_of_no_kind_that_atif_knows_is_a_step_of_json() -> None:
    turn = Turn(Role.SYSTEM, (Opaque("item_reference", {"type": "item_reference", "id": "é"}),))
    value, lost = step(turn)
    assert value["message"] == '{"type": "item_reference", "id": "é"}'
    assert lost == ["item_type_opaque"]
    assert back(turn).content == turn.content


def test_a_message_of_one_odd_part_is_a_message_all_the_same() -> None:
    turn = Turn(Role.SYSTEM, (Opaque("input_file", {"type": "input_file"}),), item={"role": "system"})
    value, lost = step(turn)
    assert value["message"] == [{"type": "text", "text": "[input_file omitted]"}]
    assert lost == ["content_type_unsupported"]
    assert (back(turn).content, back(turn).item) == (turn.content, turn.item)


# calls and results


@pytest.mark.parametrize(
    ("text", "arguments", "noted", "lost"),
    [
        ('{"x": 1}', {"x": 1}, False, []),
        ('{"x":1}', {"x": 1}, True, []),
        ('{"b":1,"a":"\\u00e9"}', {"b": 1, "a": "é"}, True, []),
        ('{"x": 1e2, "y": 123456789012345678901}', {"x": 100.0, "y": 123456789012345678901}, True, []),
        ("[1]", {"value": [1]}, True, ["arguments_not_object"]),
        ("nope", {"raw": "nope"}, True, ["arguments_not_object"]),
        ("", {"raw": ""}, True, ["arguments_not_object"]),
        ('{"a": "\\ud800"}', {"raw": '{"a": "\\ud800"}'}, True, ["arguments_not_object"]),
        ('{"a": NaN}', {"raw": '{"a": NaN}'}, True, ["arguments_not_object"]),
        ("[" * 250 + "]" * 250, {"raw": "[" * 250 + "]" * 250}, True, ["arguments_not_object"]),
    ],
)
def test_arguments_are_an_object_and_come_back_as_they_were_written(
    text: str, arguments: object, noted: bool, lost: list[str]
) -> None:
    turn = agent(calls=(ToolCall("c1", "f", text),))
    value, told = step(turn)
    (call,) = value["tool_calls"]
    assert call["arguments"] == arguments
    assert (call.get("extra") == {"ng_capture": {"arguments_raw": text}}) is noted
    assert told == lost
    assert back(turn).calls == turn.calls


def test_arguments_that_somebody_changed_are_not_what_the_model_wrote() -> None:
    value, _ = write_one(episode(agent(calls=(ToolCall("c1", "f", '{"x":1}'),))))
    changed = read_document(put(value, "/steps/0/tool_calls/0/arguments", {"x": 2}))
    assert changed.main.turns[0].calls[0].arguments == '{"x": 2}'


def test_results_stand_in_their_order_with_the_call_that_each_names() -> None:
    calls = (ToolCall("c1", "f", "{}"), ToolCall("c2", "f", "{}"))
    results = (ToolResult("c2", "two"), ToolResult("c1", "one"), ToolResult("c1", "again"))
    value, lost = step(agent(calls=calls, results=results))
    assert value["observation"]["results"] == [
        {"source_call_id": "c2", "content": "two"},
        {"source_call_id": "c1", "content": "one"},
        {"source_call_id": "c1", "content": "again"},
    ]
    assert lost == []


def test_a_result_of_an_unknown_call_names_it_in_its_notes() -> None:
    turn = agent(calls=(ToolCall("c1", "f", "{}"),), results=(ToolResult("z", "x", is_error=True),))
    (result,) = step(turn)[0]["observation"]["results"]
    assert result == {"content": "x", "extra": {"ng_capture": {"call_id": "z", "is_error": True}}}
    assert back(turn).results == turn.results


def test_a_call_that_is_never_answered_has_no_result() -> None:
    value, lost = step(agent(calls=(ToolCall("c1", "f", "{}"),)))
    assert "observation" not in value and lost == []


def test_a_call_without_an_id_gets_one_that_is_always_the_same() -> None:
    turn = agent(calls=(ToolCall(None, "f", "{}"), ToolCall(None, "f", "{}")))
    value, lost = step(turn)
    ids = [call["tool_call_id"] for call in value["tool_calls"]]
    assert len(set(ids)) == 2 and lost == ["call_id_unknown"] * 2
    assert step(turn)[0] == value
    assert back(turn).calls == turn.calls


def test_a_call_of_another_kind_is_a_call_with_its_item() -> None:
    turn = agent(
        calls=(ToolCall("c1", "search", "{}", kind="mcp_call", item={"type": "mcp_call", "server_label": "s"}),)
    )
    value, lost = step(turn)
    assert value["tool_calls"][0]["function_name"] == "search"
    assert lost == ["item_type_mapped"]
    assert back(turn).calls == turn.calls


def test_the_one_text_part_of_a_result_is_a_text_and_more_stay_parts() -> None:
    one, lost = step(agent(results=(ToolResult(None, (Text("a"),)),)))
    assert (one["observation"]["results"], lost) == ([{"content": "a"}], ["parts_flattened"])
    two, lost = step(agent(results=(ToolResult(None, (Text("a"), Text("b"))),)))
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert (two["observation"]["results"], lost) == ([{"content": parts}], [])


def test_a_result_without_content_has_none() -> None:
    assert step(agent(results=(ToolResult(None, None),)))[0]["observation"]["results"] == [{}]


# tokens and counts


@pytest.mark.parametrize(
    ("tokens", "lost"),
    [
        (Tokens(None, [3], [-0.5]), "tokens_incomplete"),
        (Tokens([1], [3], None), "tokens_incomplete"),
        (Tokens([1], None, None), "tokens_incomplete"),
        (Tokens([1], [3, 4], [-0.5]), "tokens_incomplete"),
        (Tokens([1], [-3], [-0.5]), "tokens_incomplete"),
        (Tokens([True], [3], [-0.5]), "tokens_incomplete"),
        (Tokens([1], [], []), "tokens_placeholder"),
        (Tokens([0], [0], [0.0]), "tokens_placeholder"),
    ],
)
def test_token_arrays_stand_in_metrics_whole_or_not_at_all(tokens: Tokens, lost: str) -> None:
    turn = agent("x", call=ModelCall(tokens=tokens))
    value, told = step(turn)
    assert "metrics" not in value
    assert told == [lost]
    call = back(turn).call
    assert call is not None and call.tokens == tokens


def test_whole_token_arrays_are_metrics_and_routed_experts_stand_in_their_extra() -> None:
    call = ModelCall(tokens=Tokens([1, 2], [3], [-0.5], routed_experts=[[0]]), usage=Usage(2, 1))
    value, lost = step(agent("x", call=call))
    assert value["metrics"] == {
        "prompt_tokens": 2,
        "completion_tokens": 1,
        "prompt_token_ids": [1, 2],
        "completion_token_ids": [3],
        "logprobs": [-0.5],
        "extra": {"routed_experts": [[0]]},
    }
    assert lost == [] and back(agent("x", call=call)).call == call


@pytest.mark.parametrize("tokens", [SOUND, Tokens([1], [3], None), None])
def test_a_copied_step_has_no_metrics_and_keeps_them_in_its_notes(tokens: Tokens | None) -> None:
    turn = agent("x", copied=True, call=ModelCall(tokens=tokens, usage=Usage(2, 1)))
    told = episode(turn, agent("y"))
    value, _ = write_one(told)
    assert value["steps"][0]["is_copied_context"] is True and "metrics" not in value["steps"][0]
    assert value["final_metrics"] == {"total_steps": 2}
    read = read_document(value)
    assert read.main.turns[0].call == turn.call
    assert write_one(read)[0] == value


def test_a_total_over_several_calls_is_spread_over_no_step() -> None:
    value, _ = write_one(episode(HI, agent("x"), agent("y"), totals=Totals(Usage(30, 7))))
    assert not any("metrics" in each for each in value["steps"])
    assert value["final_metrics"] == {"total_prompt_tokens": 30, "total_completion_tokens": 7, "total_steps": 3}


def test_the_total_of_the_one_call_there_was_is_the_call_s_own() -> None:
    totals = Totals(Usage(30, 7, cached_tokens=5, tokens_reasoning=2))
    value, _ = write_one(episode(HI, agent("old", copied=True), agent("x"), totals=totals))
    assert "metrics" not in value["steps"][1]
    assert value["steps"][2]["metrics"] == {
        "prompt_tokens": 30,
        "completion_tokens": 7,
        "cached_tokens": 5,
        "extra": {"reasoning_tokens": 2},
    }


@pytest.mark.parametrize("turn", [agent("x", model_calls=2), agent("x", call=ModelCall(usage=Usage(1, 1)))])
def test_a_total_is_no_step_s_where_several_calls_or_other_counts_made_it(turn: Turn) -> None:
    value, _ = write_one(episode(turn, totals=Totals(Usage(30, 7))))
    assert value["steps"][0].get("metrics", {}).get("prompt_tokens") != 30


def test_totals_are_sums_over_fresh_steps_where_nobody_gives_them() -> None:
    turns = [agent("x", call=ModelCall(usage=Usage(3, 1), cost_usd=0.5)) for _ in range(2)]
    child = Thread((agent("z", call=ModelCall(usage=Usage(100, 100), cost_usd=0.25)),), agent=KNOWN)
    value, _ = write_one(episode(*turns, subagents=(child,)))
    assert value["final_metrics"] == {
        "total_prompt_tokens": 6,
        "total_completion_tokens": 2,
        "total_cost_usd": 1.25,
        "total_steps": 2,
    }


def test_a_count_of_no_calls_does_not_stand_beside_what_a_call_left() -> None:
    turn = agent("x", model_calls=0, call=ModelCall(usage=Usage(1, 1)))
    value, _ = step(turn)
    assert "llm_call_count" not in value and value["extra"]["ng_capture"]["model_calls"] == 0
    assert back(turn).model_calls == 0
    assert step(agent(calls=(ToolCall("c1", "f", "{}"),), model_calls=0))[0]["llm_call_count"] == 0


def test_what_is_known_of_a_call_is_noted_in_its_step() -> None:
    call = ModelCall("m-1", 4, dialect="chat", status_code=200, finish_reason="stop", latency_ms=5.0, record={"k": 1})
    notes = step(agent("x", call=call))[0]["extra"]["ng_capture"]
    assert notes == {
        "model_call_id": "m-1",
        "call_index": 4,
        "dialect": "chat",
        "finish_reason": "stop",
        "status_code": 200,
        "latency_total_ms": 5.0,
        "record": {"k": 1},
    }
    assert back(agent("x", call=call)).call == call


# times


def test_a_step_is_timed_by_its_turn_or_by_the_end_of_its_call() -> None:
    assert step(Turn(Role.USER, "x", timestamp="2026-01-02"))[0]["timestamp"] == "2026-01-02"
    assert step(agent("x", call=ModelCall(completed_at=0.5)))[0]["timestamp"] == "1970-01-01T00:00:00.500000Z"
    assert "timestamp" not in step(agent("x", call=ModelCall(completed_at=1e300)))[0]


def test_a_time_that_atif_cannot_spell_is_noted() -> None:
    turn = Turn(Role.USER, "x", timestamp="1767225600000000000")
    value, lost = step(turn)
    assert "timestamp" not in value and lost == ["timestamps_dropped"]
    assert back(turn).timestamp == turn.timestamp


# agents


def test_who_acted_is_what_the_source_says_and_else_what_is_asked_for() -> None:
    row = {"agent_ref": {"name": "row"}}
    asked = {"agent_name": "asked", "agent_version": "2"}
    assert write_one(episode(agent=Agent("own", "1"), row=row), **asked)[0]["agent"] == {"name": "own", "version": "1"}
    assert write_one(episode(agent=Agent(), row=row), **asked)[0]["agent"] == {"name": "row", "version": "2"}
    value, written = write_one(episode(agent=Agent()), **asked)
    assert (value["agent"], codes(written)) == ({"name": "asked", "version": "2"}, [])


def test_who_is_unknown_is_called_so_and_stays_unknown() -> None:
    value, written = write_one(episode(agent=Agent(model="m")))
    assert {key: value["agent"][key] for key in ("name", "version", "model_name")} == {
        "name": "unknown",
        "version": "unknown",
        "model_name": "m",
    }
    assert codes(written) == ["agent_name_unknown", "agent_version_unknown"]
    assert read_document(value).main.agent == Agent(model="m")
    assert read_document(put(value, "/agent/name", "known")).main.agent.name == "known"


SCHEMA = {"type": "object", "properties": {}}
CHAT = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}


@pytest.mark.parametrize(
    "tool",
    [
        Tool("f", CHAT, "chat"),
        Tool("f", {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA}, "responses"),
        Tool("f", {"name": "f", "description": "d", "input_schema": SCHEMA}, "messages"),
        Tool("f", {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "x": 1}, "responses"),
    ],
)
def test_tools_are_functions_as_chat_has_them_and_come_back_as_they_were(tool: Tool) -> None:
    value, written = write_one(episode(agent=Agent("a", "1", tools=(tool,))))
    assert value["agent"]["tool_definitions"] == [CHAT]
    assert codes(written) == []
    assert read_document(value).main.agent.tools == (tool,)
    changed = put(value, "/agent/tool_definitions/0/function/description", "other")
    (read,) = read_document(changed).main.agent.tools or ()
    assert "other" in str(read.value)


def test_a_tool_that_the_server_runs_is_noted_in_its_place() -> None:
    tools = (Tool(None, {"type": "web_search"}, "responses", function=False), Tool("f", CHAT, "chat"))
    value, written = write_one(episode(agent=Agent("a", "1", tools=tools)))
    assert value["agent"]["tool_definitions"] == [CHAT]
    assert codes(written) == ["tool_definition_not_function"]
    assert read_document(value).main.agent.tools == tools
    more = put(value, "/agent/tool_definitions", [CHAT, CHAT])
    assert read_document(more).main.agent.tools == (Tool("f", CHAT, "chat"),) * 2


# sub-agents, names, the row


def test_a_sub_agent_is_embedded_and_the_call_refers_to_it() -> None:
    reference = SubagentRef("k", session_id="s")
    child = Thread((HI,), agent=KNOWN, trajectory_id="k")
    turn = agent(calls=(ToolCall("c1", "f", "{}"),), results=(ToolResult("c1", "x", subagents=(reference,)),))
    value, written = write_one(episode(turn, subagents=(child,)))
    assert value["subagent_trajectories"][0]["trajectory_id"] == "k"
    (result,) = value["steps"][0]["observation"]["results"]
    assert result["subagent_trajectory_ref"] == [{"trajectory_id": "k", "session_id": "s"}]
    assert codes(written) == []


def test_a_sub_agent_without_a_name_gets_one_that_is_always_the_same() -> None:
    children = (Thread((HI,), agent=KNOWN), Thread((HI,), agent=KNOWN))
    told = episode(subagents=children, rollout_id="r")
    ids = [each["trajectory_id"] for each in write_one(told)[0]["subagent_trajectories"]]
    assert len(set(ids)) == 2
    assert [each["trajectory_id"] for each in write_one(told)[0]["subagent_trajectories"]] == ids


@pytest.mark.parametrize(
    ("members", "options", "expected"),
    [
        ({"rollout_id": "r", "row": {"_ng_task_index": 3, "_ng_rollout_index": 0}}, {}, ("r", "r:3:0")),
        (
            {"rollout_id": "r", "row": {"_ng_task_index": 3, "_ng_rollout_index": 0}},
            {"session_id": "s"},
            ("s", "s:3:0"),
        ),
        ({"rollout_id": "r", "row": {"_ng_task_index": True}}, {}, ("r", "r")),
        ({"rollout_id": "r", "session_id": "own", "trajectory_id": "t"}, {}, ("own", "t")),
    ],
)
def test_a_document_is_named_after_its_rollout(
    members: dict[str, Any], options: dict[str, Any], expected: tuple[str, str]
) -> None:
    value, _ = write_one(episode(**members), **options)
    assert (value["session_id"], value["trajectory_id"]) == expected


def test_a_document_of_no_name_is_named_after_its_content() -> None:
    names = [write_one(episode(Turn(Role.USER, text)))[0] for text in ("a", "a", "b")]
    assert "session_id" not in names[0]
    assert names[0]["trajectory_id"] == names[1]["trajectory_id"] != names[2]["trajectory_id"]


def test_the_session_of_an_atif_document_can_be_named_anew() -> None:
    assert write_one(read_document(document()), session_id="new")[0]["session_id"] == "new"


def test_the_reward_and_the_names_of_a_row_stay_and_the_rest_on_request() -> None:
    row = {"reward": 0.5, "_ng_task_index": 3, "agent_ref": {"name": "a"}, "verifier_metadata": {"x": 1}, "b": 2}
    told = episode(reward=0.5, row=row, rollout_id="r", truncated=True)
    value, written = write_one(told)
    kept = {"reward": 0.5, "_ng_task_index": 3, "agent_ref": {"name": "a"}, "rollout_id": "r", "truncated": True}
    assert value["extra"]["ng_capture"]["rollout"] == kept
    assert [(loss.code, loss.detail) for loss in written.losses] == [("row_fields_dropped", "b, verifier_metadata")]
    value, written = write_one(told, keep_row_extras=True)
    assert written.losses == ()
    read = read_document(value)
    assert (read.row, read.reward, read.rollout_id, read.truncated) == (row, 0.5, "r", True)


def test_answers_that_make_no_step_stay_in_the_notes() -> None:
    failed = agent(None, call=ModelCall("m-1", status_code=429, error_category="rate_limit"))
    value, _ = write_one(episode(HI, omitted=(failed,)))
    assert len(value["steps"]) == 1
    (omitted,) = read_document(value).omitted
    assert omitted.call == failed.call


# the conversion itself


def test_a_document_tells_how_it_came_about_and_what_that_cost() -> None:
    told = episode(agent=Agent("a"), losses=(Loss("retry_collapsed", count=2), Loss("retry_collapsed", "/x")))
    value, _ = write_one(told)
    conversion = value["extra"]["ng_capture"]["conversion"]
    assert (conversion["from"], conversion["to"], conversion["profile"]) == ("capture", "ATIF-v1.7", "native")
    assert conversion["losses"] == [
        {"code": "retry_collapsed", "severity": "dropped", "count": 3},
        {"code": "agent_version_unknown", "severity": "synthesised", "count": 1},
    ]


def test_what_no_json_can_hold_is_refused_with_its_place() -> None:
    half = Turn(Role.USER, "\ud800")
    assert refused(episode(HI, half)) == [("atif.json.surrogate", "/steps/1/message")]
    infinite = agent("x", call=ModelCall(cost_usd=float("inf")))
    assert ("atif.json.non_finite", "/steps/0/metrics/cost_usd") in refused(episode(infinite))


def test_an_episode_without_turns_is_refused() -> None:
    assert refused(Episode("capture", Thread(()))) == [("atif.steps.empty", "/steps")]


def test_what_is_nested_more_deeply_than_anybody_reads_is_refused() -> None:
    value: Any = {}
    for _ in range(300):
        value = {"a": value}
    assert refused(episode(request=value)) == [("atif.json.syntax", "")]
