"""What the sources of a conversion are: by content, or by the name that the user gives."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ng_capture.contracts.interface import Contract, Head, Reader
from ng_capture.contracts.registry import CONTRACTS, reader_of
from ng_capture.contracts.sources import Source, entries_of
from ng_capture.contracts.unknown import UNKNOWN, is_damaged


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
    """The contracts of files, folders and `-`; what none recognises is read as UNKNOWN, which refuses it.

    What is named twice, by itself and by its folder, is read once: rows that stand twice would be trained twice.
    Files of a folder that are of no contract are passed over, but for those of JSON that is damaged. Raises UsageError
    for a path that is not there and a name that is not known, SurroundingsError for what cannot be opened.
    """
    if name is not None:
        reader_of(name)
    found, passed_over = list[Recognised](), list[str]()
    seen = set[Path]()
    for source in map(Source, paths):
        if _is_again(source, seen):
            continue
        contract = _contract_of(source, name)
        if contract is not None or not source.is_folder:
            found.append(Recognised(source, contract or UNKNOWN))
            continue
        any_known = False
        for inner in _inside(source, name):
            again = _is_again(inner, seen)
            contract = None if again else _contract_of(inner, name) or (UNKNOWN if is_damaged(inner) else None)
            if contract is not None:
                found.append(Recognised(inner, contract))
            elif not again:
                passed_over.append(inner.name)
            any_known |= again or contract is not None
        if not any_known:
            found.append(Recognised(source, UNKNOWN))
    return Recognition(tuple(found), tuple(passed_over))


def _is_again(source: Source, seen: set[Path]) -> bool:
    """True for a file or folder that was seen before; it counts as seen from now on."""
    if source.path is None:
        return False
    path, before = source.path.resolve(), len(seen)
    seen.add(path)
    return len(seen) == before


def _inside(folder: Source, name: str | None) -> Iterator[Source]:
    """The files of a folder and of the folders in it, but for those folders that a contract reads as one."""
    for inner in map(Source, entries_of(folder)):
        if inner.is_folder and _contract_of(inner, name) is None:
            yield from _inside(inner, name)
        else:
            yield inner


def head_of(source: Source) -> Head:
    """What tells what a source is: its name, and the value of its first line, of all of it, or of a line that is read.

    Of a folder it is the list of the names in it.
    """
    if source.is_folder:
        return Head(source.file_name, True, source.names())
    first = next(source.lines(""), None)
    if first is not None and not first.careful.read:
        whole = source.document("")
        readable = (line.value for line in source.lines("") if isinstance(line.value, dict))
        return Head(source.file_name, False, whole.value if whole.read else next(readable, None))
    return Head(source.file_name, False, None if first is None else first.value)


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
