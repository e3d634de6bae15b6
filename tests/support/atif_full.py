"""An ATIF document that has every field there is, with and without notes of ours, and changes of it in one place."""

import copy
from collections.abc import Iterator
from typing import Any

from ng_capture.contracts.atif.validate import check_document
from tests.support.atif import put, without

Doc = dict[str, Any]
Path = tuple[str | int, ...]

_OBSERVED: Doc = {
    "source_call_id": "c1",
    "content": [{"type": "text", "text": "r"}],
    "subagent_trajectory_ref": [{"trajectory_id": "k", "session_id": "q", "trajectory_path": "p", "extra": {"e": 1}}],
    "extra": {"e": 1},
}
_METRICS: Doc = {
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "cached_tokens": 1,
    "cost_usd": 0.5,
    "prompt_token_ids": [1, 2, 3],
    "completion_token_ids": [4, 5],
    "logprobs": [-0.1, -0.2],
    "extra": {"reasoning_tokens": 1, "routed_experts": [[0]]},
}
_FULL: Doc = {
    "schema_version": "ATIF-v1.8",
    "session_id": "s",
    "trajectory_id": "t",
    "agent": {
        "name": "a",
        "version": "1",
        "model_name": "m",
        "tool_definitions": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}],
        "extra": {"e": 1},
    },
    "steps": [
        {
            "step_id": 1,
            "timestamp": "2026-01-02T03:04:05Z",
            "source": "system",
            "message": "S",
            "observation": {"results": [{"content": "x"}]},
        },
        {
            "step_id": 2,
            "source": "user",
            "message": [
                {"type": "text", "text": "a"},
                {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}},
                {"type": "audio", "source": {"media_type": "audio/wav", "path": "a.wav", "duration_sec": 1.5}},
            ],
        },
        {
            "step_id": 3,
            "source": "agent",
            "model_name": "m",
            "reasoning_effort": "high",
            "message": "ok",
            "reasoning_content": "a\nb",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "f", "arguments": {"x": 1}, "extra": {"e": 1}}],
            "observation": {"results": [_OBSERVED]},
            "metrics": _METRICS,
            "is_copied_context": False,
            "llm_call_count": 1,
            "extra": {"e": 1},
        },
    ],
    "notes": "n",
    "final_metrics": {
        "total_prompt_tokens": 3,
        "total_completion_tokens": 2,
        "total_cached_tokens": 1,
        "total_cost_usd": 0.5,
        "total_steps": 3,
        "extra": {"reasoning_tokens": 1},
    },
    "continued_trajectory_ref": "c.json",
    "extra": {"nemo_gym": {"source": {"rollout_id": "r"}}},
    "subagent_trajectories": [
        {
            "schema_version": "ATIF-v1.8",
            "trajectory_id": "k",
            "agent": {"name": "b", "version": "2"},
            "steps": [{"step_id": 1, "source": "user", "message": "u"}],
        }
    ],
}
_NOTES: dict[Path, Doc] = {
    ("agent",): {"unknown": ["version"], "tools": [{"dialect": "responses", "value": {"name": "f"}}]},
    ("steps", 0): {"role": "instructions", "item_kind": "compaction"},
    ("steps", 1): {"parts": [{"index": 0, "kind": "file", "value": {}}, {"index": 9, "kind": "x"}]},
    ("steps", 2): {
        "reasoning": [{"summary": ["a"]}, {"content": ["b"], "encrypted": "e"}],
        "items": {"message": {"id": "m"}, "reasoning": [{"id": "r"}, None]},
        "model_call_id": "x",
        "call_index": 1,
        "started_at": 1.5,
        "tokens": [1],
        "token_arrays": {"prompt_ids": [1]},
        "record": {"a": 1},
        "timestamp": "yesterday",
        "empty_message": True,
    },
    ("steps", 2, "tool_calls", 0): {"arguments_raw": '{"x":1}', "kind": "mcp_call", "item": {"id": "i"}},
    ("steps", 2, "observation", "results", 0): {"call_id": "z", "is_error": True, "item": {"id": "o"}},
    (): {
        "rollout": {"reward": 1.0, "rollout_id": "r", "truncated": True, "_ng_task_index": 1, "row": {"x": 1}},
        "request": {"a": 1},
        "response": {"b": 1},
        "omitted": [{"step_id": 1, "source": "agent", "message": ""}],
        "conversion": {"from": "capture"},
    },
}


def full_document(version: int = 8) -> Doc:
    """Every field that a version has."""
    told = copy.deepcopy(_FULL)
    for member in (told, *told["subagent_trajectories"]):
        member["schema_version"] = f"ATIF-v1.{version}"
    while (path := next(_too_new(told), None)) is not None:
        told = put(told, path, "text") if path.endswith(("/message", "/content")) else without(told, path)
    return told


def _too_new(document: Doc) -> Iterator[str]:
    """Where something stands that the version does not have, the last first."""
    paths = [fault.path for fault in check_document(document) if fault.rule == "atif.version.field_too_new"]
    return reversed(paths)


def noted_document() -> Doc:
    """The same with every note that ng-capture leaves in a document, some of which deny what the document says."""
    told: Doc = full_document()
    for path, notes in _NOTES.items():
        owner: Any = told
        for part in path:
            owner = owner[part]
        owner["extra"] = {**owner.get("extra", {}), "ng_capture": copy.deepcopy(notes)}
    return told


def places(value: object, path: Path = ()) -> Iterator[Path]:
    """Every place in a value, the value itself first."""
    yield path
    members: Any = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for key, member in members:
        yield from places(member, (*path, key))


def changed(value: Any, path: Path, member: object) -> Any:
    """The value with another member at a place."""
    if not path:
        return member
    told = copy.copy(value)
    told[path[0]] = changed(value[path[0]], path[1:], member)
    return told


def removed(value: Any, path: Path) -> Any:
    """The value without the member at a place."""
    told = copy.copy(value)
    if len(path) == 1:
        del told[path[0]]
    else:
        told[path[0]] = removed(value[path[0]], path[1:])
    return told
