"""When two turns say the same, however a harness spelled them again (contracts.md 3.5, 2)."""

from collections.abc import Hashable

import msgspec

from ng_capture.contracts.episode import Content, Text, ToolCall, Turn
from ng_capture.contracts.identity import content_digest


def spoken(turn: Turn) -> Hashable:
    """What a turn says: role, text, calls with their arguments parsed.

    Reasoning counts for nothing, since harnesses drop it, and results for nothing, since they come later.
    """
    return turn.role, words(turn.content), tuple(_called(call) for call in turn.calls)


def words(content: Content | None) -> Hashable:
    """A content: one of text parts alone is their text, none is an empty one."""
    if content is None or isinstance(content, str):
        return content or ""
    if all(isinstance(part, Text) for part in content):
        return "".join(part.text for part in content if isinstance(part, Text))
    return content_digest(msgspec.to_builtins(content))


def parsed(call: ToolCall) -> Hashable:
    """The arguments of a call, whatever spaces and escapes they are written with and in whatever order."""
    try:
        return content_digest(call.value)
    except (ValueError, RecursionError):
        return call.arguments


def _called(call: ToolCall) -> Hashable:
    return call.call_id, call.name, parsed(call)
