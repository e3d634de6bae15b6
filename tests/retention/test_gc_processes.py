"""Eight writers that follow the reference's protocol and two gcs beside them, all of them processes of their own."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Run, run
from tests.support.fixtures import ROOT
from tests.support.gym_writer import GymWriter, Refused
from tests.support.retention import Disk

SECONDS = 20.0 if os.environ.get("CI") == "true" else 4.0
WRITERS = 8
# whatever lies there may go at once: no worse neighbour can be
GREEDY = ("--older-than", "0s", "--without-receipt", "--include-masked", "--wait", "30")
STATE = ".tokens.state.json"


class Fought:
    """A directory after the fight: what the writers were told, what every gc said, where the lines lie."""

    def __init__(self, disk: Disk, told: list[str], runs: list[Run]) -> None:
        self.disk = disk
        self.runs = runs
        words = [line.split() for line in told]
        self.acknowledged = {(each[1], each[2]) for each in words if each[0] == "append"}
        self.refused = {each[1] for each in words if each[0] == "refused"}
        self.here = dict(self._calls(disk.capture.glob("*.tokens.jsonl")))
        self.trashed = dict(self._calls((disk.capture / ".trash").glob("*/*.tokens.jsonl")))

    @staticmethod
    def _calls(paths: Iterator[Path]) -> Iterator[tuple[str, set[str]]]:
        for path in paths:
            calls = {json.loads(line)["model_call_id"] for line in path.read_bytes().splitlines()}
            yield path.name.removesuffix(".tokens.jsonl"), calls

    @property
    def retired(self) -> set[str]:
        states = self.disk.capture.glob(f"*{STATE}")
        return {path.name.removesuffix(STATE) for path in states if json.loads(path.read_bytes())["retired"]}


@pytest.fixture(scope="module")
def fought(tmp_path_factory: pytest.TempPathFactory) -> Fought:
    disk = Disk(tmp_path_factory.mktemp("fight"))
    words = [sys.executable, "-m", "tests.support.gym_writer", str(disk.capture)]
    env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    writers = [
        subprocess.Popen([*words, str(seed), str(SECONDS)], cwd=ROOT.parent, env=env, stdout=subprocess.PIPE, text=True)
        for seed in range(WRITERS)
    ]
    runs: list[Run] = []
    end = time.monotonic() + SECONDS

    def clean() -> None:
        while time.monotonic() < end:
            runs.append(run("gc", disk.capture, *GREEDY, "--json"))

    cleaners = [threading.Thread(target=clean) for _ in range(2)]
    for cleaner in cleaners:
        cleaner.start()
    told = [line for writer in writers for line in writer.communicate(timeout=SECONDS + 60)[0].splitlines()]
    for cleaner in cleaners:
        cleaner.join()
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    return Fought(disk, told, runs)


def test_it_was_a_fight(fought: Fought) -> None:
    assert len(fought.acknowledged) > 50 and len(fought.refused) > 1
    assert len(fought.trashed) > 5 and len(fought.runs) > 1


def test_no_acknowledged_line_is_lost(fought: Fought) -> None:
    lying = {(name, call) for place in (fought.here, fought.trashed) for name, calls in place.items() for call in calls}
    assert fought.acknowledged - lying == set()


def test_every_rollout_lies_in_one_place(fought: Fought) -> None:
    assert set(fought.here) & set(fought.trashed) == set()


def test_what_went_is_retired_and_what_stays_is_not(fought: Fought) -> None:
    assert set(fought.trashed) <= fought.retired and not set(fought.here) & fought.retired


def test_writers_were_refused_only_where_a_rollout_went(fought: Fought) -> None:
    assert fought.refused <= fought.retired


def test_a_late_writer_is_refused_everywhere(fought: Fought) -> None:
    for name in fought.retired:
        with pytest.raises(Refused):
            GymWriter(fought.disk.capture, name).begin_call("late")


def test_no_gc_failed_beside_the_writers(fought: Fought) -> None:
    assert [(done.code, done.err) for done in fought.runs if done.code != 0] == []


def test_every_rollout_was_moved_once(fought: Fought) -> None:
    moved = [row["rollout_id"] for done in fought.runs for row in done.rows if row["action"] == "trashed"]
    assert len(moved) == len(set(moved)) and set(moved) == fought.retired


def test_what_is_left_goes_when_the_writers_are_gone(fought: Fought) -> None:
    done = run("gc", fought.disk.capture, *GREEDY)
    assert done.code == 0 and not list(fought.disk.capture.glob("*.jsonl")), done.err
    names = {row["rollout_id"] for row in run("trash", "ls", fought.disk.capture, "--json").rows}
    assert names >= {name for name, _ in fought.acknowledged}
