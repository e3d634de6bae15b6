"""Trajectories as rows, in the profiles native and harbor (contracts.md 3.6 and 7.2, T-AR)."""

import json
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.gym.contract import GYM
from ng_capture.contracts.interface import Options, Profile
from tests.support.converting import PLAIN, Done, converted
from tests.support.items import agent_step, step_call, step_result, trajectory, user

HARBOR = Options(profile=Profile.HARBOR)
METRICS = {"prompt_token_ids": [1, 2], "completion_token_ids": [3], "logprobs": [-0.5]}
FULL = agent_step(
    "ok", reasoning_content="R", tool_calls=[step_call("c1", x=1)], observation={"results": [step_result()]}
)


def written(document: Any, options: Options = PLAIN) -> tuple[list[Any], list[Any], Done]:
    """The input and the output of the row."""
    done = converted(document, ATIF, GYM, options)
    row = done.value
    return row["responses_create_params"]["input"], row["response"]["output"], done


def short(items: list[Any]) -> list[tuple[str, Any]]:
    return [_short(item) for item in items]


def _short(item: dict[str, Any]) -> tuple[str, Any]:
    match item["type"]:
        case "reasoning":
            return "reasoning", "".join(part["text"] for part in item["summary"])
        case "function_call":
            return item["call_id"], item["arguments"]
        case "function_call_output":
            return item["call_id"], item["output"]
    content = item["content"]
    return item["role"], content if isinstance(content, str) else "".join(part["text"] for part in content)


def test_1_a_step_is_reasoning_message_call_and_output() -> None:
    given, output, _ = written(trajectory(FULL))
    assert given == [user("hi")]
    assert short(output) == [("reasoning", "R"), ("assistant", "ok"), ("c1", '{"x": 1}'), ("c1", "42")]
    _, output, _ = written(trajectory(FULL), HARBOR)
    assert short(output) == [("assistant", "<think>R</think>ok"), ("c1", '{"x": 1}'), ("c1", "42")]


def test_2_a_leading_system_step_is_input() -> None:
    document = trajectory({"source": "system", "message": "S"}, {"source": "user", "message": "hi"}, opened_by=None)
    document["steps"].append({"step_id": 3, **agent_step("ok")})
    assert written(document)[0] == [user("S", "system"), user("hi")]
    assert written(document, HARBOR)[0] == []


def test_3_a_later_user_stays_in_the_output() -> None:
    document = trajectory(agent_step("one"), {"source": "user", "message": "again"}, agent_step("two"))
    _, output, done = written(document)
    assert short(output) == [("assistant", "one"), ("user", "again"), ("assistant", "two")]
    assert "system_step_in_output" in done.codes
    assert short(written(document, HARBOR)[1]) == [("assistant", "one"), ("assistant", "two")]


def test_4_results_are_linked_by_id_and_in_the_harbor_profile_by_place() -> None:
    step = agent_step(
        tool_calls=[step_call("c1"), step_call("c2")],
        observation={"results": [step_result("c2", "two"), step_result("c1", "one")]},
    )
    assert short(written(trajectory(step))[1])[2:] == [("c2", "two"), ("c1", "one")]
    _, output, done = written(trajectory(step), HARBOR)
    assert short(output)[3:] == [("c1", "two"), ("c2", "one")]
    assert "link_ambiguous" in done.codes


@pytest.mark.parametrize(
    ("calls", "results", "links", "code"),
    [
        (["c1", "c2"], [None], ["c1"], "link_ambiguous"),
        (["c1"], [None], ["c1"], "link_by_position"),
        (["c1", "c2"], [None, "c1"], ["c2", "c1"], "link_by_position"),
    ],
)
def test_5_and_6_a_result_that_names_no_call_is_linked_by_its_place(
    calls: list[str], results: list[str | None], links: list[str], code: str
) -> None:
    told = [step_result(each, str(at)) for at, each in enumerate(results)]
    step = agent_step(tool_calls=[step_call(each) for each in calls], observation={"results": told})
    _, output, done = written(trajectory(step))
    assert [item["call_id"] for item in output if item["type"] == "function_call_output"] == links
    assert code in done.codes


def test_a_result_without_any_call_has_an_id_that_is_made_and_told() -> None:
    step = agent_step("x", observation={"results": [step_result(None, "free")]})
    _, output, done = written(trajectory(step))
    assert output[1]["output"] == "free"
    assert "output_unlinked" in done.codes


@pytest.mark.parametrize("options", [Options(), HARBOR])
def test_7_nulls_are_fine(options: Options) -> None:
    nulls = {"total_prompt_tokens": None, "total_completion_tokens": None}
    _, output, done = written(trajectory(agent_step("ok", observation=None), final_metrics=nulls), options)
    assert short(output) == [("assistant", "ok")]
    assert ("usage_unknown" in done.codes) == (options is HARBOR)


@pytest.mark.parametrize("options", [Options(), HARBOR])
def test_8_a_result_without_content_is_empty_and_told(options: Options) -> None:
    step = agent_step(tool_calls=[step_call()], observation={"results": [step_result("c1", None)]})
    _, output, done = written(trajectory(step), options)
    assert output[-1]["output"] == ""
    assert "call_without_output" in done.codes


def test_9_a_message_in_parts_stays_one_and_the_harbor_profile_refuses_it() -> None:
    step = agent_step(reasoning_content="R")
    step["message"] = [{"type": "text", "text": "p"}]
    assert short(written(trajectory(step))[1]) == [("reasoning", "R"), ("assistant", "p")]
    assert converted(trajectory(step), ATIF, GYM, HARBOR).rules == {"gym.harbor.message"}


def test_10_tokens_travel_all_or_not_at_all() -> None:
    _, [whole], _ = written(trajectory(agent_step("ok", metrics=METRICS)))
    assert (whole["prompt_token_ids"], whole["generation_token_ids"], whole["generation_log_probs"]) == (
        [1, 2],
        [3],
        [-0.5],
    )
    step = agent_step("ok", metrics={"completion_token_ids": [3]})
    _, [part], done = written(trajectory(step))
    assert not {"prompt_token_ids", "generation_token_ids", "generation_log_probs"} & part.keys()
    assert "tokens_incomplete" in done.codes
    _, [part], done = written(trajectory(step), HARBOR)
    assert (part["prompt_token_ids"], part["generation_token_ids"], part["generation_log_probs"]) == ([], [3], [])


def test_tokens_that_do_not_fit_each_other_stay_out() -> None:
    step = agent_step("ok", metrics={**METRICS, "logprobs": [-0.5, -0.6]})
    _, [item], done = written(trajectory(step))
    assert "generation_token_ids" not in item
    assert "tokens_incomplete" in done.codes


def test_tokens_stand_on_the_last_item_of_the_model() -> None:
    _, output, _ = written(trajectory({**FULL, "metrics": METRICS}))
    assert [item["type"] for item in output if "generation_token_ids" in item] == ["function_call"]


def test_experts_travel_with_the_tokens() -> None:
    step = agent_step("ok", metrics={**METRICS, "extra": {"routed_experts": [[1]]}})
    for options in (Options(), HARBOR):
        assert written(trajectory(step), options)[1][0]["routed_experts"] == [[1]]


def test_11_copied_steps_are_input_and_never_fresh_output() -> None:
    document = trajectory(agent_step("old", is_copied_context=True), agent_step("new"))
    given, output, _ = written(document)
    assert short(given) == [("user", "hi"), ("assistant", "old")]
    assert short(output) == [("assistant", "new")]
    _, output, done = written(document, HARBOR)
    assert short(output) == [("assistant", "old"), ("assistant", "new")]
    assert "copied_context" in done.codes


def test_context_that_is_copied_again_is_left_out_and_told() -> None:
    document = trajectory(agent_step("one"), agent_step("one", is_copied_context=True), agent_step("two"))
    _, output, done = written(document)
    assert short(output) == [("assistant", "one"), ("assistant", "two")]
    assert "step_fields_dropped" in done.codes


def test_12_a_step_that_no_model_made_has_no_message_and_no_tokens() -> None:
    step = agent_step("run", llm_call_count=0, tool_calls=[step_call()], observation={"results": [step_result()]})
    _, output, done = written(trajectory(step))
    assert [item["type"] for item in output] == ["function_call", "function_call_output"]
    assert {"no_model_call", "step_fields_dropped"} <= done.codes
    assert next(item["type"] for item in written(trajectory(step), HARBOR)[1]) == "message"


def test_13_the_observation_of_a_system_step_is_dropped_and_told() -> None:
    system = {"source": "system", "message": "S", "observation": {"results": [step_result(None, "x")]}}
    document = trajectory(agent_step("ok"), system)
    _, output, done = written(document)
    assert short(output) == [("assistant", "ok"), ("system", "S")]
    assert {"system_step_in_output", "step_fields_dropped"} <= done.codes
    assert short(written(document, HARBOR)[1]) == [("assistant", "ok")]


def test_14_a_subagent_is_told_or_has_a_row_of_its_own() -> None:
    inner = trajectory(agent_step("inside"), opened_by="sub", trajectory_id="t-2")
    deeper = trajectory(agent_step("deeper"), opened_by="subsub", trajectory_id="t-3")
    document = trajectory(agent_step("ok"), subagent_trajectories=[{**inner, "subagent_trajectories": [deeper]}])
    _, _, done = written(document)
    [told] = [loss for loss in done.losses if loss.code == "subagent_dropped"]
    assert told.count == 2
    assert "subagent_dropped" in written(document, HARBOR)[2].codes
    rows = converted(document, ATIF, GYM, Options(subagents=True)).values
    assert [short(row["response"]["output"])[0][1] for row in rows] == ["ok", "inside", "deeper"]


COMMANDS = {"analysis": "a", "commands": [{"keystrokes": "ls\n", "duration": 0.1}, {"keystrokes": ""}, 3]}


@pytest.mark.parametrize("text", [json.dumps(COMMANDS), f'so: "{{" {json.dumps(COMMANDS)} done'])
def test_15_commands_of_terminus_become_calls_where_asked_for(text: str) -> None:
    assert short(written(trajectory(agent_step(text)))[1]) == [("assistant", text)]
    wanted = ("call_0_1", '{"keystrokes": "ls\\n", "duration": 0.1}')
    for options in (Options(terminus=True), HARBOR):
        assert short(written(trajectory(agent_step(text)), options)[1])[1:] == [wanted]


@pytest.mark.parametrize("text", ["{", "{}}{", '{"commands": 3}', "[1]", '{"a": "\\"}"} {bad}'])
def test_15_a_message_without_commands_has_none(text: str) -> None:
    assert len(written(trajectory(agent_step(text)), Options(terminus=True))[1]) == 1


def test_15_a_duration_that_is_no_number_is_the_default_of_terminus() -> None:
    text = json.dumps({"commands": [{"keystrokes": "ls", "duration": "soon"}]})
    _, [_, call], _ = written(trajectory(agent_step(text)), HARBOR)
    assert json.loads(call["arguments"])["duration"] == 1.0


def test_16_usage_is_the_total_and_what_it_counts_beyond_the_steps_is_told() -> None:
    metrics = {"prompt_tokens": 10, "completion_tokens": 2}
    final = {"total_prompt_tokens": 25, "total_completion_tokens": 5, "total_cached_tokens": 4}
    row = converted(trajectory(agent_step("ok", metrics=metrics), final_metrics=final), ATIF, GYM)
    usage = row.value["response"]["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (25, 5, 30)
    assert usage["input_tokens_details"] == {"cached_tokens": 4}
    assert "usage_includes_subagents" in row.codes


def test_16_without_totals_usage_is_the_sum_over_fresh_steps_or_unknown() -> None:
    known = agent_step("a", metrics={"prompt_tokens": 10, "completion_tokens": 2})
    row = converted(trajectory(known, known), ATIF, GYM).value
    assert row["response"]["usage"]["input_tokens"] == 20
    part = converted(trajectory(known, agent_step("b")), ATIF, GYM)
    assert part.value["response"]["usage"] is None
    assert "usage_dropped" in part.codes
    half = converted(
        trajectory(agent_step("a", metrics={"prompt_tokens": 10}), final_metrics={"total_prompt_tokens": 10}), ATIF, GYM
    )
    assert half.value["response"]["usage"] is None
    assert "usage_dropped" in half.codes


def test_17_the_same_document_gives_the_same_bytes() -> None:
    for options in (Options(), HARBOR):
        once, again = (converted(trajectory(FULL, agent_step("b")), ATIF, GYM, options).lines for _ in range(2))
        assert once == again


def test_ids_of_a_conversation_that_goes_on_stay_what_they_were() -> None:
    _, first, _ = written(trajectory(FULL, trajectory_id="t"))
    _, more, _ = written(trajectory(FULL, agent_step("more"), trajectory_id="t"))
    assert more[: len(first)] == first


def test_a_structured_result_beside_no_content_is_its_json() -> None:
    structured = step_result("c1", None, extra={"tool_result": {"b": 1, "a": "é"}})
    step = agent_step(tool_calls=[step_call()], observation={"results": [structured]})
    assert written(trajectory(step))[1][-1]["output"] == '{"a":"é","b":1}'
    plain = step_result("c1", None, extra={"tool_result": "text"})
    step = agent_step(tool_calls=[step_call()], observation={"results": [plain]})
    assert written(trajectory(step))[1][-1]["output"] == "text"


def test_an_image_by_address_is_carried_and_one_in_a_file_is_omitted() -> None:
    def image(path: str) -> dict[str, Any]:
        return {"type": "image", "source": {"media_type": "image/png", "path": path}}

    step = agent_step(
        tool_calls=[step_call()],
        observation={"results": [step_result("c1", [image("https://x/a.png"), image("b.png")])]},
    )
    _, output, done = written(trajectory(step))
    there, gone = output[-1]["output"]
    assert there == {"type": "input_image", "image_url": "https://x/a.png", "detail": "auto"}
    assert gone == {"type": "input_text", "text": "[image omitted: b.png]"}
    assert "media_omitted" in done.codes


def test_what_a_row_has_no_place_for_is_told_by_its_name() -> None:
    step = agent_step(
        "ok",
        model_name="other",
        reasoning_effort="high",
        timestamp="2026-01-02T03:04:05Z",
        extra={"mine": 1},
        metrics={"prompt_tokens": 1, "completion_tokens": 1, "cost_usd": 0.5},
        tool_calls=[{**step_call(), "extra": {"mine": 1}}],
        observation={
            "results": [step_result("c1", "x", extra={"mine": 1}, subagent_trajectory_ref=[{"trajectory_path": "p"}])]
        },
    )
    agent = {"name": "tester", "version": "1.0", "model_name": "policy", "extra": {"mine": 1}}
    final = {"total_prompt_tokens": 2, "total_completion_tokens": 2, "total_cost_usd": 1.0}
    document = trajectory(
        step, agent=agent, final_metrics=final, extra={"mine": 1}, continued_trajectory_ref="next.json"
    )
    done = converted(document, ATIF, GYM)
    details = {loss.detail for loss in done.losses if loss.code == "step_fields_dropped"}
    wanted = {"model_name", "metrics", "reasoning_effort", "extra", "tool_calls.extra", "observation.extra"}
    assert wanted | {"subagent_trajectory_ref"} <= details
    assert "timestamps_dropped" in done.codes
    [told] = [loss.detail for loss in done.losses if loss.code == "metadata_dropped"]
    assert told == "agent.extra, continued_trajectory_ref, extra, final_metrics"


def test_the_row_tells_how_it_was_made() -> None:
    told = converted(trajectory(agent_step("ok")), ATIF, GYM).value["ng_capture"]
    assert (told["conversion"]["from"], told["conversion"]["profile"]) == ("atif", "native")
    assert (told["session_id"], told["agent_version"]) == ("s-1", "1.0")
