"""The content of a chat message: a text or parts, and back (contracts.md 4.5, 4.6)."""

from collections.abc import Callable, Iterator, Sequence

from ng_capture.contracts.dialects.fields import as_it_stood, opaque
from ng_capture.contracts.dialects.media import data_url, media_type_of, omitted, parse_data_url
from ng_capture.contracts.episode import Content, Json, Media, Opaque, Part, Text
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import encode_json, object_in

Rest = Json | None
"""What is left of a part without what the turn holds of it; None for a bare text in a list of parts."""


def content_of(content: object) -> Content | None:
    """A content as it is: a text, parts, or nothing."""
    if content is None or isinstance(content, str):
        return content
    return tuple(parts_of(content))


def parts_of(content: object) -> Iterator[Part]:
    """The parts of a content; what is none of them is opaque."""
    if isinstance(content, str) and content:
        yield Text(content)
    elif isinstance(content, list):
        yield from map(_part, content)
    elif content is not None and not isinstance(content, str):
        yield opaque("content", content)


def _part(value: object) -> Part:
    if isinstance(value, str):
        return Text(value)
    part = object_in(value)
    match part.get("type"):
        case "text" if isinstance(text := part.get("text"), str):
            return Text(text)
        case "image_url":
            source = part.get("image_url")
            url = source if isinstance(source, str) else object_in(source).get("url")
            if isinstance(url, str):
                return Media("image", url, media_type_of(url))
        case "input_audio":
            sound = object_in(part.get("input_audio"))
            data, kind = sound.get("data"), sound.get("format")
            if isinstance(data, str) and isinstance(kind, str) and parse_data_url(data_url(f"audio/{kind}", data)):
                return Media("audio", data_url(f"audio/{kind}", data), f"audio/{kind}")
    return opaque(str(part.get("type", "unknown")), value)


def rests_of(content: object) -> list[Rest] | None:
    """What is left of the parts as they stood; None where the turn alone is written in the same way.

    A refusal alone is written beside the parts.
    """
    if not isinstance(content, list):
        return None
    refused = any(object_in(value).get("type") == "refusal" for value in content)
    if not refused and PartSpelling("", _forget, own=True).parts(tuple(parts_of(content))) == content:
        return None
    return [_rest(value) for value in content]


def _rest(value: object) -> Rest:
    part = object_in(value)
    match _part(value):
        case Text():
            return None if isinstance(value, str) else {key: told for key, told in part.items() if key != "text"}
        case Media(kind="image"):
            return _without(part, "image_url", "url")
        case Media():
            return _without(part, "input_audio", "data", "format")
    # an opaque part holds all of it
    return {}


def _without(part: Json, field: str, *held: str) -> Json:
    told = part.get(field)
    rest = {key: value for key, value in part.items() if key != field}
    return {**rest, field: {key: told[key] for key in told if key not in held}} if isinstance(told, dict) else rest


class PartSpelling:
    """Writes a content as chat spells it and tells what that does not hold; `own` tells that it was read from chat."""

    def __init__(self, place: str, lose: Callable[[Loss], None], *, own: bool) -> None:
        self._place, self._lose, self._own = place, lose, own

    def content(self, content: Content | None, rests: object = None) -> object:
        """A text as a text, parts as parts; `rests` is what is left of them as they stood, where they fit."""
        if content is None or isinstance(content, str):
            return content
        return self.parts(content, rests)

    def parts(self, parts: Sequence[Part], rests: object = None) -> list[object]:
        """The parts of a content."""
        fitting = rests if self._own and isinstance(rests, list) and len(rests) == len(parts) else [_PLAIN] * len(parts)
        return [self._part(part, rest) for part, rest in zip(parts, fitting, strict=True)]

    def _part(self, part: Part, rest: Rest) -> object:
        match part:
            case Text(text):
                return text if rest is None else {"type": "text", "text": text, **rest}
            case Media(kind="image", source=source) if source.startswith(("data:", "http://", "https://")) or self._own:
                told = rest or {}
                if rest is _PLAIN or "image_url" in told:
                    told = {**told, "image_url": {"url": source, **object_in(told.get("image_url"))}}
                return {"type": "image_url", "image_url": source, **told}
            case Media(kind="audio", source=source) if (parsed := parse_data_url(source)) is not None:
                sound = {"data": parsed.data, "format": parsed.media_type.removeprefix("audio/")}
                told = {**(rest or {}), "input_audio": {**sound, **object_in((rest or {}).get("input_audio"))}}
                return {"type": "input_audio", **told}
            case Media(kind=kind, source=source):
                self._lose(Loss("media_omitted", self._place, detail=kind))
                return {"type": "text", "text": omitted(kind, source)}
            case Opaque(kind="refusal", value=value):
                return dict(value)
            case Opaque(kind=kind, value=value):
                if self._own:
                    return as_it_stood(part)
                self._lose(Loss("content_type_unsupported", self._place, detail=kind))
                return {"type": "text", "text": encode_json(value).decode()}


_PLAIN: Json = {}


def _forget(_: Loss) -> None:
    pass
