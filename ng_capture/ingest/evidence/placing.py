"""Log probabilities at the positions of the ids that they stand with, and held against one another."""

import math
from collections.abc import Sequence

import msgspec

from ng_capture.ingest.evidence.told import Told, Values

# one of two spellings may have been through 32 bits
_PRECISION = 1e-6


class Placed(msgspec.Struct, frozen=True, eq=False):
    """Log probabilities; `holes` are the positions that no entry was served for, None in `values`."""

    values: Values
    holes: frozenset[int] = frozenset()


def placed(told: Told, generation: Values | None) -> Placed | None:
    """The log probabilities of a spelling at the positions of their ids; None where it names other ids."""
    ids, values = told.generation, told.log_probs or []
    if not told.named or ids is None or generation is None or ids == generation:
        return Placed(values)
    early, late = _places(ids, generation), _places(ids[::-1], generation[::-1])
    if early is None or late is None:
        return None
    if early != [len(generation) - 1 - place for place in reversed(late)]:
        # they fit in more than one way: nothing tells which ids have none
        return Placed(values)
    at = dict(zip(early, values, strict=True))
    positions = range(len(generation))
    return Placed([at.get(position) for position in positions], frozenset(positions) - at.keys())


def best_of(found: Sequence[Placed], generation: Values | None) -> Placed | None:
    """The first that has one for every id, else the first that knows which have none, else the first."""
    tokens = None if generation is None else len(generation)
    return min(found, key=lambda each: (len(each.values) != tokens, bool(each.holes)), default=None)


def agree(one: Placed, other: Placed) -> bool:
    """True where both have the same, as far as both have it: one may lack the last, a stop token's (ingest.md 1.4)."""
    if abs(len(one.values) - len(other.values)) > 1:
        return False
    holes = one.holes | other.holes
    pairs = enumerate(zip(one.values, other.values, strict=False))
    return all(position in holes or _are_one(*pair) for position, pair in pairs)


def _places(some: Values, ids: Values) -> list[int] | None:
    """Where those of `some` stand in `ids`, each as early as can be; None where they do not stand there in order."""
    places: list[int] = []
    for token in some:
        try:
            places.append(ids.index(token, places[-1] + 1 if places else 0))
        except ValueError:
            return None
    return places


def _are_one(one: object, other: object) -> bool:
    if type(one) is not float or type(other) is not float:
        return one == other
    return math.isclose(one, other, rel_tol=_PRECISION, abs_tol=_PRECISION) or (math.isnan(one) and math.isnan(other))
