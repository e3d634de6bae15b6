"""Circles in a graph where each node names at most one other."""

from collections.abc import Mapping


def calls_in_cycles(parents: Mapping[str, str | None]) -> frozenset[str]:
    """The calls that come back to themselves by following their parents."""
    seen: dict[str, int] = {}
    found: set[str] = set()
    for walk, start in enumerate(parents):
        here: str | None = start
        while here is not None and here in parents and here not in seen:
            seen[here] = walk
            here = parents[here]
        if here is not None and seen.get(here) == walk and here not in found:
            first = here
            while here is not None and here not in found:
                found.add(here)
                here = parents[here]
            assert here == first
    return frozenset(found)
