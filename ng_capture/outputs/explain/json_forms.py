"""Two spellings of one tool call: is the value the same, and in what does the spelling differ first?"""

import json
import re
from itertools import zip_longest
from typing import Any, NamedTuple

from ng_capture.records.json_text import is_deep

_UNCLOSED = 256
"""So many brackets that no JSON follows are tried: each takes a walk through the text."""

_BRACKET = re.compile(r"[{\[]")
_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|[-+0-9.eE]+|[{}\[\]:,]|\w+|\S')


class Spelled(NamedTuple):
    """A JSON value in a text, and where it stands."""

    text: str
    value: Any
    duplicate_key: bool


def json_around(text: str, place: int) -> Spelled | None:
    """The outermost JSON object or array that holds a place of the text; None where none does."""
    start, unclosed = 0, 0
    while unclosed < _UNCLOSED and (bracket := _BRACKET.search(text, start, place + 1)) is not None:
        found = _decoded(text, bracket.start())
        if found is None:
            start, unclosed = bracket.end(), unclosed + 1
            continue
        start = bracket.start() + len(found.text)
        if start > place:
            return found
    return None


def json_cause(held: Spelled, new: Spelled) -> str:
    """The cause that tells two spellings of a tool call apart."""
    if held.duplicate_key and not new.duplicate_key:
        return "tool_json_duplicate_key"
    before, after = _told_apart(held.value), _told_apart(new.value)
    if _without_ids(before) != _without_ids(after):
        return "tool_call_changed"
    if before != after:
        return "tool_call_id_added"
    for one, other in zip_longest(_LEXEME.findall(held.text), _LEXEME.findall(new.text)):
        if one != other:
            return _lexeme_cause(one or "", other or "")
    return "tool_json_indented" if "\n" in held.text or "\n" in new.text else "tool_json_compact"


def _lexeme_cause(one: str, other: str) -> str:
    if not (one.startswith('"') and other.startswith('"')):
        return "tool_json_number_form"
    same = json.loads(one, strict=False) == json.loads(other, strict=False)
    return "tool_json_escaped" if same else "tool_json_key_order"


def _decoded(text: str, start: int) -> Spelled | None:
    twice = False

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        twice = twice or len({key for key, _ in members}) < len(members)
        return dict(members)

    try:
        value, end = json.JSONDecoder(object_pairs_hook=pairs, strict=False).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return None if is_deep(value) else Spelled(text[start:end], value, twice)


def _told_apart(value: Any) -> Any:
    """The value with true and false as something that is not 1 and 0."""
    if isinstance(value, bool):
        return (value,)
    if isinstance(value, list):
        return [_told_apart(member) for member in value]
    return {key: _told_apart(member) for key, member in value.items()} if isinstance(value, dict) else value


def _without_ids(value: Any) -> Any:
    """The calls without the id that a server gives them."""
    if isinstance(value, list):
        return [_without_ids(member) for member in value]
    if isinstance(value, dict) and "name" in value:
        return {key: member for key, member in value.items() if key != "id"}
    return value
