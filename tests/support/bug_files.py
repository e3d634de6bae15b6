"""What lies in a folder before and after a run, and the claims of `expected.files` about it."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Entry:
    """A name in a folder: `file`, `link` or `folder`; digest or target; time of the last change."""

    kind: str
    content: str
    changed: int


Tree = Mapping[str, Entry]


def tree_of(root: Path) -> dict[str, Entry]:
    """Every name below a folder, by its path in it; folders too, since a file that came and went changes their time."""
    found: dict[str, Entry] = {}
    todo = [""]
    while todo:
        here = todo.pop()
        for entry in os.scandir(root / here):
            path = f"{here}{entry.name}"
            status = entry.stat(follow_symlinks=False)
            if entry.is_symlink():
                found[path] = Entry("link", str(Path(entry.path).readlink()), status.st_mtime_ns)
            elif entry.is_dir():
                found[path] = Entry("folder", "", status.st_mtime_ns)
                todo.append(f"{path}/")
            else:
                found[path] = Entry("file", _digest(Path(entry.path)) if status.st_size else "", status.st_mtime_ns)
    return found


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class Change:
    """A folder before and after a run; `outputs` are the paths that the run was asked to write.

    `complete` makes the whole new content of a file, as a run that nothing disturbs writes it.
    """

    root: Path
    before: Tree
    after: Tree
    outputs: tuple[str, ...] = ()
    complete: Callable[[str], bytes | None] = field(default=lambda path: None)

    def problems(self, expected: object) -> Iterator[str]:
        """What contradicts `expected.files`."""
        if expected == "unchanged":
            yield from self._everything_unchanged()
            return
        assert isinstance(expected, dict), f"files: {expected!r} is not understood"
        for key, value in expected.items():
            check = _CHECKS.get(key)
            if check is None:
                yield f"files: nothing checks {key!r}"
            else:
                yield from (f"files: {problem}" for problem in check(self, value))

    def created(self) -> list[str]:
        """New files that nobody asked for."""
        files = (path for path in self.after.keys() - self.before.keys() if self.after[path].kind != "folder")
        return sorted(path for path in files if path not in self.outputs)

    def _everything_unchanged(self) -> Iterator[str]:
        written = {str(Path(path).parent) for path in self.outputs} | set(self.outputs)
        for path, entry in self.before.items():
            if path not in written and self.after.get(path) != entry:
                yield f"files: {path} was changed or removed"
        yield from (f"files: {path} is new" for path in self.created())

    def _created(self, expected: list[str]) -> Iterator[str]:
        if self.created() != sorted(expected):
            yield f"created {self.created()}, expected {expected}"

    def _removed(self, expected: list[str]) -> Iterator[str]:
        yield from (f"{path} is still there" for path in expected if path in self.after)
        yield from (f"{path} was not there" for path in expected if path not in self.before)

    def _unchanged(self, expected: list[str]) -> Iterator[str]:
        for path in expected:
            if path not in self.before or self.after.get(path) != self.before[path]:
                yield f"{path} was changed or removed"

    def _whole_lines_only(self, expected: list[str]) -> Iterator[str]:
        for path in expected:
            data = (self.root / path).read_bytes()
            if data and not data.endswith(b"\n"):
                yield f"{path} does not end in a line break"
            for number, line in enumerate(data.splitlines(), 1):
                if not isinstance(_json(line), dict):
                    yield f"{path}:{number} is not one JSON object"

    def _old_or_complete(self, expected: list[str]) -> Iterator[str]:
        for path in expected:
            if path not in self.after or self.after[path] == self.before.get(path):
                continue
            if (self.root / path).read_bytes() != self.complete(path):
                yield f"{path} is neither absent, nor the old one, nor the whole new one"

    def _nothing_outside(self, folder: str) -> Iterator[str]:
        inside = (folder.rstrip("/"), folder.rstrip("/") + "/")
        for path in self.created():
            if not path.startswith(inside[1]):
                yield f"{path} is new outside of {folder}"

    def _distinct_ignoring_case(self, folder: str) -> Iterator[str]:
        names = [Path(path).name for path in self.after if str(Path(path).parent) == folder.rstrip("/")]
        folded = [name.casefold() for name in names]
        yield from (
            f"{name} differs from another name in case only" for name in names if folded.count(name.casefold()) > 1
        )

    def _no_temporary_files(self, folder: str) -> Iterator[str]:
        below = folder.rstrip("/") + "/"
        for path in self.created():
            if path.startswith(below) and (Path(path).name.startswith(".") or path.endswith(".tmp")):
                yield f"{path} was left behind"


def _json(line: bytes) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


_CHECKS: dict[str, Callable[[Change, Any], Iterator[str]]] = {
    "created": Change._created,
    "removed": Change._removed,
    "unchanged": Change._unchanged,
    "whole_lines_only": Change._whole_lines_only,
    "old_or_complete": Change._old_or_complete,
    "nothing_outside": Change._nothing_outside,
    "distinct_ignoring_case": Change._distinct_ignoring_case,
    "no_temporary_files": Change._no_temporary_files,
}
