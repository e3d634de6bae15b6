"""Every fault of a document at once, whatever contract it is of (contracts.md 1.3, 7.3)."""

from collections.abc import Iterator, Sequence

import msgspec

from ng_capture.contracts.interface import Contract
from ng_capture.contracts.recognition import recognise
from ng_capture.contracts.registry import validated
from ng_capture.contracts.rules import Fault
from ng_capture.errors import UsageError


class Validated(msgspec.Struct, frozen=True):
    """A source, what it was taken for, and its faults."""

    source: str
    contract: str
    faults: tuple[Fault, ...]


def validate(paths: Sequence[str], name: str | None) -> Iterator[Validated]:
    """Each source with its faults.

    Raises UsageError for what is not there, for what no contract knows, and for a contract that has no rules.
    """
    recognition = recognise(paths, name)
    for each in recognition.sources:
        check = each.reader.validate
        if check is None:
            raise UsageError(f"{each.source.name}: {each.contract.title} has no rules here", hint=_hint(each.contract))
        yield Validated(each.source.name, each.contract.name, tuple(check(each.source)))


def _hint(contract: Contract) -> str:
    return f"validate knows {', '.join(validated())}; not {contract.name}"
