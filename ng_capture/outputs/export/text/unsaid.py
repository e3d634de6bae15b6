"""What a raw call holds that chat messages of plain text have no place for (contracts.md 4)."""

from collections.abc import Iterator, Mapping

from ng_capture.records.json_text import object_in, objects_in

_HELD_BY_THE_SERVER = ("previous_response_id", "conversation", "prompt")
_ITEMS = frozenset({None, "message", "reasoning", "function_call", "function_call_output"})
_BLOCKS = frozenset({"text", "input_text", "output_text", "refusal", "tool_use", "tool_result"})
_THOUGHTS = frozenset({"thinking", "reasoning", "reasoning_text", "summary_text"})
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


def unsaid_in(request: Mapping[str, object], response: Mapping[str, object]) -> str | None:
    """The first thing that would be lost: history that the server held, media, items of another kind; else None."""
    return next(_unsaid(request, response), None)


def _unsaid(request: Mapping[str, object], response: Mapping[str, object]) -> Iterator[str]:
    yield from (name for name in _HELD_BY_THE_SERVER if request.get(name))
    for key in ("system", "instructions"):
        yield from _in_content(request.get(key))
    yield from _in_turns(request.get("messages", request.get("input")))
    yield from _in_turns(response.get("output"))
    yield from _in_content(response.get("content"))
    for choice in objects_in(response.get("choices")):
        yield from _in_turn(object_in(choice.get("message")))


def _in_turns(turns: object) -> Iterator[str]:
    if isinstance(turns, list):
        for turn in turns:
            yield from _in_turn(turn) if isinstance(turn, dict) else ("an item that is no object",)


def _in_turn(turn: Mapping[str, object]) -> Iterator[str]:
    kind, role = turn.get("type"), turn.get("role")
    if kind not in _ITEMS:
        yield str(kind)
    if kind in (None, "message") and role is not None and role not in _ROLES:
        yield f"role {role}"
    yield from (key for key in ("audio", "function_call") if turn.get(key))
    yield from _in_content(turn.get("content"))
    yield from _in_content(turn.get("output"))


def _in_content(content: object) -> Iterator[str]:
    if isinstance(content, list) and not all(isinstance(block, dict) for block in content):
        yield "a block that is no object"
    for block in objects_in(content):
        kind = block.get("type")
        if kind not in _BLOCKS and kind not in _THOUGHTS:
            yield str(kind)
        if kind == "tool_result":
            yield from _in_content(block.get("content"))
