"""Every log format gives the calls that it holds: ids, times, links and who claims them, nothing made up."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.ingest.raw import RawExchange
from tests.support import logs
from tests.support.forge import Row
from tests.support.logs import GENERATION, LOG_PROBS, PROMPT, exchanges, faults, in_lines, readings, write_log


def only(path: Path, name: str | None = None) -> RawExchange:
    """The one call of a log without faults."""
    read = readings(path, name=name)
    assert faults(read) == []
    (call,) = exchanges(read)
    return call


def message(call: RawExchange) -> Row:
    choices: Any = call.response["choices"]
    return dict(choices[0]["message"])


def choice(call: RawExchange) -> Row:
    choices: Any = call.response["choices"]
    return dict(choices[0])


def claimed(call: RawExchange) -> list[tuple[str, str]]:
    return [(claim.source, claim.rollout_id) for claim in call.claims]


def bundle(call: RawExchange) -> list[Any]:
    told = message(call)
    return [told.get(key) for key in ("prompt_token_ids", "generation_token_ids", "generation_log_probs")]


def test_a_gym_capture_line_is_a_call_with_everything_it_says(tmp_path: Path) -> None:
    call = only(write_log(tmp_path / "t1-0.capture.jsonl", [logs.GYM_CAPTURE]))
    assert (call.call_id, call.line, call.byte, call.dialect, call.status_code) == ("c1", 1, 0, "chat", 200)
    assert (call.started_at, call.completed_at, call.latency_ms, call.latency_ttft_ms) == (10.0, 11.5, 1500.0, 20.0)
    assert claimed(call) == [("file_name", "t1-0")]
    assert call.request == logs.REQUEST
    assert call.model_ref == logs.GYM_CAPTURE["model_ref"]
    assert bundle(call) == [PROMPT, GENERATION, LOG_PROBS]


def test_a_streamed_gym_capture_keeps_its_events_apart_from_what_gym_made_of_them(tmp_path: Path) -> None:
    row = {**logs.GYM_CAPTURE, "response": logs.chat_response(content="of gym"), "response_raw": logs.STREAM}
    call = only(write_log(tmp_path / "t1-0.capture.jsonl", [row]))
    assert [event.get("prompt_token_ids") for event in call.events] == [PROMPT, None, None, None]
    assert message(call)["content"] == "a"
    assert call.response_raw == logs.STREAM


@pytest.mark.parametrize(("kind", "row"), [("capture", logs.GYM_CAPTURE), ("tokens", logs.GYM_TOKENS)])
def test_a_rollout_of_gym_that_is_marked_incomplete_stays_so(tmp_path: Path, kind: str, row: Row) -> None:
    path = write_log(tmp_path / f"t1-0.{kind}.jsonl", [row])
    (tmp_path / f"t1-0.{kind}.incomplete").touch()
    assert faults(readings(path)) == [("capture_incomplete", None)]


def test_records_stay_records(tmp_path: Path) -> None:
    path = tmp_path / "t1-0.tokens.jsonl"
    path.write_bytes(in_lines([logs.GYM_TOKENS, {"rollout_id": "t1-0"}]).rstrip(b"\n"))
    read = readings(path)
    (record,) = logs.records(read)
    assert (record.entry.call_id, record.entry.generated, record.entry.line) == ("c1", 2, 1)
    assert [(claim.source, claim.rollout_id) for claim in record.claims] == [("file_name", "t1-0"), ("field", "t1-0")]
    assert faults(read) == [("invalid_record", 2)]


def test_a_pair_is_read_under_the_usual_spellings(tmp_path: Path) -> None:
    call = only(write_log(tmp_path / "calls.jsonl", [logs.PAIR]))
    assert (call.call_id, call.dialect, call.status_code, call.started_at) == ("c1", "chat", 200, 1767225600.0)
    assert claimed(call) == [("field", "t1-0"), ("header", "s1")]
    assert call.response == logs.VLLM_RESPONSE


def test_a_pair_with_http_around_it_has_its_bodies_taken_out(tmp_path: Path) -> None:
    row = {
        "request": {
            "method": "POST",
            "url": "http://h/ng-rollout/t1-0/v1/chat/completions",
            "headers": {},
            "body": json.dumps(logs.REQUEST),
        },
        "response": {"status": 200, "headers": {}, "body": logs.STREAM},
    }
    call = only(write_log(tmp_path / "calls.jsonl", [row]))
    assert (call.request, call.status_code, claimed(call)) == (logs.REQUEST, 200, [("path", "t1-0")])
    assert len(call.events) == 4


def test_batch_answers_find_their_requests_in_the_other_file_in_any_order(tmp_path: Path) -> None:
    requests = write_log(tmp_path / "in.jsonl", [{**logs.BATCH_REQUEST, "custom_id": "q0"}, logs.BATCH_REQUEST])
    answers = write_log(tmp_path / "out.jsonl", [logs.BATCH_ANSWER])
    for order in ([requests, answers], [answers, requests]):
        (call,) = exchanges(readings(*order))
        assert (call.call_id, call.request, call.response) == ("batch_req_1", logs.REQUEST, logs.VLLM_RESPONSE)
        assert (call.status_code, call.dialect, call.file) == (200, "chat", str(answers))


def test_a_batch_answer_with_two_requests_is_joined_with_none(tmp_path: Path) -> None:
    other = {**logs.BATCH_REQUEST, "body": {"model": "other"}}
    path = write_log(tmp_path / "batch.jsonl", [logs.BATCH_REQUEST, other, logs.BATCH_ANSWER])
    read = readings(path)
    assert faults(read) == [("conflicting_records", 2)]
    assert [call.request for call in exchanges(read)] == [{}]


def test_a_batch_file_of_refusals_has_their_status(tmp_path: Path) -> None:
    row = {"id": "x", "custom_id": "q1", "response": None, "error": {"code": "batch_expired", "message": "late"}}
    call = only(write_log(tmp_path / "out.jsonl", [row]))
    assert (call.error_category, call.response) == ("batch_expired", {"error": row["error"]})


def write_har(path: Path, *entries: Row) -> Path:
    path.write_text(json.dumps(logs.har(*entries)))
    return path


def test_a_har_entry_is_a_call_with_the_rollout_of_its_path(tmp_path: Path) -> None:
    call = only(write_har(tmp_path / "flows.har", logs.har_entry()))
    assert (call.request, call.response, call.dialect) == (logs.REQUEST, logs.VLLM_RESPONSE, "chat")
    assert claimed(call) == [("path", "t1-0"), ("header", "s1")]
    assert (call.started_at, call.completed_at, call.latency_ms) == (1767225600.0, 1767225601.5, 1500.0)


@pytest.mark.parametrize("coded", [False, True])
def test_a_har_stream_is_put_together_also_from_base64(tmp_path: Path, coded: bool) -> None:
    text = base64.b64encode(logs.STREAM.encode()).decode() if coded else logs.STREAM
    entry = logs.har_entry(text=text, mimeType="text/event-stream", **({"encoding": "base64"} if coded else {}))
    call = only(write_har(tmp_path / "flows.har", entry))
    assert len(call.events) == 4
    assert message(call)["content"] == "a"


def test_what_is_no_base64_is_left_as_it_is(tmp_path: Path) -> None:
    call = only(write_har(tmp_path / "flows.har", logs.har_entry(text="{%}", encoding="base64")))
    assert (call.response, call.response_raw) == ({}, "{%}")


def test_har_entries_that_ask_no_model_are_no_calls(tmp_path: Path) -> None:
    pages = [logs.har_entry("http://h/v1/models"), logs.har_entry("http://h/index.html"), {}]
    read = readings(write_har(tmp_path / "flows.har", *pages, logs.har_entry()))
    assert [call.line for call in exchanges(read)] == [4]


def test_a_callback_payload_of_litellm_is_a_call(tmp_path: Path) -> None:
    for row in (logs.LITELLM, {"litellm_call_id": "k", "standard_logging_object": logs.LITELLM}):
        call = only(write_log(tmp_path / "callback.jsonl", [row]))
        assert (call.request, call.response) == ({"model": "m", **logs.REQUEST}, logs.VLLM_RESPONSE)
        assert (call.started_at, call.completed_at, call.latency_ttft_ms) == (10.0, 11.5, 20.0)
        assert claimed(call) == [("field", "t1-0")]


def test_a_trace_that_litellm_made_for_one_call_is_no_rollout(tmp_path: Path) -> None:
    call = only(write_log(tmp_path / "callback.jsonl", [{**logs.LITELLM, "trace_id": "r1"}]))
    assert claimed(call) == []


def test_a_spend_log_is_read_where_it_is_whole_and_flagged_where_litellm_cut_it(tmp_path: Path) -> None:
    cut = {**logs.SPEND_ROW, "request_id": "r2", "response": '{"id": "r2... (litellm_truncated 900 chars)'}
    read = readings(write_log(tmp_path / "spend.jsonl", [logs.SPEND_ROW, cut]))
    (call,) = exchanges(read)
    assert (call.request, call.response) == (logs.REQUEST, logs.VLLM_RESPONSE)
    assert faults(read) == [("partial_tokens", 2)]


def test_a_sample_of_tinker_is_a_completion_whose_prompt_was_sent_as_ids(tmp_path: Path) -> None:
    path = write_log(tmp_path / "capture" / "sample.jsonl", [logs.TINKER, {"kind": "train_op", "scope": {}}])
    call = only(path)
    assert (call.call_id, call.request["prompt"], call.dialect) == ("s1:7", PROMPT, "completions")
    assert (choice(call)["token_ids"], choice(call)["logprobs"]) == (GENERATION, {"token_logprobs": LOG_PROBS})
    assert choice(call)["finish_reason"] == "stop"
    assert claimed(call) == [("field", "run1.iter3.group0.traj1")]


@pytest.mark.parametrize(("status", "category"), [("error", "exception"), ("cancelled", "cancelled")])
def test_a_sample_of_tinker_that_failed_says_so(tmp_path: Path, status: str, category: str) -> None:
    row = {key: told for key, told in logs.TINKER.items() if key not in ("samples", "seq_id")}
    call = only(write_log(tmp_path / "sample.jsonl", [{**row, "status": status}]))
    assert (call.error_category, call.response, call.call_id) == (category, {}, None)


def test_a_sample_of_tinker_without_log_probabilities_has_none(tmp_path: Path) -> None:
    sample = {"tokens": GENERATION, "logprobs": None, "stop_reason": "StopReason.LENGTH"}
    call = only(write_log(tmp_path / "sample.jsonl", [{**logs.TINKER, "samples": [sample]}]))
    assert (choice(call)["logprobs"], choice(call)["finish_reason"]) == (None, "length")


def test_a_trace_of_verifiers_is_taken_apart_into_calls_with_their_parents(tmp_path: Path) -> None:
    calls = exchanges(readings(write_log(tmp_path / "traces.jsonl", [logs.TRACE])))
    told = {call.call_id: (call.parent_call_id, *bundle(call)) for call in calls}
    assert told == {
        "node-1": (None, [1, 2], [5, 9], LOG_PROBS),
        "node-3": ("node-1", [1, 2, 5, 9, 3, 4], [6], [-0.2]),
        "node-4": (None, [1, 2], [7], [-0.3]),
    }
    assert [claimed(call) for call in calls] == [[("field", "t1")]] * 3
    assert (calls[0].started_at, calls[0].latency_ms, calls[0].request["model"]) == (10.0, 1500.0, "m")


def test_a_trace_that_does_not_say_what_was_sampled_says_it_in_its_masks(tmp_path: Path) -> None:
    nodes = [{key: told for key, told in each.items() if key != "sampled"} for each in logs.TRACE["nodes"]]
    calls = exchanges(readings(write_log(tmp_path / "traces.jsonl", [{**logs.TRACE, "nodes": nodes}])))
    assert [call.call_id for call in calls] == ["node-1", "node-3", "node-4"]


def test_an_episode_of_verifiers_is_the_calls_of_its_traces(tmp_path: Path) -> None:
    path = write_log(tmp_path / "traces.jsonl", [{"id": "e", "traces": [logs.TRACE, {**logs.TRACE, "id": "t2"}]}])
    calls = exchanges(readings(path))
    assert [call.claims[0].rollout_id for call in calls] == ["t1"] * 3 + ["t2"] * 3


def test_a_node_whose_mask_is_no_tail_has_no_tokens_and_one_without_a_root_is_no_call(tmp_path: Path) -> None:
    holed = {**logs.node(0, "assistant", [5, 3, 9], LOG_PROBS), "mask": [True, False, True]}
    lost = logs.node(7, "assistant", [5], [-0.5])
    read = readings(write_log(tmp_path / "t.jsonl", [{**logs.TRACE, "nodes": [logs.TRACE["nodes"][0], holed, lost]}]))
    assert [bundle(call) for call in exchanges(read)] == [[None, None, None]]
    assert faults(read) == [("parent_missing", 1)]


def write_json(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1))
    return path


def test_rollout_details_of_harbor_are_a_call_a_turn(tmp_path: Path) -> None:
    call = only(write_json(tmp_path / "result.json", logs.HARBOR_RESULT))
    assert (call.call_id, claimed(call)) == ("turn-1", [("field", "t1-0")])
    assert bundle(call) == [PROMPT, GENERATION, LOG_PROBS]


def test_lists_of_harbor_that_shifted_are_not_put_together(tmp_path: Path) -> None:
    details = {"prompt_token_ids": [PROMPT, PROMPT], "completion_token_ids": [GENERATION], "logprobs": [LOG_PROBS]}
    read = readings(
        write_json(tmp_path / "a.json", {**logs.HARBOR_RESULT, "agent_result": {"rollout_details": [details]}})
    )
    assert (exchanges(read), faults(read)) == ([], [("partial_tokens", 1)])
    details = {"prompt_token_ids": [PROMPT, PROMPT], "completion_token_ids": [[5], [6]], "logprobs": [[-0.5]]}
    call = exchanges(readings(write_json(tmp_path / "b.json", {"rollout_details": [details]})))[0]
    assert bundle(call) == [PROMPT, [5], None]


def test_steps_of_a_trajectory_are_calls_where_they_have_metrics(tmp_path: Path) -> None:
    call = only(write_json(tmp_path / "trajectory.json", logs.ATIF))
    assert (call.call_id, claimed(call), call.request) == ("step-2", [("field", "t1-0")], {"model": "m"})
    assert bundle(call) == [PROMPT, GENERATION, LOG_PROBS]
    assert message(call)["tool_calls"][0]["function"] == {"name": "ls", "arguments": "{}"}
    assert call.response["usage"] == {"prompt_tokens": 2, "completion_tokens": 2}


def test_trajectories_inside_are_read_and_copied_or_joined_steps_are_not_calls(tmp_path: Path) -> None:
    (asked, said) = logs.ATIF["steps"]
    inner = {"trajectory_id": "sub", "steps": [said]}
    cached = {**said, "metrics": {**said["metrics"], "cached_tokens": 1}}
    steps = [asked, {**said, "is_copied_context": True}, {**said, "llm_call_count": 2}, cached]
    path = write_json(tmp_path / "t.json", {**logs.ATIF, "steps": steps, "subagent_trajectories": [inner]})
    read = readings(path)
    assert [call.call_id for call in exchanges(read)] == ["step-2", "sub/step-2"]
    assert exchanges(read)[0].response["usage"] == {
        "prompt_tokens": 2,
        "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 1},
    }
    assert faults(read) == [("partial_tokens", 1)]


def test_a_trajectory_beside_the_details_of_its_trial_is_not_counted_twice(tmp_path: Path) -> None:
    write_json(tmp_path / "trial" / "result.json", logs.HARBOR_RESULT)
    write_json(tmp_path / "trial" / "agent" / "trajectory.json", logs.ATIF)
    write_json(tmp_path / "other" / "agent" / "trajectory.json", logs.ATIF)
    assert [call.call_id for call in exchanges(readings(tmp_path))] == ["turn-1", "step-2"]


def test_spans_of_agent_lightning_are_read_as_python_spells_them(tmp_path: Path) -> None:
    call = only(write_log(tmp_path / "spans.jsonl", [logs.CLIENT_SPAN, logs.SPAN, {**logs.SPAN, "attributes": {}}]))
    assert (call.call_id, claimed(call)) == ("c1", [("field", "ro1.at1")])
    assert call.response["prompt_token_ids"] == PROMPT
    assert choice(call)["token_ids"] == GENERATION
    assert choice(call)["logprobs"] == {"content": logs.ENTRIES}
    assert call.request["messages"] == logs.REQUEST["messages"]


def test_a_span_of_the_client_alone_gives_its_ids(tmp_path: Path) -> None:
    call = only(write_log(tmp_path / "spans.jsonl", [logs.CLIENT_SPAN]))
    assert (call.response["prompt_token_ids"], choice(call)["token_ids"]) == (PROMPT, GENERATION)
    assert call.request["messages"] == [{"role": "user", "content": "q"}]


def test_a_span_of_a_tracer_without_choices_keeps_its_log_probabilities(tmp_path: Path) -> None:
    attributes = {
        "agentlightning.operation.output.prompt_token_ids": PROMPT,
        "agentlightning.operation.output.response_token_ids.0": [GENERATION],
        "logprobs.content": json.dumps(logs.ENTRIES),
        "gen_ai.request.temperature": 0.5,
        "llm.hosted_vllm.usage": "{'x': {1, 2}}",
    }
    call = only(write_log(tmp_path / "spans.jsonl", [{**logs.SPAN, "attributes": attributes}]))
    assert (call.response["prompt_token_ids"], choice(call)["token_ids"]) == (PROMPT, GENERATION)
    assert (choice(call)["logprobs"], call.request["temperature"]) == ({"content": logs.ENTRIES}, 0.5)
    assert "usage" not in call.response


def test_two_spellings_of_the_ids_of_a_span_stand_side_by_side(tmp_path: Path) -> None:
    attributes = {**logs.SPAN["attributes"], "llm.hosted_vllm.response_token_ids": "[[5, 8]]"}
    call = only(write_log(tmp_path / "spans.jsonl", [{**logs.SPAN, "attributes": attributes}]))
    assert (choice(call)["token_ids"], choice(call)["response_token_ids"]) == (GENERATION, [5, 8])


def test_attempts_of_agent_lightning_are_rollouts_of_their_own(tmp_path: Path) -> None:
    spans = [{**logs.SPAN, "attempt_id": attempt} for attempt in ("at1", "at2")]
    calls = exchanges(readings(write_log(tmp_path / "spans.jsonl", spans)))
    assert [call.claims[0].rollout_id for call in calls] == ["ro1.at1", "ro1.at2"]
