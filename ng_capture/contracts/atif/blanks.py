"""Members of a document that no episode has a place for: null, false, nothing in them, numbers that count nothing."""

from collections.abc import Iterator, Mapping
from typing import Any

from ng_capture.contracts.atif.schema import LISTS, OBJECTS
from ng_capture.contracts.rules import pointer
from ng_capture.records.usage import count

Json = Mapping[str, object]
_LISTS = {**LISTS, "content": "part"}
_COUNTS = ("tally", "count")


def blanks_of(document: Json) -> dict[str, object]:
    """Those members by their JSON pointers, outermost first."""
    return dict(_blanks(document, "trajectory", ()))


def fill_blanks(document: dict[str, Any], blanks: Json) -> None:
    """Puts members where they stood, wherever the document has room for them and nothing else there."""
    for path, value in blanks.items():
        *parents, name = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]
        owner: Any = document
        for part in parents:
            owner = _member(owner, part)
        if isinstance(owner, dict) and _holds(value, owner.get(name)):
            owner[name] = value


def _holds(value: object, written: Any) -> bool:
    """True if nothing is lost where the value takes the place of what was written."""
    if isinstance(value, dict) and isinstance(written, dict):
        return {**value, **written} == value
    return written in (None, {}, [])


def _member(owner: Any, name: str) -> Any:
    if isinstance(owner, list):
        return owner[int(name)] if name.isdecimal() and int(name) < len(owner) else None
    return owner.get(name) if isinstance(owner, dict) else None


def _blanks(value: object, name: str, path: tuple[str | int, ...]) -> Iterator[tuple[str, object]]:
    if not isinstance(value, dict):
        return
    for field in OBJECTS[name].values():
        member = value.get(field.name)
        here = (*path, field.name)
        if field.name in value and not field.required and _says_nothing(member, field.kind):
            yield pointer(*here), member
        elif field.kind in _LISTS and isinstance(member, list):
            for index, each in enumerate(member):
                yield from _blanks(each, _LISTS[field.kind], (*here, index))
        elif field.kind in OBJECTS:
            yield from _blanks(member, field.kind, here)
        elif field.name == "source" and isinstance(member, dict):
            yield from _blanks(member, f"{value.get('type')}_source", here)


def _says_nothing(value: object, kind: str) -> bool:
    """True for null, false and what is empty; for an object of ATIF also where none of its members says anything."""
    if isinstance(value, dict) and kind in OBJECTS:
        fields = OBJECTS[kind]
        return all(name in fields and _says_nothing(member, fields[name].kind) for name, member in value.items())
    if kind in _COUNTS and value is not None:
        return count(value) is None
    return value is None or value is False or value in ([], {})
