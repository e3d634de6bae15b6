"""A row of an exported file beside the one that its captures make."""

import math
from collections.abc import Iterator, Sequence
from typing import TypeGuard

from ng_capture.outputs.export.formats.interface import Arrays, Record
from ng_capture.outputs.export.proof.fields import Difference, at, field_differences, first_difference, shown
from ng_capture.outputs.export.proof.turns import TURNS, turn_differences
from ng_capture.outputs.export.reading import UNREADABLE, arrays_of
from ng_capture.outputs.rebuilding import Shape

TEXT = (Shape.MESSAGES, Shape.PAIRS)
_TOLERANCE = 1e-6
_SENTINEL = -9999.0
_IDS = range(2**31)


def row_differences(shape: Shape, row: object, wanted: Record) -> Iterator[Difference]:
    """Everything in a row of the format that is not as it should be; nothing where the row is right."""
    if not isinstance(row, dict):
        yield Difference("I7", "no JSON object")
    elif shape in TEXT:
        yield from turn_differences(row, wanted)
        yield from field_differences(_without_turns(row, wanted), _without_turns(wanted, row), 0)
    elif wanted.get("mask_sample"):
        # nothing in it is trained
        yield from field_differences(row, wanted, 0)
    else:
        yield from _of_tokens(shape, row, wanted)


def _without_turns(row: Record, other: Record) -> Record:
    """What is no list of turns in both: of those the turn is told."""
    both = {name for name in TURNS if isinstance(row.get(name), list) and isinstance(other.get(name), list)}
    return {name: value for name, value in row.items() if name not in both}


def _of_tokens(shape: Shape, row: Record, wanted: Record) -> Iterator[Difference]:
    try:
        right = arrays_of(shape, wanted)
    except UNREADABLE:
        # a finished row that came with what it is delivered with
        yield from field_differences(row, wanted, 0)
        return
    try:
        found = arrays_of(shape, row)
    except UNREADABLE as error:
        yield Difference("I7", f"no row of {shape.value}: {error!r}")
        return
    lengths = {
        len(found.tokens),
        len(found.loss_mask),
        len(found.tokens if found.log_probs is None else found.log_probs),
    }
    if len(lengths) > 1:
        yield Difference("I7", f"arrays of {', '.join(map(str, sorted(lengths)))} entries")
        return
    differences = [*_own(found), *_against(found, right)]
    yield from differences
    yield from field_differences(row, wanted, len(right.tokens), numbers=not differences)


def _own(found: Arrays) -> Iterator[Difference]:
    """What the arrays of a row show by themselves."""
    for position, token in enumerate(found.tokens):
        if not _is_id(token):
            yield Difference("I27", f"token {shown(token)} is no id", position)
            break
    for position, mask in enumerate(found.loss_mask):
        if mask not in (0, 1):
            yield Difference("I7", f"mask {shown(mask)}", position)
            break
    if not any(found.loss_mask):
        yield Difference("I12", "no token carries loss")
    elif found.loss_mask[0]:
        yield Difference("I11", "nothing predicts the token at position 0", 0)
    for position, (log_prob, mask) in enumerate(zip(found.log_probs or (), found.loss_mask, strict=False)):
        if mask and not _is_log_prob(log_prob):
            yield Difference("I8", f"log probability {shown(log_prob)} of a trained token", position)
        elif not mask and log_prob != 0.0:
            yield Difference("I9", f"log probability {shown(log_prob)} where nothing is trained", position)


def _is_id(value: object) -> bool:
    # a range is searched one by one for what is no integer
    return type(value) is int and value in _IDS


def _is_log_prob(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and _SENTINEL < value <= _TOLERANCE and math.isfinite(value)


def _against(found: Arrays, right: Arrays) -> Iterator[Difference]:
    """The first difference of each array from what the captures make of it."""
    place = first_difference(found.tokens, right.tokens)
    if place is not None:
        if _is_id(at(found.tokens, place)) or place >= len(found.tokens):
            yield Difference("I1", f"token {_both(found.tokens, right.tokens, place)}", place)
        return
    pairs = enumerate(zip(found.loss_mask, right.loss_mask, strict=True))
    place = next((place for place, (one, other) in pairs if bool(one) != bool(other)), None)
    if place is not None:
        if found.loss_mask[place]:
            yield Difference("I3", "carries loss, and is not to be trained in this row", place)
        else:
            yield Difference("I6", "carries no loss, and would be trained in this row", place)
    if found.log_probs is not None and right.log_probs is not None:
        place = first_difference(found.log_probs, right.log_probs)
        if place is not None and found.loss_mask[place] and _is_log_prob(found.log_probs[place]):
            yield Difference("I32", f"log probability {_both(found.log_probs, right.log_probs, place)}", place)


def _both(found: Sequence[object], right: Sequence[object], place: int) -> str:
    return f"{shown(at(found, place))}, the captures have {shown(at(right, place))}"
