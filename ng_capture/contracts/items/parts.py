"""The content of an item: a text or parts, and what is left of them without their texts (contracts.md 4.0)."""

import re
from collections.abc import Sequence

import msgspec

from ng_capture.contracts.episode import Content, Json, Media, Opaque, Part, Text
from ng_capture.records.json_text import object_in

TEXT_KEYS = {
    "output_text": "text",
    "input_text": "text",
    "text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
}
"""Where the text of a part stands, by its type."""
_DATA_URL = re.compile(r"data:(?P<type>[\w.+-]+/[\w.+-]+)[;,]")


class Said(msgspec.Struct, frozen=True):
    """A content, and what a writer needs besides it: the parts as they stood without texts, None for a plain text."""

    content: Content | None
    parts: tuple[Json, ...] | None = None


def read_content(value: object, plain: bool) -> Said | None:
    """The content of a message or an output; None for what is no content.

    `plain` tells that one part of text is how this side spells a text, as the output of a model is.
    """
    if value is None or isinstance(value, str):
        return Said(value)
    if not isinstance(value, list):
        return None
    read = [_part(member) for member in value]
    parts, rests = tuple(part for part, _ in read), tuple(rest for _, rest in read)
    if plain and not parts:
        return Said("", rests)
    if plain and len(parts) == 1 and isinstance(parts[0], Text):
        return Said(parts[0].text, rests)
    return Said(parts, rests)


def _part(value: object) -> tuple[Part, Json]:
    part = object_in(value)
    kind = part.get("type")
    key = TEXT_KEYS.get(kind) if isinstance(kind, str) else None
    if key is not None and isinstance(text := part.get(key), str):
        return Text(text), without(part, key)
    if kind == "input_image" and isinstance(url := part.get("image_url"), str):
        return Media("image", url, media_type_in(url)), without(part, "image_url")
    if kind == "input_audio":
        audio = object_in(part.get("input_audio"))
        data, form = audio.get("data"), audio.get("format")
        if isinstance(data, str) and isinstance(form, str):
            return Media("audio", f"data:audio/{form};base64,{data}", f"audio/{form}"), without(part, "input_audio")
    if isinstance(value, dict):
        return Opaque(kind if isinstance(kind, str) else "part", value), {}
    return Opaque("value", {"value": value}), {}


def write_content(content: Content | None, parts: Sequence[Json] | None, text_type: str, plain: bool) -> object:
    """The content as items spell it: as it stood where `parts` fit it, else in the form of this side.

    `text_type` is the type of a new part of text; `plain` tells that a text without parts is written as a string.
    """
    if content is None:
        return None
    if isinstance(content, str):
        if parts is None and plain:
            return content
        if parts == () or parts == []:
            return [] if not content else [_written(Text(content), {}, text_type)]
        return write_content((Text(content),), parts, text_type, plain)
    rests = rests_in(parts, len(content)) or [{}] * len(content)
    fitting = (rest if _fits(part, rest) else {} for part, rest in zip(content, rests, strict=True))
    return [_written(part, rest, text_type) for part, rest in zip(content, fitting, strict=True)]


def rests_in(value: object, number: int) -> list[Json] | None:
    """What is left of so many parts; None for what is no such list: a document may say anything of them."""
    whole = isinstance(value, list | tuple) and len(value) == number and all(isinstance(each, dict) for each in value)
    return list(value) if whole and isinstance(value, list | tuple) else None


def _fits(part: Part, rest: Json) -> bool:
    """True where a part is of the kind of the one that stood there: another contract may have had no place for it."""
    return not rest or isinstance(part, Text) == (str(rest.get("type")) in TEXT_KEYS)


def _written(part: Part, rest: Json, text_type: str) -> object:
    match part:
        case Text(text):
            kind = rest.get("type", text_type)
            whole = {**rest, "type": kind, TEXT_KEYS.get(str(kind), "text"): text}
            return {**whole, "annotations": []} if kind == "output_text" and not rest else whole
        case Media(source=source):
            if rest.get("type") == "input_audio":
                return {**rest, "input_audio": _sound(source)}
            return {**(rest or {"detail": "auto"}), "type": "input_image", "image_url": source}
        case Opaque(kind="value", value=value):
            return value.get("value")
        case Opaque(value=value):
            return dict(value)


def _sound(source: str) -> Json:
    """What a part of sound holds, of its data URL."""
    form, _, data = source.removeprefix("data:audio/").partition(";base64,")
    return {"data": data, "format": form}


def text_of(value: object) -> str | None:
    """The text of a part of text, None for any other."""
    part = object_in(value)
    kind = part.get("type")
    text = part.get(TEXT_KEYS.get(kind, "text") if isinstance(kind, str) else "text")
    return text if isinstance(text, str) else None


def media_type_in(url: str) -> str | None:
    """The media type that a data URL names."""
    found = _DATA_URL.match(url)
    return found["type"].lower() if found else None


def without(value: Json, *keys: str) -> Json:
    """An object without some of its members."""
    return {key: member for key, member in value.items() if key not in keys}
