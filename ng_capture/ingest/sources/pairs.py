"""Plain JSONL of `{request, response}` pairs, under the usual spellings, with or without HTTP around the bodies."""

from collections.abc import Iterator, Mapping

from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.bodies import Body, dialect_of, exchange, read_body
from ng_capture.ingest.sources.fields import (
    headers_of,
    id_of,
    milliseconds_between,
    number_of,
    seconds_of,
    status_of,
    text_of,
)
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, one_by_one
from ng_capture.ingest.sources.lines import JsonLine, json_lines
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import field_claims, header_claims, path_claims
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import object_in

_REQUESTS = ("request", "request_body", "req")
_RESPONSES = ("response", "response_body", "resp", "response_raw")
_BODIES = ("body", "json", "content", "data")


def _recognises(head: Head) -> bool:
    return head.has_any(*_REQUESTS) and head.has_any(*_RESPONSES)


def _read(file: SourceFile) -> Iterator[Reading]:
    for line in json_lines(file):
        yield line if isinstance(line, Defect) else _exchange(line)


def _exchange(line: JsonLine) -> RawExchange:
    value = line.value
    request, response = _side(value, _REQUESTS), _side(value, _RESPONSES)
    asked, answered = _http(request), _http(response)
    body = _body(request)
    url = text_of(value, "url", "path", "endpoint") or text_of(asked, "url", "path") or ""
    headers = headers_of(value.get("headers") or value.get("request_headers") or asked.get("headers"))
    started = seconds_of(value, "started_at", "start_time", "startTime", "timestamp", "created_at", "time")
    completed = seconds_of(value, "completed_at", "end_time", "endTime", "finished_at")
    status = status_of(value, "status_code", "status")
    return exchange(
        line,
        body,
        _body(response),
        [*path_claims(url), *field_claims(value, body.value), *header_claims(headers)],
        call_id=id_of(value, "model_call_id", "call_id", "id", "request_id"),
        dialect=text_of(value, "dialect") or dialect_of(url),
        model_ref=object_in(value.get("model_ref")) or None,
        started_at=started,
        completed_at=completed,
        latency_ms=number_of(value, "latency_ms", "duration_ms") or milliseconds_between(started, completed),
        latency_ttft_ms=number_of(value, "latency_ttft_ms", "ttft_ms"),
        status_code=status if status is not None else status_of(answered, "status_code", "status"),
        error_category=text_of(value, "error_category"),
        client_session_id=text_of(value, "client_session_id") or headers.get("x-session-id"),
        parent_call_id=id_of(value, "parent_call_id"),
    )


def _side(value: Mapping[str, object], names: tuple[str, ...]) -> object:
    """The request or the response: the first spelling that has something."""
    return next((value[name] for name in names if value.get(name)), None)


def _http(side: object) -> Mapping[str, object]:
    """The message of HTTP that a side is; empty where it is the body itself."""
    told = object_in(side)
    return told if ("headers" in told or "url" in told or "status" in told) and _wrapped(told) is not None else {}


def _body(side: object) -> Body:
    http = _http(side)
    return read_body(_wrapped(http) if http else side)


def _wrapped(http: Mapping[str, object]) -> object:
    return next((http[name] for name in _BODIES if isinstance(http.get(name), dict | str)), None)


PAIRS = LogFormat("jsonl", _recognises, one_by_one(_read))
