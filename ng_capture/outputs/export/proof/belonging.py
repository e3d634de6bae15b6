"""What a receipt tells of each rollout, held against what is made of it again (design.md, Command line)."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ng_capture.files.names import FileKind
from ng_capture.outputs.documents import ReceiptFile
from ng_capture.outputs.parts import Part
from ng_capture.outputs.places import RowPlaces
from ng_capture.outputs.rebuild import Rebuilt
from ng_capture.records.snapshot import InputFile


class Entry(msgspec.Struct, frozen=True):
    """The entry of a rollout, with what decides whether it may be deleted."""

    rollout_id: str
    files: tuple[InputFile, ...]
    verdict: str
    reasons: tuple[str, ...]
    rows: tuple[int, ...]
    covered: bool
    metrics: Mapping[str, object]
    accounting: Mapping[str, object]

    @property
    def digests(self) -> frozenset[InputFile]:
        """Its files but for the state, which may have been sealed since."""
        return frozenset(file for file in self.files if not file.name.endswith(f".{FileKind.STATE}"))


_TOLD = ("verdict", "reasons", "rows", "covered", "metrics", "accounting")


class Entries:
    """The entries of a receipt; watches what is made again of their rollouts."""

    def __init__(self, receipt: ReceiptFile, part: Part | None) -> None:
        self._part = part
        self._rows = receipt.output.rows
        self._told = {entry.rollout_id: entry for entry in receipt.rollouts(Entry)}
        self._places = RowPlaces()
        self._found: list[str] = []

    def watch(self, results: Iterable[Rebuilt]) -> Iterator[Rebuilt]:
        """The same results."""
        for result in results:
            made = self._places.entry(result)
            told = None if made is None else self._told.pop(made.rollout_id, None)
            if made is not None and told is not None:
                there = msgspec.convert(msgspec.to_builtins(made), Entry)
                self._found += (f"{told.rollout_id}: {what}" for what in _contradictions(told, there))
                if self._part is not None and self._part.division.half(result.unit) != self._part.half:
                    self._found.append(f"{told.rollout_id}: its group belongs into the other half")
            yield result

    def contradictions(self) -> Iterator[str]:
        """What the receipt tells otherwise, once everything was made again."""
        yield from self._found
        for entry in self._told.values():
            if entry.files:
                yield f"{entry.rollout_id}: its captures are not among the paths"
        if self._rows != self._places.rows:
            yield f"{self._rows:,} rows are told of, {self._places.rows:,} are made"


def _contradictions(told: Entry, there: Entry) -> Iterator[str]:
    if told.digests != there.digests:
        yield "its captures are not those of the receipt"
        return
    for name in _TOLD:
        if (one := getattr(told, name)) != (other := getattr(there, name)):
            yield f"{name} is {one!r} in the receipt, the captures make it {other!r}"
