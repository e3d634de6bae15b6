"""What a step carries beside the conversation: as the NeMo Agent Toolkit writes it, the rest under our name (2.2)."""

import msgspec

from ng_capture.contracts.atof.events import Event
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.atof.stream import Stream
from ng_capture.contracts.episode import Json

OURS = "ng_capture"


class Extras(msgspec.Struct, frozen=True):
    """What is told beside the steps of a stream; `framework` is who wrote it, as far as its spelling tells."""

    stream: Stream
    framework: str

    @classmethod
    def of(cls, stream: Stream) -> "Extras":
        """NeMo Relay is known by a field that only it writes; what is not, is as the toolkit has it."""
        relay = any(event.extra and "propagation_root_uuid" in event.extra for event in stream.events)
        return cls(stream, "nemo_relay" if relay else "nat")

    def of_scope(self, scope: Scope, invocation_id: str | None = None, until: Event | None = None) -> Json:
        """Where a scope stands, when it ran (`until` an event before its end), and what its events say beside it."""
        told: dict[str, object] = {
            "ancestry": self._ancestry(scope),
            "invocation": self._invocation(scope, invocation_id or scope.uuid, until or scope.end),
        }
        if scope.end is not None and scope.end.data_schema is not None:
            told["data_schema"] = scope.end.data_schema
        kept = {event.phase.value: beside for event in (scope.start, scope.end) if event and (beside := _beside(event))}
        return told | ({OURS: {"atof": kept}} if kept else {})

    def of_step(self, scope: Scope) -> Json | None:
        """The same of a scope that is no call, and what it was given."""
        return with_ours(self.of_scope(scope), input=(scope.start.data or None) if scope.start is not None else None)

    def of_mark(self, mark: Event) -> Json:
        """What a mark says beside its data."""
        told = {"name": mark.name, "uuid": mark.uuid, "category": mark.category, **(_beside(mark) or {})}
        return {OURS: {"atof": {"mark": {key: value for key, value in told.items() if value is not None}}}}

    def _ancestry(self, scope: Scope) -> Json:
        parent = self.stream.scopes.get(scope.parent or "")
        return {
            "function_id": scope.uuid,
            "function_name": scope.name,
            "parent_id": scope.told.parent,
            "parent_name": parent.name if parent is not None else None,
        }

    def _invocation(self, scope: Scope, invocation_id: str, until: Event | None) -> Json:
        status = "failed" if scope.failed else "completed" if scope.end is not None else "unfinished"
        told: dict[str, object] = {"invocation_id": invocation_id, "framework": self.framework, "status": status}
        if scope.start is not None:
            told["start_timestamp"] = round(scope.start.moment.seconds, 3)
        if until is not None:
            told["end_timestamp"] = round(until.moment.seconds, 3)
        return told


def with_ours(extra: Json | None, **told: object) -> Json | None:
    """The extra with what ng-capture adds to it; what is None is nothing to add."""
    added = {key: value for key, value in told.items() if value is not None}
    if not added:
        return extra
    before = (extra or {}).get(OURS)
    return {**(extra or {}), OURS: {**(before if isinstance(before, dict) else {}), **added}}


def _beside(event: Event) -> Json | None:
    """Metadata, attributes and fields that ATOF does not know."""
    told = {"metadata": event.metadata, "attributes": list(event.attributes), **(event.extra or {})}
    return {key: value for key, value in told.items() if value not in ({}, [], None)} or None
