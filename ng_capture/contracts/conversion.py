"""From one contract to another: every document of a source through an episode, its losses and faults beside it."""

import re
from collections.abc import Iterator
from pathlib import PurePath

import msgspec

from ng_capture.contracts.identity import content_digest
from ng_capture.contracts.interface import Options, Read, Reader, Refused, Writer, Written
from ng_capture.contracts.losses import Loss, lost, merged
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 160


class FileName(msgspec.Struct, frozen=True):
    """The name of a file in two, so that a number can be put between."""

    stem: str
    suffix: str


class Converted(msgspec.Struct, frozen=True):
    """One document: where it stood, the name of what was made of it, and what became of it.

    `written` is None where it was refused: `faults` say why, or, under `strict`, `losses`.
    """

    source: str
    place: str
    name: FileName
    written: Written | None
    losses: tuple[Loss, ...]
    faults: tuple[Fault, ...]


class Conversion(msgspec.Struct, frozen=True):
    """A conversion; `strict` refuses what would lose more than a note.

    `keeps_names` is for a contract that becomes itself: its documents name each other by their files.
    """

    reader: Reader
    writer: Writer
    options: Options = Options()
    strict: bool = False
    keeps_names: bool = False

    def convert(self, source: Source) -> Iterator[Converted]:
        """Every document of a source, one at a time; raises SurroundingsError for what cannot be read."""
        for outcome in self.reader.read(source, self.options):
            if isinstance(outcome, Refused):
                losses = merged(outcome.losses)
                yield Converted(
                    source.name, outcome.place, self._named(source, outcome, ""), None, losses, outcome.faults
                )
            elif outcome.episode.rollout_id is None or self.options.selection.takes(outcome.episode.rollout_id):
                yield self._written(source, outcome)
        # a reader of folders opens their files by itself, and tells
        if source.damage and not self.reader.folders:
            yield Converted(source.name, "", FileName(_stem(source), self.writer.suffix), None, (), source.damage)

    def _written(self, source: Source, read: Read) -> Converted:
        episode = msgspec.structs.replace(read.episode, losses=read.losses)
        main = episode.main
        name = self._named(source, read, episode.rollout_id or main.trajectory_id or main.session_id or "")
        done = self.writer.write(episode, self.options)
        losses = merged((*read.losses, *done.losses))
        if isinstance(done, Refused):
            return Converted(source.name, read.place, name, None, losses, (*read.faults, *done.faults))
        written = None if self.strict and any(lost(losses)) else done
        return Converted(source.name, read.place, name, written, losses, read.faults)

    def _named(self, source: Source, outcome: Read | Refused, name: str) -> FileName:
        kept = PurePath(source.file_name)
        if self.keeps_names and self.writer.whole and not outcome.place and kept.suffix:
            return FileName(kept.stem, kept.suffix)
        return FileName(file_stem(name) if name else _stem(source), self.writer.suffix)


def file_stem(name: str) -> str:
    """A name as a file may bear it: what is unsafe is an underscore; one that was changed is told apart by a digest."""
    safe = _UNSAFE.sub("_", name).lstrip(".-")[:_LONGEST]
    return safe if safe == name else f"{safe or 'episode'}-{content_digest(name)[:8]}"


def _stem(source: Source) -> str:
    return file_stem(source.file_name.split(".")[0] or source.file_name)
