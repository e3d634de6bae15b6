"""Numbers that must fit each other: token arrays, counts, totals (contracts.md 1.3, checked by nobody else)."""

import math
import sys
from collections.abc import Iterator, Mapping

from ng_capture.contracts.atif.place import Place, whole
from ng_capture.contracts.atif.steps import steps_of
from ng_capture.contracts.rules import Fault
from ng_capture.records.json_text import object_in

_TOTALS = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd")

Json = Mapping[str, object]


def check_counts(trajectory: Json, place: Place) -> Iterator[Fault]:
    """The faults of the metrics of every step and of the totals."""
    for step, here in steps_of(trajectory, place):
        metrics = step.get("metrics")
        if isinstance(metrics, dict):
            yield from _check_metrics(metrics, whole(step.get("llm_call_count")), here.at("metrics"))
    totals = object_in(trajectory.get("final_metrics"))
    yield from _check_totals(trajectory, totals, place.at("final_metrics"))


def _check_metrics(metrics: Json, calls: int | None, place: Place) -> Iterator[Fault]:
    prompt, cached = whole(metrics.get("prompt_tokens")), whole(metrics.get("cached_tokens"))
    if prompt is not None and cached is not None and cached > prompt:
        message = f"{cached} tokens from the cache, {prompt} in the prompt, which counts them"
        yield place.at("cached_tokens").fault("atif.metrics.cached_exceeds_prompt", message)
    lengths = {name: _length(metrics, name) for name in ("prompt_token_ids", "completion_token_ids", "logprobs")}
    completion = whole(metrics.get("completion_tokens"))
    pairs = [("logprobs", "completion_token_ids", lengths["completion_token_ids"])]
    # counts of a step that several calls made are sums, its arrays need not be
    if calls is None or calls <= 1:
        pairs += [
            ("completion_token_ids", "completion_tokens", completion),
            ("prompt_token_ids", "prompt_tokens", prompt),
        ]
        if lengths["completion_token_ids"] is None:
            pairs.append(("logprobs", "completion_tokens", completion))
    for name, other, expected in pairs:
        found = lengths[name]
        if found is not None and expected is not None and found != expected:
            yield place.at(name).fault("atif.metrics.length", f"{found} {name} and {expected} {other}")
    yield from _check_log_probs(metrics.get("logprobs"), place.at("logprobs"))


def _check_log_probs(values: object, place: Place) -> Iterator[Fault]:
    members = values if isinstance(values, list) else []
    above = [index for index, each in enumerate(members) if (number := _number(each)) is not None and number > 0]
    if above:
        message = f"{members[above[0]]} is above 0 ({len(above)} of {len(members)} log probabilities)"
        yield place.at(above[0]).fault("atif.metrics.logprob_positive", message)


def _check_totals(trajectory: Json, totals: Json, place: Place) -> Iterator[Fault]:
    for name in _TOTALS:
        total = _number(totals.get(f"total_{name}"))
        found = _sum(trajectory, name)
        # a sum of prices is not exact
        if total is not None and found is not None and total < found and not math.isclose(total, found, rel_tol=1e-6):
            message = f"{total} in all, {found} in the steps together"
            yield place.at(f"total_{name}").fault("atif.final_metrics.below_sum", message)
    declared = whole(totals.get("total_steps"))
    steps = trajectory.get("steps")
    if declared is None or declared < 0 or not isinstance(steps, list) or trajectory.get("notes"):
        return
    if declared != len(steps):
        message = f"{declared} declared, {len(steps)} there, and no notes say why"
        yield place.at("total_steps").fault("atif.final_metrics.total_steps", message)


def _sum(trajectory: Json, name: str) -> float | None:
    """The sum over the steps that are the trajectory's own, None where none tells the number."""
    values = [
        number
        for step, _ in steps_of(trajectory, Place())
        if step.get("is_copied_context") is not True
        and (number := _number(object_in(step.get("metrics")).get(name))) is not None
    ]
    return sum(values) if values else None


def _length(metrics: Json, name: str) -> int | None:
    value = metrics.get(name)
    return len(value) if isinstance(value, list) else None


def _number(value: object) -> float | None:
    """A number that can be compared and summed: no boolean, finite, no larger than a double holds."""
    if (type(value) is int or isinstance(value, float)) and abs(value) <= sys.float_info.max:
        return value
    return None
