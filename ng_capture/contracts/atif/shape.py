"""What each object holds: fields, their types, their versions (contracts.md 1.2), every fault of them at once."""

from collections.abc import Iterator, Mapping

from ng_capture.contracts.atif.place import Place, quoted, text_at
from ng_capture.contracts.atif.schema import (
    AUDIO_TYPES,
    IMAGE_TYPES,
    LISTS,
    OBJECTS,
    PARTS,
    SOUNDS,
    Field,
    audio_type,
    spelled,
)
from ng_capture.contracts.atif.values import CHECKS
from ng_capture.contracts.rules import Fault


def check_trajectory(value: object, place: Place) -> Iterator[Fault]:
    """The faults of a trajectory's shape and of all that is in it, embedded trajectories too."""
    return check_object(value, "trajectory", place.trajectory(value))


def check_object(value: object, name: str, place: Place) -> Iterator[Fault]:
    """The faults of one object of ATIF, by its name in the table."""
    if not isinstance(value, dict):
        yield place.wrong_type(value, "an object")
        return
    fields = OBJECTS[name]
    for field in fields.values():
        if field.required and field.name not in value:
            rule = "atif.schema_version.missing" if field.kind == "version" else "atif.field.missing"
            yield place.fault(rule, f"{name} has no {field.name}")
    for key, member in value.items():
        if key in fields:
            yield from _check_field(member, fields[key], place)
        else:
            yield place.at(key).fault("atif.field.unknown", f"{quoted(key)} is no field of {name}")


def _check_field(value: object, field: Field, place: Place) -> Iterator[Fault]:
    here = place.at(field.name)
    if value is None and not field.required:
        return
    if field.since > place.version:
        yield _too_new(field.name, field.since, here)
    yield from _check_value(value, field.kind, here)


def _check_value(value: object, kind: str, place: Place) -> Iterator[Fault]:
    if kind in CHECKS:
        yield from CHECKS[kind](value, place)
    elif kind == "content":
        yield from _check_content(value, place)
    elif kind in LISTS:
        yield from _check_list(value, kind, place)
    else:
        yield from check_object(value, kind, place)


def _check_list(value: object, kind: str, place: Place) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield place.wrong_type(value, "a list")
        return
    if kind == "steps" and not value:
        yield place.fault("atif.steps.empty", "the trajectory has no steps")
    for index, member in enumerate(value):
        if kind == "trajectories":
            yield from check_trajectory(member, place.at(index))
        elif kind == "steps":
            parent = Place(place.parts[:-1], version=place.version)
            yield from check_object(member, "step", parent.step_at(index, member))
        else:
            yield from check_object(member, LISTS[kind], place.at(index))


def _too_new(what: str, since: int, place: Place) -> Fault:
    message = f"{what} is of {spelled(since)}, the trajectory of {spelled(place.version)}"
    return place.fault("atif.version.field_too_new", message)


def _check_content(value: object, place: Place) -> Iterator[Fault]:
    if isinstance(value, str):
        return
    if not isinstance(value, list):
        yield place.wrong_type(value, "a text or a list of parts")
        return
    if place.version < PARTS:
        yield _too_new("content in parts", PARTS, place)
    for index, part in enumerate(value):
        yield from _check_part(part, place.at(index))


def _check_part(part: object, place: Place) -> Iterator[Fault]:
    kind = text_at(part, "type") if isinstance(part, dict) else None
    if isinstance(part, dict) and kind is not None and kind not in ("text", "image", "audio"):
        yield place.fault("atif.content.part", f"{quoted(kind)} is none of text, image, audio")
        return
    yield from check_object(part, "part", place)
    if not isinstance(part, dict) or kind is None:
        return
    if kind == "audio" and place.version < SOUNDS:
        yield _too_new("a sound", SOUNDS, place)
    needed, refused = ("text", "source") if kind == "text" else ("source", "text")
    if part.get(needed) is None:
        yield place.fault("atif.content.part", f"a part of type {kind} needs {needed}")
    if part.get(refused) is not None:
        yield place.fault("atif.content.part", f"a part of type {kind} has no {refused}")
    if kind != "text" and isinstance(part.get("source"), dict):
        yield from _check_media(part["source"], kind, place.at("source"))


def _check_media(source: Mapping[str, object], kind: str, place: Place) -> Iterator[Fault]:
    yield from check_object(source, f"{kind}_source", place)
    media_type = text_at(source, "media_type")
    if media_type is None:
        return
    here = place.at("media_type")
    registered = audio_type(media_type) if kind == "audio" else media_type
    if registered not in (AUDIO_TYPES if kind == "audio" else IMAGE_TYPES):
        yield here.fault("atif.content.media_type", f"{quoted(media_type)} is no media type of {kind} parts")
    elif registered != media_type:
        yield here.fault("atif.content.media_type_alias", f"{quoted(media_type)} is read as {registered}")
