"""A scope: what ran from a start to an end (contracts.md 2.1)."""

import msgspec

from ng_capture.contracts.atof.events import Event
from ng_capture.contracts.episode import Json


class Scope(msgspec.Struct, frozen=True):
    """What ran from a start to an end, one of which may be missing; `parent` is the scope around it in the file."""

    uuid: str
    parent: str | None
    start: Event | None
    end: Event | None

    @property
    def told(self) -> Event:
        """The event that names it: its start where there is one."""
        event = self.start or self.end
        assert event is not None
        return event

    @property
    def name(self) -> str:
        return self.told.name

    @property
    def category(self) -> str:
        return self.told.category or "unknown"

    @property
    def profile(self) -> Json:
        """What both events say of its kind."""
        return {**(self.start.profile if self.start else {}), **(self.end.profile if self.end else {})}

    @property
    def metadata(self) -> Json:
        """What both events say beside it."""
        return {**(self.start.metadata if self.start else {}), **(self.end.metadata if self.end else {})}

    @property
    def failed(self) -> bool:
        """True where its end tells an error, in OpenTelemetry's words as NeMo Relay does."""
        return self.end is not None and self.end.metadata.get("otel.status_code") == "ERROR"
