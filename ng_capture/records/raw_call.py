"""One line of `.capture.jsonl` -> what judging needs of the raw call (capture-files.md 7)."""

import json
from collections.abc import Mapping

import msgspec

from ng_capture.records.json_text import decode_json, printable

LENGTH_STOPS = frozenset({"length", "max_tokens", "max_output_tokens"})
_STREAM_ENDS = {
    "responses": frozenset({"response.completed", "response.incomplete", "response.failed", "error"}),
    "messages": frozenset({"message_stop", "error"}),
}
_TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids")
_TOLD_IN_STREAMS = frozenset({"model", "usage", "stop_reason", "incomplete_details"})
_DONE: Mapping[str, object] = {}


class RawCall(msgspec.Struct, frozen=True):
    """One request and response: was it answered, how did it end, how many tokens did the server count.

    `answered`: the server gave an answer (no error status, no error category). `lost`: it answered with success, and
    what it sent cannot be read whole: a stream without its end (`stream_truncated`), or no JSON. `generated` is the
    server's usage count, null where unknown.
    """

    call_id: str
    line: int
    byte: int
    answered: bool
    lost: bool
    stream_truncated: bool
    status_code: int | None = None
    error_category: str | None = None
    model: str | None = None
    generated: int | None = None
    finish_reason: str | None = None
    has_token_ids: bool = False


def decode_raw_call(data: bytes, line: int, byte: int) -> RawCall | None:
    """The raw call of one line, None if it names no call; raises ValueError for a line that is no JSON object."""
    value, _ = decode_json(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    call_id = _text(value.get("model_call_id"))
    if call_id is None:
        return None
    events = _events(value.get("response_raw"))
    response = _object(value.get("response")) or _assembled(events)
    status = _count(value.get("status_code"))
    category = _text(value.get("error_category"))
    truncated = category == "stream_truncated" or _lacks_end(events, value.get("dialect"))
    refused = status is not None and status >= 400
    return RawCall(
        call_id=call_id,
        line=line,
        byte=byte,
        answered=not truncated and not refused and category in (None, "incomplete"),
        lost=not refused and (truncated or category == "capture_parse_error"),
        stream_truncated=truncated,
        status_code=status,
        error_category=category,
        model=_text(response.get("model")) or _text(_object(value.get("request")).get("model")),
        generated=_generated(_object(response.get("usage"))),
        finish_reason=_finish_reason(response),
        has_token_ids=any(all(field in item for field in _TOKEN_FIELDS) for item in _carriers(response)),
    )


def _events(stream: object) -> list[Mapping[str, object]]:
    """The data of a captured event stream; what is no JSON object is an empty event, a plain body is no stream."""
    if not isinstance(stream, str) or "data:" not in stream:
        return []
    return [_event(line[5:].strip()) for line in stream.splitlines() if line.startswith("data:")]


def _event(text: str) -> Mapping[str, object]:
    if text == "[DONE]":
        return _DONE
    try:
        return _object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _assembled(events: list[Mapping[str, object]]) -> Mapping[str, object]:
    """What the events of a stream say of the whole response: model, usage, how it ended (7.2)."""
    response: dict[str, object] = {}
    for event in events:
        # the response itself (responses), its start (messages), its latest state (chat), its last change (messages)
        for part in (event.get("response"), event.get("message"), event, event.get("delta")):
            for key, value in _object(part).items():
                if key in _TOLD_IN_STREAMS and value is not None:
                    before = _object(response.get(key)) if key == "usage" else {}
                    response[key] = {**before, **_object(value)} if key == "usage" else value
        for choice in _list(event.get("choices")):
            if _object(choice).get("finish_reason") is not None:
                response["choices"] = [choice]
    return response


def _generated(usage: Mapping[str, object]) -> int | None:
    output = _count(usage.get("output_tokens"))
    return _count(usage.get("completion_tokens")) if output is None else output


def _finish_reason(response: Mapping[str, object]) -> str | None:
    """First text among stop reason, first choice's finish reason, details of an incomplete response (7.3)."""
    first = _object(next(iter(_list(response.get("choices"))), None))
    details = _object(response.get("incomplete_details"))
    candidates = (response.get("stop_reason"), first.get("finish_reason"), details.get("reason"))
    return next((_text(reason) for reason in candidates if isinstance(reason, str)), None)


def _carriers(response: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Where token fields may stand: the response, its items, its choices' messages (1.9)."""
    items = [_object(item) for item in _list(response.get("output"))]
    messages = [_object(_object(choice).get("message")) for choice in _list(response.get("choices"))]
    return [response, *items, *messages]


def _lacks_end(events: list[Mapping[str, object]], dialect: object) -> bool:
    """True for a captured event stream without a terminal marker (7.2)."""
    if not events:
        return False
    if dialect == "chat":
        return not any(event is _DONE or event.get("error") is not None for event in events)
    ends = _STREAM_ENDS.get(str(dialect))
    return ends is not None and not any(event.get("type") in ends for event in events)


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None
