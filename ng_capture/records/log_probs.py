"""Log probabilities of one call: one plain number per generated token, or a defect (reasons.md, ids and log probs)."""

import math
import sys
from array import array
from typing import Any

import msgspec

from ng_capture.records.defects import Defect
from ng_capture.records.json_text import told

POSITIVE_TOLERANCE = 1e-6
SENTINEL = -9999.0
_ALL_ZERO_FROM = 4
_LARGEST = int(sys.float_info.max)


class LogProbs(msgspec.Struct, frozen=True):
    """`values` as captured, or None where a token has none; `fault` is the first thing wrong with them."""

    values: "array[float] | None"
    fault: Defect | None = None


def check_log_probs(values: list[Any], generated: int) -> LogProbs:
    """Compare the log probabilities of a call with the number of tokens it generated. Never pads, never cuts."""
    if len(values) != generated:
        return LogProbs(None, Defect(reason="logprob_length_mismatch", tokens=generated, logprobs=len(values)))
    if not set(map(type, values)) <= {float, int}:
        return LogProbs(None, _first_of_another_type(values))
    try:
        numbers = array("d", values)
    except OverflowError:
        position = next(i for i, v in enumerate(values) if type(v) is int and abs(v) > _LARGEST)
        return LogProbs(None, Defect(reason="logprob_not_finite", position=position, found=told(values[position])))
    if not numbers:
        return LogProbs(numbers)
    lowest, highest = min(values), max(values)  # quicker than over the array
    if highest > POSITIVE_TOLERANCE or not lowest > SENTINEL:
        return LogProbs(numbers, _first_impossible(numbers))
    if lowest == highest == 0.0 and generated >= _ALL_ZERO_FROM:
        return LogProbs(numbers, Defect(reason="logprob_all_zero", tokens=generated))
    return LogProbs(numbers)


def _first_of_another_type(values: list[Any]) -> Defect:
    position, value = next((i, v) for i, v in enumerate(values) if type(v) not in (float, int))
    if value is None:
        return Defect(reason="logprob_missing", position=position)
    return Defect(reason="logprob_not_number", position=position, found=told(value))


def _first_impossible(numbers: "array[float]") -> Defect:
    position, value = next((i, v) for i, v in enumerate(numbers) if not SENTINEL < v <= POSITIVE_TOLERANCE)
    if not math.isfinite(value):
        return Defect(reason="logprob_not_finite", position=position, found=told(value))
    reason = "logprob_positive" if value > 0 else "logprob_sentinel"
    return Defect(reason=reason, position=position, found=value)
