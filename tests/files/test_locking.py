"""Does the file system of a directory know locks? Asked before anything is written there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ng_capture.files.locking import check_locks
from tests.support.command import COMMAND
from tests.support.ingesting import dialogue
from tests.support.raw_calls import write_capture
from tests.support.struck import tree

FAULTS = Path(__file__).parents[1] / "support" / "fault_shim"
CHECK = """
import sys
from pathlib import Path
from ng_capture.files.locking import check_locks
check_locks(Path(sys.argv[1]))
"""


def without(calls: list[str], *command: object, under: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command where these system calls fail."""
    faults = [{"call": call, "errno": "ENOTSUP" if call != "open" else "EOPNOTSUPP"} for call in calls]
    if under is not None:
        faults = [fault | {"under": str(under)} for fault in faults]
    path = os.pathsep.join([str(FAULTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "NG_TEST_FAULTS": json.dumps(faults)}
    words = [str(word) for word in command]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_where_locks_work_nothing_is_left(tmp_path: Path) -> None:
    before = tree(tmp_path)
    check_locks(tmp_path)
    check_locks(tmp_path / "not" / "yet" / "there")
    assert tree(tmp_path).keys() == before.keys()


def test_where_locks_do_not_work_that_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    before = tree(tmp_path)
    done = without(["flock", "fcntl_lock"], sys.executable, "-c", CHECK, tmp_path)
    assert done.returncode == 1 and f"{tmp_path}: cannot be locked: " in done.stderr
    assert tree(tmp_path).keys() == before.keys()


def test_a_command_that_would_write_there_writes_nothing(tmp_path: Path) -> None:
    write_capture(tmp_path / "logs", "r-1", dialogue(1))
    for to in (tmp_path / "new" / "store", tmp_path / "store"):
        if to.name == "store" and to.parent == tmp_path:
            to.mkdir()
        done = without(["flock", "fcntl_lock"], COMMAND, "ingest", tmp_path / "logs", "--to", to)
        assert done.returncode == 3 and "cannot be locked" in done.stderr
    assert not (tmp_path / "new").exists() and list((tmp_path / "store").iterdir()) == []


def test_where_no_file_without_a_name_can_be_made_the_first_lock_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "O_TMPFILE")
    check_locks(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_takes_no_file_is_left_to_the_first_write() -> None:
    check_locks(Path("/proc/self"))
