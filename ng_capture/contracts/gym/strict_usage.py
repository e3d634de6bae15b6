"""Token counts that Gym's import of ATIF takes: whole ones that agree with each other (contracts.md 3.2)."""

from collections.abc import Iterator

import msgspec

from ng_capture.contracts.episode import Json, ModelCall, Role, Thread
from ng_capture.contracts.gym.rules import fault
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import UNKNOWN_USAGE, Usage, count

_DETAILS = ("output_tokens_details", "completion_tokens_details")


class StrictUsage(msgspec.Struct, frozen=True):
    """The usage of a response, None where nothing is counted, or why it is refused."""

    usage: Json | None
    faults: tuple[Fault, ...] = ()


def strict_usage(thread: Thread) -> StrictUsage:
    """The totals of the document; they must be the sums over the steps of the model where those are counted."""
    steps = [
        (at, reported_usage(turn.call))
        for at, turn in enumerate(thread.turns)
        if turn.role == Role.ASSISTANT and turn.model_calls != 0
    ]
    faults = [fault_ for at, usage in steps for fault_ in _step(at, usage)]
    faults += [_fault(message) for message in _totals(thread, [usage for _, usage in steps])]
    totals = thread.totals.usage if thread.totals is not None else UNKNOWN_USAGE
    if faults or totals.tokens_in is None or totals.tokens_out is None:
        return StrictUsage(None, tuple(faults))
    counted = any(usage != UNKNOWN_USAGE for _, usage in steps)
    usages = [usage for _, usage in steps]
    cached = _whole(usage.cached_tokens for usage in usages) if counted else totals.cached_tokens
    if counted and all(usage.cached_tokens is None for usage in usages):
        cached = totals.cached_tokens
    reasoning = _whole(usage.tokens_reasoning for usage in usages)
    total = _whole(usage.tokens_total for usage in usages)
    computed = totals.tokens_in + totals.tokens_out
    if total is not None and total < computed:
        return StrictUsage(None, (_fault(f"{total} tokens in total, fewer than {computed}"),))
    usage: Json = {
        "input_tokens": totals.tokens_in,
        "input_tokens_details": {} if cached is None else {"cached_tokens": cached},
        "output_tokens": totals.tokens_out,
        "output_tokens_details": {} if reasoning is None else {"reasoning_tokens": reasoning},
        "total_tokens": computed if total is None else total,
    }
    return StrictUsage(usage)


def reported_usage(call: ModelCall | None) -> Usage:
    """What a step says of its tokens: a total, and tokens of reasoning, only where it says so itself."""
    if call is None:
        return UNKNOWN_USAGE
    extra = call.usage_extra or {}
    details = (count(object_in(extra.get(name)).get("reasoning_tokens")) for name in _DETAILS)
    reasoning = next((each for each in (call.usage.tokens_reasoning, *details) if each is not None), None)
    return msgspec.structs.replace(call.usage, tokens_reasoning=reasoning)


def _step(at: int, usage: Usage) -> Iterator[Fault]:
    path = pointer("steps", at, "metrics")
    if _more(usage.cached_tokens, usage.tokens_in):
        yield _fault(f"{usage.cached_tokens} cached of {usage.tokens_in}", path, at)
    if _more(usage.tokens_reasoning, usage.tokens_out):
        yield _fault(f"{usage.tokens_reasoning} of reasoning among {usage.tokens_out}", path, at)
    known = (usage.tokens_in or 0) + (usage.tokens_out or 0)
    if usage.tokens_total is not None and usage.tokens_total < known:
        yield _fault(f"{usage.tokens_total} in total, fewer than {known}", path, at)


def _totals(thread: Thread, steps: list[Usage]) -> Iterator[str]:
    counted = any(usage != UNKNOWN_USAGE for usage in steps)
    totals = thread.totals.usage if thread.totals is not None else UNKNOWN_USAGE
    if counted and any(usage.partial for usage in steps):
        yield "some steps of the model are counted, others are not"
    if _more(totals.cached_tokens, totals.tokens_in):
        yield f"{totals.cached_tokens} cached of {totals.tokens_in} in the totals"
    if totals.tokens_in is None and totals.tokens_out is None:
        if counted:
            yield "the steps are counted, the whole is not"
        elif totals.cached_tokens is not None:
            yield "cached tokens are counted alone"
    elif totals.partial:
        yield "prompt and completion are not both counted"
    elif counted:
        yield from _sums(totals, steps)


def _sums(totals: Usage, steps: list[Usage]) -> Iterator[str]:
    for name, total, values in (
        ("prompt", totals.tokens_in, [usage.tokens_in for usage in steps]),
        ("completion", totals.tokens_out, [usage.tokens_out for usage in steps]),
        ("cached", totals.cached_tokens, [usage.cached_tokens for usage in steps]),
    ):
        whole = _whole(values)
        if whole is not None and total is not None and whole != total:
            yield f"{total} {name} tokens in total, {whole} in the steps"


def _whole(values: object) -> int | None:
    """The sum where each is known."""
    known = list(values)  # type: ignore[call-overload]
    return None if not known or any(value is None for value in known) else sum(known)


def _more(part: int | None, whole: int | None) -> bool:
    return part is not None and whole is not None and part > whole


def _fault(message: str, path: str = "/final_metrics", at: int | None = None) -> Fault:
    return fault("gym.strict.usage", message, path, step=None if at is None else at + 1)
