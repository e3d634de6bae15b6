"""A finished row with all that Gym saw of it, which its own export takes (contracts.md 3.2, 5.4)."""

from typing import Any

from tests.support.items import call, result, row, said, thought, user

CONVERSATION = [
    user("hi"),
    thought("R"),
    call(),
    result(id="o1", status="completed"),
    said("done"),
]


def seen(**members: Any) -> dict[str, Any]:
    """The row; `members` are added to its trajectory."""
    question, reasoning, asked, answer, done = CONVERSATION
    trajectory = {
        "schema_version": "1.0",
        "task_id": "3",
        "rollout_id": "3-1",
        "invocations": [{"invocation_id": "inv", "status": "completed", "conversation": list(CONVERSATION)}],
        "turns": [
            turn("inv", 1, [question], [asked], [reasoning], called=1),
            turn("inv", 2, [question, reasoning, asked, answer], [done], None, called=1),
        ],
        "model_calls": [model_call("mc1"), model_call("mc2")],
        "tool_calls": [tool_record()],
        "gaps": [],
        **members,
    }
    output = CONVERSATION[1:]
    return {**row(list(output), [question]), "agent_ref": {"name": "solver"}, "ng_trajectory": trajectory}


def turn(
    agent: str, number: int, question: list[Any], answer: list[Any], reasoning: list[Any] | None, called: int = 0
) -> dict[str, Any]:
    """A turn, made by the call `mc<number>`; `called` counts the tools that were called until its end."""
    return {
        "invocation_id": agent,
        "task_id": "3",
        "rollout_id": "3-1",
        "turn_no": number,
        "timestamp": 1750000000.0 + number,
        "question": question,
        "answer": answer,
        "reasoning_content": reasoning,
        "step_count": called,
        "model_calls": [{"model_call_id": f"mc{number}"}],
    }


def model_call(call_id: str, **told: Any) -> dict[str, Any]:
    """A call of the model that was captured; `told` are further metadata of its response."""
    metadata = {
        "response_id": f"resp-{call_id}",
        "model": "policy",
        "model_ref": {"type": "responses_api_models", "name": "server"},
        "dialect": "responses",
        "status_code": 200,
        "response_status": "completed",
    }
    stats = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14, "cached_tokens": 2}
    times = {"started_at": 1750000000.0, "completed_at": 1750000001.0, "duration_ms": 1000.0}
    return {"model_call_id": call_id, **times, "response_metadata": {**metadata, **told}, "token_stats": stats}


def tool_record(call_id: str = "c1", **members: Any) -> dict[str, Any]:
    """A tool that ran."""
    times = {"started_at": 1750000001.5, "completed_at": 1750000001.6}
    told = {"tool_call_id": call_id, "invocation_id": "inv", "tool_name": "f", "status": "completed", "output": "42"}
    return {**told, **times, **members}
