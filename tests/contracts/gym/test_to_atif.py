"""Rows and pairs of Responses as trajectories (contracts.md 3.4 and 7.2, T-RA)."""

import json
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Options, Thinking
from tests.support.converting import PLAIN, Done, converted
from tests.support.items import TOKENS, USAGE, call, result, row, said, thought, tool, user

Step = dict[str, Any]


def steps_of(*output: Any, given: object = "hi", options: Options = PLAIN, **members: Any) -> tuple[list[Step], Done]:
    done = converted(row(list(output), given, **members), GYM, ATIF, options)
    return done.value["steps"], done


def spoken(steps: list[Step]) -> list[tuple[str, object]]:
    return [(step["source"], step["message"]) for step in steps]


def calls_in(step: Step) -> list[tuple[str, object]]:
    return [(each["tool_call_id"], each["arguments"]) for each in step.get("tool_calls", [])]


def results_in(step: Step) -> list[tuple[str | None, object]]:
    results = step.get("observation", {}).get("results", [])
    return [(each.get("source_call_id"), each.get("content")) for each in results]


def test_1_a_question_and_an_answer() -> None:
    steps, done = steps_of(said("ok"))
    assert spoken(steps) == [("user", "hi"), ("agent", "ok")]
    assert {"step_boundary_inferred", "agent_version_unknown"} <= done.codes


def test_2_instructions_reasoning_call_and_result() -> None:
    steps, _ = steps_of(
        *(thought("R"), said("ok"), call("c1", '{"x":1}'), result("c1", "42"), said("done", "m2")),
        given=[user("hi")],
        request={"instructions": "S"},
    )
    assert spoken(steps) == [("system", "S"), ("user", "hi"), ("agent", "ok"), ("agent", "done")]
    assert steps[0]["extra"]["ng_capture"]["role"] == "instructions"
    assert steps[2]["reasoning_content"] == "R"
    assert calls_in(steps[2]) == [("c1", {"x": 1})]
    assert results_in(steps[2]) == [("c1", "42")]


def test_3_results_are_linked_by_id_whatever_their_order() -> None:
    steps, _ = steps_of(call("c1"), call("c2"), result("c2", "two"), result("c1", "one"))
    assert len(steps) == 2
    assert [name for name, _ in calls_in(steps[1])] == ["c1", "c2"]
    assert results_in(steps[1]) == [("c2", "two"), ("c1", "one")]


def test_4_what_comes_after_a_result_is_another_step() -> None:
    steps, _ = steps_of(call("c1"), result("c1"), call("c2"), result("c2"), said("done"))
    assert [len(calls_in(step)) for step in steps[1:]] == [1, 1, 0]


def test_5_two_messages_are_two_steps() -> None:
    steps, done = steps_of(said("a"), said("b", "m2"))
    assert spoken(steps)[1:] == [("agent", "a"), ("agent", "b")]
    [told] = [loss for loss in done.losses if loss.code == "step_boundary_inferred"]
    assert told.count == 2


def test_6_arguments_keep_the_characters_that_the_model_wrote() -> None:
    steps, done = steps_of(call("c1", '{"b":1,"a":"é"}'))
    assert calls_in(steps[1]) == [("c1", {"b": 1, "a": "é"})]
    back = converted(done.value, ATIF, GYM).value
    assert back["response"]["output"] == [call("c1", '{"b":1,"a":"é"}')]


@pytest.mark.parametrize(("text", "wrapped"), [("[1]", {"value": [1]}), ("nope", {"raw": "nope"}), ("", {"raw": ""})])
def test_7_arguments_that_are_no_object_are_wrapped(text: str, wrapped: object) -> None:
    steps, done = steps_of(call("c1", text))
    assert calls_in(steps[1]) == [("c1", wrapped)]
    assert "arguments_not_object" in done.codes
    assert converted(done.value, ATIF, GYM).value["response"]["output"] == [call("c1", text)]


def test_8_a_result_of_a_call_that_is_not_there_links_to_nothing() -> None:
    steps, done = steps_of(said("ok"), result("z"))
    assert results_in(steps[1]) == [(None, "42")]
    assert steps[1]["observation"]["results"][0]["extra"]["ng_capture"]["call_id"] == "z"
    assert "output_unlinked" in done.codes


def test_9_text_parts_of_a_result_stay_parts() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    steps, _ = steps_of(call(), result("c1", parts))
    assert results_in(steps[1]) == [("c1", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])]


def test_10_an_image_without_a_media_directory_leaves_a_placeholder() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:image/png;base64,QQ=="}]
    steps, done = steps_of(call(), result("c1", parts))
    [(_, content)] = results_in(steps[1])
    assert isinstance(content, list)
    assert [part["type"] for part in content] == ["text", "text"]
    assert "media_omitted" in done.codes


def test_11_token_arrays_stand_in_metrics_and_an_unknown_usage_stays_unknown() -> None:
    steps, _ = steps_of(said("ok", **TOKENS))
    assert steps[1]["metrics"] == {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]}


def test_12_of_two_carriers_in_a_step_the_last_counts_and_both_are_kept() -> None:
    last = {"prompt_token_ids": [1], "generation_token_ids": [4, 5], "generation_log_probs": [-1.0, -2.0]}
    steps, done = steps_of(said("ok", **TOKENS), call(**last))
    assert steps[1]["metrics"]["completion_token_ids"] == [4, 5]
    assert [each["completion_ids"] for each in steps[1]["extra"]["ng_capture"]["tokens"]] == [[3], [4, 5]]
    assert "tokens_multiple_items" in done.codes


@pytest.mark.parametrize(
    "tokens",
    [
        {"prompt_token_ids": [0], "generation_token_ids": [0], "generation_log_probs": [0.0]},
        {"prompt_token_ids": [7], "generation_token_ids": [], "generation_log_probs": []},
    ],
)
def test_13_placeholders_are_no_tokens(tokens: dict[str, Any]) -> None:
    steps, done = steps_of(said("", "msg_empty", **tokens))
    assert "metrics" not in steps[1]
    assert "tokens_placeholder" in done.codes


def test_14_a_total_is_never_divided_over_steps() -> None:
    _, done = steps_of(call(), result(), said("done"), response={"usage": USAGE})
    final = done.value["final_metrics"]
    assert (final["total_prompt_tokens"], final["total_completion_tokens"]) == (30, 7)
    assert not [step for step in done.value["steps"] if "metrics" in step]


def test_14_the_total_of_one_call_is_what_that_call_used() -> None:
    steps, _ = steps_of(said("ok"), response={"usage": USAGE})
    assert (steps[1]["metrics"]["prompt_tokens"], steps[1]["metrics"]["cached_tokens"]) == (30, 4)


def test_15_two_summaries_are_joined_and_told() -> None:
    steps, done = steps_of(thought("a", "b"), said("ok"))
    assert steps[1]["reasoning_content"] == "a\nb"
    assert "reasoning_segments_joined" in done.codes
    assert converted(done.value, ATIF, GYM).value["response"]["output"] == [thought("a", "b"), said("ok")]


def test_16_encrypted_reasoning_is_carried_unread() -> None:
    item = thought(encrypted_content="e")
    steps, done = steps_of(item, said("ok"))
    assert "reasoning_content" not in steps[1]
    assert "reasoning_encrypted_opaque" in done.codes
    assert converted(done.value, ATIF, GYM).value["response"]["output"] == [item, said("ok")]


def test_17_a_developers_message_is_a_system_step() -> None:
    steps, done = steps_of(said("ok"), given=[user("D", "developer")])
    assert spoken(steps)[0] == ("system", "D")
    assert "developer_role" in done.codes


def test_18_a_user_in_the_output_has_a_step_between_the_agents() -> None:
    steps, _ = steps_of(said("a"), user("again"), said("b", "m2"))
    assert spoken(steps)[1:] == [("agent", "a"), ("user", "again"), ("agent", "b")]


def test_19_what_a_model_said_in_the_input_is_copied_and_counts_nothing() -> None:
    steps, done = steps_of(said("new"), given=[user("hi"), said("old", "m0", **TOKENS), user("more")])
    assert [step.get("is_copied_context") for step in steps] == [None, True, None, None]
    assert "copied_context" in done.codes


def test_20_no_output_leaves_the_question_and_nothing_at_all_is_refused() -> None:
    steps, _ = steps_of()
    assert spoken(steps) == [("user", "hi")]
    assert converted(row([], []), GYM, ATIF).rules == {"gym.row.empty"}


def test_21_explicit_nulls_in_the_request_are_accepted() -> None:
    steps, done = steps_of(said("ok"), request={"tool_choice": None, "parallel_tool_calls": None, "tools": None})
    assert len(steps) == 2
    assert not done.faults


def test_22_a_call_of_a_server_is_a_tool_call() -> None:
    item = {"type": "mcp_call", "id": "mcp_1", "name": "n", "server_label": "s", "arguments": "{}", "output": "o"}
    steps, done = steps_of(item, said("ok"))
    assert calls_in(steps[1]) == [("mcp_1", {})]
    assert results_in(steps[1]) == [("mcp_1", "o")]
    assert "item_type_mapped" in done.codes
    assert converted(done.value, ATIF, GYM).value["response"]["output"] == [item, said("ok")]


def test_23_think_tags_are_left_alone_unless_asked_for() -> None:
    steps, done = steps_of(said("<think>R</think>x"))
    assert spoken(steps)[1] == ("agent", "<think>R</think>x")
    assert "think_tags_in_text" in done.codes
    steps, done = steps_of(said("<think>R</think>x"), options=Options(thinking=Thinking.SPLIT))
    assert (steps[1]["reasoning_content"], steps[1]["message"]) == ("R", "x")
    assert "think_tags_split" in done.codes


@pytest.mark.parametrize(
    ("text", "reasoning", "left"),
    [
        ("<think>a<think>b</think>c</think>d", "a<think>b</think>c", "d"),
        ("<think>never closed", None, "<think>never closed"),
        ("x<think>R</think>", None, "x<think>R</think>"),
        ("<think></think>", "", ""),
    ],
)
def test_only_a_leading_closed_outermost_tag_is_split(text: str, reasoning: str | None, left: str) -> None:
    parts = [{"type": "output_text", "text": text, "annotations": []}, {"type": "refusal", "refusal": "no"}]
    steps, _ = steps_of(said("", content=parts), options=Options(thinking=Thinking.SPLIT))
    assert steps[1].get("reasoning_content") == reasoning
    assert steps[1]["message"][0]["text"] == left


def test_a_second_output_of_a_call_is_kept_and_told() -> None:
    steps, done = steps_of(call(), result("c1", "one"), result("c1", "two"))
    assert results_in(steps[1]) == [("c1", "one"), ("c1", "two")]
    assert "output_duplicate" in done.codes


def test_a_call_without_an_output_is_told() -> None:
    _, done = steps_of(call("c1"), call("c2"), result("c1"))
    [told] = [loss for loss in done.losses if loss.code == "call_without_output"]
    assert (told.count, told.severity) == (1, "note")


def test_a_compaction_is_a_system_step_that_replaces_what_was_before() -> None:
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "e"}
    steps, done = steps_of(said("a"), item, said("b", "m2"))
    assert steps[2]["source"] == "system"
    assert steps[2]["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}
    assert converted(done.value, ATIF, GYM).value["response"]["output"] == [said("a"), item, said("b", "m2")]


def test_what_the_items_say_is_not_told_as_dropped_on_the_way_back() -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "e"}
    output = [thought("R", **TOKENS), call(**TOKENS), result(), compaction, said("b", "m2")]
    _, done = steps_of(*output, request={"instructions": "S"})
    back = converted(done.value, ATIF, GYM)
    assert back.value["response"]["output"] == output
    assert back.codes <= {"system_step_in_output"}


def test_an_item_of_another_kind_is_a_system_step_that_holds_it() -> None:
    item = {"type": "mcp_list_tools", "id": "l1", "server_label": "s", "tools": []}
    steps, done = steps_of(item, said("ok"))
    assert json.loads(steps[1]["message"]) == item
    assert "item_type_opaque" in done.codes
    assert converted(done.value, ATIF, GYM).value["response"]["output"] == [item, said("ok")]


def test_an_output_that_begins_with_the_user_begins_there_again() -> None:
    output = [user("again"), said("ok")]
    _, done = steps_of(*output)
    back = converted(done.value, ATIF, GYM).value
    assert back["responses_create_params"]["input"] == [user("hi")]
    assert back["response"]["output"] == output


def test_items_between_two_messages_of_one_step_come_back_in_their_order() -> None:
    output = [call("c1"), thought("late"), result("c1"), said("ok")]
    _, done = steps_of(*output)
    assert converted(done.value, ATIF, GYM).value["response"]["output"] == output


def test_the_identity_and_the_reward_of_the_row_are_kept() -> None:
    options = Options(session_id="run", keep_row_extras=True)
    _, done = steps_of(said("ok"), options=options, agent_ref={"name": "solver"}, grade=7)
    document = done.value
    assert (document["session_id"], document["trajectory_id"]) == ("run", "run:3:1")
    assert document["agent"]["name"] == "solver"
    kept = document["extra"]["ng_capture"]["rollout"]
    assert (kept["reward"], kept["row"]) == (1.0, {"grade": 7})


def test_tools_are_defined_in_the_form_of_chat_and_come_back() -> None:
    server = {"type": "web_search"}
    _, done = steps_of(said("ok"), request={"tools": [tool(), server]})
    [definition] = [each for each in done.value["agent"]["tool_definitions"] if each.get("type") == "function"]
    assert definition["function"]["name"] == "f"
    assert "tool_definition_not_function" in done.codes
    assert converted(done.value, ATIF, GYM).value["responses_create_params"]["tools"] == [tool(), server]
