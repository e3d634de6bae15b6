"""The commands in a message of Terminus, as Gym's Harbor mapping reads them (contracts.md 3.1, 2)."""

import json
from collections.abc import Iterator

from ng_capture.contracts.episode import ToolCall, Turn
from ng_capture.records.json_text import is_deep

_NAME = "bash_command"
_DURATION = 1.0


def commands_of(turn: Turn, step: int) -> tuple[ToolCall, ...]:
    """The calls of a step; where it has none, the commands in its message. `step` counts the agent's steps from 0."""
    if turn.calls or not isinstance(turn.content, str):
        return turn.calls
    commands = (_json_object(turn.content) or {}).get("commands")
    return tuple(_calls(commands if isinstance(commands, list) else [], step))


def _calls(commands: list[object], step: int) -> Iterator[ToolCall]:
    for place, command in enumerate(commands, start=1):
        keystrokes = command.get("keystrokes") if isinstance(command, dict) else None
        if isinstance(command, dict) and isinstance(keystrokes, str) and keystrokes:
            arguments = {"keystrokes": keystrokes, "duration": _duration(command.get("duration", _DURATION))}
            yield ToolCall(f"call_{step}_{place}", _NAME, json.dumps(arguments))


def _duration(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return _DURATION


def _json_object(text: str) -> dict[str, object] | None:
    """The object that a text is, else the first one in it: braces are counted, those in strings are not."""
    whole = _parsed(text)
    if whole is not None:
        return whole
    depth, start, in_string, escaped = 0, -1, False, False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\" and in_string:
            escaped = True
        elif character == '"':
            in_string = not in_string
        elif not in_string and character == "{":
            start = at if depth == 0 else start
            depth += 1
        elif not in_string and character == "}":
            depth -= 1
            if depth == 0 and start >= 0:
                found = _parsed(text[start : at + 1])
                if found is not None:
                    return found
                start = -1
    return None


def _parsed(text: str) -> dict[str, object] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not is_deep(value) else None
