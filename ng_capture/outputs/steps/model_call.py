"""One raw call as NeMo Gym's ModelCallRecord (capture-files.md 7.3, contracts.md 5.2)."""

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Raw, UnsetType

from ng_capture.ingest.sources.fields import number_of, text_of
from ng_capture.outputs.steps.said import ToolUse, reasoning_in, spelled, tool_uses_in
from ng_capture.records.assembling import assemble
from ng_capture.records.json_text import object_in, printable
from ng_capture.records.raw_call import RawCall
from ng_capture.records.streams import stream_events
from ng_capture.records.usage import count


class ModelCall(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A model call with NeMo Gym's names, in its order; unknown is null, never 0.

    `call_index` is the place of its line among the lines of its file, damaged ones counted. `tokens_in` holds the
    cached tokens once. Times are seconds since 1970, latencies milliseconds. The payload (`request` to `response_raw`)
    is there only where it was asked for.
    """

    model_call_id: str | None
    response_id: str | None
    client_session_id: str | None
    call_index: int
    model_ref: Raw | None
    model: str | None
    dialect: str | None
    status_code: int | None
    response_status: str | None
    finish_reason: str | None
    upstream_attempted: bool | None
    response_source: str | None
    upstream_status_code: int | None
    local_response_reason: str | None
    started_at: float | None
    completed_at: float | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    request: Raw | UnsetType | None = UNSET
    response: Raw | UnsetType | None = UNSET
    request_raw: str | UnsetType | None = UNSET
    response_raw: str | UnsetType | None = UNSET
    tool_calls: tuple[ToolUse, ...]
    reasoning_content: str | None
    cache_hit: bool | None
    cached_tokens: int | None
    cache_creation_tokens: int | None
    error_category: str | None
    latency_total_ms: float | None
    latency_ttft_ms: float | None


def model_call_of(value: Mapping[str, object], raw: RawCall, index: int, *, payload: bool = False) -> ModelCall:
    """The record of a decoded line; `raw` is what was read of it for judging."""
    response = object_in(value.get("response")) or assemble(stream_events(value.get("response_raw")))
    usage, attempted = raw.usage, value.get("upstream_attempted")
    made = ModelCall(
        model_call_id=raw.call_id or None,
        response_id=text_of(response, "id"),
        client_session_id=text_of(value, "client_session_id"),
        call_index=index,
        model_ref=_object(value.get("model_ref")),
        model=raw.model,
        dialect=text_of(value, "dialect"),
        status_code=raw.status_code,
        response_status=text_of(response, "status"),
        finish_reason=raw.finish_reason,
        upstream_attempted=attempted if isinstance(attempted, bool) else None,
        response_source=text_of(value, "response_source"),
        upstream_status_code=count(value.get("upstream_status_code")),
        local_response_reason=text_of(value, "local_response_reason"),
        started_at=number_of(value, "started_at"),
        completed_at=number_of(value, "completed_at"),
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
        tokens_reasoning=usage.tokens_reasoning,
        tokens_total=usage.tokens_total,
        tool_calls=tuple(tool_uses_in(response)),
        reasoning_content=reasoning_in(response),
        cache_hit=None if usage.cached_tokens is None else usage.cached_tokens > 0,
        cached_tokens=usage.cached_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        error_category=raw.category,
        latency_total_ms=raw.latency_ms,
        latency_ttft_ms=raw.latency_ttft_ms,
    )
    return _with_payload(made, value) if payload else made


def _with_payload(call: ModelCall, value: Mapping[str, object]) -> ModelCall:
    return msgspec.structs.replace(
        call,
        request=_object(value.get("request")),
        response=_object(value.get("response")),
        request_raw=_as_it_is(value.get("request_raw")),
        response_raw=_as_it_is(value.get("response_raw")),
    )


def _object(value: object) -> Raw | None:
    return spelled(value) if isinstance(value, dict) else None


def _as_it_is(value: object) -> str | None:
    return printable(value) if isinstance(value, str) else None
