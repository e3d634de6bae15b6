"""`ng-capture ingest` beside others that write the same rollouts: nothing twice, nothing lost."""

import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from ng_capture.records.token_record import decode_record
from tests.support.command import COMMAND
from tests.support.fixtures import ROOT
from tests.support.ingest_logs import contents, conversation, ingested, trainable
from tests.support.raw_calls import write_capture

THOROUGH = os.environ.get("CI") == "true"
SECONDS = 4.0 if THOROUGH else 1.5


def started(logs: Path, store: Path) -> subprocess.Popen[str]:
    words = [COMMAND, "ingest", str(logs), "--to", str(store), "-q"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> None:
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out, err) == (0, "", "")


def calls_in(store: Path) -> Counter[tuple[str, str]]:
    """How often each call of each rollout stands in the records of a store."""
    return Counter(
        (path.name.removesuffix(".tokens.jsonl"), decode_record(line).model_call_id)
        for path in store.glob("*.tokens.jsonl")
        for line in path.read_bytes().splitlines()
    )


def test_two_at_once_write_what_one_writes(tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    for number in range(12):
        write_capture(logs, f"r-{number}", conversation(f"r-{number}", 4))
    assert ingested(logs, tmp_path / "alone") == 0
    for process in [started(logs, store) for _ in range(3)]:
        ended(process)
    assert contents(store) == contents(tmp_path / "alone")


def test_beside_the_writer_of_the_same_rollouts_nothing_is_lost_and_nothing_twice(tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    store.mkdir()
    # the writers' ids are of the moment
    now = int(time.time() * 10)
    ids = [f"r-{number}" for number in range(now - 60, now + 40)]
    for rollout_id in ids:
        write_capture(logs, rollout_id, conversation(rollout_id, 2))
    words = [sys.executable, "-m", "tests.support.gym_writer", str(store)]
    writers = [
        subprocess.Popen([*words, seed, str(SECONDS)], cwd=ROOT.parent, stdout=subprocess.PIPE, text=True)
        for seed in "12"
    ]
    for _ in range(2):
        ended(started(logs, store))
    told = [line.split() for writer in writers for line in writer.communicate(timeout=120)[0].splitlines()]
    assert {writer.returncode for writer in writers} == {0}
    assert {kind for kind, *_ in told} == {"append"}
    acknowledged = {(rollout_id, call_id) for _, rollout_id, call_id in told}
    brought = {(rollout_id, f"{rollout_id}-call-{number}") for rollout_id in ids for number in range(2)}
    lying = calls_in(store)
    assert lying.keys() == acknowledged | brought
    assert set(lying.values()) == {1}
    assert {rollout_id for rollout_id, _ in acknowledged} & set(ids)
    # a second run finds all of it
    before = contents(store)
    assert ingested(logs, store) == 0
    assert contents(store) == before


def test_a_rollout_that_grows_while_it_is_read_is_completed_by_the_next_run(tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    rows = conversation("r-1", 3)
    for count in range(1, 4):
        write_capture(logs, "r-1", rows[:count])
        assert ingested(logs, store) == 0
        assert trainable(store) == {"r-1"}
    assert ingested(logs, tmp_path / "once") == 0
    grown = {name: data for name, data in contents(store).items() if name.endswith(".jsonl")}
    assert grown == {name: data for name, data in contents(tmp_path / "once").items() if name.endswith(".jsonl")}
