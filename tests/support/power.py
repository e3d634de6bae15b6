"""What a power cut may leave of a directory: what was synced, and of the rest any part.

    steps = recorded(journal)               # of a command that ran under `shim` with NG_SHIM_TREE and NG_SHIM_JOURNAL
    for tree in after_cuts(before, steps):
        put(tree, directory)

A name lasts once its directory was synced, bytes, times and permissions once their file was. Until then each may be
kept or lost by itself. A rename is one change of both its directories: journaling file systems never lose a half of it.
"""

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Node(NamedTuple):
    """A file as it lies there; `data` is None for a directory."""

    inode: int
    mode: int
    mtime_ns: int
    data: bytes | None


Tree = Mapping[str, Node]


class Step(NamedTuple):
    """An event, the file or directory that it was about where that was open, and what lay there afterwards."""

    name: str
    target: str
    tree: Tree


def recorded(journal: Path) -> list[Step]:
    """The events of a command in their order."""
    steps = []
    with journal.open("rb") as file:
        while file.peek(1):
            name, target, tree = pickle.load(file)
            steps.append(Step(name, target, {path: Node(*told) for path, told in tree.items()}))
    return steps


def look(directory: Path) -> Tree:
    """What lies in a directory now."""
    found = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        data = None if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(directory))] = Node(status.st_ino, status.st_mode, status.st_mtime_ns, data)
    return found


def put(tree: Tree, directory: Path) -> None:
    """Make a directory that holds just this."""
    directory.mkdir(parents=True, exist_ok=True)
    for path, node in sorted(tree.items()):
        place = directory / path
        if node.data is None:
            place.mkdir()
            continue
        place.write_bytes(node.data)
        place.chmod(node.mode & 0o7777)
        os.utime(place, ns=(node.mtime_ns, node.mtime_ns))


def after_cuts(before: Tree, steps: Iterable[Step]) -> Iterator[Tree]:
    """What a cut after each step may leave, each once: all, nothing, one or all but one of what was not synced."""
    disk = _Disk(before)
    seen: set[tuple[tuple[str, int, int, bytes | None], ...]] = set()
    for step in steps:
        disk.do(step)
        for tree in disk.left():
            told = tuple((path, node.mode, node.mtime_ns, node.data) for path, node in sorted(tree.items()))
            if told not in seen:
                seen.add(told)
                yield tree


class _Disk:
    """Names and contents that last, and those that are there now."""

    def __init__(self, before: Tree) -> None:
        self._names = {path: node.inode for path, node in before.items()}
        self._nodes = {node.inode: node for node in before.values()}
        self._now: Tree = before

    def do(self, step: Step) -> None:
        self._now = step.tree
        if step.name not in ("fsync", "fdatasync"):
            return
        node = step.tree.get(step.target)
        if node is not None and node.data is not None:
            self._nodes[node.inode] = node
            return
        for group in self._changes():
            if any(str(Path(path).parent) == step.target for path in group):
                self._keep(self._names, group)

    def left(self) -> Iterator[Tree]:
        groups = self._changes()
        kept_sets = [[], groups]
        for group in groups:
            kept_sets += [[group], [each for each in groups if each is not group]]
        for kept in kept_sets:
            names = dict(self._names)
            for group in kept:
                self._keep(names, group)
            for synced in (True, False):
                yield self._tree(names, synced)

    def _tree(self, names: Mapping[str, int], synced: bool) -> Tree:
        """The files under these names: with what was synced alone, or with all that was written."""
        now = {node.inode: node for node in self._now.values()}
        tree: dict[str, Node] = {}
        for path, inode in sorted(names.items()):
            parent = str(Path(path).parent)
            if parent not in (".", *tree):
                # the name of its directory did not last
                continue
            known = self._nodes.get(inode)
            current = now.get(inode, known)
            assert current is not None
            if synced and current.data is not None:
                current = known or current._replace(data=b"")
            tree[path] = current
        return tree

    def _changes(self) -> list[set[str]]:
        """Names that are not as they last; those of one file change together."""
        now = {path: node.inode for path, node in self._now.items()}
        groups: list[tuple[set[str], set[int]]] = []
        for path in sorted(now.keys() | self._names.keys()):
            inodes = {inode for inode in (now.get(path), self._names.get(path)) if inode is not None}
            if now.get(path) == self._names.get(path):
                continue
            mine, others = ({path}, inodes), []
            for group in groups:
                if group[1] & mine[1]:
                    mine = (mine[0] | group[0], mine[1] | group[1])
                else:
                    others.append(group)
            groups = [*others, mine]
        return [paths for paths, _ in groups]

    def _keep(self, names: dict[str, int], group: Iterable[str]) -> None:
        for path in group:
            if path in self._now:
                names[path] = self._now[path].inode
            else:
                names.pop(path, None)
