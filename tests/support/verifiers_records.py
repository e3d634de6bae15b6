"""Records of verifiers: rows of results.jsonl, episodes of traces.jsonl."""

from typing import Any

Record = dict[str, Any]


def row(prompt: Any, completion: Any, **fields: Any) -> Record:
    """A row of results."""
    return {"example_id": 7, "prompt": prompt, "completion": completion, "reward": 1.0, **fields}


def step(completion: Any, prompt_ids: Any, completion_ids: Any, log_probs: Any, **fields: Any) -> Record:
    """A step of a row's trajectory; the model generated every id of its completion."""
    mask = [True] * len(completion_ids)
    arrays = {"prompt_ids": prompt_ids, "completion_ids": completion_ids, "completion_logprobs": log_probs}
    return {"prompt": [], "completion": completion, "tokens": {**arrays, "completion_mask": mask}, **fields}


def node(parent: int | None, role: str, content: Any = None, ids: str = "", **fields: Any) -> Record:
    """A message of a trace; each letter of `ids` is an id by its code, and one in upper case was sampled."""
    sampled = [letter.isupper() for letter in ids]
    message = {"role": role, **({} if content is None else {"content": content}), **fields.pop("message", {})}
    return {
        **({} if parent is None else {"parent": parent}),
        "message": message,
        "sampled": role == "assistant",
        "timestamp": 1_750_000_000.0,
        "token_ids": [ord(letter) for letter in ids],
        "mask": sampled,
        "logprobs": [-0.5] * sum(sampled),
        **fields,
    }


def made(at: int, prompt: int | None = 5, completion: int | None = 2, **fields: Any) -> Record:
    """A call that made a node."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {
        "node": at,
        "model": "m",
        "endpoint": "/chat/completions",
        "finish_reason": "stop",
        "usage": usage,
        **fields,
    }


def trace(*nodes: Record, calls: Any = (), **fields: Any) -> Record:
    """A trace that was completed."""
    agent = {"name": "solver", "trainable": True}
    told = {
        "version": 1,
        "id": "t",
        "agent": agent,
        "rewards": {"r": {"score": 1.0, "weight": 1.0}},
        "is_completed": True,
    }
    return {**told, "nodes": list(nodes), "calls": list(calls), **fields}


def episode(*traces: Record, **fields: Any) -> Record:
    """An episode of these traces."""
    return {"id": "e", "env": {"id": "env"}, "task": {"type": "T", "data": {}}, "traces": list(traces), **fields}
