"""Freezing a rollout as NeMo Gym does (capture-files.md, cases S05, S13 to S29, S37)."""

import fcntl
import json
from pathlib import Path

import pytest

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import list_rollouts
from ng_capture.files.locking import Busy
from ng_capture.store.seal import NotSealed, Sealed, seal
from tests.support.forge import Forge, canonical, in_lines


@pytest.fixture
def forge() -> Forge:
    made = Forge()
    made.root([1], [2], id="a").then([3], [4], id="b")
    return made


def sealed(directory: Path, patience: float = 5.0) -> Sealed | NotSealed:
    return seal(list_rollouts([str(directory)]).get("r-1"), patience)


def state_of(directory: Path) -> dict[str, object]:
    return json.loads((directory / "r-1.tokens.state.json").read_text())  # type: ignore[no-any-return]


def test_the_first_freeze_mints_an_id_and_moves_the_version(forge: Forge, tmp_path: Path) -> None:
    forge.write(tmp_path)
    done = sealed(tmp_path)
    assert isinstance(done, Sealed)
    assert (done.version, len(done.snapshot_id)) == (3, 32)
    assert state_of(tmp_path) == {
        **forge.state(),
        "frozen": True,
        "snapshot_id": done.snapshot_id,
        "version": 3,
    }


def test_a_second_freeze_changes_nothing(forge: Forge, tmp_path: Path) -> None:
    forge.write(tmp_path)
    first, before = sealed(tmp_path), state_of(tmp_path)
    assert (sealed(tmp_path), state_of(tmp_path)) == (first, before)


def test_a_missing_state_is_made_from_the_records(forge: Forge, tmp_path: Path) -> None:
    forge.write(tmp_path, state=False)
    done = sealed(tmp_path)
    assert isinstance(done, Sealed) and done.version == 3
    assert state_of(tmp_path)["entry_digests"] == forge.state()["entry_digests"]


def test_an_older_state_without_an_index_does_not_move_the_version_for_it(forge: Forge, tmp_path: Path) -> None:
    forge.write(tmp_path)
    (tmp_path / "r-1.tokens.state.json").write_bytes(b'{"version": 1, "mine": "kept"}')
    done = sealed(tmp_path)
    assert isinstance(done, Sealed) and done.version == 2
    assert state_of(tmp_path)["mine"] == "kept"


def test_a_state_that_lags_behind_counts_what_it_had_not_seen(forge: Forge, tmp_path: Path) -> None:
    forge.write(tmp_path)
    first = forge.lines()[0]
    digests = {"a": forge.state()["entry_digests"]["a"]}
    lagging = forge.state(entry_digests=digests, indexed_size=len(first) + 1, version=1)
    (tmp_path / "r-1.tokens.state.json").write_bytes(canonical(lagging))
    done = sealed(tmp_path)
    assert isinstance(done, Sealed) and done.version == 3


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: data[:-1], "line 2 has no line break"),
        (lambda data: b"{\n" + data, "line 1: damaged_line"),
        (
            lambda data: data + in_lines([data.split(b"\n")[0].replace(b"[2]", b"[9]")]),
            "line 3: call a has two contents",
        ),
        (lambda data: data.split(b"\n")[0] + b"\n", "records of its index are gone"),
        (lambda data: data.replace(b"-0.", b"null,-0.", 1), "line 1: logprob_length_mismatch"),
    ],
)
def test_what_is_damaged_stays_as_it_is(forge: Forge, tmp_path: Path, spoil, why: str) -> None:  # type: ignore[no-untyped-def]
    forge.write(tmp_path)
    path = tmp_path / "r-1.tokens.jsonl"
    path.write_bytes(spoil(path.read_bytes()))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert sealed(tmp_path) == NotSealed(why)
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith(".lock")}
    assert after == before


@pytest.mark.parametrize(("state", "why"), [(b"", "its state cannot be read"), (b'{"retired": true}', "it is retired")])
def test_a_rollout_whose_life_is_over_or_unknown_is_not_frozen(
    forge: Forge, tmp_path: Path, state: bytes, why: str
) -> None:
    forge.write(tmp_path)
    (tmp_path / "r-1.tokens.state.json").write_bytes(state)
    assert sealed(tmp_path) == NotSealed(why)


def test_a_rollout_without_records_never_comes_into_being(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "r-1.tokens.intents").write_bytes(b"a\n")
    assert sealed(tmp_path) == NotSealed("it has no token records")
    assert [file.name for file in tmp_path.iterdir()] == ["r-1.tokens.intents"]


def test_a_compressed_rollout_is_left_alone(forge: Forge, tmp_path: Path) -> None:
    forge.write(tmp_path, compression=".gz")
    assert sealed(tmp_path) == NotSealed("it is compressed: no writer uses it")


def test_a_held_lock_is_waited_for_and_then_told(forge: Forge, tmp_path: Path) -> None:
    forge.write(tmp_path)
    with open(tmp_path / "r-1.tokens.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy, match="locked by another process"):
            sealed(tmp_path, patience=0.1)
    assert state_of(tmp_path)["frozen"] is False


def test_a_lock_that_cannot_be_opened_is_told(forge: Forge, tmp_path: Path) -> None:
    forge.write(tmp_path)
    (tmp_path / "r-1.tokens.lock").mkdir()
    with pytest.raises(SurroundingsError, match="cannot be opened"):
        sealed(tmp_path)
