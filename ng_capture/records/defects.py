"""What was wrong with the bytes, the records or their links: a name of the registry and the place and numbers."""

from collections.abc import Mapping

import msgspec


class Defect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fault. `reason` is a name of reasons.md; fields that do not apply are None.

    `byte` counts in the uncompressed stream; `position` is an index into the generation, the prompt or the log
    probabilities; `first_difference` an index into the parent's sequence, with the ids expected and found there.
    """

    reason: str
    file: str | None = None
    line: int | None = None
    lines: tuple[int, ...] | None = None
    byte: int | None = None
    call: str | None = None
    calls: tuple[str, ...] | None = None
    parent: str | None = None
    position: int | None = None
    first_difference: int | None = None
    expected: int | str | None = None
    found: int | float | str | None = None
    tokens: int | None = None
    logprobs: int | None = None
    choices: int | None = None
    usage: int | None = None
    ids: int | None = None
    count: int | None = None
    detail: str | None = None

    def at(self, **place: object) -> "Defect":
        """The same fault with more of its place known."""
        return msgspec.structs.replace(self, **place)

    @property
    def key(self) -> tuple[str, ...]:
        """Order that does not depend on how files or lines were read."""
        values: Mapping[str, object] = msgspec.structs.asdict(self)
        line = f"{self.line or 0:012d}"
        return (self.file or "", line, *("" if value is None else str(value) for value in values.values()))
