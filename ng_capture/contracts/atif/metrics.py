"""What a call used, as ATIF counts it: metrics of a step, and final metrics (contracts.md 1.2; 9.7)."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.contracts.episode import Json, ModelCall, Tokens, Totals
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import Usage, count

_COUNTS = {"prompt_tokens": "tokens_in", "completion_tokens": "tokens_out", "cached_tokens": "cached_tokens"}
_EXTRAS = {
    "reasoning_tokens": "tokens_reasoning",
    "cache_creation_input_tokens": "cache_creation_tokens",
    "total_tokens": "tokens_total",
}
"""Counts by their names in metrics and in its extra; total_tokens is as Gym's exporter names it."""
_ARRAYS = {"prompt_token_ids": "prompt_ids", "completion_token_ids": "completion_ids", "logprobs": "log_probs"}
_EXPERTS = "routed_experts"


class Counted(msgspec.Struct, frozen=True):
    """Counts, and the rest of the extra that they stood in."""

    usage: Usage
    extra: Json | None


def read_metrics(metrics: Json) -> ModelCall:
    """The call of a step as its metrics tell it."""
    counted = _read_counts(metrics, "")
    extra = counted.extra
    experts = None if extra is None else extra.get(_EXPERTS)
    if experts is not None:
        extra = {key: value for key, value in object_in(extra).items() if key != _EXPERTS} or None
    arrays = {ours: metrics.get(name) for name, ours in _ARRAYS.items()}
    known = experts is not None or any(value is not None for value in arrays.values())
    return ModelCall(
        usage=counted.usage,
        usage_extra=extra,
        cost_usd=_cost(metrics.get("cost_usd")),
        tokens=Tokens(**arrays, routed_experts=experts) if known else None,  # type: ignore[arg-type]
    )


def read_totals(metrics: Json) -> Totals:
    """The totals of a trajectory."""
    counted = _read_counts(metrics, "total_")
    return Totals(counted.usage, _cost(metrics.get("total_cost_usd")), count(metrics.get("total_steps")), counted.extra)


def write_metrics(call: ModelCall, tokens: Tokens | None) -> dict[str, object]:
    """The metrics of a step; `tokens` are those that may stand in them."""
    members = _write_counts(call.usage, "")
    if call.cost_usd is not None:
        members["cost_usd"] = call.cost_usd
    extra = {**(call.usage_extra or {}), **_extra_counts(call.usage)}
    if tokens is not None:
        arrays = {name: getattr(tokens, ours) for name, ours in _ARRAYS.items()}
        members |= {name: list(values) for name, values in arrays.items() if values is not None}
        if tokens.routed_experts is not None:
            extra[_EXPERTS] = tokens.routed_experts
    if extra or call.usage_extra is not None:
        members["extra"] = extra
    return members


def write_totals(totals: Totals) -> dict[str, object]:
    """The final metrics of a trajectory."""
    members = _write_counts(totals.usage, "total_")
    if totals.cost_usd is not None:
        members["total_cost_usd"] = totals.cost_usd
    if totals.steps is not None:
        members["total_steps"] = totals.steps
    extra = {**(totals.extra or {}), **_extra_counts(totals.usage)}
    if extra or totals.extra is not None:
        members["extra"] = extra
    return members


def are_sound(tokens: Tokens) -> bool:
    """True for arrays that are whole, fit each other, and hold nothing but ids and finite log probabilities."""
    return (
        tokens.complete
        and _ids(tokens.prompt_ids or ())
        and _ids(tokens.completion_ids or ())
        and all(type(value) in (int, float) and math.isfinite(value) for value in tokens.log_probs or ())
    )


def are_placeholder(tokens: Tokens) -> bool:
    """True where nothing was generated, or the one id 0 that is certain, which agents write for no tokens (3.4, 6)."""
    generated, log_probs = tokens.completion_ids, tokens.log_probs
    if generated is None:
        return False
    return len(generated) == 0 or (list(generated) == [0] and list(log_probs or ()) in ([], [0.0]))


def _ids(values: Sequence[int]) -> bool:
    return all(type(value) is int and value >= 0 for value in values)


def _read_counts(metrics: Json, prefix: str) -> Counted:
    told = metrics.get("extra")
    extra = dict(object_in(told))
    found = {ours: count(metrics.get(prefix + name)) for name, ours in _COUNTS.items()}
    for name, ours in _EXTRAS.items():
        if count(extra.get(name)) is not None:
            found[ours] = count(extra.pop(name))
    return Counted(Usage(**found), extra if extra or told == {} else None)


def _write_counts(usage: Usage, prefix: str) -> dict[str, object]:
    return {prefix + name: value for name, ours in _COUNTS.items() if (value := getattr(usage, ours)) is not None}


def _extra_counts(usage: Usage) -> Mapping[str, object]:
    return {name: value for name, ours in _EXTRAS.items() if (value := getattr(usage, ours)) is not None}


def _cost(value: object) -> float | None:
    return value if type(value) is int or isinstance(value, float) else None
