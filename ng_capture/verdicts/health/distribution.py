"""Percentiles over many values, exact, in memory that follows the largest value and not their number."""

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

import msgspec


class Percentiles(msgspec.Struct, frozen=True):
    """Nearest-rank percentiles: each is a value that occurred."""

    p50: int
    p95: int
    max: int


class Distribution:
    """Counts how often each whole number occurs: lengths in tokens, milliseconds."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, values: Iterable[int]) -> None:
        self._counts.update(values)

    def add_many(self, value: int, number: int) -> None:
        """The same value so many times."""
        if number:
            self._counts[value] += number

    def percentiles(self) -> Percentiles | None:
        """None over nothing."""
        if not self._counts:
            return None
        return Percentiles(self._rank(50), self._rank(95), max(self._counts))

    def _rank(self, percent: int) -> int:
        # the smallest value that at least this share of all values does not exceed, counted in whole numbers
        wanted = -(-self._counts.total() * percent // 100)
        values = sorted(self._counts)
        seen = accumulate(self._counts[value] for value in values)
        return next(value for value, number in zip(values, seen, strict=True) if number >= wanted)
