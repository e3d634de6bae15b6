"""Model calls as verifiers records them: usage without what was read from the cache, times in seconds (6)."""

from ng_capture.contracts.dialects.fields import others, text_in
from ng_capture.contracts.episode import Json, ModelCall, Tokens
from ng_capture.contracts.verifiers.numbers import moment, number
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import Usage, count

_DIALECTS = {"/chat/completions": "chat", "/responses": "responses", "/messages": "messages"}
_COUNTED = ("prompt_tokens", "completion_tokens", "cached_input_tokens", "reasoning_tokens", "cost")
_READ = ("node", "model", "finish_reason", "usage", "time")


def model_call(call: Json, tokens: Tokens | None) -> ModelCall:
    """The call that made a node."""
    usage, time = object_in(call.get("usage")), object_in(call.get("time"))
    started, completed = moment(time.get("start")), moment(time.get("end"))
    endpoint = str(call.get("endpoint"))
    return ModelCall(
        model=text_in(call, "model"),
        dialect=next((name for end, name in _DIALECTS.items() if endpoint.endswith(end)), None),
        finish_reason=text_in(call, "finish_reason"),
        started_at=started,
        completed_at=completed,
        latency_ms=(completed - started) * 1000 if started is not None and completed is not None else None,
        usage=usage_of(usage),
        usage_extra=others(usage, *_COUNTED),
        cost_usd=number(usage.get("cost")),
        tokens=tokens,
    )


def rest_of(call: Json) -> Json | None:
    """What has no place of ours: where it was asked, how, under which policy."""
    return others(call, *_READ)


def usage_of(usage: Json) -> Usage:
    """Counts with the cached tokens among those of the prompt (contracts.md 9.7)."""
    fresh, cached = count(usage.get("prompt_tokens")), count(usage.get("cached_input_tokens"))
    tokens_in = None if fresh is None else fresh + (cached or 0)
    tokens_out = count(usage.get("completion_tokens"))
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_reasoning=count(usage.get("reasoning_tokens")),
        tokens_total=None if tokens_in is None or tokens_out is None else tokens_in + tokens_out,
        cached_tokens=cached,
    )
