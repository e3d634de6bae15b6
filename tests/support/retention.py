"""A capture directory whose rollouts are old and delivered, and what a cleaning run makes of it.

disk = Disk(tmp_path)
disk.add("r-1")                          # a trainable rollout, last written 30 days ago, with its lock file
disk.deliver()                           # rebuilt, with a receipt
disk.planned(older_than=14 * DAY)        # the decisions by id
disk.cleaned(older_than=14 * DAY)        # the same, carried out
"""

import contextlib
import fcntl
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ng_capture.files.listing import Listing, list_rollouts
from ng_capture.outputs.rebuild import rebuild
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.writer import RebuildWriter
from ng_capture.retention.asking import DAY, Permission
from ng_capture.retention.clean import Cleaning
from ng_capture.retention.execute import Carried
from ng_capture.retention.plan import PlannedRollout
from ng_capture.retention.receipts import Coverage, read_coverage
from ng_capture.retention.trash import TRASH, TrashPlan, plans_of
from ng_capture.verdicts.judging import Judging
from tests.support.forge import Forge

LONG_AGO = 1_700_000_000.0
OLD = 30 * DAY
TWO_WEEKS = 14 * DAY
NOTHING_COVERED = Coverage({}, {}, ())


def in_the_past(forge: Forge) -> Forge:
    """The same rollout, its records made long ago."""
    for call in forge.calls:
        call.fields.setdefault("created_at", LONG_AGO + call.number)
    return forge


def past(rollout_id: str, first: str = "a") -> Forge:
    """A trainable rollout of two calls, made long ago; `first` is the id of its first call."""
    forge = Forge(rollout_id)
    forge.root([1, 2], [3], id=first).then([4], [5], id=f"{first}-then")
    return in_the_past(forge)


def past_masked(rollout_id: str) -> Forge:
    """A rollout of two calls with a broken prefix, made long ago."""
    forge = Forge(rollout_id)
    forge.root([1, 2], [3], id="a").broken([1, 9, 9, 4], [5], id="b")
    return in_the_past(forge)


class Disk:
    """A capture directory, and the outputs beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.capture = root / "capture"
        self.capture.mkdir(parents=True, exist_ok=True)
        self.receipts: list[str] = []

    def add(self, rollout: str | Forge, *, age: float = OLD, lock: bool = True, **how: Any) -> Forge:
        """Write a rollout, and its lock file; `how` is that of the forge."""
        forge = past(rollout) if isinstance(rollout, str) else rollout
        forge.write(self.capture, **how)
        if lock:
            self.path(f"{forge.rollout_id}.tokens.lock").touch()
        self.grow_older(age, forge.rollout_id)
        return forge

    def path(self, name: str) -> Path:
        return self.capture / name

    def names(self, rollout_id: str = "") -> set[str]:
        """The files of the directory itself, of one rollout only where it is named."""
        found = (path.name for path in self.capture.iterdir() if path.name != TRASH)
        return {name for name in found if name.startswith(f"{rollout_id}." if rollout_id else "")}

    def grow_older(self, age: float, rollout_id: str = "") -> None:
        """Every file that is younger gets this age by the file system's clock; of one rollout where it is named."""
        probe = self.root / ".now"
        probe.touch()
        then = probe.stat().st_mtime_ns - int(age * 1e9)
        for path in map(self.path, self.names(rollout_id)):
            if path.is_file() and not path.is_symlink() and path.stat().st_mtime_ns > then:
                os.utime(path, ns=(then, then))

    def listing(self) -> Listing:
        return list_rollouts([str(self.capture)])

    def deliver(self, name: str = "out.jsonl", *, sealing: bool = False) -> str:
        """Rebuild all of it; gives the receipt."""
        output, how = self.root / name, Rebuild(shape=Shape.ROLLOUTS, judging=Judging(), sealing=sealing)
        with RebuildWriter(str(output), None, how, None) as writer:
            writer.write_all(rebuild(self.listing(), None, how))
        self.receipts.append(f"{output}.receipt.json")
        return self.receipts[-1]

    def cleaning(self, patience: float = 0.0, **permission: Any) -> Cleaning:
        return Cleaning(
            str(self.capture),
            self.listing(),
            Permission(**permission),
            read_coverage(self.receipts),
            patience=patience,
        )

    def planned(self, **permission: Any) -> dict[str, PlannedRollout]:
        return {each.rollout_id: each for each in self.cleaning(**permission).plan()}

    def told(self, **permission: Any) -> dict[str, str]:
        """The plan in one word a rollout: its action, or the reason why it is kept."""
        return {name: each.reason or each.action for name, each in self.planned(**permission).items()}

    def cleaned(self, **permission: Any) -> dict[str, Carried]:
        cleaning = self.cleaning(**permission)
        return {each.rollout_id: each for each in cleaning.carry_out(cleaning.plan())}

    @property
    def plans(self) -> list[TrashPlan]:
        return list(plans_of(str(self.capture)))

    def trashed(self) -> set[str]:
        """The names of the files in the trash, manifests and our own lock left out."""
        found = (self.capture / TRASH).glob("*/*")
        return {path.name for path in found if path.name != "manifest.jsonl"}


Contents = dict[str, tuple[bytes, int, int]]


def contents(directory: Path) -> Contents:
    """Bytes, time and permissions of every capture file in a directory; not of lock files, and nothing below it."""
    found = {}
    for path in directory.iterdir():
        if path.is_file() and not path.name.endswith(".lock"):
            status = path.stat()
            found[path.name] = (path.read_bytes(), status.st_mtime_ns, status.st_mode)
    return found


@contextlib.contextmanager
def held(lock: Path) -> Iterator[None]:
    """The lock is held for the block, by a descriptor of its own: that is another holder, whatever the process."""
    with open(lock, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def no_file_can_be_opened() -> Iterator[None]:
    """The process has no descriptor left for the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def mounted(tmp_path: Path, mountinfo: str, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a command to which the system tells these mounts, in a mount namespace of its own."""
    table = tmp_path / "mountinfo"
    table.write_bytes(os.fsencode(mountinfo))
    script = f'mount --bind "{table}" /proc/$$/mountinfo && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", script, "sh", *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)


CAN_MOUNT = (
    shutil.which("unshare") is not None
    and subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount --bind /dev/null /proc/$$/mountinfo"],
        capture_output=True,
        check=False,
    ).returncode
    == 0
)
