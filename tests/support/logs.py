"""Logs of every format as people have them, one call each: the ids are [1, 2] and [5, 9].

write_log(directory / "x.jsonl", [row, ...])        # lines
readings(path)                                      # as the library reads it
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.interface import Reading, TokenLine
from ng_capture.ingest.sources.recognise import recognise
from ng_capture.records.defects import Defect
from tests.support.forge import Row

PROMPT = [1, 2]
GENERATION = [5, 9]
LOG_PROBS = [-0.5, -0.1]

REQUEST: Row = {"model": "m", "messages": [{"role": "user", "content": "q"}], "temperature": 1.0}
BUNDLE: Row = {"prompt_token_ids": PROMPT, "generation_token_ids": GENERATION, "generation_log_probs": LOG_PROBS}
ENTRIES = [{"token": f"token_id:{id_}", "logprob": value} for id_, value in zip(GENERATION, LOG_PROBS, strict=True)]


def chat_response(**message: Any) -> Row:
    """A chat completion whose message has these fields beside its text."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "a", **message}, "finish_reason": "stop"}
    return {"id": "r1", "model": "m", "choices": [choice]}


VLLM_CHOICE = {
    "index": 0,
    "message": {"role": "assistant", "content": "a"},
    "finish_reason": "stop",
    "token_ids": GENERATION,
    "logprobs": {"content": ENTRIES},
}
VLLM_RESPONSE: Row = {"id": "r1", "model": "m", "prompt_token_ids": PROMPT, "choices": [VLLM_CHOICE]}
STREAM = "".join(
    f"data: {data}\n\n"
    for data in (
        '{"id":"r1","prompt_token_ids":[1,2],"choices":[{"index":0,"delta":{"role":"assistant"}}]}',
        '{"id":"r1","choices":[{"index":0,"delta":{"content":"a"},"token_ids":[5]}]}',
        '{"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"stop","token_ids":[9]}]}',
        "[DONE]",
    )
)

GYM_CAPTURE: Row = {
    "model_call_id": "c1",
    "dialect": "chat",
    "model_ref": {"type": "responses_api_models", "name": "policy"},
    "started_at": 10.0,
    "completed_at": 11.5,
    "latency_ms": 1500.0,
    "latency_ttft_ms": 20.0,
    "status_code": 200,
    "error_category": None,
    "request": REQUEST,
    "response": chat_response(**BUNDLE),
}
GYM_TOKENS: Row = {
    "schema_version": 1,
    "rollout_id": "t1-0",
    "model_call_id": "c1",
    "model": "m",
    **BUNDLE,
    "created_at": 11.5,
    "parent_resolution": "root",
}
PAIR: Row = {
    "id": "c1",
    "rollout_id": "t1-0",
    "url": "http://h/v1/chat/completions",
    "headers": {"X-Session-Id": "s1"},
    "status": 200,
    "started_at": "2026-01-01T00:00:00Z",
    "request": REQUEST,
    "response": VLLM_RESPONSE,
}
BATCH_REQUEST: Row = {"custom_id": "q1", "method": "POST", "url": "/v1/chat/completions", "body": REQUEST}
BATCH_ANSWER: Row = {
    "id": "batch_req_1",
    "custom_id": "q1",
    "response": {"status_code": 200, "request_id": "x", "body": VLLM_RESPONSE},
    "error": None,
}


def har_entry(url: str = "http://h/ng-rollout/t1-0/v1/chat/completions", **content: Any) -> Row:
    """One entry; `content` are the fields of the response's content."""
    return {
        "startedDateTime": "2026-01-01T00:00:00.000Z",
        "time": 1500,
        "request": {
            "method": "POST",
            "url": url,
            "headers": [{"name": "X-Session-Id", "value": "s1"}],
            "postData": {"mimeType": "application/json", "text": json.dumps(REQUEST)},
        },
        "response": {"status": 200, "headers": [], "content": content or {"text": json.dumps(VLLM_RESPONSE)}},
    }


def har(*entries: Row) -> Row:
    return {"log": {"version": "1.2", "creator": {"name": "mitmproxy"}, "entries": list(entries)}}


LITELLM: Row = {
    "id": "r1",
    "trace_id": "t1-0",
    "call_type": "acompletion",
    "response_cost": 0.1,
    "status": "success",
    "startTime": 10.0,
    "endTime": 11.5,
    "completionStartTime": 10.02,
    "model": "m",
    "messages": REQUEST["messages"],
    "model_parameters": {"temperature": 1.0},
    "metadata": {},
    "response": VLLM_RESPONSE,
}
SPEND_ROW: Row = {
    "request_id": "r1",
    "call_type": "acompletion",
    "spend": 0.1,
    "startTime": "2026-01-01T00:00:00",
    "endTime": "2026-01-01T00:00:01",
    "messages": json.dumps(REQUEST["messages"]),
    "response": json.dumps(VLLM_RESPONSE),
    "proxy_server_request": json.dumps(REQUEST),
}
TINKER: Row = {
    "kind": "sample",
    "scope": {"run_id": "run1", "iteration": 3, "group_idx": 0, "traj_idx": 1},
    "created_at": 10.0,
    "num_samples": 1,
    "sampling_session_id": "s1",
    "seq_id": 7,
    "base_model": "m",
    "prompt_tokens": PROMPT,
    "prompt_length": 2,
    "sampling_params": {"max_tokens": 8, "temperature": 1.0},
    "samples": [{"tokens": GENERATION, "logprobs": LOG_PROBS, "stop_reason": "stop"}],
    "status": "ok",
    "latency_sec": 1.5,
}


def node(parent: int | None, role: str, ids: list[int], sampled: list[float] | None = None, **fields: Any) -> Row:
    """A node of a trace; `sampled` are the log probabilities of its last ids."""
    count = len(sampled or ())
    return {
        "parent": parent,
        "message": {"role": role, "content": role[0]},
        "sampled": sampled is not None,
        "token_ids": ids,
        "mask": [False] * (len(ids) - count) + [True] * count,
        "logprobs": sampled or [],
        **fields,
    }


TRACE: Row = {
    "id": "t1",
    "task": {"type": "T", "data": {}},
    "nodes": [
        node(None, "user", [1]),
        node(0, "assistant", [2, 5, 9], LOG_PROBS, finish_reason="stop"),
        node(1, "user", [3]),
        node(2, "assistant", [4, 6], [-0.2]),
        node(0, "assistant", [2, 7], [-0.3]),
    ],
    "calls": [{"node": 1, "model": "m", "time": {"start": 10.0, "end": 11.5}}],
}
HARBOR_RESULT: Row = {
    "task_name": "t",
    "trial_name": "t1-0",
    "agent_info": {"name": "terminus-2", "model_info": {"name": "m", "provider": "p"}},
    "agent_result": {
        "rollout_details": [
            {"prompt_token_ids": [PROMPT], "completion_token_ids": [GENERATION], "logprobs": [LOG_PROBS]},
        ]
    },
}
ATIF: Row = {
    "schema_version": "ATIF-v1.6",
    "session_id": "t1-0",
    "agent": {"name": "terminus-2", "version": "1", "model_name": "m"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "q"},
        {
            "step_id": 2,
            "source": "agent",
            "timestamp": "2026-01-01T00:00:00Z",
            "message": "a",
            "tool_calls": [{"tool_call_id": "k", "function_name": "ls", "arguments": {}}],
            "metrics": {
                "prompt_tokens": 2,
                "completion_tokens": 2,
                "prompt_token_ids": PROMPT,
                "completion_token_ids": GENERATION,
                "logprobs": LOG_PROBS,
            },
        },
    ],
}
SPAN: Row = {
    "rollout_id": "ro1",
    "attempt_id": "at1",
    "sequence_id": 1,
    "trace_id": "t",
    "span_id": "c1",
    "name": "raw_gen_ai_request",
    "start_time": 10.0,
    "end_time": 11.5,
    "attributes": {
        "llm.hosted_vllm.id": "r1",
        "llm.hosted_vllm.model": "m",
        "llm.hosted_vllm.messages": str(REQUEST["messages"]),
        "llm.hosted_vllm.prompt_token_ids": str(PROMPT),
        "llm.hosted_vllm.choices": str([{**VLLM_CHOICE, "stop_reason": None}]),
        "llm.hosted_vllm.usage": "{'completion_tokens': 2, 'prompt_tokens': 2}",
    },
}
CLIENT_SPAN: Row = {
    **{key: value for key, value in SPAN.items() if key != "attributes"},
    "span_id": "c0",
    "name": "openai.chat.completion",
    "attributes": {
        "gen_ai.response.id": "r1",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "q",
        "prompt_token_ids": PROMPT,
        "response_token_ids": GENERATION,
    },
}
TEXT_ONLY_LOGS: dict[str, Row] = {
    "OpenTelemetry": {"resourceSpans": [{"scopeSpans": [{"spans": []}]}]},
    "Langfuse": {"id": "o", "traceId": "t", "type": "GENERATION", "startTime": "x", "usageDetails": {}},
    "Claude Code": {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": {}},
    "Codex": {"timestamp": "x", "type": "session_meta", "payload": {}},
}

ONE_CALL: dict[str, tuple[str, bytes]] = {}
"""A file of every format, by the name for `--from`: its name and its bytes, which hold one call."""


def in_lines(rows: Iterable[Row]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


ONE_CALL |= {
    "gym-capture": ("t1-0.capture.jsonl", in_lines([GYM_CAPTURE])),
    "gym-tokens": ("t1-0.tokens.jsonl", in_lines([GYM_TOKENS])),
    "jsonl": ("calls.jsonl", in_lines([PAIR])),
    "openai-batch": ("batch.jsonl", in_lines([BATCH_REQUEST, BATCH_ANSWER])),
    "har": ("flows.har", json.dumps(har(har_entry()), indent=1).encode()),
    "litellm": ("callback.jsonl", in_lines([LITELLM])),
    "tinker": ("sample.jsonl", in_lines([TINKER])),
    "verifiers": ("traces.jsonl", in_lines([{**TRACE, "nodes": TRACE["nodes"][:2]}])),
    "harbor": ("result.json", json.dumps(HARBOR_RESULT, indent=1).encode()),
    "agent-lightning": ("spans.jsonl", in_lines([SPAN])),
}


def write_log(path: Path, rows: Iterable[Row]) -> Path:
    """A JSONL file of the rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(in_lines(rows))
    return path


def readings(*sources: Path | str, name: str | None = None, rollout_from: str | None = None) -> list[Reading]:
    """Everything that the readers of the sources yield."""
    found = recognise([str(each) for each in sources], name, rollout_from)
    return [reading for log in found.logs for reading in log.read()]


def exchanges(read: Iterable[Reading]) -> list[RawExchange]:
    return [each for each in read if isinstance(each, RawExchange)]


def faults(read: Iterable[Reading]) -> list[tuple[str, int | None]]:
    """Reason and line of every defect."""
    return [(each.reason, each.line) for each in read if isinstance(each, Defect)]


def records(read: Iterable[Reading]) -> list[TokenLine]:
    return [each for each in read if isinstance(each, TokenLine)]
