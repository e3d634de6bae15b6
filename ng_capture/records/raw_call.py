"""One line of `.capture.jsonl` -> what judging needs of the raw call (capture-files.md 7)."""

from collections.abc import Mapping

import msgspec

from ng_capture.records.json_text import decode_json, object_in, objects_in, printable, told
from ng_capture.records.streams import DONE, stream_events
from ng_capture.records.usage import UNKNOWN_USAGE, Usage, count, decode_usage

LENGTH_STOPS = frozenset({"length", "max_tokens", "max_output_tokens"})
_STREAM_ENDS = {
    "responses": frozenset({"response.completed", "response.incomplete", "response.failed", "error"}),
    "messages": frozenset({"message_stop", "error"}),
}
_TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids")
_TOLD_IN_STREAMS = frozenset({"model", "usage", "stop_reason", "incomplete_details"})
_CATEGORIES = {408: "timeout", 504: "timeout", 429: "rate_limit", 401: "auth", 403: "auth", 404: "not_found"}
SAMPLING_PARAMETERS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "seed",
)
"""What a request can say about how to sample."""


class RawCall(msgspec.Struct, frozen=True):
    """One request and response: was it answered, how did it end, how many tokens did the server count.

    `answered`: the server gave an answer (no error status, no error category). `lost`: it answered with success, and
    what it sent cannot be read whole: a stream without its end (`stream_truncated`), or no JSON. Latencies in
    milliseconds. `sampling` holds the sampling parameters of the request, `tools` whether it offered any; both are null
    where the request is not known.
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
    usage: Usage = UNKNOWN_USAGE
    finish_reason: str | None = None
    has_token_ids: bool = False
    latency_ms: float | None = None
    latency_ttft_ms: float | None = None
    sampling: Mapping[str, str] | None = None
    tools: bool | None = None

    @property
    def category(self) -> str | None:
        """Why there was no good answer, as the capture says or else as the status means (7.1)."""
        if self.error_category is not None:
            return self.error_category
        if self.status_code is None or self.status_code < 400:
            return "stream_truncated" if self.stream_truncated else None
        other = "client_error" if self.status_code < 500 else "upstream_error"
        return _CATEGORIES.get(self.status_code, other)


def decode_raw_call(data: bytes, line: int, byte: int) -> RawCall | None:
    """The raw call of one line, None if it names no call; raises ValueError for a line that is no JSON object."""
    value, _ = decode_json(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    call = raw_call_of(value, line, byte)
    return call if call.call_id else None


def raw_call_of(value: Mapping[str, object], line: int, byte: int) -> RawCall:
    """The raw call of a decoded line; its `call_id` is empty where the line names none."""
    events = stream_events(value.get("response_raw"))
    response = object_in(value.get("response")) or _assembled(events)
    request = value.get("request")
    status = count(value.get("status_code"))
    category = _text(value.get("error_category"))
    truncated = category == "stream_truncated" or _lacks_end(events, value.get("dialect"))
    refused = status is not None and status >= 400
    return RawCall(
        call_id=_text(value.get("model_call_id")) or "",
        line=line,
        byte=byte,
        answered=not truncated and not refused and category in (None, "incomplete"),
        lost=not refused and (truncated or category == "capture_parse_error"),
        stream_truncated=truncated,
        status_code=status,
        error_category=category,
        model=_text(response.get("model")) or _text(object_in(request).get("model")),
        usage=decode_usage(object_in(response.get("usage"))),
        finish_reason=finish_reason(response),
        has_token_ids=any(all(field in item for field in _TOKEN_FIELDS) for item in _carriers(response)),
        latency_ms=_milliseconds(value.get("latency_ms")),
        latency_ttft_ms=_milliseconds(value.get("latency_ttft_ms")),
        sampling=_sampling(request) if isinstance(request, dict) else None,
        tools=bool(request.get("tools")) if isinstance(request, dict) else None,
    )


def _assembled(events: list[Mapping[str, object]]) -> Mapping[str, object]:
    """What the events of a stream say of the whole response: model, usage, how it ended (7.2)."""
    response: dict[str, object] = {}
    for event in events:
        # the response itself (responses), its start (messages), its latest state (chat), its last change (messages)
        for part in (event.get("response"), event.get("message"), event, event.get("delta")):
            for key, value in object_in(part).items():
                if key in _TOLD_IN_STREAMS and value is not None:
                    before = object_in(response.get(key)) if key == "usage" else {}
                    response[key] = {**before, **_known(object_in(value))} if key == "usage" else value
        for choice in objects_in(event.get("choices")):
            if choice.get("finish_reason") is not None:
                response["choices"] = [choice]
    return response


def _known(values: Mapping[str, object]) -> Mapping[str, object]:
    """What is not null: a later event that knows less takes nothing away."""
    return {key: value for key, value in values.items() if value is not None}


def _sampling(request: Mapping[str, object]) -> Mapping[str, str]:
    """The parameters that are set; 1 and 1.0 are one value."""
    return {name: _number_text(value) for name in SAMPLING_PARAMETERS if (value := request.get(name)) is not None}


def _number_text(value: object) -> str:
    return str(told(int(value) if isinstance(value, float) and value.is_integer() else value))


def finish_reason(response: Mapping[str, object]) -> str | None:
    """First text among stop reason, first choice's finish reason, details of an incomplete response (7.3)."""
    first = next(objects_in(response.get("choices")), {})
    details = object_in(response.get("incomplete_details"))
    candidates = (response.get("stop_reason"), first.get("finish_reason"), details.get("reason"))
    return next((_text(reason) for reason in candidates if isinstance(reason, str)), None)


def _carriers(response: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Where token fields may stand: the response, its items, its choices' messages (1.9)."""
    messages = (object_in(choice.get("message")) for choice in objects_in(response.get("choices")))
    return [response, *objects_in(response.get("output")), *messages]


def _lacks_end(events: list[Mapping[str, object]], dialect: object) -> bool:
    """True for a captured event stream without a terminal marker (7.2)."""
    if not events:
        return False
    if dialect == "chat":
        return not any(event is DONE or event.get("error") is not None for event in events)
    ends = _STREAM_ENDS.get(str(dialect))
    return ends is not None and not any(event.get("type") in ends for event in events)


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None


def _milliseconds(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**63
    return float(value) if known else None  # type: ignore[arg-type]
