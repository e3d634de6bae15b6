"""Promises 1 to 3, held against real processes: killed, interrupted and out of space at every one of their writes.

`tests/support/shim` counts what a process does to the file system and strikes at the n-th event.
"""

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.forge import Forge, write_rows

SHIM = str(Path(__file__).parent / "support" / "shim")
PROGRAM = [sys.executable, "-c", "from ng_capture_cli.main import run; run()"]
AT_ONCE = 2


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: bytes
    err: str


def run(*arguments: str | Path, limit: int | None = None, **shim: str | Path | int) -> Ended:
    """Run `ng-capture`; `log`, `at` and `how` are for the shim, `limit` is the greatest size of a file."""
    env = os.environ | {f"NG_SHIM_{key.upper()}": str(value) for key, value in shim.items()}
    env |= {
        "PYTHONPATH": os.pathsep.join([SHIM, *filter(None, [env.get("PYTHONPATH")])]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    lower = None if limit is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)], env=env, capture_output=True, timeout=60, check=False, preexec_fn=lower
    )
    return Ended(done.returncode, done.stdout, done.stderr.decode())


def in_parallel(function: Callable[[int], None], count: int) -> None:
    """The function of 1..count; what it raises is raised here."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(function, range(1, count + 1)))


def tree(directory: Path) -> dict[str, tuple[bytes, int, int, int]]:
    """Every file and directory with its bytes and what the system says of it."""
    found = {}
    for path in sorted([directory, *directory.rglob("*")]):
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (data, status.st_mode, status.st_mtime_ns, status.st_ctime_ns)
    return found


class Scene(NamedTuple):
    """A command that writes, what lies there before, and what must lie there afterwards."""

    capture: Path
    arguments: tuple[str, ...]
    before: dict[str, bytes]
    after: dict[str, bytes]
    events: int

    def place(self, directory: Path) -> Path:
        """A directory with what lies there before."""
        directory.mkdir()
        for name, data in self.before.items():
            (directory / name).write_bytes(data)
        return directory

    def run(self, directory: Path, **shim: str | int) -> Ended:
        return run("rebuild", self.capture, *self.arguments, "-q", "-o", directory / "out.jsonl", **shim)

    def check(self, directory: Path) -> None:
        """The output is the old one or the whole new one; a receipt is that of the output that is there."""
        old, new = self.before.get("out.jsonl"), self.after["out.jsonl"]
        output = (directory / "out.jsonl").read_bytes() if (directory / "out.jsonl").exists() else None
        assert output in (old, new)
        receipt = directory / "out.jsonl.receipt.json"
        if receipt.exists():
            data = receipt.read_bytes()
            assert data == (self.after if output == new else self.before)[receipt.name]
            told = json.loads(data)["output"]
            assert output is not None and told["sha256"] == hashlib.sha256(output).hexdigest()
            assert told["size"] == len(output)

    def check_clean(self, directory: Path) -> None:
        assert {path.name for path in directory.iterdir()} <= set(self.after)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rollouts, one of them masked, and their finished rows."""
    directory = tmp_path_factory.mktemp("capture")
    rows = []
    for name in ("r-1", "r-2", "r-10"):
        forge = Forge(name)
        answer = forge.root([1, 2], [3, 4]).then([5], [6])
        rows.append(forge.row(answer))
        forge.write(directory, raw=True)
    broken = Forge("r-3")
    rows.append(broken.row(broken.root([1], [2]).broken([9], [8])))
    broken.write(directory, intents=False)
    write_rows(directory.parent / "rows.jsonl", rows)
    return directory


def made(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.fixture(scope="module", params=["anew", "over an older output", "rows over rollouts, without a receipt"])
def scene(request: pytest.FixtureRequest, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Rebuilds: the events are counted by the first run, which nothing strikes."""
    arguments = ("--rollouts", str(capture.parent / "rows.jsonl"))
    before: dict[str, bytes] = {}
    directory = tmp_path_factory.mktemp("made")
    if request.param != "anew":
        older = Scene(capture, ("--include", "r-1"), {}, {}, 0)
        assert older.run(directory).code == 0
        before = made(directory)
    if "without" in request.param:
        arguments += ("--to", "rows", "--policy", "all")
        del before["out.jsonl.receipt.json"]
    log = directory.parent / f"{directory.name}.log"
    first = Scene(capture, arguments, before, {}, 0)
    done = first.run(directory, log=str(log))
    assert done == Ended(0, b"", "")
    return first._replace(after=made(directory), events=len(log.read_text().splitlines()))


def test_the_shim_sees_the_writes_that_are_made_by_a_rebuild(scene: Scene) -> None:
    assert set(scene.after) == {"out.jsonl", "out.jsonl.receipt.json"}
    assert scene.after["out.jsonl"] != scene.before.get("out.jsonl")
    # two files, each opened, written in pieces, synced, renamed, its directory synced
    assert scene.events >= 2 * 5


@pytest.mark.parametrize("how", ["kill", "torn"])
def test_a_rebuild_killed_at_any_write_leaves_the_old_output_or_the_whole_new_one(
    scene: Scene, how: str, tmp_path: Path
) -> None:
    def strike(event: int) -> None:
        directory = scene.place(tmp_path / str(event))
        assert scene.run(directory, at=event, how=how).code == -signal.SIGKILL
        scene.check(directory)

    in_parallel(strike, scene.events)
    whole = scene.place(tmp_path / "whole")
    assert scene.run(whole, at=scene.events + 1, how=how).code == 0
    assert made(whole) == scene.after


def test_after_a_kill_the_same_command_ends_as_if_nothing_had_been(scene: Scene, tmp_path: Path) -> None:
    directory = scene.place(tmp_path / "out")
    for event in (scene.events // 2, scene.events - 2):
        assert scene.run(directory, at=event, how="kill").code == -signal.SIGKILL
    assert scene.run(directory).code == 0
    assert {name: data for name, data in made(directory).items() if not name.startswith(".")} == scene.after


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "SIGINT-after", "SIGTERM-after"])
def test_a_rebuild_interrupted_at_any_write_leaves_nothing_half_written(scene: Scene, how: str, tmp_path: Path) -> None:
    code = 128 + getattr(signal, how.removesuffix("-after"))

    def strike(event: int) -> None:
        directory = scene.place(tmp_path / str(event))
        done = scene.run(directory, at=event, how=how)
        assert (done.code, done.out) == (code, b"")
        assert len(done.err.splitlines()) == 1 and done.err.endswith("nothing half written\n")
        scene.check(directory)
        scene.check_clean(directory)

    in_parallel(strike, scene.events)


@pytest.mark.parametrize("how", ["ENOSPC", "EIO", "EACCES"])
def test_a_write_that_fails_is_one_line_and_exit_code_3(scene: Scene, how: str, tmp_path: Path) -> None:
    def strike(event: int) -> None:
        directory = scene.place(tmp_path / str(event))
        done = scene.run(directory, at=event, how=how)
        assert (done.code, done.out) == (3, b"")
        assert len(done.err.splitlines()) == 1 and done.err.startswith(f"ng-capture: {directory}")
        scene.check(directory)
        scene.check_clean(directory)

    in_parallel(strike, scene.events)
