"""Documents converted as the command does it, from values: what was written, what was lost, what was refused."""

import contextlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ng_capture.contracts.conversion import Conversion
from ng_capture.contracts.episode import Episode
from ng_capture.contracts.interface import Contract, Options, Read, losses_between
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.recognition import recognise
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source

PLAIN = Options()


class Done(msgspec.Struct, frozen=True):
    """A conversion: the lines that were written, and all losses and faults."""

    lines: tuple[bytes, ...]
    losses: tuple[Loss, ...]
    faults: tuple[Fault, ...]

    @property
    def values(self) -> list[Any]:
        """The documents, decoded."""
        return [json.loads(line) for line in self.lines]

    @property
    def value(self) -> Any:
        """The one document."""
        [value] = self.values
        return value

    @property
    def codes(self) -> set[str]:
        """What was lost, by code."""
        return {loss.code for loss in self.losses}

    @property
    def rules(self) -> set[str]:
        """What was found wrong, by rule."""
        return {fault.rule for fault in self.faults}


def converted(value: object, source: Contract, target: Contract, options: Options = PLAIN) -> Done:
    """A document, given as a value or as the text of its file, from one contract to another."""
    with written(value) as file:
        return file_converted(Path(file.name), source, target, options)


def file_converted(path: Path, source: Contract, target: Contract, options: Options = PLAIN) -> Done:
    """A file from one contract to another; whatever is lost must be declared (contracts.md 3.3)."""
    assert source.reader is not None and target.writer is not None
    outcomes = list(Conversion(source.reader, target.writer, options).convert(Source(str(path))))
    losses = tuple(loss for each in outcomes for loss in each.losses)
    undeclared = {loss.code for loss in losses} - losses_between(source.reader, target.writer)
    assert not undeclared, f"{source.name} to {target.name} may not lose {sorted(undeclared)}"
    return Done(
        tuple(line for each in outcomes if each.written is not None for line in each.written.documents),
        losses,
        tuple(fault for each in outcomes for fault in each.faults),
    )


def episode_of(value: object, source: Contract, options: Options = PLAIN) -> Episode:
    """The episode of the one document."""
    with written(value) as file:
        assert source.reader is not None
        [outcome] = source.reader.read(Source(file.name), options)
    assert isinstance(outcome, Read)
    return outcome.episode


def recognised(value: object) -> str:
    """The name of the contract that a document is taken for."""
    with written(value) as file:
        [found] = recognise([file.name], None).sources
    return found.contract.name


def json_text(value: object) -> str:
    """Compact JSON, as documents are written."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def in_lines(values: Iterable[object]) -> str:
    """Documents a line each."""
    return "".join(f"{json_text(value)}\n" for value in values)


@contextlib.contextmanager
def written(value: object) -> Iterator[Any]:
    """A file of a value, or of a text as it stands, for as long as it is needed."""
    text = value if isinstance(value, str) else json_text(value)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(text.encode("utf-8", "surrogatepass"))
        file.flush()
        yield file
