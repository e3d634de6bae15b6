"""What an id and a log probability may be (reasons.md, ids and log probabilities)."""

import math
import sys

from ng_capture.ingest.evidence.told import Values
from ng_capture.records.ids import MAX_TOKEN_ID
from ng_capture.records.log_probs import POSITIVE_TOLERANCE, SENTINEL

_LARGEST = int(sys.float_info.max)
_ALL_ZERO_FROM = 4


def are_ids(values: Values) -> bool:
    """True where all are plain integers from 0 to 2^31 - 1; 5.0 and true are none."""
    if not values:
        return True
    return set(map(type, values)) == {int} and min(values) >= 0 and max(values) <= MAX_TOKEN_ID  # type: ignore[type-var, operator]


def log_prob_faults(values: Values) -> tuple[str, ...]:
    """The names of what is wrong with them, each once."""
    if _are_good(values):
        return ()
    return tuple(sorted({fault for value in values if (fault := _fault(value)) is not None}))


def all_zero(values: Values) -> bool:
    """True for more than three, every one of them 0."""
    return len(values) >= _ALL_ZERO_FROM and all(type(value) in (float, int) and value == 0 for value in values)


def _are_good(values: Values) -> bool:
    """True where nothing is wrong with any, at a glance."""
    if not values or not set(map(type, values)) <= {float, int}:
        return not values
    numbers: list[float] = values  # type: ignore[assignment]
    try:
        # a sum is finite where all of them are
        return math.isfinite(sum(numbers)) and min(numbers) > SENTINEL and max(numbers) <= POSITIVE_TOLERANCE
    except OverflowError:
        return False


def _fault(value: object) -> str | None:
    if value is None:
        return "logprob_missing"
    if type(value) is not float and type(value) is not int:
        return "logprob_not_number"
    if not -_LARGEST <= value <= _LARGEST or math.isnan(value):
        return "logprob_not_finite"
    if value > POSITIVE_TOLERANCE:
        return "logprob_positive"
    return "logprob_sentinel" if value <= SENTINEL else None
