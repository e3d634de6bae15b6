"""Token counts of a response, of the totals of an episode or of its steps (contracts.md 3.6)."""

import msgspec

from ng_capture.contracts.episode import Json, Thread, Turn
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import UNKNOWN_USAGE, Usage, decode_usage, total_usage

_DETAILS = ("input_tokens_details", "output_tokens_details")


class Counted(msgspec.Struct, frozen=True):
    """The usage of a response as Gym spells it, None where it is unknown, and what it does not say."""

    usage: object
    losses: tuple[Loss, ...] = ()


def count_usage(thread: Thread, envelope: Json | None, own: bool) -> Counted:
    """The totals where they are known, else the sum over fresh steps where each is known; never a part of it.

    The usage of an envelope stands as it stood where it says the same, or where the row is `own`: nobody changed it.
    """
    totals = thread.totals.usage if thread.totals is not None else UNKNOWN_USAGE
    counted = own_usage(thread)
    losses = list[Loss]()
    if _exceeds(totals, counted):
        losses.append(Loss("usage_includes_subagents", detail=f"{_told(totals)}; the steps: {_told(counted)}"))
    if envelope is not None and (own or decode_usage(object_in(envelope.get("usage"))) == totals):
        return Counted(envelope.get("usage"), tuple(losses))
    usage = counted if totals.partial else totals
    if usage.tokens_in is None or usage.tokens_out is None:
        if totals != UNKNOWN_USAGE or any(turn.call and turn.call.usage != UNKNOWN_USAGE for turn in thread.turns):
            losses.append(Loss("usage_dropped", detail="a part of the counts"))
        return Counted(None, tuple(losses))
    if usage.cache_creation_tokens:
        losses.append(Loss("cache_write_dropped", detail=str(usage.cache_creation_tokens)))
    extra = (thread.totals.extra if thread.totals is not None else None) or {}
    others = sorted(key for key in extra if key not in _DETAILS)
    if others:
        losses.append(Loss("usage_dropped", detail=", ".join(others)))
    return Counted(_spelled(usage, extra), tuple(losses))


def own_usage(thread: Thread) -> Usage:
    """The sum over the steps of the thread that a model made; unknown where one of them is."""
    calls = [turn.call for turn in thread.turns if _counts(turn)]
    usages = [call.usage for call in calls if call is not None]
    known = len(usages) == len(calls) and not any(usage.partial for usage in usages)
    return total_usage(usages) if usages and known else UNKNOWN_USAGE


def _counts(turn: Turn) -> bool:
    return turn.fresh and turn.model_calls != 0


def _exceeds(totals: Usage, own: Usage) -> bool:
    if totals.tokens_in is None or totals.tokens_out is None or own.tokens_in is None or own.tokens_out is None:
        return False
    return totals.tokens_in > own.tokens_in or totals.tokens_out > own.tokens_out


def _told(usage: Usage) -> str:
    return f"{usage.tokens_in} in, {usage.tokens_out} out"


def _spelled(usage: Usage, extra: Json) -> Json:
    """The counts as Responses have them; Gym wants the details named, null where they are unknown."""
    total = usage.tokens_total
    return {
        "input_tokens": usage.tokens_in,
        _DETAILS[0]: {"cached_tokens": usage.cached_tokens, **object_in(extra.get(_DETAILS[0]))},
        "output_tokens": usage.tokens_out,
        _DETAILS[1]: {"reasoning_tokens": usage.tokens_reasoning, **object_in(extra.get(_DETAILS[1]))},
        "total_tokens": total if total is not None else (usage.tokens_in or 0) + (usage.tokens_out or 0),
    }
