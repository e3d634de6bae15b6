"""One line of a stream as an event (contracts.md 2.1)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from ng_capture.contracts.atof.event_checks import on_event, version_known
from ng_capture.contracts.atof.moments import Moment, moment_of
from ng_capture.contracts.atof.rules import fault
from ng_capture.contracts.episode import Json
from ng_capture.contracts.identity import content_digest
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.contracts.sources import JsonLine
from ng_capture.records.json_text import object_in, printable

_KNOWN = frozenset(
    {
        *("kind", "atof_version", "uuid", "parent_uuid", "timestamp", "name", "data", "data_schema", "metadata"),
        *("scope_category", "attributes", "category", "category_profile"),
    }
)


class Phase(StrEnum):
    """What an event tells of its scope; a mark tells of none."""

    START = "start"
    END = "end"
    MARK = "mark"


class Event(msgspec.Struct, frozen=True):
    """An event that can be read.

    `parent` is the uuid of the scope that it stands in. `data` is whatever the producer tells. `extra` holds the fields
    that ATOF does not know. `raw` is the event as it was read.
    """

    phase: Phase
    uuid: str
    parent: str | None
    moment: Moment
    name: str
    category: str | None
    profile: Json
    data: Any
    data_schema: Json | None
    metadata: Json
    attributes: tuple[str, ...]
    extra: Json | None
    raw: Json
    line: int

    @property
    def digest(self) -> str:
        """What orders events that nothing else does, and tells a repeated one."""
        return content_digest(self.raw)

    @property
    def place(self) -> str:
        """Where it stands in the stream, whose lines have no order: its uuid, and what it tells of it."""
        return pointer(printable(self.uuid), self.phase)


class Line(msgspec.Struct, frozen=True):
    """A line: its event where it holds one that can be read, and its faults."""

    event: Event | None
    faults: tuple[Fault, ...]


def read_event(line: JsonLine) -> Line:
    """The event of a line and all its faults at once."""
    value = line.value
    if not line.careful.read:
        return Line(None, line.careful.faults)
    if not isinstance(value, dict):
        found = fault("atof.event", f"{type(value).__name__} is no event", line=line.number)
        return Line(None, (*line.careful.faults, found))
    faults = [msgspec.structs.replace(each, line=line.number) for each in on_event(value)]
    return Line(_event(value, line.number), (*line.careful.faults, *faults))


def _event(value: dict[str, Any], line: int) -> Event | None:
    """The event as far as it can be read: kind, version, uuid and time cannot be missed."""
    moment, uuid, phase = moment_of(value.get("timestamp")), value.get("uuid"), _phase(value)
    if moment is None or phase is None or not isinstance(uuid, str) or not uuid or not version_known(value):
        return None
    category, name, parent = value.get("category"), value.get("name"), value.get("parent_uuid")
    attributes = value.get("attributes")
    return Event(
        phase=phase,
        uuid=uuid,
        parent=parent if isinstance(parent, str) and parent else None,
        moment=moment,
        name=name if isinstance(name, str) else "",
        category=category if isinstance(category, str) and category else None,
        profile=object_in(value.get("category_profile")),
        data=value.get("data"),
        data_schema=object_in(value.get("data_schema")) or None,
        metadata=object_in(value.get("metadata")),
        attributes=tuple(each for each in attributes if isinstance(each, str)) if isinstance(attributes, list) else (),
        extra={key: member for key, member in value.items() if key not in _KNOWN} or None,
        raw=value,
        line=line,
    )


def _phase(value: Mapping[str, object]) -> Phase | None:
    if value.get("kind") == "mark":
        return Phase.MARK
    told_phase = value.get("scope_category") if value.get("kind") == "scope" else None
    return next((phase for phase in (Phase.START, Phase.END) if phase == told_phase), None)
