"""Every fault of a document at once, whatever contract it is of (contracts.md 1.3, 7.3)."""

from collections.abc import Callable, Iterator

import msgspec

from ng_capture.contracts.interface import Contract
from ng_capture.contracts.recognition import Recognised, Recognition
from ng_capture.contracts.registry import validated
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from ng_capture.errors import UsageError


class Validated(msgspec.Struct, frozen=True):
    """A source, what it was taken for, and its faults."""

    source: str
    contract: str
    faults: tuple[Fault, ...]


def validate(recognition: Recognition) -> Iterator[Validated]:
    """Each source with its faults; what has no rules is told as such.

    Raises UsageError where no source has rules.
    """
    checks = [each.reader.validate for each in recognition.sources]
    if not any(checks):
        first = recognition.sources[0]
        message = f"{first.source.name}: {first.contract.title}: has no rules here"
        raise UsageError(message, hint=f"validate knows {', '.join(validated())}")
    for each, check in zip(recognition.sources, checks, strict=True):
        faults = (_unchecked(each.contract),) if check is None else _faults(each, check)
        yield Validated(each.source.name, each.contract.name, faults)


def _faults(recognised: Recognised, check: Callable[[Source], Iterator[Fault]]) -> tuple[Fault, ...]:
    faults = tuple(check(recognised.source))
    # a reader of folders opens their files by itself, and tells
    return faults if recognised.reader.folders else (*faults, *recognised.source.damage)


def _unchecked(contract: Contract) -> Fault:
    return Fault(
        f"{contract.name}.unchecked", "warning", f"{contract.title}: has no rules here, so nothing was checked"
    )
