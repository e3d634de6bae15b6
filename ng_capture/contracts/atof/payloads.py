"""What a model call was asked and answered, in whichever dialect its payloads are (contracts.md 2.2, 2.4)."""

from typing import Any, Literal, NamedTuple

import msgspec

from ng_capture.contracts.atof.gemini import gemini_request, gemini_response
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.atof.texts import result_text
from ng_capture.contracts.dialects.chat import CHAT
from ng_capture.contracts.dialects.fields import opaque
from ng_capture.contracts.dialects.interface import Answered, Asked, Dialect
from ng_capture.contracts.dialects.messages import MESSAGES
from ng_capture.contracts.dialects.responses import RESPONSES
from ng_capture.contracts.episode import Json, ModelCall, Role, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import object_in, objects_in

Shape = Literal["chat", "messages", "responses", "gemini"]
_DIALECTS: dict[Shape, Dialect] = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES, "gemini": CHAT}
_NAMES: tuple[tuple[str, Shape], ...] = (
    ("chat", "chat"),
    ("anthropic", "messages"),
    ("messages", "messages"),
    ("gemini", "gemini"),
    ("responses", "responses"),
)
_MESSAGES_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document"})
_FINISHES = ("finish_reason", "stop_reason")
_ENVELOPE = ("id", "object", "created", "model", "usage", "system_fingerprint", *_FINISHES)


class _Payload(NamedTuple):
    """A payload as its dialect spells it, and where it stands in the event; None where no dialect is known."""

    shape: Shape | None
    value: Json
    inside: str


def asked_in(scope: Scope, options: Options) -> Asked:
    """The request of a call; one that no dialect knows is an opaque turn of the user."""
    data = scope.start.data if scope.start is not None else None
    if scope.start is None or data is None or data == {}:
        return Asked(())
    shape, value, inside = _request(data, scope)
    place = f"{scope.start.place}/data{inside}"
    if shape is None:
        return Asked((Turn(Role.USER, (opaque("llm_input", data),), place=place),))
    asked = _DIALECTS[shape].asked(value, options)
    return msgspec.structs.replace(
        asked,
        turns=tuple(msgspec.structs.replace(turn, place=place + turn.place) for turn in asked.turns),
        losses=_placed(asked.losses, place),
    )


def answered_in(scope: Scope, options: Options) -> Answered:
    """The response of a call; one that no dialect knows is an opaque turn, and an empty one a turn without words."""
    assert scope.end is not None
    data = scope.end.data
    shape, value, inside = _response(data, scope)
    place = f"{scope.end.place}/data{inside}"
    if shape is None:
        content = None if data in (None, {}, []) else (opaque("llm_output", data),)
        return Answered(Turn(Role.ASSISTANT, content, call=ModelCall(), model_calls=1, place=place))
    answered = _DIALECTS[shape].answered(value, options)
    turn = answered.turn or Turn(Role.ASSISTANT, call=ModelCall(dialect=_DIALECTS[shape].name), model_calls=1)
    return Answered(msgspec.structs.replace(turn, place=place + turn.place), _placed(answered.losses, place))


def has_failed(scope: Scope) -> bool:
    """True for a call that ended without an answer: with no data, an error, or the mark of one (2.4)."""
    data = scope.end.data if scope.end is not None else None
    return scope.end is not None and (data is None or scope.failed or _is_error(data, scope))


def _is_error(data: object, scope: Scope) -> bool:
    return bool(object_in(data).get("error")) and _response(data, scope).shape is None


def _placed(losses: tuple[Loss, ...], place: str) -> tuple[Loss, ...]:
    return tuple(msgspec.structs.replace(loss, path=place + loss.path) for loss in losses)


def _request(data: Any, scope: Scope) -> _Payload:
    if isinstance(data, dict) and _is_wrapped(data):
        shape, value, inside = _request(data["content"], scope)
        return _Payload(shape, value, f"/content{inside}")
    if isinstance(data, str):
        return _Payload("chat", {"messages": [{"role": "user", "content": data}]}, "")
    if isinstance(data, list):
        spoken = all("role" in member for member in objects_in(data))
        return _request({"messages" if spoken else "input": data}, scope) if data else _Payload(None, {}, "")
    request = object_in(data)
    if isinstance(request.get("contents"), list):
        return _Payload("gemini", gemini_request(request), "")
    if "input" in request and "messages" not in request:
        return _Payload("responses", request, "")
    messages = request.get("messages")
    if not isinstance(messages, list):
        return _Payload(None, request, "")
    if _asks_in_messages(request, scope):
        return _Payload("messages", request, "")
    return _Payload("chat", {**request, "messages": [_told(message) for message in messages]}, "")


def _is_wrapped(data: Json) -> bool:
    """True for a request with its headers, as NeMo Relay has it."""
    return isinstance(data.get("content"), dict | list) and data.keys() <= {"content", "headers"}


def _asks_in_messages(request: Json, scope: Scope) -> bool:
    """True for messages as Messages has them: by the answer, by the schema, else by what only one of them has."""
    data = scope.end.data if scope.end is not None else None
    answer = _response(data, scope).shape if data else None
    # a bare text or message is no sign of either
    known = answer if answer != "chat" or "choices" in object_in(data) else None
    shape = known or _declared(scope)
    if shape is not None:
        return shape == "messages"
    messages = list(objects_in(request.get("messages")))
    if any(message.get("role") in ("system", "developer", "tool") or "tool_calls" in message for message in messages):
        return False
    blocks = {block.get("type") for message in messages for block in objects_in(message.get("content"))}
    if any(kind in _MESSAGES_BLOCKS for kind in blocks if isinstance(kind, str)):
        return True
    return answer is None and ("system" in request or "max_tokens" in request)


def _declared(scope: Scope) -> Shape | None:
    """The dialect that the producer names."""
    name = str((scope.told.data_schema or {}).get("name", "")).lower()
    return next((shape for part, shape in _NAMES if part in name), None)


def _told(message: object) -> object:
    """A message of a tool whose result is any value, as the toolkit writes it, with the text of the result."""
    if not isinstance(message, dict) or message.get("role") != "tool":
        return message
    content = message.get("content")
    return message if isinstance(content, str | list) else {**message, "content": result_text(content)}


def _response(data: Any, scope: Scope) -> _Payload:
    if isinstance(data, str):
        return _Payload("chat", {"choices": [{"message": {"content": data}}]}, "")
    response = object_in(data)
    if isinstance(response.get("choices"), list):
        return _Payload("chat", response, "")
    if isinstance(response.get("output"), list):
        return _Payload("responses", response, "")
    if isinstance(response.get("candidates"), list):
        return _Payload("gemini", gemini_response(response), "")
    content, typed = response.get("content"), list(objects_in(response.get("content")))
    if isinstance(content, list) and "tool_calls" not in response and _declared(scope) != "chat":
        known = all("type" in block for block in typed) and len(typed) == len(content)
        return _Payload("messages" if known else None, response, "")
    if isinstance(response.get("message"), dict):
        envelope = {key: value for key, value in response.items() if key != "message"}
        return _Payload("chat", _choice(envelope, object_in(response["message"])), "")
    if isinstance(content, str | list) or isinstance(response.get("tool_calls"), list):
        envelope = {key: value for key, value in response.items() if key in _ENVELOPE}
        message = {key: value for key, value in response.items() if key not in _ENVELOPE}
        return _Payload("chat", _choice(envelope, message), "")
    return _Payload(None, response, "")


def _choice(envelope: Json, message: Json) -> Json:
    """A bare message as the only choice of its response."""
    told = {key: value for key, value in envelope.items() if key not in _FINISHES}
    reason = envelope.get("finish_reason") or envelope.get("stop_reason")
    return {**told, "choices": [{"message": message, "finish_reason": reason}]}
