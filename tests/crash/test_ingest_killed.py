"""`ng-capture ingest`, killed and refused by the system at every one of its file operations, and after power cuts.

No part of a rollout ever passes for the whole, and the next run completes the store, byte for byte.
"""

import errno
import json
import os
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.crash.test_gc_killed import ERRORS, THOROUGH, at_each
from tests.support.forge import Files
from tests.support.ingest_logs import contents, ingested, trainable, write_logs
from tests.support.power import after_cuts, look, put, recorded
from tests.support.struck import Ended, struck

CALLS = 2
EVERY = 1 if THOROUGH else 7
FINDINGS = 1
STATE = ".tokens.state.json"
TEMPORARY = (".tmp", ".tokens-state-")
# where temporary files can lie is tried out, and how a file without a name is made
SPARED = 4


class Scene(NamedTuple):
    """Logs, a store that holds what was there before, the store after an undisturbed run with its events and code."""

    logs: Path
    store: Path
    before: Files
    whole: Files
    code: int
    events: tuple[str, ...] = ()

    def place(self, root: Path) -> Path:
        """A copy of the store before the run; it need not be there."""
        if self.store.exists():
            shutil.copytree(self.store, root / "store")
        return root / "store"

    def ingest(self, store: Path, **shim: str | int) -> Ended:
        return struck("ingest", self.logs, "--to", store, **shim)

    def check(self, store: Path) -> None:
        """What verify trusts is as it was before the run, or complete; nothing that was there is lost."""
        now = contents(store)
        for rollout_id in trainable(store):
            files = {name: data for name, data in now.items() if name.startswith(f"{rollout_id}.tokens.jsonl")}
            raw = f"{rollout_id}.capture.jsonl"
            untouched = all(data == self.before.get(name) for name, data in files.items())
            assert untouched or all(data == self.whole[name] for name, data in files.items()), rollout_id
            assert not untouched or now.get(raw) == self.before.get(raw), rollout_id
        for name, data in self.before.items():
            if name.endswith(".jsonl"):
                assert now[name].startswith(data), name

    def complete(self, store: Path) -> None:
        """A second run gives what an undisturbed one gives."""
        assert ingested(self.logs, store) == self.code
        now, then = told(contents(store)), told(self.whole)
        assert {name for name in now.keys() | then.keys() if now.get(name) != then.get(name)} == set()


def told(files: Files) -> Files:
    """What the files tell; a rollout that is marked twice has another version."""
    kept = {name: data for name, data in files.items() if not name.endswith(TEMPORARY[0])}
    for name, data in kept.items():
        state = json.loads(data) if name.endswith(STATE) else {}
        if state.get("incomplete"):
            kept[name] = json.dumps(state | {"version": 0}).encode()
    return kept


def scene_of(root: Path, logs: Path, store: Path, code: int) -> Scene:
    before = contents(store)
    scene = Scene(logs, store, before, {}, code)
    undisturbed, log = scene.place(root / "undisturbed"), root / "log"
    ended = scene.ingest(undisturbed, log=str(log))
    assert ended.code == code, ended
    scene = scene._replace(whole=contents(undisturbed), events=tuple(log.read_text().split()))
    scene.complete(undisturbed)
    return scene


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A store that is not there yet."""
    root = tmp_path_factory.mktemp("empty")
    scene = scene_of(root, write_logs(root / "logs", CALLS), root / "store", 0)
    assert trainable(root / "undisturbed" / "store") == {"r-1", "r-2", "r-3"}
    return scene


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """A store that holds the first call of every rollout."""
    root = tmp_path_factory.mktemp("part")
    assert struck("ingest", write_logs(root / "fewer", 1), "--to", root / "store").code == 0
    scene = scene_of(root, write_logs(root / "logs", 1 + CALLS), root / "store", 0)
    assert trainable(root / "undisturbed" / "store") == {"r-1", "r-2", "r-3"}
    return scene


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Logs of which one has lost its end, one a line in its middle: both rollouts are marked."""
    root = tmp_path_factory.mktemp("damaged")
    logs = write_logs(root / "logs", CALLS)
    torn, broken = logs / "r-1.capture.jsonl", logs / "r-3.tokens.jsonl"
    torn.write_bytes(torn.read_bytes()[:-40])
    broken.write_bytes(b"{\n" + broken.read_bytes())
    scene = scene_of(root, logs, root / "store", FINDINGS)
    assert trainable(root / "undisturbed" / "store") == {"r-2"}
    return scene


@pytest.fixture(scope="module", params=["empty", "part", "damaged"])
def scene(request: pytest.FixtureRequest) -> Scene:
    made: Scene = request.getfixturevalue(request.param)
    return made


def test_raw_calls_are_synced_before_their_announcement_and_that_before_the_records(empty: Scene) -> None:
    """The shim sees it: per rollout an append with its sync for each file, and the state last, by a rename."""
    assert empty.events.count("replace") == 3
    assert all(empty.events[at - 1] == "fsync" for at, name in enumerate(empty.events) if name == "replace")


def test_killed_at_any_operation_no_part_is_trusted_and_the_next_run_completes(scene: Scene, tmp_path: Path) -> None:
    def strike(event: int) -> None:
        store = scene.place(tmp_path / str(event))
        assert scene.ingest(store, at=event, how="kill").code == -signal.SIGKILL
        scene.check(store)
        scene.complete(store)

    at_each(strike, range(1, len(scene.events) + 1, EVERY))


def test_killed_again_and_again_it_gets_done(empty: Scene, tmp_path: Path) -> None:
    store = empty.place(tmp_path)
    for event in (20, 9, 24, 15, 12, 8, 26):
        empty.ingest(store, at=event, how="kill")
        empty.check(store)
    empty.complete(store)


def test_an_error_at_any_operation_is_named_and_the_next_run_completes(scene: Scene, tmp_path: Path) -> None:
    silent = []

    def strike(event: int) -> None:
        error = ERRORS[(event + len(scene.before) + scene.code) % len(ERRORS)]
        store = scene.place(tmp_path / str(event))
        done = scene.ingest(store, at=event, how=error)
        case = f"{error} instead of {scene.events[event - 1]} {event}: {done}"
        assert "Traceback" not in done.err, case
        scene.check(store)
        left = contents(store)
        assert not [name for name in left if name.endswith(TEMPORARY[0]) or name.startswith(TEMPORARY[1])], case
        assert all(data.endswith(b"\n") for data in left.values() if data), case
        if done.code == scene.code:
            silent.append(event)
        else:
            assert done.code == 3, case
            assert os.strerror(getattr(errno, error)) in done.err, case
        scene.complete(store)

    at_each(strike, range(1, len(scene.events) + 1, EVERY))
    kept = [event for event in silent if event > SPARED]
    assert {scene.events[event - 1] for event in kept} <= {"open", "fchmod"}, kept


def test_after_any_power_cut_no_part_is_trusted_and_the_next_run_completes(scene: Scene, tmp_path: Path) -> None:
    store = scene.place(tmp_path / "undisturbed")
    store.mkdir(parents=True, exist_ok=True)
    before = look(store)
    ended = scene.ingest(store, tree=str(store), journal=str(tmp_path / "journal"))
    assert ended.code == scene.code
    states = list(after_cuts(before, recorded(tmp_path / "journal")))
    assert len(states) > 10

    def strike(number: int) -> None:
        directory = tmp_path / str(number)
        put(states[number], directory)
        scene.check(directory)
        scene.complete(directory)

    at_each(strike, range(0, len(states), EVERY))


def test_an_error_in_one_rollout_never_stops_the_others(empty: Scene, tmp_path: Path) -> None:
    """Struck anywhere in the work on the second rollout: the first and the third are there, and it is named."""
    # the state of a rollout is the last thing written of it
    ends = [number for number, name in enumerate(empty.events, 1) if name == "replace"]
    begin, end = ends[0] + 2, ends[1]
    assert end - begin > 10

    def strike(event: int) -> None:
        store = empty.place(tmp_path / str(event))
        done = empty.ingest(store, at=event, how="EIO")
        case = f"{empty.events[event - 1]} {event}: {done}"
        if done.code:
            assert done.code == 3 and "r-2" in done.err and "2 rollouts, 4 calls" in done.err, case
            empty.check(store)
        assert trainable(store) >= {"r-1", "r-3"}, case
        empty.complete(store)

    at_each(strike, range(begin, end + 1, 1 if THOROUGH else 3))


def test_a_file_that_may_not_be_written_is_named_and_the_others_are_there(empty: Scene, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    blocked = store / "r-2.capture.jsonl"
    blocked.mkdir()
    done = struck("ingest", empty.logs, "--to", store)
    assert done.code == 3 and "r-2.capture.jsonl" in done.err and "Traceback" not in done.err
    assert not (store / "r-2.tokens.jsonl").exists()
    blocked.rmdir()
    assert trainable(store) == {"r-1", "r-3"}
    empty.complete(store)


def test_a_sealed_rollout_is_brought_again_without_a_word(empty: Scene, tmp_path: Path) -> None:
    """Frozen by a writer whose state has no index, too: there is nothing to finish."""
    store = tmp_path / "store"
    assert ingested(empty.logs, store) == 0
    for path in store.glob(f"*{STATE}"):
        path.write_text('{"frozen": true, "snapshot_id": "0123456789abcdef0123456789abcdef", "version": 3}')
    before = contents(store)
    assert ingested(empty.logs, store) == 0
    assert contents(store) == before
