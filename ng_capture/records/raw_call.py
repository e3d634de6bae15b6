"""One line of `.capture.jsonl` -> what judging needs of the raw call (capture-files.md 7)."""

import json
from collections.abc import Mapping

import msgspec

from ng_capture.records.json_text import decode_json, printable

_LENGTH_STOPS = frozenset({"length", "max_tokens", "max_output_tokens"})
_STREAM_ENDS = {
    "responses": frozenset({"response.completed", "response.incomplete", "response.failed", "error"}),
    "messages": frozenset({"message_stop", "error"}),
}
_TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids")


class RawCall(msgspec.Struct, frozen=True):
    """One request and response: was it answered, how did it end, how many tokens did the server count.

    `answered`: the server gave an answer (no error status, no error category). `stream_truncated`: a stream without
    its end. `generated` is the server's usage count, null where unknown.
    """

    call_id: str
    line: int
    byte: int
    answered: bool
    stream_truncated: bool
    status_code: int | None = None
    error_category: str | None = None
    model: str | None = None
    generated: int | None = None
    finish_reason: str | None = None
    has_token_ids: bool = False

    @property
    def length_stopped(self) -> bool:
        return self.finish_reason in _LENGTH_STOPS


def decode_raw_call(data: bytes, line: int, byte: int) -> RawCall | None:
    """The raw call of one line, None if it names no call; raises ValueError for a line that is no JSON object."""
    value, _ = decode_json(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    call_id = _text(value.get("model_call_id"))
    if call_id is None:
        return None
    response = _object(value.get("response"))
    status = _count(value.get("status_code"))
    category = _text(value.get("error_category"))
    truncated = category == "stream_truncated" or _lacks_end(value.get("response_raw"), value.get("dialect"))
    return RawCall(
        call_id=call_id,
        line=line,
        byte=byte,
        answered=not truncated and category in (None, "incomplete") and (status is None or status < 400),
        stream_truncated=truncated,
        status_code=status,
        error_category=category,
        model=_text(response.get("model")) or _text(_object(value.get("request")).get("model")),
        generated=_generated(_object(response.get("usage"))),
        finish_reason=_finish_reason(response),
        has_token_ids=any(all(field in item for field in _TOKEN_FIELDS) for item in _carriers(response)),
    )


def _generated(usage: Mapping[str, object]) -> int | None:
    output = _count(usage.get("output_tokens"))
    return _count(usage.get("completion_tokens")) if output is None else output


def _finish_reason(response: Mapping[str, object]) -> str | None:
    """First text among stop reason, first choice's finish reason, details of an incomplete response (7.3)."""
    choices = response.get("choices")
    first = _object(choices[0]) if isinstance(choices, list) and choices else {}
    details = _object(response.get("incomplete_details"))
    candidates = (response.get("stop_reason"), first.get("finish_reason"), details.get("reason"))
    return next((_text(reason) for reason in candidates if isinstance(reason, str)), None)


def _carriers(response: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Where token fields may stand: the response, its items, its choices' messages (1.9)."""
    output, choices = response.get("output"), response.get("choices")
    items = [_object(item) for item in output] if isinstance(output, list) else []
    messages = [_object(_object(choice).get("message")) for choice in choices] if isinstance(choices, list) else []
    return [response, *items, *messages]


def _lacks_end(stream: object, dialect: object) -> bool:
    """True for a captured event stream without a terminal marker (7.2); a body that is no stream says nothing."""
    if not isinstance(stream, str) or "data:" not in stream:
        return False
    events = [line[5:].strip() for line in stream.splitlines() if line.startswith("data:")]
    if dialect == "chat":
        return not any(event == "[DONE]" or _event(event).get("error") is not None for event in events)
    ends = _STREAM_ENDS.get(str(dialect))
    return ends is not None and not any(_event(event).get("type") in ends for event in events)


def _event(text: str) -> Mapping[str, object]:
    try:
        return _object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None
