"""Where a prompt leaves the sequence that it should begin with, and where the two meet again."""

import operator
from collections.abc import Sequence
from itertools import takewhile
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
    """The first run that both have, or the end of what was held where more of that stands in the new ids."""
    first = _first_run(held, new)
    alike = 1 if first is None else _alike(held[first[0] :], new[first[1] :])
    size, start = _longest_end(held, new)
    return (len(held) - size, start) if size > alike else first


def _alike(held: Sequence[int], new: Sequence[int]) -> int:
    """How many ids are equal from the beginning on."""
    return sum(1 for _ in takewhile(bool, map(operator.eq, held, new)))


def _first_run(held: Sequence[int], new: Sequence[int]) -> tuple[int, int] | None:
    """The first place of the new ids from which a run of held ids stands."""
    places: dict[tuple[int, ...], int] = {}
    for start in range(len(held) - _MEETING, -1, -1):
        places[tuple(held[start : start + _MEETING])] = start
    for start in range(len(new) - _MEETING + 1):
        found = places.get(tuple(new[start : start + _MEETING]))
        if found is not None:
            return found, start
    return None


def _longest_end(held: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
    """How many ids of the end of what was held stand together in the new ids, and where that is first.

    After Knuth, Morris and Pratt, from the end: a model that repeats itself must not take quadratic time.
    """
    wanted = held[::-1]
    shorter = [0] * len(wanted)
    for place in range(1, len(wanted)):
        size = shorter[place - 1]
        while size and wanted[place] != wanted[size]:
            size = shorter[size - 1]
        shorter[place] = size + (wanted[place] == wanted[size])
    longest, first, size = 0, 0, 0
    for start in range(len(new) - 1, -1, -1):
        if size == len(wanted):
            size = shorter[size - 1]
        while size and new[start] != wanted[size]:
            size = shorter[size - 1]
        size += new[start] == wanted[size]
        if size and size >= longest:
            longest, first = size, start
    return longest, first
