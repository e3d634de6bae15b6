"""Promise 7, held against the real command: killed and refused by the system at every one of its file operations.

`tests/support/shim` counts them and strikes at the n-th.
"""

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from ng_capture.retention.trash import TRASH, plans_of
from tests.support.command import COMMAND
from tests.support.retention import OLD, Contents, Disk, contents
from tests.support.struck import Ended, in_parallel, struck

# every error at every operation where there is time for it, else one after the other
ERRORS = ("ENOSPC", "EACCES", "EIO")
THOROUGH = os.environ.get("CI") == "true"
STATE = ".tokens.state.json"
LEFT_OVER = ".tokens-state-abcdefgh"
# what a run can do without: the line that names its holder, the clock's file without a name, the owner of a copy
HOLDER = ("open", "write")
CLOCK = ("open",)
# struck behind the last announcement nothing of the plan is left to bring back, which is wrong use
DONE_OR_NOTHING_LEFT = (0, 2)


class Scene(NamedTuple):
    """A directory of three delivered rollouts, or the same in the trash; what the command does to it, in events."""

    root: Path
    original: Contents
    events: tuple[str, ...] = ()

    def place(self, root: Path) -> Path:
        """A copy, times included; gives the capture directory."""
        shutil.copytree(self.root, root, copy_function=shutil.copy2)
        return root / "capture"

    def gc(self, capture: Path, **shim: str | int) -> Ended:
        receipt = capture.parent / "out.jsonl.receipt.json"
        metrics = capture.parent / "gc.prom"
        return struck("gc", capture, "--delivered-to", receipt, "--older-than", "14d", "--prometheus", metrics, **shim)

    def restore(self, capture: Path, **shim: str | int) -> Ended:
        (plan,) = plans_of(str(self.root / "capture"))
        return struck("trash", "restore", capture, plan.name, **shim)

    def payload(self) -> dict[str, tuple[bytes, int]]:
        return {name: told[:2] for name, told in self.original.items() if not name.endswith(STATE)}

    def check(self, capture: Path) -> None:
        """Each payload file lies in exactly one place with its bytes and its time; no original state is lost."""
        places = [capture, *(path for path in (capture / TRASH).glob("*") if path.is_dir())]
        found = [{name: told[:2] for name, told in contents(place).items()} for place in places]
        for name, told in self.payload().items():
            assert [place[name] for place in found if name in place] == [told], name
        for name, (data, _, _) in self.original.items():
            assert any(place[name][0] == data for place in found if name in place), name

    def check_moved(self, capture: Path) -> None:
        """All of it went: only lock files and tombstones are left, and a restore gives back what was there."""
        # what a killed writer left is young
        left = {path.name for path in capture.iterdir() if path.is_file() and not path.name.startswith(".")}
        assert {name for name in left if not name.endswith((".lock", STATE))} == set()
        back = struck("trash", "restore", capture, "r-1", "r-2", "r-3")
        assert back.code == 0, back
        self.check_back(capture)

    def check_back(self, capture: Path) -> None:
        """It is as it was."""
        now = {name: told[:2] for name, told in contents(capture).items() if not name.startswith(".")}
        then = {name: told[:2] for name, told in self.original.items()}
        assert {name for name in now.keys() | then.keys() if now.get(name) != then.get(name)} == set()


def at_each(strike: Callable[[int], None], numbers: Iterable[int]) -> None:
    """Strike at every event; fails with all at which something was wrong."""
    wrong: dict[int, str] = {}

    def struck_once(number: int) -> None:
        try:
            strike(number)
        except AssertionError as error:
            wrong[number] = str(error).splitlines()[0][:240]

    in_parallel(struck_once, numbers)
    assert not wrong, "\n".join(f"at event {number}: {what}" for number, what in sorted(wrong.items()))


def made(root: Path) -> Scene:
    disk = Disk(root)
    disk.add("r-1", raw=True)
    disk.add("r-2")
    disk.add("r-3", state=False)
    disk.deliver()
    original = contents(disk.capture)
    disk.path(LEFT_OVER).touch()
    disk.grow_older(OLD, "")
    os.utime(disk.path(LEFT_OVER), (1, 1))
    return Scene(root, original)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    root = tmp_path_factory.mktemp("gc")
    scene = made(root / "scene")
    capture, log = scene.place(root / "undisturbed"), root / "log"
    assert scene.gc(capture, log=str(log)).code == 0
    scene.check(capture)
    scene.check_moved(capture)
    return scene._replace(events=tuple(log.read_text().split()))


@pytest.fixture(scope="module")
def emptied(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    root = tmp_path_factory.mktemp("restore")
    scene = made(root / "scene")
    Disk(scene.root).receipts.append(str(scene.root / "out.jsonl.receipt.json"))
    assert scene.gc(scene.root / "capture").code == 0
    capture, log = scene.place(root / "undisturbed"), root / "log"
    assert scene.restore(capture, log=str(log)).code == 0
    scene.check_back(capture)
    return scene._replace(events=tuple(log.read_text().split()))


def test_the_shim_sees_what_a_gc_does(scene: Scene) -> None:
    assert scene.events.count("rename") == len(scene.payload())
    assert scene.events.count("unlink") == 1 and scene.events.count("utime") == 2


def test_nothing_moves_before_the_manifest_and_the_fence_are_on_the_disk(scene: Scene) -> None:
    """For each rollout: the announcement synced, the tombstone in place and its directory synced, then the renames."""
    first = scene.events.index("rename")
    before = scene.events[:first]
    assert before[-2:] == ("replace", "fsync")
    assert before.count("replace") == 2 and "utime" in before
    last = len(scene.events) - scene.events[::-1].index("rename")
    assert scene.events[last : last + 2] == ("fsync", "fsync")


def test_a_gc_killed_at_any_operation_leaves_each_file_in_one_place_and_the_next_run_completes(
    scene: Scene, tmp_path: Path
) -> None:
    def strike(event: int) -> None:
        capture = scene.place(tmp_path / str(event))
        assert scene.gc(capture, at=event, how="kill").code == -signal.SIGKILL
        scene.check(capture)
        again = scene.gc(capture)
        assert again.code == 0, again.err
        scene.check(capture)
        scene.check_moved(capture)

    at_each(strike, range(1, len(scene.events) + 1))


def test_a_gc_killed_again_and_again_gets_done(scene: Scene, tmp_path: Path) -> None:
    capture = scene.place(tmp_path / "often")
    for event in (28, 33, 30, 21, 24, 27):
        scene.gc(capture, at=event, how="kill")
        scene.check(capture)
    assert scene.gc(capture).code == 0
    scene.check(capture)
    assert {path.name for path in capture.iterdir() if path.name.endswith(".jsonl")} == set()


def test_a_restore_killed_at_any_operation_loses_nothing_and_the_next_one_completes(
    emptied: Scene, tmp_path: Path
) -> None:
    def strike(event: int) -> None:
        capture = emptied.place(tmp_path / str(event))
        assert emptied.restore(capture, at=event, how="kill").code == -signal.SIGKILL
        emptied.check(capture)
        again = emptied.restore(capture)
        assert again.code in DONE_OR_NOTHING_LEFT, again.err
        emptied.check_back(capture)

    at_each(strike, range(1, len(emptied.events) + 1))


def test_a_restore_killed_at_any_operation_leaves_what_a_gc_can_take_again(emptied: Scene, tmp_path: Path) -> None:
    def strike(event: int) -> None:
        capture = emptied.place(tmp_path / str(event))
        emptied.restore(capture, at=event, how="kill")
        again = emptied.gc(capture)
        assert again.code == 0, again.err
        emptied.check(capture)
        emptied.check_moved(capture)

    at_each(strike, range(1, len(emptied.events) + 1, 1 if THOROUGH else 4))


def error_at(event: int) -> str:
    """Each operation meets one of the errors, each error one operation in three."""
    return ERRORS[event % len(ERRORS)]


def test_an_error_at_any_operation_of_a_gc_is_named_and_loses_nothing(scene: Scene, tmp_path: Path) -> None:
    silent = []

    def strike(event: int) -> None:
        error = error_at(event)
        capture = scene.place(tmp_path / f"{event}-{error}")
        done = scene.gc(capture, at=event, how=error)
        case = f"{error} instead of {scene.events[event - 1]} {event}: {done}"
        scene.check(capture)
        if done.code == 0:
            silent.append(event)
        else:
            assert done.code == 3 and "Traceback" not in done.err, case
            assert str(capture.parent) in done.err, case
            assert os.strerror(getattr(errno, error)) in done.err, case
        assert scene.gc(capture).code == 0, case
        scene.check(capture)
        scene.check_moved(capture)

    at_each(strike, range(1, len(scene.events) + 1))
    begin = scene.events.index("mkdir") + 3
    assert scene.events[begin : begin + 3] == (*HOLDER, *CLOCK)
    spared = {begin + 1, begin + 2, begin + 3, *(n for n, name in enumerate(scene.events, 1) if name == "chown")}
    assert set(silent) <= spared, [(event, scene.events[event - 1]) for event in silent]


def test_an_error_in_one_rollout_never_stops_the_others(scene: Scene, tmp_path: Path) -> None:
    """Struck anywhere in the work on the second rollout: the third goes, and the log is told."""
    moves = [index + 1 for index, name in enumerate(scene.events) if name == "rename"]
    first = len([name for name in scene.payload() if name.startswith("r-1.")])
    second = len([name for name in scene.payload() if name.startswith("r-2.")])
    begin, end = moves[first - 1] + 3, moves[first + second - 1] + 2

    def strike(event: int) -> None:
        capture = scene.place(tmp_path / str(event))
        done = scene.gc(capture, at=event, how="EIO")
        case = f"{scene.events[event - 1]} {event}: {done}"
        assert "r-2" in done.err and done.code == 3, case
        assert "1 failed" in done.err, case
        assert not (capture / "r-3.tokens.jsonl").exists() and not (capture / "r-1.tokens.jsonl").exists(), case

    at_each(strike, range(begin, end + 1))


def test_an_error_at_any_operation_of_a_restore_is_named_and_loses_nothing(emptied: Scene, tmp_path: Path) -> None:
    assert emptied.events[1:3] == HOLDER
    holder = (2, 3)

    def strike(event: int) -> None:
        error = error_at(event)
        capture = emptied.place(tmp_path / f"{event}-{error}")
        done = emptied.restore(capture, at=event, how=error)
        case = f"{error} instead of {emptied.events[event - 1]} {event}: {done}"
        emptied.check(capture)
        if event in holder:
            assert done.code == 0, case
            return
        assert done.code == 3 and "Traceback" not in done.err and str(capture) in done.err, case
        assert emptied.restore(capture).code in DONE_OR_NOTHING_LEFT, case
        emptied.check_back(capture)

    at_each(strike, range(1, len(emptied.events) + 1))


def test_a_manifest_line_that_does_not_fit_on_the_disk_announces_nothing_and_nothing_moves(tmp_path: Path) -> None:
    """The system writes what fits and says how much that was; the next line must not hang on the cut one."""
    disk = Disk(tmp_path)
    for name in ("r-1", "r-2"):
        disk.add(name, state=False)
    disk.deliver()
    original = contents(disk.capture)
    words = ("gc", disk.capture, "--delivered-to", disk.receipts[0], "--older-than", "14d")
    for limit in range(120, 400, 40):
        done = struck(*words, limit=limit)
        assert done.code == 0 or "too large" in done.err, (limit, done)
        told = {file.name for plan in disk.plans for rollout in plan.rollouts() for file in rollout.files}
        assert disk.trashed() <= told, limit
    assert struck(*words).code == 0
    for name in ("r-1", "r-2"):
        assert struck("trash", "restore", disk.capture, name).code == 0
    assert contents(disk.capture) == original


def test_a_read_only_file_is_moved_as_it_is(scene: Scene, tmp_path: Path) -> None:
    capture = scene.place(tmp_path / "read-only")
    for path in capture.glob("r-1.*.jsonl"):
        path.chmod(0o444)
    assert scene.gc(capture).code == 0
    scene.check(capture)


STRACE = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=rename", "-e"]
TRACED = (
    shutil.which("strace") is not None
    and subprocess.run([*STRACE, "inject=rename:error=EIO", "true"], capture_output=True, check=False).returncode == 0
)


@pytest.mark.skipif(not TRACED, reason="strace is not installed, or may not trace")
@pytest.mark.parametrize("how", ["signal=SIGKILL", "error=EIO", "error=ENOSPC"])
def test_what_the_shim_shows_the_system_itself_shows_too(scene: Scene, how: str, tmp_path: Path) -> None:
    def strike(number: int) -> None:
        capture = scene.place(tmp_path / str(number))
        receipt = capture.parent / "out.jsonl.receipt.json"
        words = [COMMAND, "gc", str(capture), "--delivered-to", str(receipt), "--older-than", "14d"]
        line = [*STRACE, f"inject=rename:{how}:when={number}", *words]
        done = subprocess.run(line, capture_output=True, timeout=60, check=False)
        assert done.returncode in ((-signal.SIGKILL, 128 + signal.SIGKILL) if "signal" in how else (3,)), done
        scene.check(capture)
        assert scene.gc(capture).code == 0
        scene.check(capture)
        scene.check_moved(capture)

    # one replace is that of the gauges, which are not asked for here
    at_each(strike, range(1, scene.events.count("rename") + scene.events.count("replace"), 1 if THOROUGH else 3))
