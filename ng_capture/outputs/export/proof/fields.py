"""Every field of a row beside what it should hold: strict in types, with the path to each first difference."""

from collections.abc import Iterator, Mapping, Sequence
from struct import pack, unpack

import msgspec

from ng_capture.outputs.export.proof.invariants import invariant_of

ABSENT = object()
"""What stands where there is nothing."""

_LARGEST = 3e38
_SHOWN = 60

Path = tuple[str | int, ...]


class Difference(msgspec.Struct, frozen=True):
    """What a row breaks: an invariant by its number, at a token where it has a place."""

    invariant: str
    message: str
    position: int | None = None


def field_differences(
    row: Mapping[str, object], wanted: Mapping[str, object], tokens: int, *, numbers: bool = True
) -> Iterator[Difference]:
    """The first difference of each field, and of each field within an object; the row has so many `tokens`.

    Without `numbers` those of lists are left out: of ids, masks and log probabilities more is told elsewhere.
    """
    for path, found, right in _different((), row, wanted):
        if not numbers and isinstance(path[-1], int) and isinstance(found if right is ABSENT else right, int | float):
            continue
        invariant = "I7" if found == right else invariant_of(name for name in path if isinstance(name, str))
        if found is ABSENT:
            message = f"{_spelled(path)} is missing"
        elif right is ABSENT:
            message = f"{_spelled(path)} is nothing that was exported"
        else:
            message = f"{_spelled(path)} is {shown(found)}, the captures make it {shown(right)}"
        yield Difference(invariant, message, _position(path, wanted, tokens))


def _different(path: Path, found: object, right: object) -> Iterator[tuple[Path, object, object]]:
    if isinstance(found, dict) and isinstance(right, dict):
        for name in sorted({*found, *right}):
            yield from _different((*path, name), found.get(name, ABSENT), right.get(name, ABSENT))
    elif isinstance(found, list) and isinstance(right, list):
        place = first_difference(found, right)
        if place is None:
            return
        if max(len(found), len(right)) > place >= min(len(found), len(right)):
            yield (*path, place), at(found, place), at(right, place)
        else:
            yield from _different((*path, place), found[place], right[place])
    elif not _same(found, right):
        yield path, found, right


def first_difference(found: Sequence[object], right: Sequence[object]) -> int | None:
    """Where two lists differ first, in value or type; numbers with a point are compared as 32-bit floats (I32)."""
    if found == right and list(map(type, found)) == list(map(type, right)) and not any(map(_nests, found)):
        return None
    pairs = zip(found, right, strict=False)
    differing = (place for place, (one, other) in enumerate(pairs) if not _same(one, other, narrow=True))
    return next(differing, None if len(found) == len(right) else min(len(found), len(right)))


def _nests(value: object) -> bool:
    return isinstance(value, list | dict)


def _same(one: object, other: object, *, narrow: bool = False) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict | list):
        return next(_different((), one, other), None) is None
    if narrow and isinstance(one, float) and isinstance(other, float):
        one, other = in_float32(one), in_float32(other)
    # a value that is no number is not equal to itself
    return one == other or (one != one and other != other)


def in_float32(value: float) -> float:
    """The nearest 32-bit float, which is what tables hold."""
    rounded: float = unpack("<f", pack("<f", value))[0] if abs(value) < _LARGEST else value
    return rounded


def _position(path: Path, wanted: object, tokens: int) -> int | None:
    """The token that a number of a list is about, where the lists of that name have one for each."""
    for name, step in zip((None, *path), path, strict=False):
        if isinstance(step, int) and isinstance(wanted, list):
            if name in _FROM_THE_START:
                return step
            if name in _TO_THE_END:
                # what is about the response only, or shifted, ends with the last token
                return tokens - len(wanted) + step
            wanted = at(wanted, step)
        else:
            wanted = wanted.get(str(step)) if isinstance(wanted, dict) else None
    return None


_FROM_THE_START = frozenset({"tokens", "prompt_ids", "prompt_token_ids", "prompts", "prompt_mask"})
_TO_THE_END = frozenset({"attention_mask", "labels", "rewards", "data", "routed_experts"})


def _spelled(path: Path) -> str:
    """`spans[2].end`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".") or "the row"


def at(values: Sequence[object], place: int) -> object:
    """The value at a place, ABSENT behind the end."""
    return values[place] if place < len(values) else ABSENT


def shown(value: object) -> str:
    """The beginning of a value."""
    if value is ABSENT:
        return "none"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
