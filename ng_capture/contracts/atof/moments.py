"""Timestamps of events as moments: nanoseconds since 1970, as fine as runtimes write them (contracts.md 2.1)."""

import datetime
import re

import msgspec

_RFC3339 = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[Tt ](?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?:\.(?P<f>\d+))?"
    r"(?P<zone>[Zz]|(?P<sign>[+-])(?P<zh>\d\d):(?P<zm>\d\d))?",
    re.ASCII,
)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_START = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LATEST_MICROS = 253_402_300_799_999_999
_NANOS = 1_000_000_000


class Moment(msgspec.Struct, frozen=True):
    """When something was told: for the order, and as it is spelled; `naive` where it names no zone: taken as UTC."""

    nanos: int
    spelled: str
    naive: bool = False

    @property
    def seconds(self) -> float:
        """Seconds since 1970."""
        return self.nanos / _NANOS


def moment_of(value: object) -> Moment | None:
    """The moment of RFC 3339 text or of whole microseconds since 1970; None for what is neither."""
    if type(value) is int and 0 <= value <= _LATEST_MICROS:
        text = (_START + datetime.timedelta(microseconds=value)).isoformat()
        return Moment(value * 1000, f"{text.removesuffix('+00:00')}Z")
    found = _RFC3339.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else _read(found)


def _read(found: re.Match[str]) -> Moment | None:
    try:
        days = datetime.date.fromisoformat(found["date"]).toordinal() - _EPOCH
    except ValueError:
        return None
    hour, minute, second = int(found["h"]), int(found["m"]), int(found["s"])
    zone_hour, zone_minute = int(found["zh"] or 0), int(found["zm"] or 0)
    # a leap second is the sixtieth
    if hour > 23 or minute > 59 or second > 60 or zone_hour > 23 or zone_minute > 59:
        return None
    offset = (zone_hour * 60 + zone_minute) * 60 * (-1 if found["sign"] == "-" else 1)
    seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
    fraction = int((found["f"] or "0")[:9].ljust(9, "0"))
    return Moment(seconds * _NANOS + fraction, found[0], naive=found["zone"] is None)
