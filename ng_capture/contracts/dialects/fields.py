"""Fields of decoded requests and responses as far as they are what they should be."""

import json
from collections.abc import Iterable, Mapping

from ng_capture.contracts.episode import Content, Json, Opaque, Part, Text, Tokens, Turn
from ng_capture.contracts.items.tokens import read_tokens
from ng_capture.records.json_text import SpelledObject, object_in

_BARE = "bare "
"""How the kind of a part begins that is no object."""


def text_in(value: Json, *keys: str) -> str | None:
    """The first of the fields that is a text with something in it."""
    return next((told for key in keys if isinstance(told := value.get(key), str) and told), None)


def others(value: Json, *known: str) -> Json | None:
    """The fields that are not known and not null; None where there are none."""
    return {key: told for key, told in value.items() if key not in known and told is not None} or None


def opaque(kind: str, value: object) -> Opaque:
    """A part of an object as it stands, or of what is none."""
    return Opaque(kind, value) if isinstance(value, dict) else Opaque(f"{_BARE}{kind}", {"value": value})


def as_it_stood(part: Opaque) -> object:
    """What an opaque part was made of."""
    bare = part.kind.startswith(_BARE) and part.value.keys() == {"value"}
    return part.value["value"] if bare else dict(part.value)


def whole_message(content: Content | None) -> Opaque | None:
    """The part of a message that is opaque as a whole; None where it is another content."""
    match content:
        case (Opaque(kind="message" | "bare message") as part,):
            return part
    return None


def arguments_text(value: object) -> str:
    """The arguments of a call as text: as they are spelled where that is known, else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, SpelledObject):
        return value.text
    return json.dumps({} if value is None else value, ensure_ascii=False)


def joined(parts: Iterable[Part]) -> Content | None:
    """Parts as one content: None for none, the text itself for one part of text (T-AN-7)."""
    content = tuple(parts)
    if len(content) == 1 and isinstance(content[0], Text):
        return content[0].text
    return content or None


def tokens_in(*carriers: Mapping[str, object]) -> Tokens | None:
    """The token fields as the model servers of Gym write them, from the first carrier that has any."""
    return next((tokens for carrier in carriers if (tokens := read_tokens(carrier)) is not None), None)


def is_refusal(turn: Turn) -> bool:
    """True for words that are a refusal to answer, in a part or as the one text of an item of Responses."""
    if isinstance(turn.content, tuple):
        return any(isinstance(part, Opaque) and part.kind == "refusal" for part in turn.content)
    parts = (turn.item or {}).get("content")
    return isinstance(parts, list) and len(parts) == 1 and object_in(parts[0]).get("type") == "refusal"
