"""A stream: its events in order, and the scopes that they tell of (contracts.md 2.1)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.contracts.atof.checks import on_nesting, on_repetitions, on_scopes
from ng_capture.contracts.atof.events import Event, Phase, read_event
from ng_capture.contracts.atof.nesting import circles, too_deep
from ng_capture.contracts.atof.order import in_order
from ng_capture.contracts.atof.rules import fault
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source


class Stream(msgspec.Struct, frozen=True):
    """A file: the events that can be read, in order, without repetitions; the scopes by uuid; all faults by line."""

    events: tuple[Event, ...]
    scopes: Mapping[str, Scope]
    faults: tuple[Fault, ...]

    def around(self, uuid: str | None) -> Iterator[Scope]:
        """A scope and those around it, from the inside."""
        while uuid is not None and uuid in self.scopes:
            yield self.scopes[uuid]
            uuid = self.scopes[uuid].parent


def read_stream(source: Source) -> Stream:
    """The stream of a file; what cannot be read is a fault."""
    lines = [read_event(line) for line in source.lines("atof")]
    faults = [each for line in lines for each in line.faults]
    if not lines:
        faults.append(fault("atof.empty", "no events"))
    told = _told(line.event for line in lines if line.event is not None)
    starts, ends = told[Phase.START], told[Phase.END]
    parents = {uuid: found[0].parent for uuid, found in (ends | starts).items()}
    cut = circles(parents)
    deep = too_deep({uuid: None if uuid in cut else parent for uuid, parent in parents.items()})
    scopes = {uuid: _scope(uuid, parents, cut | deep, starts.get(uuid), ends.get(uuid)) for uuid in parents}
    for phase in Phase:
        faults += on_repetitions(told[phase].values())
    faults += on_scopes(scopes)
    faults += on_nesting(scopes, (event for found in told[Phase.MARK].values() for event in found), cut, deep)
    events = in_order(_counting(told), {uuid: scope.parent for uuid, scope in scopes.items()})
    return Stream(tuple(events), scopes, tuple(sorted(faults, key=lambda each: each.line or 0)))


def _told(events: Iterator[Event]) -> Mapping[Phase, dict[str, Sequence[Event]]]:
    """The events by what they tell of which uuid, the one that counts first."""
    found: dict[Phase, defaultdict[str, list[Event]]] = {phase: defaultdict(list) for phase in Phase}
    for event in events:
        found[event.phase][event.uuid].append(event)
    return {phase: {uuid: _earliest_first(same) for uuid, same in by_uuid.items()} for phase, by_uuid in found.items()}


def _earliest_first(events: Sequence[Event]) -> Sequence[Event]:
    # a digest is dear, and most events stand alone
    return events if len(events) == 1 else sorted(events, key=lambda event: (event.moment.nanos, event.digest))


def _counting(told: Mapping[Phase, Mapping[str, Sequence[Event]]]) -> Iterator[Event]:
    """The first start and end of every scope, and every mark once."""
    for phase in (Phase.START, Phase.END):
        yield from (found[0] for found in told[phase].values())
    for found in told[Phase.MARK].values():
        yield from found if len(found) == 1 else {event.digest: event for event in found}.values()


def _scope(
    uuid: str,
    parents: Mapping[str, str | None],
    cut: set[str],
    starts: Sequence[Event] | None,
    ends: Sequence[Event] | None,
) -> Scope:
    above = parents[uuid]
    return Scope(
        uuid=uuid,
        parent=None if uuid in cut or above not in parents else above,
        start=starts[0] if starts else None,
        end=ends[0] if ends else None,
    )
