"""Single values and plain lists: their types and ranges (contracts.md 1.2)."""

from collections.abc import Callable, Iterator
from typing import TypeGuard

from ng_capture.contracts.atif.place import Place, kind_of, quoted
from ng_capture.contracts.atif.schema import NEWEST, spelled, version_of
from ng_capture.contracts.atif.times import check_time
from ng_capture.contracts.rules import Fault, FaultSeverity

_SOURCES = ("system", "user", "agent")
MOST = 2**63 - 1
"""What is more is no count to anybody (records.usage.count)."""
Check = Callable[[object, Place], Iterator[Fault]]


def _check_version(value: object, place: Place) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield place.wrong_type(value, "a text")
    elif version_of(value) is None:
        known = f"{spelled(0)} to {spelled(NEWEST)}"
        yield place.fault("atif.schema_version.unknown", f"{quoted(value)} is none of {known}")


def _check_source(value: object, place: Place) -> Iterator[Fault]:
    if value not in _SOURCES:
        found = quoted(value) if isinstance(value, str) else kind_of(value)
        yield place.fault("atif.field.type", f"expected system, user or agent, found {found}")


def _check_arguments(value: object, place: Place) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield place.fault("atif.tool_call.arguments", f"arguments are an object, found {kind_of(value)}")


def _check_text(value: object, place: Place) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield place.wrong_type(value, "a text")


def _check_boolean(value: object, place: Place) -> Iterator[Fault]:
    if not isinstance(value, bool):
        yield place.wrong_type(value, "a boolean")


def _check_any_object(value: object, place: Place) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield place.wrong_type(value, "an object")


def _check_objects(value: object, place: Place) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield place.wrong_type(value, "a list of objects")
        return
    for index, member in enumerate(value):
        yield from _check_any_object(member, place.at(index))


def _check_effort(value: object, place: Place) -> Iterator[Fault]:
    if not isinstance(value, str) and not _is_number(value):
        yield place.wrong_type(value, "a text or a number")


def _integer(least: int | None, severity: FaultSeverity) -> Check:
    def check(value: object, place: Place) -> Iterator[Fault]:
        if type(value) is not int:
            yield place.wrong_type(value, "an integer")
        elif least is not None and value < least:
            yield place.fault("atif.number.range", f"{value} is below {least}", severity)
        elif least is not None and value > MOST:
            yield place.fault("atif.number.range", f"more than {MOST}, which 64 bits hold", "warning")

    return check


def _number(severity: FaultSeverity) -> Check:
    def check(value: object, place: Place) -> Iterator[Fault]:
        if not _is_number(value):
            yield place.wrong_type(value, "a number")
        elif value < 0:
            yield place.fault("atif.number.range", f"{value} is below 0", severity)

    return check


def _check_ids(value: object, place: Place) -> Iterator[Fault]:
    """One fault of each kind for the whole list, at its first place: lists are as long as prompts."""
    if not isinstance(value, list):
        yield place.wrong_type(value, "a list of integers")
        return
    odd = [index for index, each in enumerate(value) if type(each) is not int]
    if odd:
        yield place.at(odd[0]).wrong_type(value[odd[0]], f"an integer ({len(odd)} of {len(value)} are none)")
    below = [index for index, each in enumerate(value) if type(each) is int and each < 0]
    if below:
        message = f"{value[below[0]]} is below 0 ({len(below)} of {len(value)} ids)"
        yield place.at(below[0]).fault("atif.number.range", message, "warning")


def _check_numbers(value: object, place: Place) -> Iterator[Fault]:
    if not isinstance(value, list):
        yield place.wrong_type(value, "a list of numbers")
        return
    odd = [index for index, each in enumerate(value) if not _is_number(each)]
    if odd:
        yield place.at(odd[0]).wrong_type(value[odd[0]], f"a number ({len(odd)} of {len(value)} are none)")


def _is_number(value: object) -> TypeGuard[int | float]:
    return type(value) is int or isinstance(value, float)


CHECKS: dict[str, Check] = {
    "version": _check_version,
    "source": _check_source,
    "text": _check_text,
    "time": check_time,
    "boolean": _check_boolean,
    "object": _check_any_object,
    "objects": _check_objects,
    "arguments": _check_arguments,
    "effort": _check_effort,
    "integer": _integer(None, "error"),
    "count": _integer(0, "error"),
    "tally": _integer(0, "warning"),
    "cost": _number("warning"),
    "seconds": _number("error"),
    "ids": _check_ids,
    "numbers": _check_numbers,
}
