"""Promises 1 to 3, held against real processes: killed, interrupted and out of space at every one of their writes.

`tests/support/struck.py` strikes at the n-th thing that a process does to the file system.
"""

import hashlib
import json
import shutil
import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ng_capture import load
from tests.support.forge import Forge, write_rows
from tests.support.struck import ROOT_ONLY, Ended, in_parallel, struck, tree


def made(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


class Scene(NamedTuple):
    """A rebuild, what lies where it writes before, what must lie there afterwards, and its events."""

    capture: Path
    name: str
    arguments: tuple[str, ...]
    before: dict[str, bytes] = {}  # noqa: RUF012 (never changed)
    after: dict[str, bytes] = {}  # noqa: RUF012
    events: tuple[str, ...] = ()

    def place(self, directory: Path) -> Path:
        """A directory with what lies there before."""
        directory.mkdir()
        for name, data in self.before.items():
            (directory / name).write_bytes(data)
        return directory

    def run(self, directory: Path, **shim: str | int) -> Ended:
        return struck("rebuild", self.capture, *self.arguments, "-q", "-o", directory / self.name, **shim)

    def tried(self, log: Path) -> "Scene":
        """The same, with its outcome and its events as a first run has them, which nothing strikes."""
        directory = self.place(log.with_suffix(".out"))
        assert self.run(directory, log=str(log)) == Ended(0, b"", "")
        return self._replace(after=made(directory), events=tuple(log.read_text().split()))

    def check(self, directory: Path) -> None:
        """The output is the old one or the whole new one; a receipt is that of the output that is there."""
        found = made(directory)
        output, receipt = found.get(self.name), found.get(f"{self.name}.receipt.json")
        assert output in (self.before.get(self.name), self.after[self.name])
        if receipt is not None:
            assert receipt in (self.before.get(f"{self.name}.receipt.json"), self.after[f"{self.name}.receipt.json"])
            told = json.loads(receipt)["output"]
            assert output is not None
            assert (told["size"], told["sha256"]) == (len(output), hashlib.sha256(output).hexdigest())

    def check_clean(self, directory: Path) -> None:
        """No temporary file is left."""
        assert set(made(directory)) <= set(self.after)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rollouts, one of them masked, and their finished rows."""
    directory = tmp_path_factory.mktemp("scene") / "capture"
    rows = []
    for name in ("r-1", "r-2", "r-10"):
        forge = Forge(name)
        rows.append(forge.row(forge.root([1, 2], [3, 4]).then([5], [6])))
        forge.write(directory, raw=True)
    broken = Forge("r-3")
    rows.append(broken.row(broken.root([1], [2]).broken([9], [8])))
    broken.write(directory, intents=False)
    write_rows(directory.parent / "rows.jsonl", rows)
    return directory


ROWS = ("--to", "rows", "--policy", "all")


@pytest.fixture(scope="module", params=["anew", "over an older output"])
def scene(request: pytest.FixtureRequest, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    log = tmp_path_factory.mktemp("made") / "log"
    before = {}
    if request.param != "anew":
        before = Scene(capture, "out.jsonl", ROWS).tried(log.with_name("older")).after
    return Scene(capture, "out.jsonl", ("--rollouts", str(capture.parent / "rows.jsonl")), before).tried(log)


def test_the_shim_sees_what_a_rebuild_writes(scene: Scene) -> None:
    assert set(scene.after) == {"out.jsonl", "out.jsonl.receipt.json"}
    assert scene.after["out.jsonl"] != scene.before.get("out.jsonl")
    assert scene.events.count("open") >= 2 and scene.events.count("write") > 4


def test_a_file_is_synced_before_it_gets_its_name_and_the_directory_after(scene: Scene) -> None:
    renamed = [index for index, name in enumerate(scene.events) if name == "replace"]
    assert len(renamed) == 2
    for index in renamed:
        assert scene.events[index - 1] == scene.events[index + 1] == "fsync"


def test_a_rebuild_killed_at_any_write_leaves_the_old_output_or_the_whole_new_one(scene: Scene, tmp_path: Path) -> None:
    def strike(event: int) -> None:
        directory = scene.place(tmp_path / str(event))
        assert scene.run(directory, at=event, how="kill").code == -signal.SIGKILL
        scene.check(directory)

    in_parallel(strike, range(1, len(scene.events) + 1))


@pytest.mark.parametrize(("name", "first"), [("out.parquet", 1), ("out.arrow", 3)])
def test_a_table_is_there_whole_or_not_at_all(capture: Path, tmp_path: Path, name: str, first: int) -> None:
    scene = Scene(capture, name, ROWS).tried(tmp_path / "log")

    def strike(event: int) -> None:
        directory = scene.place(tmp_path / str(event))
        assert scene.run(directory, at=event, how="kill").code == -signal.SIGKILL
        scene.check(directory)

    in_parallel(strike, range(first, len(scene.events) + 1, 5))


DATASET = ("--to", "llamafactory")
SPLIT = (*DATASET, "--split-by", "group", "--val", "0.5")


@pytest.mark.parametrize("older", [True, False], ids=["over an older dataset", "anew"])
def test_a_dataset_is_the_old_one_or_the_whole_new_one(capture: Path, tmp_path: Path, older: bool) -> None:
    """What loads at any moment is one of them, a receipt implies it, and the next run ends as if nothing had been."""
    rows = ("--rollouts", str(capture.parent / "rows.jsonl"))
    before = (*DATASET, *rows, "--include", "r-1")
    after = (*DATASET, *rows) if older else (*SPLIT, *rows)
    halves = [""] if older else ["train", "validation"]

    template = tmp_path / "template"
    template.mkdir()
    if older:
        assert struck("rebuild", capture, *before, "-q", "-o", template / "out").code == 0

    def place(name: str) -> Path:
        return Path(shutil.copytree(template, tmp_path / name))

    def run(directory: Path, **shim: str | int) -> Ended:
        return struck("rebuild", capture, *after, "-q", "-o", directory / "out", **shim)

    def told(directory: Path) -> list[list[Any]]:
        return [[row.fields for row in load(directory / "out" / half)] for half in halves]

    old = told(template) if older else []
    log = tmp_path / "log"
    whole = place("whole")
    assert run(whole, log=str(log)) == Ended(0, b"", "")
    new, files = told(whole), contents(whole)
    assert old != new

    def strike(event: int) -> None:
        directory = place(str(event))
        assert run(directory, at=event, how="kill").code == -signal.SIGKILL
        if older:
            assert told(directory) in (old, new)
        for receipt in directory.rglob("*.receipt.json"):
            output = json.loads(receipt.read_text())["output"]
            data = (receipt.parent / output["name"]).read_bytes()
            assert (output["size"], output["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert run(directory).code == 0
        found = contents(directory)
        assert {name: data for name, data in found.items() if not name.endswith(".tmp")} == files

    in_parallel(strike, range(1, len(log.read_text().split()) + 1, 5))


def test_a_dataset_that_finds_no_room_leaves_nothing(capture: Path, tmp_path: Path) -> None:
    for limit in (0, 300, 800):
        done = struck("rebuild", capture, *DATASET, "-q", "-o", tmp_path / "out", limit=limit)
        assert (done.code, done.out, len(done.err.splitlines())) == (3, b"", 1)
        assert list(tmp_path.iterdir()) == []


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_after_a_kill_the_same_command_ends_as_if_nothing_had_been(scene: Scene, tmp_path: Path) -> None:
    directory = scene.place(tmp_path / "out")
    for event in (len(scene.events) // 2, len(scene.events) - 2):
        assert scene.run(directory, at=event, how="kill").code == -signal.SIGKILL
    assert scene.run(directory).code == 0
    assert {name: data for name, data in made(directory).items() if not name.startswith(".")} == scene.after


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM-after"])
def test_a_rebuild_interrupted_at_any_write_leaves_nothing_half_written(scene: Scene, how: str, tmp_path: Path) -> None:
    code = 128 + getattr(signal, how.removesuffix("-after"))

    def strike(event: int) -> None:
        directory = scene.place(tmp_path / str(event))
        done = scene.run(directory, at=event, how=how)
        assert (done.code, done.out, "Traceback" in done.err) == (code, b"", False)
        scene.check(directory)
        scene.check_clean(directory)

    in_parallel(strike, range(1, len(scene.events) + 1))


@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_an_interrupted_rebuild_says_so_in_one_line(scene: Scene, how: str, tmp_path: Path) -> None:
    done = scene.run(scene.place(tmp_path / "out"), at=len(scene.events) // 2, how=how)
    assert len(done.err.splitlines()) == 1 and done.err.endswith("nothing half written\n")


@pytest.mark.parametrize("how", ["SIGINT-group", "SIGTERM-group"])
def test_an_interrupt_of_the_whole_group_ends_every_process_without_a_traceback(
    capture: Path, how: str, tmp_path: Path
) -> None:
    scene = Scene(capture, "out.jsonl", ("--jobs", "2")).tried(tmp_path / "log")
    directory = scene.place(tmp_path / "out")
    # it returns when every process that holds its pipes has ended
    done = scene.run(directory, at=scene.events.index("write") + 1, how=how)
    assert (done.code, "Traceback" in done.err) == (128 + getattr(signal, how.removesuffix("-group")), False)
    assert made(directory) == {}


def test_a_full_disk_is_one_line_and_exit_code_3(scene: Scene, tmp_path: Path) -> None:
    def strike(event: int) -> None:
        directory = scene.place(tmp_path / str(event))
        done = scene.run(directory, at=event, how="ENOSPC")
        assert (done.code, done.out, len(done.err.splitlines())) == (3, b"", 1)
        assert done.err.startswith(f"ng-capture: {directory}") and "No space left" in done.err
        scene.check(directory)
        scene.check_clean(directory)

    in_parallel(strike, range(1, len(scene.events) + 1))


@pytest.mark.parametrize("limit", [0, 500, 4000])
def test_a_file_that_may_not_grow_is_one_line_and_exit_code_3(scene: Scene, limit: int, tmp_path: Path) -> None:
    directory = scene.place(tmp_path / "out")
    done = scene.run(directory, limit=limit)
    assert (done.code, done.out, len(done.err.splitlines())) == (3, b"", 1)
    assert done.err.startswith(f"ng-capture: {directory}") and "too large" in done.err
    assert made(directory).get("out.jsonl") == scene.before.get("out.jsonl")
    scene.check(directory)
    scene.check_clean(directory)


def test_a_directory_that_may_not_be_written_is_one_line_and_exit_code_3(scene: Scene, tmp_path: Path) -> None:
    directory = scene.place(tmp_path / "out")
    before = tree(directory)
    done = scene.run(directory, at=1, how="EACCES")
    assert (done.code, done.out, len(done.err.splitlines())) == (3, b"", 1)
    assert done.err.startswith(f"ng-capture: {directory}") and "Permission denied" in done.err
    assert tree(directory) == before


@pytest.mark.skipif(ROOT_ONLY, reason="root may write everywhere")
def test_a_read_only_directory_is_one_line_and_exit_code_3(scene: Scene, tmp_path: Path) -> None:
    directory = scene.place(tmp_path / "out")
    directory.chmod(0o555)
    before = tree(directory)
    done = scene.run(directory)
    assert (done.code, done.out, len(done.err.splitlines())) == (3, b"", 1)
    assert done.err.startswith(f"ng-capture: {directory}") and "Permission denied" in done.err
    assert tree(directory) == before


def test_a_seal_killed_at_any_write_leaves_the_old_state_or_the_whole_new_one(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1, 2], [3]).then([4], [5])

    def sealed(number: int, **shim: str | int) -> tuple[Path, Ended]:
        directory = tmp_path / str(number)
        forge.write(directory)
        return directory, struck("rebuild", directory, "--seal", "-q", "-o", tmp_path / f"{number}.jsonl", **shim)

    log = tmp_path / "log"
    assert sealed(0, log=str(log))[1] == Ended(0, b"", "")
    written = {name: data for name, data in forge.files().items() if "state" not in name}

    def strike(event: int) -> None:
        directory, ended = sealed(event, at=event, how="kill")
        assert ended.code == -signal.SIGKILL
        state = json.loads((directory / "r-1.tokens.state.json").read_bytes())
        assert state == forge.state() or (state["frozen"], state["version"]) == (True, 3)
        assert {name: data for name, data in made(directory).items() if name in written} == written
        assert struck("rebuild", directory, "--seal", "-q", "-o", tmp_path / f"{event}.jsonl").code == 0
        (told,) = json.loads((tmp_path / f"{event}.jsonl.receipt.json").read_bytes())["rollouts"]
        after = json.loads((directory / "r-1.tokens.state.json").read_bytes())
        assert (told["snapshot_id"], told["version"]) == (after["snapshot_id"], after["version"])
        assert state["snapshot_id"] in ("", after["snapshot_id"])

    in_parallel(strike, range(1, log.read_text().split().index("replace") + 3))


READING = [("-f", "json"), ("-v", "--policy", "all"), ("--jobs", "2"), ("--infer-links",)]


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_verify_writes_nothing_anywhere(capture: Path, arguments: tuple[str, ...], tmp_path: Path) -> None:
    home, directory = tmp_path / "home", tmp_path / "home" / "capture"
    shutil.copytree(capture, directory)
    shutil.copy(capture.parent / "rows.jsonl", home)
    log = tmp_path / "log"
    for path in [*home.rglob("*"), home]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(home)
    assert struck("verify", directory, "--rollouts", home / "rows.jsonl", *arguments, log=log).code in (0, 1)
    assert tree(home) == before
    assert log.read_text() == ""
    for path in [home, directory]:
        path.chmod(0o755)
