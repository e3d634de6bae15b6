"""Which rollouts lie in the paths of a command line; names only, never a stat (performance.md, Scale)."""

import os
from collections.abc import Container, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import ENDINGS, CaptureName, Compression, FileKind, names_of, parse_name
from ng_capture.natural_order import natural_key

_WILDCARDS = frozenset("*?[")


class RolloutFiles(NamedTuple):
    """The files of one rollout: its directory and their names, sorted."""

    rollout_id: str
    directory: str
    names: tuple[CaptureName, ...]

    def of_kind(self, kind: FileKind) -> list[CaptureName]:
        return [name for name in self.names if name.kind is kind]

    def only(self, kinds: Container[FileKind]) -> "RolloutFiles":
        """Those of the files that are of these kinds."""
        return self._replace(names=tuple(name for name in self.names if name.kind in kinds))

    def including(self, kind: FileKind) -> "RolloutFiles":
        """The same files and one more of this kind, uncompressed, that was made since."""
        name = CaptureName(self.rollout_id, kind, Compression.NONE)
        return self if name in self.names else self._replace(names=(*self.names, name))

    def path(self, name: CaptureName) -> str:
        return os.path.join(self.directory, str(name))  # noqa: PTH118 (a million of them)


class Selection(NamedTuple):
    """Patterns on rollout ids; an empty `include` takes all."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, rollout_id: str) -> bool:
        if any(fnmatchcase(rollout_id, pattern) for pattern in self.exclude):
            return False
        return not self.include or any(fnmatchcase(rollout_id, pattern) for pattern in self.include)

    def literal_ids(self) -> tuple[str, ...] | None:
        """The ids named, when every pattern is a plain id: then no directory needs to be listed."""
        if not self.include or any(_WILDCARDS & set(pattern) for pattern in self.include):
            return None
        return self.include


EVERYTHING = Selection()


class Listing:
    """The rollouts of some paths in natural order of their ids.

    Holds an id, its directory and the set of its names as small numbers: a run has a million of them.
    """

    def __init__(self) -> None:
        self._directories: list[str] = []
        self._selections: list[Selection] = []
        self._found: dict[str, tuple[int, int]] = {}
        self._named: Container[str] | None = None

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, rollout_id: object) -> bool:
        return rollout_id in self._found

    @property
    def ids(self) -> Iterator[str]:
        """Rollout ids in no order."""
        return iter(self._found)

    def __iter__(self) -> Iterator[RolloutFiles]:
        for rollout_id in sorted(self._found, key=natural_key):
            yield self.get(rollout_id)

    def only(self, rollout_ids: Container[str]) -> "Listing":
        """The same paths, where nothing but these rollouts is asked for."""
        kept = Listing()
        kept._directories = self._directories
        kept._found = {rollout_id: place for rollout_id, place in self._found.items() if rollout_id in rollout_ids}
        kept._named = rollout_ids
        return kept

    def asks_for(self, rollout_id: str) -> bool:
        """True for a rollout that was found, and for one that would belong to a directory that was asked for."""
        if self._named is not None:
            return rollout_id in self._named
        return rollout_id in self._found or any(selection.takes(rollout_id) for selection in self._selections)

    def get(self, rollout_id: str) -> RolloutFiles:
        """The files of one rollout; KeyError if it was not found."""
        directory, bits = self._found[rollout_id]
        names = tuple(name for bit, name in enumerate(names_of(rollout_id)) if bits >> bit & 1)
        return RolloutFiles(rollout_id, self._directories[directory], names)

    def add_directory(self, directory: str, selection: Selection) -> None:
        """Take the rollouts of a directory; raises UsageError for an id that another path holds too."""
        index = self._index(directory)
        self._selections.append(selection)
        literal = selection.literal_ids()
        if literal is not None:
            for rollout_id in literal:
                # an id that is a path would lead out of the directory
                if "/" not in rollout_id and selection.takes(rollout_id):
                    self._add_present(index, rollout_id)
            return
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    name = parse_name(entry.name)
                    if name is not None and selection.takes(name.rollout_id):
                        self._add(index, name)
        except OSError as error:
            raise SurroundingsError(f"{directory}: cannot be listed: {error.strerror}") from error

    def add_file(self, path: Path, selection: Selection) -> None:
        """Take the rollout that the file belongs to, with all its files."""
        name = parse_name(path.name)
        if name is None:
            raise UsageError(
                f"{path}: no capture file: its name does not end in .tokens.jsonl or .capture.jsonl",
                hint=f"give the directory instead: {path.parent}",
            )
        if selection.takes(name.rollout_id):
            self._add_present(self._index(str(path.parent)), name.rollout_id)

    def _index(self, directory: str) -> int:
        for index, known in enumerate(self._directories):
            if Path(known).samefile(directory):
                return index
        self._directories.append(directory)
        return len(self._directories) - 1

    def _add_present(self, index: int, rollout_id: str) -> None:
        for name in names_of(rollout_id):
            if os.path.lexists(os.path.join(self._directories[index], str(name))):  # noqa: PTH118
                self._add(index, name)

    def _add(self, index: int, name: CaptureName) -> None:
        known, bits = self._found.get(name.rollout_id, (index, 0))
        if known != index:
            raise UsageError(
                f"rollout {name.rollout_id} is in two paths: {self._directories[known]} and {self._directories[index]}",
                hint="give one of them, or leave the rollout out with --exclude",
            )
        self._found[name.rollout_id] = index, bits | 1 << ENDINGS.index((name.kind, name.compression))


def list_rollouts(paths: Sequence[str], selection: Selection = EVERYTHING) -> Listing:
    """The rollouts of directories and files; raises UsageError for a path that does not exist."""
    for path in paths:
        if not Path(path).exists():
            raise UsageError(f"{path}: no such file or directory")
    listing = Listing()
    for path in paths:
        if Path(path).is_dir():
            listing.add_directory(path, selection)
        else:
            listing.add_file(Path(path), selection)
    return listing
