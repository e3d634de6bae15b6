"""The conversation of a call in one form, whatever dialect it was held in (capture-files.md 7, contracts.md 4)."""

import marshal
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ng_capture.records.json_text import encode_json, object_in, objects_in, printable

ASSISTANT = "assistant"
SYSTEM = "system"
_LINE = "\n"
_THINKING = ("thinking", "reasoning", "reasoning_text", "summary_text")


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the model calls; `arguments` as they are spelled."""

    call_id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True):
    """One turn: `role` is system, user, assistant or tool; `call_id` names the call that a tool result answers."""

    role: str
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    call_id: str = ""


class Turns:
    """The messages of turns that requests send again and again: each is read and held once."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Message, ...]] = {}

    def messages(self, turn: Mapping[str, object]) -> tuple[Message, ...]:
        """The messages of one turn, as they are read."""
        try:
            # exact: no two values have the same
            key = marshal.dumps(turn, 2)  # type: ignore[arg-type]
        except ValueError:
            return tuple(_turn(turn))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = tuple(_turn(turn))
        return known


def request_messages(request: Mapping[str, object], known: Turns | None = None) -> tuple[Message, ...]:
    """The turns of a request, its instructions first; `known` are those of other requests."""
    told = [Message(SYSTEM, _text(request.get(key), _LINE)) for key in ("system", "instructions") if request.get(key)]
    turns = request.get("messages", request.get("input"))
    if isinstance(turns, str):
        return (*told, Message("user", printable(turns)))
    return (*told, *_merged(objects_in(turns), known or Turns()))


def answer_message(response: Mapping[str, object]) -> Message | None:
    """What the model answered, or None where the response has nothing of the kind."""
    if isinstance(response.get("output"), list):
        return next(_merged(objects_in(response["output"]), Turns()), None)
    if isinstance(response.get("content"), list):
        return next(_turn({"role": ASSISTANT, "content": response["content"]}), None)
    message = object_in(next(objects_in(response.get("choices")), {}).get("message"))
    return next(_turn({"role": ASSISTANT, **message}), None) if message else None


def _turn(turn: Mapping[str, object]) -> Iterator[Message]:
    """The messages of one item: results of tools stand apart from what the user says beside them."""
    kind, role = turn.get("type"), _word(turn.get("role"))
    if kind == "reasoning":
        yield Message(ASSISTANT, reasoning=_text(turn.get("summary")) or _text(turn.get("content")))
    elif kind == "function_call":
        call = ToolCall(_word(turn.get("call_id")), _word(turn.get("name")), _arguments(turn.get("arguments")))
        yield Message(ASSISTANT, tool_calls=(call,))
    elif kind == "function_call_output":
        yield Message("tool", _text(turn.get("output")), call_id=_word(turn.get("call_id")))
    elif role:
        yield from _chat_turn(turn, SYSTEM if role == "developer" else role)


def _chat_turn(turn: Mapping[str, object], role: str) -> Iterator[Message]:
    blocks = list(objects_in(turn.get("content")))
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        yield Message("tool", _text(block.get("content"), _LINE), call_id=_word(block.get("tool_use_id")))
    calls = [
        ToolCall(_word(block.get("id")), _word(block.get("name")), _arguments(block.get("input")))
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    for call in objects_in(turn.get("tool_calls")):
        function = object_in(call.get("function"))
        calls.append(
            ToolCall(_word(call.get("id")), _word(function.get("name")), _arguments(function.get("arguments")))
        )
    thinking = [block for block in blocks if block.get("type") in _THINKING]
    reasoning = _text(turn.get("reasoning_content")) or _text(turn.get("reasoning")) or _text(thinking)
    said = [block for block in blocks if block not in thinking and block not in results]
    text = _text(said if blocks else turn.get("content"))
    if text or reasoning or calls or not results:
        yield Message(role, text, reasoning, tuple(calls), _word(turn.get("tool_call_id")))


def _merged(turns: Iterable[Mapping[str, object]], known: Turns) -> Iterator[Message]:
    """The messages of all turns; typed items of one answer (reasoning, text, calls) are one message."""
    answer: Message | None = None
    for turn in turns:
        for message in known.messages(turn):
            if "type" in turn and message.role == ASSISTANT:
                answer = message if answer is None else _joined(answer, message)
                continue
            if answer is not None:
                yield answer
            answer = None
            yield message
    if answer is not None:
        yield answer


def _joined(one: Message, other: Message) -> Message:
    return Message(
        ASSISTANT, one.text + other.text, one.reasoning + other.reasoning, (*one.tool_calls, *other.tool_calls)
    )


def _arguments(value: object) -> str:
    return printable(value) if isinstance(value, str) else encode_json(value if value is not None else {}).decode()


def _text(value: object, between: str = "") -> str:
    """The text of a content in any spelling; what is no text is shown by its type.

    `between` stands between blocks that are objects: a line break in instructions and results (contracts.md 4.1).
    """
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        glue = between if all(isinstance(block, dict) for block in value) else ""
        return glue.join(filter(None, map(_block, value)))
    return ""


def _block(block: object) -> str:
    if isinstance(block, str):
        return printable(block)
    told = object_in(block)
    for key in ("text", "thinking", "refusal"):
        if isinstance(told.get(key), str):
            return printable(str(told[key]))
    kind = _word(told.get("type"))
    return "" if kind in ("tool_use", "tool_result", "") else f"[{kind}]"


def _word(value: object) -> str:
    return printable(value) if isinstance(value, str) else ""
