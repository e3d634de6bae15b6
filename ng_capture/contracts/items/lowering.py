"""What a side of Responses can hold of a content; the rest becomes a text that says what stood there."""

import hashlib
from collections.abc import Callable

from ng_capture.contracts.episode import Content, Media, Opaque, Part, Text
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import encode_json

PART_TYPES = frozenset(
    {
        "input_file",
        "input_image",
        "input_audio",
        "output_audio",
        "computer_screenshot",
        "output_text",
        "refusal",
        "output",
        "value",
    }
)
"""Parts of Responses that no other contract has, by their type."""


def lowered(content: Content | None, said_by_model: bool, place: str, lose: Callable[[Loss], None]) -> Content | None:
    """The content with a text instead of every part that has no place."""
    if content is None or isinstance(content, str):
        return content
    return tuple(_lowered(part, said_by_model, place, lose) for part in content)


def _lowered(part: Part, said_by_model: bool, place: str, lose: Callable[[Loss], None]) -> Part:
    match part:
        case Media(kind=kind, source=source):
            if not said_by_model and kind == "image" and _is_address(source):
                return part
            lose(Loss("media_omitted", place, detail=kind))
            return Text(f"[{kind} omitted: {_named(source)}]")
        case Opaque(kind=kind, value=value):
            if kind in PART_TYPES or (kind == value.get("type") and kind.startswith(("input_", "output_"))):
                return part
            lose(Loss("content_type_unsupported", place, detail=kind))
            return Text(encode_json(value).decode())
    return part


def _is_address(source: str) -> bool:
    return source.startswith(("data:", "https://", "http://"))


def _named(source: str) -> str:
    """What a placeholder calls a medium: its path, or the digest of what a data URL holds."""
    if not source.startswith("data:"):
        return source
    return f"sha256 {hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()}"
