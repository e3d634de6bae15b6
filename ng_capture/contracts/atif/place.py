"""Where in a document something stands, and the faults that are told of it."""

from collections.abc import Mapping

import msgspec

from ng_capture.contracts.atif.rule_table import RULES
from ng_capture.contracts.atif.schema import NEWEST, version_of
from ng_capture.contracts.rules import Fault, FaultSeverity, pointer
from ng_capture.records.json_text import printable

_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "an integer", float: "a number"}


class Place(msgspec.Struct, frozen=True):
    """A place: the way to it, the step that it is in, and the version that its trajectory says it is."""

    parts: tuple[str | int, ...] = ()
    step: int | None = None
    version: int = NEWEST

    def at(self, *parts: str | int) -> "Place":
        """A member, or a member of members."""
        return msgspec.structs.replace(self, parts=(*self.parts, *parts))

    def step_at(self, index: int, step: object) -> "Place":
        """A step of this trajectory: its number, or its position where it has none."""
        number = step.get("step_id") if isinstance(step, dict) else None
        inside = self.at("steps", index)
        return msgspec.structs.replace(inside, step=number if type(number) is int else index + 1)

    def trajectory(self, value: object) -> "Place":
        """The same place, with the version of the trajectory that stands there; without a known one the newest."""
        version = version_of(value.get("schema_version")) if isinstance(value, dict) else None
        return msgspec.structs.replace(self, step=None, version=NEWEST if version is None else version)

    def fault(self, rule: str, message: str, severity: FaultSeverity | None = None) -> Fault:
        """A fault here, as severe as its rule or, where that is given, milder."""
        path = pointer(*(printable(part) if isinstance(part, str) else part for part in self.parts))
        return Fault(rule, severity or RULES[rule].severity, message, path, step=self.step)

    def wrong_type(self, value: object, expected: str) -> Fault:
        """The fault of a value of another type."""
        return self.fault("atif.field.type", f"expected {expected}, found {kind_of(value)}")


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    return _KINDS.get(type(value), "null")


def quoted(value: object) -> str:
    """A value as a message shows it: the beginning of its text."""
    text = printable(str(value))
    return f"'{text}'" if len(text) <= 60 else f"'{text[:57]}...'"


def whole(value: object) -> int | None:
    """An integer; None for anything else, booleans too."""
    return value if type(value) is int else None


def text_at(value: Mapping[str, object], key: str) -> str | None:
    """A text member, None where there is none."""
    member = value.get(key)
    return member if isinstance(member, str) else None
