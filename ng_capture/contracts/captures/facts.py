"""What is told of a call beside its words and its ids, with NeMo Gym's names (contracts.md 5.2)."""

import msgspec

from ng_capture.contracts.captures.calls import Made
from ng_capture.contracts.episode import ModelCall
from ng_capture.records.usage import UNKNOWN_USAGE, Usage


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds since 1970, latencies in milliseconds; unknown is null, never 0."""

    call_index: int | None
    model_server: str | None
    dialect: str | None
    status_code: int | None
    finish_reason: str | None
    error_category: str | None
    started_at: float | None
    completed_at: float | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    cached_tokens: int | None
    cache_creation_tokens: int | None
    latency_total_ms: float | None
    latency_ttft_ms: float | None


def facts_of(call: ModelCall) -> Facts:
    """The facts of a call."""
    return Facts(
        call_index=call.index,
        model_server=call.server,
        dialect=call.dialect,
        status_code=call.status_code,
        finish_reason=call.finish_reason,
        error_category=call.error_category,
        started_at=call.started_at,
        completed_at=call.completed_at,
        latency_total_ms=call.latency_ms,
        latency_ttft_ms=call.latency_ttft_ms,
        **msgspec.structs.asdict(call.usage),
    )


def beyond_record(made: Made) -> bool:
    """True where more is told of a call than a token record holds."""
    call, tokens = made.call, made.call.tokens
    told = (call.server, call.dialect, call.status_code, call.finish_reason, call.error_category, call.started_at)
    if any(each is not None for each in (*told, call.latency_ms, call.latency_ttft_ms)):
        return True
    if call.usage == UNKNOWN_USAGE or tokens is None or tokens.prompt_ids is None or tokens.completion_ids is None:
        return call.usage != UNKNOWN_USAGE
    prompt, generated = len(tokens.prompt_ids), len(tokens.completion_ids)
    return call.usage != Usage(tokens_in=prompt, tokens_out=generated, tokens_total=prompt + generated)
