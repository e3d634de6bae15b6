"""Why a call ended, in the words of each dialect (contracts.md 4.2, 4.3, 4.6)."""

from typing import Literal

Finish = Literal["stop", "length", "tool_calls", "content_filter"]
"""Why a call ended, in the words of Chat Completions."""

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "completed": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_calls": "tool_calls",
    "tool_use": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}


def finish_of(reason: str | None) -> Finish | None:
    """The reason of any dialect in the words of chat; None for one that no dialect knows."""
    return _FINISHES.get(reason) if reason is not None else None
