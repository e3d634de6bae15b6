"""What no contract recognises: refused by name, or told as damaged (contracts.md 9.9)."""

from collections.abc import Iterator
from pathlib import PurePath

from ng_capture.contracts.interface import Contract, Options, Reader, Refused
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source

_SUFFIXES = {".json", ".jsonl", ".ndjson"}
_SHOWN = 5


def _faults(source: Source) -> Iterator[Fault]:
    """Why there is no reading it: the fault of its JSON, or that it looks like nothing that is known."""
    if source.is_folder:
        yield Fault("unknown.contract", "error", "nothing in the folder is known")
        return
    first = next(source.lines("unknown"), None)
    careful = source.document("unknown") if first is None or not first.careful.read else first.careful
    if not careful.read:
        yield from careful.faults
    else:
        yield Fault("unknown.contract", "error", f"of no contract that is known: {_shown(careful.value)}")


def _refuse(source: Source, _options: Options) -> Iterator[Refused]:
    yield Refused(tuple(_faults(source)))


UNKNOWN = Contract(
    "unknown",
    "of no contract that is known",
    "nothing",
    "nothing",
    reader=Reader(lambda _head: True, _refuse, gives=frozenset(), validate=_faults),
)


def is_damaged(source: Source) -> bool:
    """True for a file that is named as JSON, where no line and not the whole is a JSON value."""
    if PurePath(source.file_name).suffix.lower() not in _SUFFIXES:
        return False
    return not any(line.careful.read for line in source.lines("")) and not source.document("").read


def _shown(value: object) -> str:
    if isinstance(value, dict):
        keys = [str(key) for key in value][:_SHOWN]
        more = ", ..." if len(value) > _SHOWN else ""
        return f"an object with {', '.join(keys)}{more}" if keys else "an empty object"
    return "a list" if isinstance(value, list) else "neither object nor list"
