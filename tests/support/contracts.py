"""Small documents of the contracts, for tests of what is the same for all of them."""

import json
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def atif(*messages: str, session_id: str = "s-1", **members: Any) -> Document:
    """A trajectory in which a user and an agent speak in turn."""
    steps = [
        {"step_id": number, "source": ("user", "agent")[(number - 1) % 2], "message": message}
        for number, message in enumerate(messages or ("hi", "ok"), start=1)
    ]
    agent = {"name": "tester", "version": "1.0"}
    return {"schema_version": "ATIF-v1.7", "session_id": session_id, "agent": agent, "steps": steps, **members}


def row(rollout_id: str = "7-0", said: str = "ok", **members: Any) -> Document:
    """A finished row of one question and one answer."""
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed"}
    output = [{**item, "content": [{"type": "output_text", "text": said, "annotations": []}]}]
    return {
        "_ng_rollout_id": rollout_id,
        "responses_create_params": {"input": [{"role": "user", "content": "hi"}]},
        "response": {"id": "r1", "object": "response", "model": "policy", "output": output},
        "reward": 1.0,
        **members,
    }


def chat(question: str = "hi", answer: str = "ok") -> Document:
    """A request and a response of Chat Completions."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
    return {
        "request": {"model": "policy", "messages": [{"role": "user", "content": question}]},
        "response": {"id": "c1", "model": "policy", "choices": [choice]},
    }


def write(path: Path, *documents: object) -> Path:
    """One document a line; what is text already is written as it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [each if isinstance(each, str) else json.dumps(each) for each in documents]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path
