"""A prepared rollout brought into the store: what is there stays, what is new is added, what is lost is said."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import list_rollouts
from ng_capture.ingest.conflict import OnConflict
from ng_capture.ingest.held import Held, read_held
from ng_capture.ingest.rollout import PreparedRollout, Preparing, prepare
from ng_capture.ingest.store import Stored, raw_files, store_rollout
from tests.ingest.test_rollout import raw
from tests.support.candidates import Made, conversations, rows_of
from tests.support.forge import Row
from tests.support.ingesting import dialogue, in_files
from tests.support.struck import tree

HOW = Preparing(None, False, frozenset())


def held(store: Path) -> Held:
    listing = list_rollouts([str(store)])
    return read_held(listing.get("r-1") if "r-1" in listing else None)


def bring(
    store: Path,
    rows: list[Row],
    *,
    lost: tuple[str, ...] = (),
    marked: bool = False,
    on_conflict: OnConflict = OnConflict.FAIL,
    delta: bool = False,
) -> Stored:
    there = held(store)
    how = Preparing(None, delta, frozenset())
    return store_rollout(store, prepare("r-1", raw(rows), there, how), there, lost, marked, on_conflict)


def actions(done: Stored) -> list[str]:
    return [action for _, action in done.calls]


def names(store: Path, kind: str) -> list[str]:
    path = store / f"r-1.tokens.{kind}"
    return path.read_text().splitlines() if path.exists() else []


def test_raw_calls_announcements_records_and_state_are_written(tmp_path: Path) -> None:
    done = bring(tmp_path, dialogue(2))
    assert (actions(done), list(done.faults)) == (["added", "added"], [])
    assert in_files(tmp_path).keys() == {
        "r-1.capture.jsonl",
        "r-1.tokens.intents",
        "r-1.tokens.jsonl",
        "r-1.tokens.state.json",
    }
    assert names(tmp_path, "intents") == ["c0", "c1"]
    state = json.loads((tmp_path / "r-1.tokens.state.json").read_bytes())
    assert state["indexed_size"] == (tmp_path / "r-1.tokens.jsonl").stat().st_size
    assert state["entry_digests"].keys() == {"c0", "c1"}


def test_a_call_without_a_record_is_announced_and_one_that_was_refused_is_not(tmp_path: Path) -> None:
    rows = dialogue(3)
    rows[1]["response"] = None
    rows[2] |= {"status_code": 500, "response": {"error": {}}}
    done = bring(tmp_path, rows)
    assert actions(done) == ["added", "left_out", "left_out"]
    assert names(tmp_path, "intents") == ["c0", "c1"]


def test_a_torn_call_is_announced_and_an_unknown_one_marks(tmp_path: Path) -> None:
    bring(tmp_path, dialogue(1), lost=("torn",))
    assert (names(tmp_path, "intents"), names(tmp_path, "incomplete")) == (["c0", "torn"], [])
    bring(tmp_path, dialogue(1), marked=True)
    assert names(tmp_path, "incomplete") == [""]
    before = tree(tmp_path)
    bring(tmp_path, dialogue(1), lost=("torn",), marked=True)
    assert tree(tmp_path) == before


def test_a_torn_call_that_no_line_can_name_marks(tmp_path: Path) -> None:
    bring(tmp_path, dialogue(1), lost=("two\nlines",))
    assert (names(tmp_path, "intents"), names(tmp_path, "incomplete")) == (["c0"], [""])


def test_a_rollout_of_which_nothing_is_known_but_that_it_lost_a_call_is_marked(tmp_path: Path) -> None:
    done = bring(tmp_path, [], marked=True)
    assert (list(done.calls), names(tmp_path, "incomplete")) == ([], [""])
    assert not (tmp_path / "r-1.capture.jsonl").exists()


@pytest.mark.parametrize("kept", [0, 5, -1])
def test_a_raw_line_that_a_killed_run_left_open_is_finished(kept: int, tmp_path: Path) -> None:
    bring(tmp_path, dialogue(3))
    whole = (tmp_path / "r-1.capture.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    (tmp_path / "r-1.capture.jsonl").write_bytes(lines[0] + lines[1][:kept])
    bring(tmp_path, dialogue(3))
    assert (tmp_path / "r-1.capture.jsonl").read_bytes() == whole


def test_a_raw_line_of_somebody_else_that_was_left_open_takes_no_other_with_it(tmp_path: Path) -> None:
    (tmp_path / "r-1.capture.jsonl").write_bytes(b'{"model_call_id": "x", "requ')
    bring(tmp_path, dialogue(1))
    torn, whole = (tmp_path / "r-1.capture.jsonl").read_bytes().splitlines()
    assert torn == b'{"model_call_id": "x", "requ' and json.loads(whole)["model_call_id"] == "c0"


def test_raw_calls_may_lie_in_three_files(tmp_path: Path) -> None:
    assert [str(name) for name in raw_files("r-1")] == [
        "r-1.capture.jsonl",
        "r-1.capture.jsonl.gz",
        "r-1.capture.jsonl.zst",
    ]


@pytest.mark.parametrize("step", ["capture.jsonl", "tokens.intents", "tokens.jsonl", "tokens.state.json"])
def test_what_a_run_that_was_killed_left_is_completed(step: str, tmp_path: Path) -> None:
    """The files in the order in which they are written; the run was killed before this one."""
    order = ["capture.jsonl", "tokens.intents", "tokens.jsonl", "tokens.state.json"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    bring(whole, dialogue(2))
    for name in order[: order.index(step)]:
        (killed / f"r-1.{name}").write_bytes((whole / f"r-1.{name}").read_bytes())
    bring(killed, dialogue(2))
    assert in_files(killed) == in_files(whole)


def other(rows: list[Row], number: int) -> list[Row]:
    rows = json.loads(json.dumps(rows))
    rows[number]["response"]["choices"][0]["message"]["generation_token_ids"][0] += 1
    return rows


@pytest.mark.parametrize(
    ("how", "wanted", "marks"),
    [
        (OnConflict.FAIL, ["refused", "refused", "refused"], []),
        (OnConflict.KEEP, ["there", "there", "added"], []),
        (OnConflict.MASK, ["there", "there", "added"], ["c1"]),
    ],
)
def test_another_content_is_treated_as_the_user_says(
    how: OnConflict, wanted: list[str], marks: list[str], tmp_path: Path
) -> None:
    bring(tmp_path, dialogue(2))
    record = (tmp_path / "r-1.tokens.jsonl").read_bytes()
    done = bring(tmp_path, other(dialogue(3), 1), on_conflict=how)
    assert actions(done) == wanted
    assert [(fault.reason, fault.call, fault.count) for fault in done.faults] == [("conflicting_records", "c1", 2)]
    assert names(tmp_path, "incomplete") == marks
    assert (tmp_path / "r-1.tokens.jsonl").read_bytes().startswith(record)


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    rollout: PreparedRollout = prepare("r-1", raw(dialogue(1)), Held(), HOW)
    with pytest.raises(SurroundingsError, match="nowhere"):
        store_rollout(tmp_path / "nowhere", rollout, Held(), (), False, OnConflict.FAIL)


ANY = st.one_of(conversations(), conversations(alike=True), conversations(broken=True))


@settings(max_examples=30, deadline=None)
@given(ANY, st.data())
def test_whatever_lies_there_a_second_run_changes_no_byte(calls: list[Made], data: st.DataObject) -> None:
    rows = rows_of(calls, words=data.draw(st.booleans()))
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory)
        some = [row for row in rows if data.draw(st.booleans())]
        delta = data.draw(st.booleans())
        bring(store, some, delta=delta)
        bring(store, rows, delta=delta)
        before = tree(store)
        done = bring(store, rows, delta=delta)
        assert set(actions(done)) == {"there"} and tree(store) == before


@settings(max_examples=30, deadline=None)
@given(conversations(), st.integers(0, 7), st.booleans())
def test_a_log_that_grew_leaves_the_store_that_it_would_have_left_at_once(
    calls: list[Made], cut: int, delta: bool
) -> None:
    rows = rows_of(calls)
    with tempfile.TemporaryDirectory() as directory:
        grown, at_once = Path(directory) / "grown", Path(directory) / "at-once"
        grown.mkdir()
        at_once.mkdir()
        bring(grown, rows[:cut], delta=delta)
        bring(grown, rows, delta=delta)
        bring(at_once, rows, delta=delta)
        assert in_files(grown) == in_files(at_once)
