"""Items of Responses and finished rows of them, small and sound."""

from typing import Any

Item = dict[str, Any]

TOKENS: Item = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}
USAGE: Item = {
    "input_tokens": 30,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 37,
}


def user(text: str, role: str = "user") -> Item:
    """A message of the input."""
    return {"type": "message", "role": role, "content": text}


def said(text: str, item_id: str = "m1", **members: Any) -> Item:
    """A message that the model puts out."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **members,
    }


def thought(*texts: str, item_id: str = "r1", **members: Any) -> Item:
    """A reasoning item, its texts as summaries."""
    summary = [{"type": "summary_text", "text": text} for text in texts]
    return {"type": "reasoning", "id": item_id, "summary": summary, **members}


def call(call_id: str = "c1", arguments: str = '{"x": 1}', name: str = "f", **members: Any) -> Item:
    """A call of a function."""
    whole = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": arguments}
    return {**whole, "status": "completed", **members}


def result(call_id: str = "c1", output: object = "42", **members: Any) -> Item:
    """The output of a call."""
    return {"type": "function_call_output", "call_id": call_id, "output": output, **members}


def tool(name: str = "f") -> Item:
    """A function that is offered."""
    return {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": True}


def row(output: list[Any] | None = None, given: object = "hi", **members: Any) -> Item:
    """A finished row; `members` named `request` and `response` are added to those objects, others to the row."""
    request, response = members.pop("request", {}), members.pop("response", {})
    envelope = {
        "id": "resp_1",
        "object": "response",
        "created_at": 5.0,
        "model": "policy",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    return {
        "_ng_task_index": 3,
        "_ng_rollout_index": 1,
        "reward": 1.0,
        "responses_create_params": {"input": given, **request},
        "response": {**envelope, "output": [said("ok")] if output is None else output, **response},
        **members,
    }


def pair(output: list[Any], given: object = "hi", **response: Any) -> Item:
    """A request and its response."""
    return {"request": {"input": given}, "response": {"object": "response", "output": output, **response}}


def agent_step(message: str = "", **members: Any) -> Item:
    """A step of the agent in a trajectory, without its number."""
    return {"source": "agent", "message": message, **members}


def step_call(call_id: str = "c1", name: str = "f", **arguments: Any) -> Item:
    """A call in a step."""
    return {"tool_call_id": call_id, "function_name": name, "arguments": arguments}


def step_result(call_id: str | None = "c1", content: object = "42", **members: Any) -> Item:
    """A result in a step; one that names no call has no id."""
    named = {} if call_id is None else {"source_call_id": call_id}
    return {**named, "content": content, **members}


def trajectory(*steps: Item, opened_by: str | None = "hi", **members: Any) -> Item:
    """An ATIF document of these steps, after one of the user."""
    before = [] if opened_by is None else [{"source": "user", "message": opened_by}]
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "s-1",
        "agent": {"name": "tester", "version": "1.0"},
        "steps": [{"step_id": at, **step} for at, step in enumerate((*before, *steps), start=1)],
        **members,
    }
