"""LiteLLM's logs: the payload of its callbacks, a line each, and rows of its spend logs (ingest.md 2, rank 6)."""

from collections.abc import Iterator, Mapping

from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.sources.bodies import Body, exchange, read_body
from ng_capture.ingest.sources.decoding import decode_raw
from ng_capture.ingest.sources.fields import id_of, milliseconds_between, seconds_of, text_of
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, one_by_one
from ng_capture.ingest.sources.lines import JsonLine, json_lines
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import field_claims, named
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import object_in

_PAYLOAD = "standard_logging_object"
_CUT = b"litellm_truncated"
_HINT = "LiteLLM cut the long strings of its spend log: log through a callback"
_DIALECTS = {
    "completion": "chat",
    "acompletion": "chat",
    "text_completion": "completions",
    "atext_completion": "completions",
    "responses": "responses",
    "aresponses": "responses",
    "anthropic_messages": "messages",
}


def _recognises(head: Head) -> bool:
    if head.has_any(_PAYLOAD, "litellm_call_id"):
        return True
    return head.has("call_type") and head.has_any("response_cost", "spend", "model_parameters", "proxy_server_request")


def _read(file: SourceFile) -> Iterator[Reading]:
    for line in json_lines(file):
        yield line if isinstance(line, Defect) else _reading(line)


def _reading(line: JsonLine) -> Reading:
    payload = object_in(line.value.get(_PAYLOAD)) or line.value
    if _CUT in line.data and ("spend" in payload or "proxy_server_request" in payload):
        call = id_of(payload, "request_id")
        return Defect(
            reason="partial_tokens", file=line.file, line=line.number, byte=line.byte, call=call, detail=_HINT
        )
    return _exchange(line, payload)


def _exchange(line: JsonLine, payload: Mapping[str, object]) -> RawExchange:
    asked = read_body(payload.get("proxy_server_request"))
    request = _request(payload, object_in(asked.value.get("body")) or asked.value)
    started, completed = (seconds_of(payload, f"{end}Time", f"{end}_time") for end in ("start", "end"))
    first_token = seconds_of(payload, "completionStartTime", "completion_start_time")
    failed = text_of(payload, "status") == "failure"
    error = object_in(payload.get("error_information"))
    call_id = id_of(payload, "litellm_call_id", "call_id", "id", "request_id")
    session = _session(payload)
    explicit = field_claims(payload, request, object_in(payload.get("metadata")).get("requester_metadata"))
    return exchange(
        line,
        Body(request, noticed=asked.noticed),
        read_body(payload.get("response")),
        explicit or ([] if session is None else [RolloutClaim("field", session)]),
        call_id=call_id,
        dialect=_DIALECTS.get(text_of(payload, "call_type") or ""),
        started_at=started,
        completed_at=completed,
        latency_ms=milliseconds_between(started, completed),
        latency_ttft_ms=milliseconds_between(started, first_token) if first_token != completed else None,
        error_category=(text_of(error, "error_class") or "exception") if failed else None,
        client_session_id=session,
    )


def _session(payload: Mapping[str, object]) -> str | None:
    """The session that the client named; every other call gets a trace of its own, which is none."""
    own = [payload.get(key) for key in ("id", "call_id", "litellm_call_id", "request_id")]
    told = [payload.get(key) for key in ("litellm_session_id", "session_id", "trace_id")]
    return next((name for each in told if each not in own for name in named(each)), None)


def _request(payload: Mapping[str, object], asked: Mapping[str, object]) -> Mapping[str, object]:
    """What was asked, as far as the payload keeps it: the body that came in, or messages and parameters."""
    if asked:
        return asked
    messages = payload.get("messages")
    if isinstance(messages, str):
        try:
            messages = decode_raw(messages.encode("utf-8", "surrogatepass")).value
        except ValueError:
            messages = None
    told = {"model": payload.get("model"), **object_in(payload.get("model_parameters"))}
    return {**told, "messages": messages} if messages else told


LITELLM = LogFormat("litellm", _recognises, one_by_one(_read))
