"""Ages and sizes as people write them: `14d`, `12h`, `500GB`."""

import math
import re

from ng_capture.errors import UsageError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {"": 1, "B": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_BYTES |= {f"{name}B": size for name, size in _BYTES.items() if name not in ("", "B")}
_BYTES |= {f"{name}iB": 1024**power for power, name in enumerate("KMGT", 1)}


def seconds(text: str, option: str) -> float:
    """An age in seconds; raises UsageError for what is none."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhdw])", text)
    if found is None:
        raise UsageError(f"{option} {text}: an age like 14d, 12h or 30m is wanted")
    return float(found[1]) * _SECONDS[found[2]]


def number_of_bytes(text: str, option: str) -> int:
    """A size in bytes; raises UsageError for what is none."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", text)
    if found is None or found[2] not in _BYTES:
        raise UsageError(f"{option} {text}: a size like 500GB or 1.5TiB is wanted")
    number = float(found[1]) * _BYTES[found[2]]
    if not math.isfinite(number):
        raise UsageError(f"{option}: {found[1][:20]}... is no size")
    return int(number)


def patience(number: float, option: str) -> float:
    """Seconds to wait; raises UsageError for what is no number."""
    if math.isnan(number):
        raise UsageError(f"{option}: a number of seconds is wanted")
    return number


def in_bytes(number: int) -> str:
    """`1.2 GB`."""
    size = float(number)
    for unit in ("bytes", "kB", "MB", "GB"):
        if round(size, 1) < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
