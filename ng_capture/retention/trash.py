"""The trash of a capture directory: plans with a manifest each, in the same file system (design.md, promise 7).

`.trash/<plan>/manifest.jsonl` names every file before it moves. A payload file is in the directory or in the plan,
never in both; of the state the original lies in the plan while the tombstone stands in the directory.
"""

import contextlib
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.names import FileKind
from ng_capture.files.writing import append_line

TRASH = ".trash"
MANIFEST = "manifest.jsonl"
# Gym's state writer, and our own: dot, name, eight hex digits
TEMPORARY = re.compile(r"\.tokens-state-[^.\s]+|\..+\.[0-9a-f]{8}\.tmp")
_NAME = re.compile(r"[0-9]{6,}-[0-9]{8}T[0-9]{6}Z")


class TrashedFile(msgspec.Struct, frozen=True):
    """A file of a plan, with the time that it keeps."""

    name: str
    size: int
    mtime_ns: int


class TrashedRollout(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout of a plan: its payload files, and its original state where it had one.

    `tombstone` tells that a retired state was left in the directory; `restored` that all of it went back.
    """

    rollout_id: str
    why: str
    files: tuple[TrashedFile, ...]
    state: TrashedFile | None
    tombstone: bool
    restored: bool = False

    @property
    def all_files(self) -> tuple[TrashedFile, ...]:
        return self.files if self.state is None else (*self.files, self.state)


class TrashPlan:
    """One plan in the trash of a directory; names of plans sort by when they were made, whatever the clock did."""

    def __init__(self, directory: str, name: str) -> None:
        self.directory = Path(directory)
        self.name = name
        self.path = self.directory / TRASH / name

    @classmethod
    def new(cls, directory: str) -> Self:
        """The plan after all that are there; not made yet."""
        trash = Path(directory, TRASH)
        names = [path.name for path in trash.iterdir()] if trash.is_dir() else []
        numbers = [int(name.split("-")[0]) for name in names if _NAME.fullmatch(name)]
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return cls(directory, f"{max(numbers, default=0) + 1:06d}-{stamp}")

    @property
    def manifest(self) -> Path:
        return self.path / MANIFEST

    def announce(self, rollout: TrashedRollout) -> None:
        """Write a rollout into the manifest, durably, before anything of it moves."""
        append_line(self.manifest, msgspec.json.encode(rollout))

    def rollouts(self) -> list[TrashedRollout]:
        """What the manifest tells of every rollout last; a line that was cut by a kill announced nothing that moved.

        Raises SurroundingsError where it cannot be read.
        """
        return [entry for entry in self._entries() if not entry.restored]

    def names(self) -> frozenset[str]:
        """Every file that the manifest names, whatever became of it; raises SurroundingsError."""
        return frozenset(file.name for entry in self._entries() for file in entry.all_files)

    def _entries(self) -> Iterable[TrashedRollout]:
        found: dict[str, TrashedRollout] = {}
        try:
            data = self.manifest.read_bytes() if self.manifest.exists() else b""
        except OSError as error:
            raise SurroundingsError(f"{self.manifest}: cannot be read: {error.strerror}") from error
        for line in data.splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                entry = msgspec.json.decode(line, type=TrashedRollout)
                found[entry.rollout_id] = entry
        return found.values()

    def holds(self, rollout: TrashedRollout) -> bool:
        """True if anything of the rollout lies in the plan."""
        return any((self.path / file.name).exists() for file in rollout.all_files)

    @property
    def made_at(self) -> float:
        """When its last rollout came, in seconds since 1970, by the file system's clock."""
        return (self.manifest if self.manifest.exists() else self.path).stat().st_mtime


def state_file(directory: Path, rollout_id: str) -> Path:
    """Where the state of a rollout lies, or its tombstone."""
    return directory / f"{rollout_id}.{FileKind.STATE}"


def plans_of(directory: str) -> Iterator[TrashPlan]:
    """The plans in the trash of a directory, the oldest first; what else lies there is nobody's plan."""
    trash = Path(directory, TRASH)
    if not trash.is_dir() or trash.is_symlink():
        return
    for path in sorted(trash.iterdir()):
        if _NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            plan = TrashPlan(directory, path.name)
            # one without a manifest was made, or purged, by a run that was killed
            if plan.manifest.is_file() or not any(path.iterdir()):
                yield plan
