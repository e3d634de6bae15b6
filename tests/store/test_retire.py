"""The tombstone of the reference's conditional drop (capture-files.md 1.2 and 1.5, cases S07 to S09)."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.errors import SurroundingsError
from ng_capture.store.retire import NotRetired, retire_under_lock
from tests.support.forge import canonical
from tests.support.runs import healthy

SNAPSHOT = "5" * 32


def retired(path: Path, **values: Any) -> dict[str, Any]:
    """The tombstone that a state becomes; the snapshot is not compared."""
    path.write_bytes(canonical(healthy("r-1").state(**values)) + b"\n")
    assert retire_under_lock(path, None, None) is None
    data = path.read_bytes()
    assert data == canonical(json.loads(data)) + b"\n"
    return dict(json.loads(data))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r-1.tokens.state.json"


def test_a_frozen_rollout_keeps_its_snapshot_and_loses_its_index(path: Path) -> None:
    assert retired(path, frozen=True, snapshot_id=SNAPSHOT, version=3) == {
        "entry_digests": {},
        "frozen": True,
        "incomplete": False,
        "indexed_size": 0,
        "retired": True,
        "snapshot_id": SNAPSHOT,
        "version": 3,
    }


def test_what_was_never_frozen_is_frozen_by_the_same_write(path: Path) -> None:
    told = retired(path, version=2)
    assert (told["frozen"], told["retired"], told["version"], len(told["snapshot_id"])) == (True, True, 3, 32)


def test_marks_and_members_that_are_not_ours_stay(path: Path) -> None:
    told = retired(path, incomplete=True, refusals=[{"model_call_id": "x"}], mine="kept")
    assert (told["incomplete"], told["refusals"], told["mine"]) == (True, [{"model_call_id": "x"}], "kept")


def test_a_rollout_without_a_state_gets_one(path: Path) -> None:
    assert retire_under_lock(path, None, None) is None
    told = json.loads(path.read_bytes())
    assert (told["retired"], told["incomplete"], told["version"]) == (True, False, 1)


def test_a_second_time_changes_nothing(path: Path) -> None:
    retired(path)
    before = path.read_bytes(), path.stat().st_ino
    assert retire_under_lock(path, "another", 9) is None
    assert (path.read_bytes(), path.stat().st_ino) == before


@pytest.mark.parametrize(("snapshot_id", "version"), [(SNAPSHOT, 4), ("6" * 32, 3), ("", 3)])
def test_another_snapshot_or_version_is_left_alone(path: Path, snapshot_id: str, version: int) -> None:
    path.write_bytes(canonical(healthy("r-1").state(frozen=True, snapshot_id=SNAPSHOT, version=3)))
    before = path.read_bytes()
    assert retire_under_lock(path, snapshot_id, version) == NotRetired("its state is another one than the receipt's")
    assert path.read_bytes() == before
    assert retire_under_lock(path, SNAPSHOT, 3) is None


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version": "x"}'])
def test_a_state_that_cannot_be_read_is_left_alone(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    assert retire_under_lock(path, None, None) == NotRetired("its state cannot be read")
    assert path.read_bytes() == data


def test_a_state_that_the_system_does_not_give_is_a_failure_of_the_surroundings(path: Path) -> None:
    path.mkdir()
    with pytest.raises(SurroundingsError, match=r"state\.json"):
        retire_under_lock(path, None, None)
