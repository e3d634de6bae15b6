"""Times as seconds since 1970 and as ISO 8601 text; one that names no zone is no moment."""

from datetime import UTC, datetime

from ng_capture.contracts.episode import Turn


def seconds_of(turn: Turn) -> float | None:
    """When a turn ended, as far as anything says: its timestamp, else the end of its call."""
    if turn.timestamp is not None:
        return seconds_in(turn.timestamp)
    return turn.call.completed_at if turn.call is not None else None


def seconds_in(timestamp: str) -> float | None:
    """The moment of an ISO 8601 text; None for another text, and for one without a zone."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment.timestamp()


def timestamp_of(seconds: float) -> str | None:
    """The text of a moment as Gym writes it, in UTC; None for one that no calendar holds."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None
