"""Which of several calls began an agent: the one whose arguments hold the agent's task (contracts.md 3.5)."""

from collections.abc import Mapping
from typing import TypeVar

from ng_capture.contracts.episode import Role, Thread, ToolCall

T = TypeVar("T")


def task_of(thread: Thread) -> str | None:
    """The first that an agent was told, where it is a text."""
    content = next((turn.content for turn in thread.turns if turn.role == Role.USER), None)
    return content if isinstance(content, str) and content.strip() else None


def arguments_of(call: ToolCall) -> object:
    """The arguments of a call, decoded where they are JSON."""
    try:
        return call.value
    except ValueError:
        return call.arguments


def only_one(candidates: Mapping[T, object], task: str | None) -> T | None:
    """The only candidate, else the only one whose value holds the task."""
    if len(candidates) != 1 and task is not None:
        candidates = {key: value for key, value in candidates.items() if _names(value, task)}
    return next(iter(candidates)) if len(candidates) == 1 else None


def _names(value: object, task: str) -> bool:
    if isinstance(value, str):
        return task in value
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_names(member, task) for member in members)
