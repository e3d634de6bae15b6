"""What a document breaks: faults, and the rules that they name (contracts.md 1.3, 7.3)."""

from collections.abc import Iterable
from typing import Literal, cast

import msgspec

FaultSeverity = Literal["error", "warning", "info"]


class Rule(msgspec.Struct, frozen=True):
    """A rule of a contract: `name` begins with the contract's."""

    name: str
    severity: FaultSeverity
    meaning: str


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in a document that breaks a rule.

    `path` is a JSON pointer, empty for the document as a whole; `line` counts from 1; `step` is the number of the step,
    turn or event, where there is one; `file` names the file, or the rollout, where the source is several. `severity` is
    the rule's, or a milder one where the rule says so.
    """

    rule: str
    severity: FaultSeverity
    message: str
    path: str = ""
    line: int | None = None
    step: int | None = None
    file: str | None = None


def table(text: str) -> dict[str, Rule]:
    """The rules of a table: name, severity and meaning a line, a bar between them."""
    rows = (line.split(" | ") for line in text.strip().splitlines())
    return {name: Rule(name, cast(FaultSeverity, severity), meaning) for name, severity, meaning in rows}


def has_errors(faults: Iterable[Fault]) -> bool:
    """True if one of them makes the document unusable."""
    return any(fault.severity == "error" for fault in faults)


def pointer(*parts: str | int) -> str:
    """A JSON pointer (RFC 6901) to a member of members."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)
