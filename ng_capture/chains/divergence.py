"""Where a prompt leaves the sequence that it should begin with, and where the two meet again."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from ng_capture.records.ids import IdSequence

_MEETING = 6
"""So many equal ids in a row are no coincidence."""

Region = Literal["prompt", "generation"]


class Divergence(msgspec.Struct, frozen=True):
    """A broken prefix: `held` is the parent's prompt and generation, `new` the prompt that follows it.

    `common_len` ids are equal. The first difference lies in the parent's prompt or in its generation (`region`),
    `offset` ids into it. From `held_meets` and `new_meets` on both go on alike, as far as that was found; None where
    they never meet again. `new_ends`: the prompt ends inside what was held.
    """

    common_len: int
    region: Region
    offset: int
    held_len: int
    new_len: int
    held_meets: int | None
    new_meets: int | None

    @property
    def new_ends(self) -> bool:
        return self.common_len == self.new_len

    @property
    def held_run(self) -> int:
        """How many held ids differ; all that follow where the two never meet."""
        return (self.held_len if self.held_meets is None else self.held_meets) - self.common_len

    @property
    def new_run(self) -> int:
        """How many ids stand in their place."""
        return (self.new_len if self.new_meets is None else self.new_meets) - self.common_len


def diverge(held: IdSequence, prompt_len: int, new: IdSequence) -> Divergence | None:
    """The divergence of a prompt from what its parent held, None where it begins with all of it."""
    common = new.common_prefix(held)
    if common == len(held):
        return None
    region: Region = "prompt" if common < prompt_len else "generation"
    meets = _meeting(held.values()[common:], new.values()[common:])
    return Divergence(
        common_len=common,
        region=region,
        offset=common if region == "prompt" else common - prompt_len,
        held_len=len(held),
        new_len=len(new),
        held_meets=None if meets is None else common + meets[0],
        new_meets=None if meets is None else common + meets[1],
    )


def _meeting(held: Sequence[int], new: Sequence[int]) -> tuple[int, int] | None:
    """The first place of the new ids from which a run of held ids stands; at the end of what was held a shorter one."""
    places: dict[tuple[int, ...], int] = {}
    for start in range(len(held) - _MEETING, -1, -1):
        places[tuple(held[start : start + _MEETING])] = start
    for start in range(len(new) - _MEETING + 1):
        found = places.get(tuple(new[start : start + _MEETING]))
        if found is not None:
            return found, start
    return _tail(held, new)


def _tail(held: Sequence[int], new: Sequence[int]) -> tuple[int, int] | None:
    """The longest end of what was held, of fewer ids than a meeting needs, that stands in the new ids."""
    for size in range(min(_MEETING - 1, len(held)), 1, -1):
        wanted = tuple(held[len(held) - size :])
        for start in range(len(new) - size + 1):
            if tuple(new[start : start + size]) == wanted:
                return len(held) - size, start
    return None
