"""A raw call as a line of `.capture.jsonl`, the form in which every command reads it (capture-files.md 7.1)."""

from ng_capture.ingest.raw import RawExchange
from ng_capture.records.json_text import encode_json


def capture_line(call: RawExchange) -> bytes:
    """The line without its line break. Raises RecursionError for what is nested deeper than can be written."""
    told: dict[str, object] = {
        "model_call_id": call.call_id,
        "dialect": call.dialect,
        "model_ref": call.model_ref,
        "started_at": call.started_at,
        "completed_at": call.completed_at,
        "latency_ms": call.latency_ms,
        "latency_ttft_ms": call.latency_ttft_ms,
        "status_code": call.status_code,
        "error_category": call.error_category or _category(call),
        "request": call.request or None,
        "response": call.response or None,
    }
    if call.client_session_id is not None:
        told["client_session_id"] = call.client_session_id
    if call.response_raw is not None:
        told["response_raw"] = call.response_raw
    return encode_json(told)


def _category(call: RawExchange) -> str | None:
    """That of a stream which an error ended, as NeMo Gym writes it."""
    return "upstream_error" if any(event.get("error") is not None for event in call.events) else None
