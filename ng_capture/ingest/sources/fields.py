"""Fields of foreign logs: a text, a number, a time, headers; None for what is not there or is something else."""

from collections.abc import Mapping
from datetime import UTC, datetime

from ng_capture.records.json_text import object_in, objects_in, printable

_FAR_FUTURE = 1e11


def text_of(carrier: Mapping[str, object], *names: str) -> str | None:
    """The first of these fields that is a text and not empty."""
    return next((printable(each) for name in names if isinstance(each := carrier.get(name), str) and each), None)


def id_of(carrier: Mapping[str, object], *names: str) -> str | None:
    """The first of these fields that is a text or an integer, as text."""
    for name in names:
        value = carrier.get(name)
        if (isinstance(value, str) and value) or (type(value) is int and abs(value) < 10**30):
            return printable(str(value))
    return None


def number_of(carrier: Mapping[str, object], *names: str) -> float | None:
    """The first of these fields that is a number."""
    for name in names:
        value = carrier.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63:
            return float(value)
    return None


def status_of(carrier: Mapping[str, object], *names: str) -> int | None:
    """The first of these fields that is an HTTP status."""
    value = number_of(carrier, *names)
    return int(value) if value is not None and 100 <= value < 600 else None


def seconds_of(carrier: Mapping[str, object], *names: str) -> float | None:
    """The first of these fields that is a time, in seconds since 1970.

    A number beyond the year 5000 counts in milli-, micro- or nanoseconds; a text is ISO 8601, in UTC where it names no
    zone.
    """
    for name in names:
        number = number_of(carrier, name)
        told = _from_text(carrier.get(name)) if number is None else number
        if told is not None:
            while told > _FAR_FUTURE:
                told /= 1000
            return told
    return None


def milliseconds_between(start: float | None, end: float | None) -> float | None:
    """How long something took, to two digits as Gym writes it; None where the ends are not known or stand crosswise."""
    return None if start is None or end is None or end < start else round((end - start) * 1000, 2)


def headers_of(value: object) -> Mapping[str, str]:
    """Headers by their names in lower case, from an object or from a list of names and values; repeated ones joined."""
    headers: dict[str, str] = {}
    pairs = [(entry.get("name"), entry.get("value")) for entry in objects_in(value)] + list(object_in(value).items())
    for name, told in pairs:
        if isinstance(name, str) and isinstance(told, str):
            key, said = name.lower(), printable(told)
            headers[key] = said if headers.get(key, said) == said else f"{headers[key]}, {said}"
    return headers


def _from_text(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
