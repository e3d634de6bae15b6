"""Anthropic Messages: blocks of requests and responses to turns (contracts.md 4.1, 4.2)."""

from collections.abc import Sequence

import msgspec

from ng_capture.contracts.dialects.block_spelling import is_plain
from ng_capture.contracts.dialects.blocks import (
    RESULT,
    THINKING,
    blocks_of,
    is_reordered,
    kind_of,
    part_of,
    rest_of,
    result_of,
    thought_of,
    tool_call_of,
)
from ng_capture.contracts.dialects.fields import joined, opaque, others, text_in
from ng_capture.contracts.dialects.history import History
from ng_capture.contracts.dialects.interface import Answered, Asked, Dialect
from ng_capture.contracts.dialects.messages_parameters import parameters_of, tools_of
from ng_capture.contracts.dialects.thinking import cut_think_tags
from ng_capture.contracts.episode import Content, Json, ModelCall, Role, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import pointer
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import decode_usage

NAME = "messages"
INSTRUCTIONS = {"role": "instructions"}
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM}
_COUNTED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_TOLD = ("id", "type", "role", "model", "content", "stop_reason", "usage")


def asked(request: Json, options: Options) -> Asked:
    """The turns of a request, its system text first; those of the assistant are history, not output."""
    history, losses, before = History(), list[Loss](), None
    if request.get("system"):
        turn, _ = _turn(Role.SYSTEM, request["system"], options, "/system", None)
        history.say(msgspec.structs.replace(turn, extra=INSTRUCTIONS))
    messages = request.get("messages")
    for at, value in enumerate(messages if isinstance(messages, list) else ()):
        role = object_in(value).get("role")
        losses += _tell(history, value, options, pointer("messages", at), apart=role == before)
        before = role
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
    turn, losses = _turn(Role.ASSISTANT, content, options, "", call)
    envelope = {key: told for key, told in response.items() if key not in _TOLD}
    if envelope:
        turn = msgspec.structs.replace(turn, item={**(turn.item or {}), "envelope": envelope})
    return Answered(turn, losses)


MESSAGES = Dialect(NAME, asked, answered)


def _tell(history: History, value: object, options: Options, place: str, *, apart: bool) -> tuple[Loss, ...]:
    """One message: the results in it go to the turns that called, what stands beside them is a turn.

    `apart` tells that it stands behind one of the same side, and is not to be put together with it.
    """
    message = object_in(value)
    role = _ROLES.get(str(message.get("role")))
    if role is None:
        history.say(Turn(Role.USER, (opaque("message", value),), place=place))
        return ()
    content, unknown = message.get("content"), others(message, "role", "content")
    losses: tuple[Loss, ...] = tuple(Loss("step_fields_dropped", place, detail=name) for name in unknown or ())
    blocks = blocks_of(content)
    said = [block for block in blocks if kind_of(block) != RESULT]
    turn = None
    if said or not blocks:
        turn, found = _turn(role, content if len(said) == len(blocks) else said, options, place, None)
        losses += found
        if apart:
            turn = msgspec.structs.replace(turn, item={**(turn.item or {}), "apart": True})
    first = bool(said) and kind_of(blocks[0]) != RESULT
    if turn is not None and first:
        history.say(turn)
    for at, block in enumerate(blocks):
        if kind_of(block) == RESULT:
            history.answer(result_of(object_in(block)), f"{place}/content/{at}")
    if turn is not None and not first:
        history.say(turn)
    return losses


def _turn(
    role: Role, content: object, options: Options, place: str, call: ModelCall | None
) -> tuple[Turn, tuple[Loss, ...]]:
    """The turn of a content without results; `call` is what is known of the call that made it, else it is history.

    What the content held besides the turn is its item: the blocks without what the turn holds of them, where the turn
    alone would be written in another way.
    """
    blocks = blocks_of(content)
    thoughts = [thought_of(object_in(block)) for block in blocks if kind_of(block) in THINKING]
    calls = tuple(tool_call_of(object_in(block)) for block in blocks if kind_of(block) == "tool_use")
    said = _said(blocks, content)
    losses: tuple[Loss, ...] = (Loss("item_order_changed", place),) if is_reordered(blocks) else ()
    turn = Turn(
        role=role,
        content=said,
        thoughts=tuple(thoughts),
        calls=calls,
        call=call,
        copied=role == Role.ASSISTANT and call is None,
        model_calls=None if call is None else 1,
        place=place,
    )
    if not is_plain(turn, content):
        turn = msgspec.structs.replace(turn, item={"blocks": [rest_of(block) for block in blocks]})
    if role == Role.ASSISTANT and isinstance(said, str):
        cut = cut_think_tags(said, options.thinking, chat=False)
        if cut.thought is not None:
            thoughts.append(cut.thought)
            losses += (Loss("think_tags_split", f"{place}/content", len(cut.thought.summary), cut.offsets),)
            turn = msgspec.structs.replace(turn, thoughts=tuple(thoughts), content=cut.text or None)
    return turn, losses


def _said(blocks: Sequence[object], content: object) -> Content | None:
    if isinstance(content, str):
        return content
    if isinstance(content, list) and not content:
        return ()
    return joined(part_of(block) for block in blocks if kind_of(block) not in (*THINKING, "tool_use"))
