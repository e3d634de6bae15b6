"""The trash of a capture directory: plans with a manifest each, in the same file system (design.md, promise 7).

`.trash/<plan>/manifest.jsonl` names every file before it moves. A payload file is in the directory or in the plan,
never in both; of the state the original lies in the plan while the tombstone stands in the directory.
"""

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec

from ng_capture.files.names import FileKind
from ng_capture.files.writing import append_line

TRASH = ".trash"
MANIFEST = "manifest.jsonl"
_NAME = re.compile(r"[0-9]+-.*")


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


class TrashPlan:
    """One plan in the trash of a directory; names of plans sort by when they were made, whatever the clock did."""

    def __init__(self, directory: str, name: str) -> None:
        self.directory = Path(directory)
        self.name = name
        self.path = self.directory / TRASH / name

    @classmethod
    def new(cls, directory: str) -> Self:
        """The plan after all that are there; not made yet."""
        numbers = [int(plan.name.split("-")[0]) for plan in plans_of(directory) if _NAME.fullmatch(plan.name)]
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return cls(directory, f"{max(numbers, default=0) + 1:06d}-{stamp}")

    @property
    def manifest(self) -> Path:
        return self.path / MANIFEST

    def announce(self, rollout: TrashedRollout) -> None:
        """Write a rollout into the manifest, durably, before anything of it moves."""
        append_line(self.manifest, msgspec.json.encode(rollout))

    def rollouts(self) -> list[TrashedRollout]:
        """What the manifest tells of every rollout last; a line that was cut by a kill announced nothing that moved."""
        found: dict[str, TrashedRollout] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in self.manifest.read_bytes().splitlines():
                with contextlib.suppress(msgspec.DecodeError):
                    entry = msgspec.json.decode(line, type=TrashedRollout)
                    found[entry.rollout_id] = entry
        return [entry for entry in found.values() if not entry.restored]

    @property
    def made_at(self) -> float:
        """When its last rollout came, in seconds since 1970, by the file system's clock."""
        return (self.manifest if self.manifest.exists() else self.path).stat().st_mtime


def state_file(directory: Path, rollout_id: str) -> Path:
    """Where the state of a rollout lies, or its tombstone."""
    return directory / f"{rollout_id}.{FileKind.STATE}"


def plans_of(directory: str) -> Iterator[TrashPlan]:
    """The plans in the trash of a directory, the oldest first."""
    trash = Path(directory, TRASH)
    if trash.is_dir() and not trash.is_symlink():
        for path in sorted(trash.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield TrashPlan(directory, path.name)


def announced(directory: str) -> dict[str, TrashPlan]:
    """For every rollout that a manifest names the last plan that does."""
    return {rollout.rollout_id: plan for plan in plans_of(directory) for rollout in plan.rollouts()}
