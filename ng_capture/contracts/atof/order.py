"""Events in their order, which the order of lines says nothing about (contracts.md 2.1)."""

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from ng_capture.contracts.atof.events import Event, Phase

_RANKS = {Phase.END: 0, Phase.MARK: 1, Phase.START: 2}


def in_order(events: Iterable[Event], parents: Mapping[str, str | None]) -> Iterator[Event]:
    """Events by time; at one moment a scope holds what stands in it, and what is open ends before another begins.

    `parents` are of scopes, without circles.
    """
    by_time = sorted(events, key=_nanos)
    for _, group in groupby(by_time, key=_nanos):
        yield from _settled(list(group), parents)


def _nanos(event: Event) -> int:
    return event.moment.nanos


def _settled(group: Sequence[Event], parents: Mapping[str, str | None]) -> Iterator[Event]:
    """The events of one moment: the first that nothing has to precede, again and again."""
    if len(group) == 1:
        yield group[0]
        return
    waiting, followers = [0] * len(group), defaultdict[int, list[int]](list)
    for before, after in _precedences(group, parents):
        waiting[after] += 1
        followers[before].append(after)
    keys = [(_RANKS[event.phase], event.uuid, event.digest) for event in group]
    ready = [(keys[at], at) for at in range(len(group)) if not waiting[at]]
    heapq.heapify(ready)
    while ready:
        _, at = heapq.heappop(ready)
        yield group[at]
        for after in followers[at]:
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(ready, (keys[after], after))


def _precedences(group: Sequence[Event], parents: Mapping[str, str | None]) -> Iterator[tuple[int, int]]:
    """Which event comes before which: start before end, the parent's start before, its end after what is in it."""
    starts = {event.uuid: at for at, event in enumerate(group) if event.phase == Phase.START}
    ends = {event.uuid: at for at, event in enumerate(group) if event.phase == Phase.END}
    for at, event in enumerate(group):
        if event.phase == Phase.END and event.uuid in starts:
            yield starts[event.uuid], at
        above = event.parent if event.phase == Phase.MARK else parents.get(event.uuid)
        if above in starts and event.phase != Phase.END:
            yield starts[above], at
        around = _first_of(above, ends, parents)
        if around is not None:
            yield at, around


def _first_of(scope: str | None, wanted: Mapping[str, int], parents: Mapping[str, str | None]) -> int | None:
    """The place of the nearest of a scope and those around it that is wanted."""
    while scope is not None and wanted:
        if scope in wanted:
            return wanted[scope]
        scope = parents.get(scope)
    return None
