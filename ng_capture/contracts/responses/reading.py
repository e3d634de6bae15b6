"""Documents of Responses read: what each is, and the episode of it."""

from collections.abc import Iterator

import msgspec

from ng_capture.contracts.dialects.responses import splits_think
from ng_capture.contracts.dialects.streamed import unstreamed
from ng_capture.contracts.documents import Found, values_in
from ng_capture.contracts.episode import Agent, Episode, Thread, ToolResult, Totals
from ng_capture.contracts.interface import Head, Options, Read, Refused
from ng_capture.contracts.items.pieces import Message, Other, piece_of
from ng_capture.contracts.items.turns import grouped
from ng_capture.contracts.responses.conversation import (
    NOTHING,
    Conversation,
    Side,
    completed,
    conversation_of,
    envelope_in,
    parameters_in,
    side_of,
    thread_extra,
    tools_in,
)
from ng_capture.contracts.responses.told import Told
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from ng_capture.records.usage import UNKNOWN_USAGE

CONTRACT = "responses"


def recognises(head: Head) -> bool:
    """True for a request, a response, a pair of both, or a list of items; sides without any type are a list of chat."""
    if _sides(head.value) is not None:
        return True
    return _are_items(head.value) and any("type" in item for item in head.value)


def read(source: Source, options: Options) -> Iterator[Read | Refused]:
    """One outcome for each document."""
    for found in values_in(source, CONTRACT):
        yield _read(found, options)


def _read(found: Found, options: Options) -> Read | Refused:
    if not found.certain:
        return Refused(found.faults, place=found.place)
    whole = unstreamed(found.value, CONTRACT)
    sides = _sides(whole.value)
    if sides is not None:
        conversation = conversation_of(*sides, options)
    elif _are_items(whole.value):
        sides, conversation = (NOTHING, NOTHING), _listed(whole.value, options)
    else:
        message = "neither a request nor a response, nor both, nor a list of items"
        return _refused(found, "responses.document", message)
    if not conversation.turns:
        return _refused(found, "responses.empty", "neither input nor output: nothing to convert")
    episode = _episode(*sides, conversation)
    if whole.truncated:
        episode = msgspec.structs.replace(episode, truncated=True)
    return Read(episode, (*whole.losses, *conversation.losses), found.faults, found.place)


def _refused(found: Found, rule: str, message: str) -> Refused:
    return Refused((*found.faults, Fault(rule, "error", message, line=found.line)), place=found.place)


def _sides(value: object) -> tuple[Side, Side] | None:
    """The request and the response of a document; None for what is neither."""
    if not isinstance(value, dict):
        return None
    request, response = value.get("request"), value.get("response")
    if _is_request(request) or _is_response(response):
        return side_of(request, "/request"), side_of(response, "/response")
    if _is_response(value):
        return NOTHING, Side(value, "")
    return (Side(value, ""), NOTHING) if _is_request(value) else None


def _is_request(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("input"), str | list) and "messages" not in value


def _is_response(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("output"), list)
        and value.get("object", "response") == "response"
    )


def _are_items(value: object) -> bool:
    """True for a list of which every member has the type of an item, or a side that speaks."""
    if not isinstance(value, list) or not value:
        return False
    pieces = [piece_of(member) for member in value]
    known = [piece is not None and not isinstance(piece, Other) for piece in pieces]
    return any(known) and all(isinstance(member, dict) for member in value)


def _listed(items: list[object], options: Options) -> Conversation:
    """A list of items: the first that a model made opens the output (contracts.md 4.0)."""
    border = next((at for at, item in enumerate(items) if _is_made(item)), len(items))
    made = grouped(items, "", fresh_from=border, split_think=splits_think(options))
    return completed((), (), Told.inferred_from(made), NOTHING)


def _is_made(item: object) -> bool:
    piece = piece_of(item)
    if isinstance(piece, Message):
        return piece.role == "assistant"
    return piece is not None and not isinstance(piece, ToolResult | Other)


def _episode(request: Side, response: Side, conversation: Conversation) -> Episode:
    used = conversation.call.usage
    offered = tools_in(request.value, response.value)
    return Episode(
        contract=CONTRACT,
        main=Thread(
            conversation.turns,
            Agent(model=conversation.model, tools=offered),
            trajectory_id=conversation.call.response_id,
            totals=None if used == UNKNOWN_USAGE else Totals(used, extra=conversation.call.usage_extra),
            extra=thread_extra(conversation, request.value, response.value) or None,
        ),
        request=parameters_in(request.value),
        response=envelope_in(response.value),
        truncated=True if response.value.get("status") == "incomplete" else None,
    )
