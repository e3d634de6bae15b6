"""The library's writer, killed and refused by the system at every one of its file operations, and after power cuts.

What it was told is recorded is always there; the next run completes the rollout, byte for byte.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ng_capture.records.token_record import Unreadable, decode_record
from tests.crash.test_gc_killed import at_each, error_at
from tests.support.append_driver import TOLD, chain
from tests.support.fixtures import ROOT
from tests.support.judging import judged
from tests.support.power import after_cuts, put, recorded
from tests.support.struck import SHIM

WHOLE = chain("c", 3).files()


def wrote(directory: Path, **shim: str | Path | int) -> subprocess.CompletedProcess[str]:
    """The driver under the shim, struck where that is asked for."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    env |= {f"NG_SHIM_{key.upper()}": str(value) for key, value in shim.items()}
    env |= {"PYTHONPATH": os.pathsep.join([SHIM, str(ROOT.parent)]), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-m", "tests.support.append_driver", str(directory), "c", "3"]
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False)


def check(directory: Path, told: str) -> None:
    """What was acknowledged is there, and no part of the rollout passes for the whole."""
    path = directory / "r-1.tokens.jsonl"
    lying = set()
    for line in path.read_bytes().split(b"\n") if path.exists() else []:
        try:
            lying.add(decode_record(line).model_call_id)
        except Unreadable:
            continue
    assert set(told.split()) <= lying
    if lying:
        assert judged(directory).verdict == "masked" or len(lying) == 3


def complete(directory: Path) -> None:
    """A second run gives what an undisturbed one gives."""
    again = wrote(directory)
    assert again.returncode == 0, again.stderr
    rollout = {path.name: path.read_bytes() for path in directory.glob("r-1.*") if not path.name.endswith(".lock")}
    assert rollout == WHOLE
    assert judged(directory).verdict == "trainable"


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("undisturbed")
    assert wrote(root / "capture", log=root / "log").returncode == 0
    complete(root / "capture")
    return (root / "log").read_text().split()


def test_each_record_is_synced_before_the_state_tells_of_it(events: list[str]) -> None:
    assert events.count("replace") == 3
    for place in (index for index, name in enumerate(events) if name == "replace"):
        written = events[:place]
        # the record, then the state under another name
        assert written[-1] == "fsync" and written.count("fsync") >= 2


def test_killed_at_any_operation_what_was_told_is_there_and_the_next_run_completes(
    events: list[str], tmp_path: Path
) -> None:
    def strike(event: int) -> None:
        directory = tmp_path / str(event)
        done = wrote(directory, at=event, how="kill")
        assert done.returncode == -signal.SIGKILL
        check(directory, done.stdout)
        complete(directory)

    at_each(strike, range(1, len(events) + 1))


def test_an_error_at_any_operation_is_named_and_the_next_run_completes(events: list[str], tmp_path: Path) -> None:
    def strike(event: int) -> None:
        error = error_at(event)
        directory = tmp_path / f"{event}-{error}"
        done = wrote(directory, at=event, how=error)
        assert done.returncode == 1 and "SurroundingsError" in done.stderr, (events[event - 1], done.stderr)
        check(directory, done.stdout)
        complete(directory)

    at_each(strike, range(1, len(events) + 1))


def test_after_any_power_cut_what_was_told_is_there_and_the_next_run_completes(tmp_path: Path) -> None:
    capture = tmp_path / "capture"
    capture.mkdir()
    assert wrote(capture, tree=capture, journal=tmp_path / "journal").returncode == 0
    states = list(after_cuts({}, recorded(tmp_path / "journal")))
    assert len(states) > 20

    def strike(number: int) -> None:
        directory = tmp_path / str(number)
        put(states[number], directory)
        told = directory / TOLD
        # a name that is cut was not told to anybody
        check(directory, told.read_text().rpartition("\n")[0] if told.exists() else "")
        complete(directory)

    at_each(strike, range(len(states)))
