"""Anthropic Messages: blocks of requests and responses to turns (contracts.md 4.1, 4.2)."""

from collections.abc import Iterator, Sequence

from ng_capture.contracts.dialects.fields import arguments_text, joined, opaque, others, text_in
from ng_capture.contracts.dialects.history import History
from ng_capture.contracts.dialects.interface import Answered, Asked, Dialect
from ng_capture.contracts.dialects.media import data_url, media_type_of
from ng_capture.contracts.dialects.messages_parameters import parameters_of, tools_of
from ng_capture.contracts.dialects.thinking import cut_think_tags
from ng_capture.contracts.episode import (
    Content,
    Json,
    Media,
    ModelCall,
    Part,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Turn,
)
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import pointer
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import decode_usage

NAME = "messages"
INSTRUCTIONS = {"role": "instructions"}
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_THINKING = ("thinking", "redacted_thinking")
_COUNTED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def asked(request: Json, options: Options) -> Asked:
    """The turns of a request, its system text first; those of the assistant are history, not output."""
    history, losses = History(), list[Loss]()
    if request.get("system"):
        history.say(_instructions(request["system"]))
    messages = request.get("messages")
    for at, value in enumerate(messages if isinstance(messages, list) else ()):
        losses += _tell(history, value, options, pointer("messages", at))
    return Asked(history.turns, tools_of(request), parameters_of(request), (*losses, *history.losses))


def answered(response: Json, options: Options) -> Answered:
    """The turn of the model."""
    content = response.get("content")
    if not isinstance(content, list | str):
        return Answered(None)
    usage = object_in(response.get("usage"))
    call = ModelCall(
        response_id=text_in(response, "id"),
        model=text_in(response, "model"),
        dialect=NAME,
        finish_reason=text_in(response, "stop_reason"),
        usage=decode_usage(usage),
        usage_extra=others(usage, *_COUNTED),
    )
    return Answered(*_turn(Role.ASSISTANT, blocks_of(content), content, options, "", call))


MESSAGES = Dialect(NAME, asked, answered)


def _instructions(system: object) -> Turn:
    return Turn(Role.SYSTEM, joined(map(part_of, blocks_of(system))), extra=INSTRUCTIONS, place="/system")


def _tell(history: History, value: object, options: Options, place: str) -> tuple[Loss, ...]:
    """One message: the results in it go to the turns that called, what stands beside them is a turn."""
    message = object_in(value)
    role = _ROLES.get(str(message.get("role")))
    if role is None:
        history.say(Turn(Role.USER, (opaque("message", value),), place=place))
        return ()
    blocks = blocks_of(message.get("content"))
    said = [block for block in blocks if object_in(block).get("type") != "tool_result"]
    for at, block in enumerate(blocks):
        if object_in(block).get("type") == "tool_result":
            history.answer(_result(object_in(block)), f"{place}/content/{at}")
    if not said and blocks:
        return ()
    turn, losses = _turn(role, said, message.get("content"), options, place, None)
    history.say(turn)
    if len(said) < len(blocks) and object_in(blocks[0]).get("type") != "tool_result":
        return (*losses, Loss("item_order_changed", place))
    return losses


def _turn(
    role: Role, blocks: Sequence[object], content: object, options: Options, place: str, call: ModelCall | None
) -> tuple[Turn, tuple[Loss, ...]]:
    """The turn of blocks that are no results; `call` is what is known of the call that made it, else it is history."""
    told = [object_in(block) for block in blocks]
    thoughts = [_thought(block) for block in told if block.get("type") in _THINKING]
    parts = [part_of(block) for block in blocks if object_in(block).get("type") not in (*_THINKING, "tool_use")]
    said = _said(parts, content)
    losses = tuple[Loss, ...]()
    if role == Role.ASSISTANT and isinstance(said, str):
        cut = cut_think_tags(said, options.thinking, chat=False)
        if cut.thought is not None:
            thoughts.append(cut.thought)
            losses = (Loss("think_tags_split", f"{place}/content", len(cut.thought.summary), cut.offsets),)
            said = cut.text or None
    turn = Turn(
        role=role,
        content=said,
        thoughts=tuple(thoughts),
        calls=tuple(_tool_call(block) for block in told if block.get("type") == "tool_use"),
        call=call,
        copied=role == Role.ASSISTANT and call is None,
        model_calls=None if call is None else 1,
        place=place,
    )
    return turn, losses


def _said(parts: Sequence[Part], content: object) -> Content | None:
    return content if isinstance(content, str) else joined(parts)


def blocks_of(content: object) -> list[object]:
    """The blocks of a content: a text is one block, what is no content is one that is opaque."""
    if isinstance(content, list):
        return content
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else [content]


def _thought(block: Json) -> Thought:
    """A thinking block; `item` keeps what neither text nor proof is."""
    if block.get("type") == "redacted_thinking":
        return Thought(encrypted=text_in(block, "data"), redacted=True, item=others(block, "type", "data"))
    text = block.get("thinking")
    return Thought(
        summary=(text,) if isinstance(text, str) else (),
        signature=text_in(block, "signature"),
        item=others(block, "type", "thinking", "signature"),
    )


def _tool_call(block: Json) -> ToolCall:
    return ToolCall(
        call_id=text_in(block, "id"),
        name=text_in(block, "name") or "",
        arguments=arguments_text(block.get("input")),
        item=others(block, "type", "id", "name", "input"),
    )


def _result(block: Json) -> ToolResult:
    """A tool result: no content, and an empty one, are an empty text (T-AN-1)."""
    content, failed = block.get("content"), block.get("is_error")
    said = content if isinstance(content, str) else joined(map(part_of, blocks_of(content)))
    return ToolResult(
        call_id=text_in(block, "tool_use_id"),
        content="" if said is None else said,
        is_error=failed if isinstance(failed, bool) else None,
        item=others(block, "type", "tool_use_id", "content", "is_error"),
    )


def part_of(value: object) -> Part:
    """A block that is said: text, image, or one that only Messages knows."""
    block = object_in(value)
    match block.get("type"):
        case "text" if isinstance(text := block.get("text"), str):
            return Text(text)
        case "image":
            media = next(_image(object_in(block.get("source"))), None)
            if media is not None:
                return media
    return opaque(str(block.get("type", "unknown")), value)


def _image(source: Json) -> Iterator[Media]:
    kind, data, url = text_in(source, "media_type"), text_in(source, "data"), text_in(source, "url")
    if source.get("type") == "base64" and kind and data:
        yield Media("image", data_url(kind, data), kind)
    elif source.get("type") == "url" and url:
        yield Media("image", url, media_type_of(url))
