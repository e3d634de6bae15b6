"""Turns of an output with what is known of the calls that made them."""

import msgspec

from ng_capture.contracts.episode import Turn
from ng_capture.contracts.items.turns import Grouped
from ng_capture.contracts.losses import Loss


class Told(msgspec.Struct, frozen=True):
    """The turns of an output, and the order of its items; `inferred` is how many the order of items alone told."""

    turns: tuple[Turn, ...]
    losses: tuple[Loss, ...] = ()
    inferred: int = 0
    order: tuple[int, ...] = ()
    history: tuple[int, ...] = ()

    @classmethod
    def inferred_from(cls, made: Grouped) -> "Told":
        """The turns as the order of their items tells them."""
        fresh = sum(turn.fresh for turn in made.turns)
        return cls(made.turns, made.losses, fresh, made.order, made.history)
