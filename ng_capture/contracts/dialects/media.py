"""Images and sounds as data URLs and addresses."""

import hashlib
import re
from typing import NamedTuple

_DATA = re.compile(r"data:([^;,]*)((?:;[^;,]*)*?);base64,(.*)", re.DOTALL)


class DataUrl(NamedTuple):
    """A data URL taken apart: what kind of data, and its base64 text."""

    media_type: str
    data: str


def data_url(media_type: str, data: str) -> str:
    """The data URL of a base64 text."""
    return f"data:{media_type};base64,{data}"


def parse_data_url(source: str) -> DataUrl | None:
    """The parts of a base64 data URL, None for what is none."""
    found = _DATA.fullmatch(source) if source.startswith("data:") else None
    return DataUrl(found[1], found[3]) if found and not found[2] else None


def media_type_of(source: str) -> str | None:
    """What kind of data a data URL says it holds; None for an address."""
    parsed = parse_data_url(source)
    return parsed.media_type or None if parsed else None


def omitted(kind: str, source: str) -> str:
    """The text that stands for a medium that has no place: its address, or the digest of what a data URL holds."""
    if source.startswith("data:"):
        source = f"sha256 {hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"[{kind} omitted: {source}]"
