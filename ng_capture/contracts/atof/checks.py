"""Every rule on more than one event of a stream (contracts.md 2.1)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ng_capture.contracts.atof.events import Event, Phase
from ng_capture.contracts.atof.nesting import DEEPEST
from ng_capture.contracts.atof.rules import fault
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.records.json_text import printable

_FIELDS = {"name": "name", "category": "category", "parent": "parent_uuid"}


def on_repetitions(same: Iterable[Sequence[Event]]) -> Iterator[Fault]:
    """Events that tell the same of one uuid: whole again, or another time; marks may share a uuid."""
    for first, *others in same:
        digests = {first.digest} if others else set()
        for event in others:
            if event.digest in digests:
                yield fault("atof.event.repeated", f"as in line {first.line}", line=event.line)
            elif event.phase != Phase.MARK:
                message = f"another {event.phase} of {printable(event.uuid)} than in line {first.line}"
                yield fault("atof.scope.repeated", message, line=event.line)
            digests.add(event.digest)


def on_scopes(scopes: Mapping[str, Scope]) -> Iterator[Fault]:
    """Scopes whose start and end do not fit, or of which one is missing."""
    unfinished = defaultdict[object, list[Event]](list)
    for scope in scopes.values():
        if scope.start is not None and scope.end is not None:
            yield from _on_both(scope.start, scope.end)
        elif scope.start is not None:
            unfinished[_work(scope.start)].append(scope.start)
    for end in (scope.end for scope in scopes.values() if scope.start is None):
        assert end is not None
        fitting = unfinished[_work(end)]
        if len(fitting) == 1 and fitting[0].moment.nanos <= end.moment.nanos:
            start = fitting.pop()
            message = f"the start that fits, in line {start.line}, has uuid {printable(start.uuid)}"
            yield fault("atof.scope.uuid_mismatch", message, "/uuid", end.line)
        else:
            yield fault("atof.scope.end_without_start", f"{printable(end.uuid)} never started", line=end.line)
    for start in (event for events in unfinished.values() for event in events):
        yield fault("atof.scope.unfinished", f"{printable(start.uuid)} never ends", line=start.line)


def _work(event: Event) -> object:
    return event.parent, event.category, event.name


def _on_both(start: Event, end: Event) -> Iterator[Fault]:
    if end.moment.nanos < start.moment.nanos:
        yield fault("atof.scope.order", f"it starts later, in line {start.line}", "/timestamp", end.line)
    for attribute, field in _FIELDS.items():
        if getattr(start, attribute) != getattr(end, attribute):
            yield fault("atof.scope.fields", f"another {field} than in line {start.line}", pointer(field), end.line)


def on_nesting(scopes: Mapping[str, Scope], marks: Iterable[Event], cut: set[str], deep: set[str]) -> Iterator[Fault]:
    """Parents that are not there, around themselves, or too many."""
    for uuid in cut:
        yield fault("atof.parent.cycle", f"{printable(uuid)} is around itself", "/parent_uuid", scopes[uuid].told.line)
    for uuid in deep:
        yield fault("atof.parent.depth", f"more than {DEEPEST} scopes deep", "/parent_uuid", scopes[uuid].told.line)
    unknown = dict[str, Event]()
    for event in (*(scope.told for scope in scopes.values()), *marks):
        if event.parent is not None and event.parent not in scopes:
            unknown.setdefault(event.parent, event)
    for parent, event in unknown.items():
        yield fault("atof.parent.unknown", f"{printable(parent)} is not in the file", "/parent_uuid", event.line)
