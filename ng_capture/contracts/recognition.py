"""What the sources of a conversion are: by content, or by the name that the user gives."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ng_capture.contracts.conversion import head_of
from ng_capture.contracts.interface import Contract, Head, Reader
from ng_capture.contracts.registry import CONTRACTS, readable, reader_of
from ng_capture.contracts.sources import Source, files_in
from ng_capture.errors import UsageError


class Recognised(msgspec.Struct, frozen=True):
    """A source and the contract that it is read as."""

    source: Source
    contract: Contract

    @property
    def reader(self) -> Reader:
        assert self.contract.reader is not None
        return self.contract.reader


class Recognition(msgspec.Struct, frozen=True):
    """What is to be read, in order; `passed_over` are files of folders that no reader knows."""

    sources: tuple[Recognised, ...]
    passed_over: tuple[str, ...] = ()

    @property
    def paths(self) -> list[Path]:
        """Where the sources lie."""
        return [each.source.path for each in self.sources if each.source.path is not None]


def recognise(paths: Sequence[str], name: str | None) -> Recognition:
    """The contracts of files, folders and `-`.

    Raises UsageError for a path that is not there, a file that nothing is known of, and where nothing is left to read;
    SurroundingsError for what cannot be opened.
    """
    if name is not None:
        reader_of(name)
    found, passed_over = list[Recognised](), list[str]()
    for path in paths:
        source = Source(path)
        contract = _contract_of(source, name)
        if contract is not None:
            found.append(Recognised(source, contract))
        elif source.is_folder and source.path is not None:
            for inner in map(Source, files_in(source.path)):
                known = _contract_of(inner, name)
                if known is None:
                    passed_over.append(inner.name)
                else:
                    found.append(Recognised(inner, known))
        else:
            raise UsageError(f"{source.name}: {_unknown(head_of(source))}", hint=_hint())
    if not found:
        raise UsageError(f"{', '.join(paths)}: nothing that can be read", hint=_hint())
    return Recognition(tuple(found), tuple(passed_over))


def _contract_of(source: Source, name: str | None) -> Contract | None:
    """The contract that a source is, or is said to be; a folder only where the contract reads folders."""
    if name is None:
        head = head_of(source)
        return next((each for each in _readers() if each.reader is not None and each.reader.recognises(head)), None)
    contract = next(each for each in _readers() if each.name == name)
    assert contract.reader is not None
    return contract if contract.reader.folders or not source.is_folder else None


def _readers() -> Iterator[Contract]:
    return (each for each in CONTRACTS if each.reader is not None)


def _unknown(head: Head) -> str:
    return "empty" if head.value is None else "no contract that is known"


def _hint() -> str:
    return f"say what it is: --from {', '.join(readable())}"
