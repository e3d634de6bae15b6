"""Is somebody still writing? Real files, and locks that a real other process holds."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ng_capture.errors import SurroundingsError
from ng_capture.files.activity import is_locked, last_change, signature
from ng_capture.files.listing import RolloutFiles, list_rollouts
from tests.support.forge import Forge

FAULTS = Path(__file__).parents[1] / "support" / "fault_shim"
HOLD = (
    "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.{how}); print('held', flush=True); sys.stdin.read()"
)
LOOK = """
import sys
from ng_capture.files.activity import is_locked
from ng_capture.files.listing import list_rollouts
print(is_locked(list_rollouts([sys.argv[1]]).get("r-1")))
"""


@pytest.fixture
def rollout(tmp_path: Path) -> RolloutFiles:
    forge = Forge()
    forge.root([1], [2]).then([3], [4])
    forge.write(tmp_path)
    return files_in(tmp_path)


def files_in(directory: Path) -> RolloutFiles:
    return list_rollouts([str(directory)]).get("r-1")


@contextmanager
def held_by_another(path: Path, how: str = "LOCK_EX") -> Iterator[None]:
    """Another process holds a lock on the file for the block."""
    command = [sys.executable, "-c", HOLD.format(how=how), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.stdin.close()


def looked_at_by_another(directory: Path, **environment: str) -> str:
    """What another process says of the lock, which must not hang."""
    command = [sys.executable, "-c", LOOK, str(directory)]
    env = os.environ | environment
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=20, check=True).stdout.strip()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def lock_of(directory: Path) -> Path:
    path = directory / "r-1.tokens.lock"
    path.touch()
    return path


# Locks


@pytest.mark.parametrize("how", ["LOCK_EX", "LOCK_SH"])
def test_a_lock_that_another_process_holds_is_seen_while_it_is_held(
    rollout: RolloutFiles, tmp_path: Path, how: str
) -> None:
    path = lock_of(tmp_path)
    assert not is_locked(rollout)
    with held_by_another(path, how):
        assert is_locked(rollout)
    assert not is_locked(rollout)


def test_looking_makes_no_lock_file_and_changes_nothing(rollout: RolloutFiles, tmp_path: Path) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    assert not is_locked(rollout)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_looking_lets_go_at_once(rollout: RolloutFiles, tmp_path: Path) -> None:
    path = lock_of(tmp_path)
    before = open_files()
    assert not is_locked(rollout)
    assert open_files() == before
    with held_by_another(path, "LOCK_EX | fcntl.LOCK_NB"):
        assert is_locked(rollout)
    assert open_files() == before


def test_the_lock_of_another_rollout_is_not_this_ones(rollout: RolloutFiles, tmp_path: Path) -> None:
    other = tmp_path / "r-10.tokens.lock"
    other.touch()
    with held_by_another(other):
        assert not is_locked(rollout)


def test_a_file_that_may_only_be_read_is_looked_at(rollout: RolloutFiles, tmp_path: Path) -> None:
    path = lock_of(tmp_path)
    path.chmod(0o444)
    with held_by_another(path):
        assert is_locked(rollout)


def test_where_locks_do_not_work_nobody_holds_one(rollout: RolloutFiles, tmp_path: Path) -> None:
    lock_of(tmp_path)
    faults = f'[{{"call": "flock", "errno": "ENOLCK", "under": "{tmp_path}"}}]'
    told = looked_at_by_another(tmp_path, PYTHONPATH=str(FAULTS), NG_TEST_FAULTS=faults)
    assert told == "False"


def test_a_pipe_that_bears_a_locks_name_does_not_hang_the_run(rollout: RolloutFiles, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r-1.tokens.lock")
    assert looked_at_by_another(tmp_path) == "False"


# Changes


def test_the_last_change_is_that_of_the_youngest_file(rollout: RolloutFiles, tmp_path: Path) -> None:
    for age, path in enumerate(sorted(tmp_path.iterdir())):
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    assert last_change(rollout) == 1_000_000
    os.utime(tmp_path / "r-1.tokens.intents", (1, 2_000_000.5))
    assert last_change(rollout) == 2_000_000.5


def test_the_lock_file_and_other_rollouts_are_no_change(rollout: RolloutFiles, tmp_path: Path) -> None:
    before = last_change(rollout), signature(rollout)
    for path in (lock_of(tmp_path), tmp_path / "r-2.tokens.jsonl"):
        path.touch()
        os.utime(path, (4e9, 4e9))
    assert (last_change(files_in(tmp_path)), signature(files_in(tmp_path))) == before


def test_the_signature_names_every_file_with_its_size_and_time(rollout: RolloutFiles, tmp_path: Path) -> None:
    found = {(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in tmp_path.iterdir()}
    assert set(signature(rollout)) == found and len(signature(rollout)) == 3
    assert signature(files_in(tmp_path)) == signature(rollout)


@pytest.mark.parametrize("name", ["r-1.tokens.jsonl", "r-1.tokens.intents", "r-1.tokens.state.json"])
def test_what_is_written_to_any_file_changes_the_signature(rollout: RolloutFiles, tmp_path: Path, name: str) -> None:
    before = signature(rollout)
    with open(tmp_path / name, "ab") as file:
        file.write(b"\n")
    assert signature(rollout) != before


def test_a_file_of_the_same_size_put_in_place_of_another_changes_the_signature(
    rollout: RolloutFiles, tmp_path: Path
) -> None:
    path, before = tmp_path / "r-1.tokens.jsonl", signature(rollout)
    status = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert signature(rollout) != before


def test_a_file_that_came_since_changes_the_signature(rollout: RolloutFiles, tmp_path: Path) -> None:
    (tmp_path / "r-1.capture.jsonl").touch()
    assert set(signature(rollout)) < set(signature(files_in(tmp_path)))


@pytest.mark.parametrize("look", [last_change, signature])
def test_a_file_that_is_gone_is_told_by_its_path(
    rollout: RolloutFiles, tmp_path: Path, look: Callable[[RolloutFiles], object]
) -> None:
    (tmp_path / "r-1.tokens.intents").unlink()
    with pytest.raises(SurroundingsError, match=r"r-1\.tokens\.intents: cannot be looked at: No such file"):
        look(rollout)
