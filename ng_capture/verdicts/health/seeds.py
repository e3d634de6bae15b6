"""Rollouts that share a seed: each counted once, however many seeds it has, in whatever order they come."""

from collections.abc import Iterable

_SEEDS = 50


class SharedSeeds:
    """Counts while there are few different seeds; many tell that each rollout has its own."""

    def __init__(self) -> None:
        self._first: dict[str, int] = {}
        self._told: set[int] = set()
        self._rollouts = 0
        self._shared = 0

    def add(self, seeds: Iterable[str]) -> None:
        """The seeds of one more rollout."""
        here = self._rollouts
        self._rollouts += 1
        for seed in set(seeds) if len(self._first) <= _SEEDS else ():
            first = self._first.setdefault(seed, here)
            for rollout in (first, here) if first != here else ():
                if rollout not in self._told:
                    self._told.add(rollout)
                    self._shared += 1
        # only who came first with a seed can be told again
        self._told &= {*self._first.values()}

    def rollouts(self) -> int | None:
        """Rollouts with a seed that another has, too; None without seeds, or with too many different ones."""
        return self._shared if self._first and len(self._first) <= _SEEDS else None
