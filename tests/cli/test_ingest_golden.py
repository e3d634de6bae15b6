"""`fixtures/ingest/`: what `ng-capture ingest` makes of small logs, byte for byte."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from ng_capture.records.token_record import decode_record
from tests.support.command import run
from tests.support.forge import Files
from tests.support.golden import COMMAND, FOLDER, sources, written
from tests.support.ingesting import in_files, verdicts

FATES = {
    "choices": ["ambiguous_choices"],
    "pairs-0": [],
    "pairs-1": [],
    "proxied": [],
    "records": [],
    "ro1.at1": [],
    "run1.iter3.group0.traj1": [],
    "sentinel": ["logprob_sentinel"],
    "t1": [],
    "tools": [],
    "torn": ["capture_incomplete"],
    "words": [],
}


def unpacked(files: Files) -> Files:
    """How well a library packs is nobody's claim."""
    return {name: gzip.decompress(data) if name.endswith(".gz") else data for name, data in files.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(FOLDER / "logs", tmp_path / "logs")
    return tmp_path


def test_the_logs_are_those_that_their_description_makes() -> None:
    assert unpacked({path.name: path.read_bytes() for path in (FOLDER / "logs").iterdir()}) == unpacked(sources())


def test_the_command_writes_the_store_byte_for_byte(folder: Path) -> None:
    assert written(folder) == in_files(FOLDER / "store")


def test_a_second_run_changes_no_byte_of_it(folder: Path) -> None:
    written(folder)
    assert written(folder) == in_files(FOLDER / "store")


def test_the_order_of_the_sources_changes_no_byte_of_it(folder: Path) -> None:
    names = sorted((path.name for path in (folder / "logs").iterdir() if path.suffix != ".txt"), reverse=True)
    options = COMMAND[1:]
    run("ingest", *(f"logs/{name}" for name in names), *options, "--to", "store", "-q", cwd=folder)
    assert in_files(folder / "store") == in_files(FOLDER / "store")


def test_a_log_at_a_time_changes_no_byte_of_it(folder: Path) -> None:
    for path in sorted((folder / "logs").iterdir()):
        run("ingest", f"logs/{path.name}", *COMMAND[1:], "--to", "store", "-q", cwd=folder)
    assert in_files(folder / "store") == in_files(FOLDER / "store")


def test_deltas_of_it_have_the_same_fate(folder: Path) -> None:
    assert written(folder, "--delta") != in_files(FOLDER / "store")
    assert fates(folder / "store") == FATES


def fates(store: Path) -> dict[str, list[str]]:
    return {name: row["reasons"] for name, row in verdicts(store).items()}


def test_its_rollouts_have_the_fate_that_they_stand_for() -> None:
    assert fates(FOLDER / "store") == FATES


def test_its_records_are_read_back_and_its_states_know_them() -> None:
    for path in (FOLDER / "store").glob("*.tokens.jsonl"):
        lines = path.read_bytes().splitlines()
        state = json.loads((path.parent / path.name.replace("jsonl", "state.json")).read_bytes())
        assert state["entry_digests"].keys() == {decode_record(line).model_call_id for line in lines}
        assert state["indexed_size"] == path.stat().st_size
