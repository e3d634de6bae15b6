"""Which row of a file stands beside which of those that it should hold, told by digests: no row is kept."""

import hashlib
import json
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.outputs.export.formats.interface import Record
from ng_capture.outputs.export.reading import UNREADABLE, arrays_of
from ng_capture.outputs.rebuilding import Shape

_SIZE = 16
_IDENTITY = ("rollout_id", "_ng_rollout_id", "trajectory_ids", "trajectory_index", "chosen_rollout_id", "call_id")


class RowKey(msgspec.Struct, frozen=True):
    """Digests of a row: of all of it, and of what tells whose it is even where other values are wrong."""

    whole: bytes
    kin: bytes


class Alignment(msgspec.Struct, frozen=True):
    """Rows of the file by their places: those to be compared, and what became of the others.

    `pairs`: rows that are not as they should be, with what they should be, both ascending. `repeated` and `strange`
    should not be there, `moved` stand elsewhere than they should. `missing`: where one should stand, and which it is.
    """

    pairs: tuple[tuple[int, int], ...]
    repeated: frozenset[int]
    strange: frozenset[int]
    moved: frozenset[int]
    missing: tuple[tuple[int, int], ...]

    def until(self, end: int) -> "Alignment":
        """The same of a file that can be read until there: what stands behind it is not known to be missing."""
        missing = tuple((place, row) for place, row in self.missing if place < end)
        return msgspec.structs.replace(self, missing=missing)


def row_key(shape: Shape, row: object) -> RowKey:
    """The digests of a row of the format, or of what stands in the place of one."""
    whole = _digest(row)
    return RowKey(whole, _digest(_kin(shape, row)) if isinstance(row, dict) else whole)


def _kin(shape: Shape, row: Record) -> object:
    for place in (row, row.get("provenance"), row.get("metadata")):
        told = {name: place[name] for name in _IDENTITY if name in place} if isinstance(place, dict) else {}
        if told:
            return told
    try:
        return arrays_of(shape, row).tokens
    except UNREADABLE:
        return row


def _digest(value: object) -> bytes:
    # the spelling tells 1, 1.0 and true apart, which Python calls equal
    return hashlib.blake2b(json.dumps(value, sort_keys=True, default=repr).encode(), digest_size=_SIZE).digest()


def align(found: Sequence[RowKey], wanted: Sequence[RowKey]) -> Alignment:
    """Rows that are right first, then by whose they are, the rest in order between those."""
    same = dict(_matched([key.whole for key in found], [key.whole for key in wanted]))
    anchors, taken = _ascending(same), frozenset(same.values())
    pairs, left, missing = list[tuple[int, int]](), list[int](), list[tuple[int, int]]()
    for here, there in _gaps(anchors, len(found), len(wanted)):
        ours = [place for place in here if place not in same]
        theirs = [place for place in there if place not in taken]
        kin = _ascending(dict(_matched([found[place].kin for place in ours], [wanted[place].kin for place in theirs])))
        pairs += [(ours[one], theirs[other]) for one, other in kin]
        for these, those in _gaps(kin, len(ours), len(theirs)):
            both = min(len(these), len(those))
            pairs += [(ours[one], theirs[other]) for one, other in zip(these[:both], those[:both], strict=True)]
            left += [ours[one] for one in these[both:]]
            missing += [([*ours, here.stop][these.stop], theirs[other]) for other in those[both:]]
    known = {key.whole for key in wanted} | {key.kin for key in wanted}
    repeated = frozenset(place for place in left if not known.isdisjoint((found[place].whole, found[place].kin)))
    moved = frozenset(same) - frozenset(one for one, _ in anchors)
    return Alignment(tuple(sorted(pairs)), repeated, frozenset(left) - repeated, moved, tuple(missing))


def _gaps(anchors: Sequence[tuple[int, int]], found: int, wanted: int) -> Iterator[tuple[range, range]]:
    """What stands between pairs that ascend, before the first and behind the last."""
    here = there = 0
    for one, other in [*anchors, (found, wanted)]:
        yield range(here, one), range(there, other)
        here, there = one + 1, other + 1


def _matched(found: Sequence[bytes], wanted: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Equal keys, the first of one side with the first of the other."""
    places: Mapping[bytes, deque[int]] = defaultdict(deque)
    for place, key in enumerate(wanted):
        places[key].append(place)
    for place, key in enumerate(found):
        if places[key]:
            yield place, places[key].popleft()


def _ascending(matched: Mapping[int, int]) -> list[tuple[int, int]]:
    """The most pairs that ascend on both sides; the rest stand out of order."""
    last: list[int] = []
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for place in sorted(matched):
        length = bisect_left(last, matched[place])
        before[place] = ends[length - 1] if length else None
        last[length : length + 1] = [matched[place]]
        ends[length : length + 1] = [place]
    chain: list[tuple[int, int]] = []
    at = ends[-1] if ends else None
    while at is not None:
        chain.append((at, matched[at]))
        at = before[at]
    return chain[::-1]
