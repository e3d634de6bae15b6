"""Times as ATIF spells them: ISO 8601, with an offset or without (contracts.md 1.2 and 1.3)."""

from collections.abc import Iterator
from datetime import datetime

from ng_capture.contracts.atif.place import Place, quoted
from ng_capture.contracts.rules import Fault


def moment(text: str) -> datetime | None:
    """The time that a text spells as the public validators read it, None where it spells none."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None


def check_time(value: object, place: Place) -> Iterator[Fault]:
    """The faults of one time."""
    if not isinstance(value, str):
        yield place.wrong_type(value, "a text")
        return
    time = moment(value)
    if time is None:
        yield place.fault("atif.timestamp.format", f"{quoted(value)} is no ISO 8601 time")
    elif time.tzinfo is None:
        yield place.fault("atif.timestamp.naive", f"{quoted(value)} has no offset: nobody knows when that was")
