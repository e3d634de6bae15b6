"""One run over a directory: the budget, left-over temporary files, the grace of the trash."""

import os
import time
from pathlib import Path

import pytest

from ng_capture.retention.asking import DAY
from ng_capture.retention.clean import Removed
from ng_capture.retention.trash import TRASH
from tests.support.retention import OLD, TWO_WEEKS, Disk, held

STATE_WRITER = ".tokens-state-a1b2c3d4"
OURS = ".r-1.tokens.state.json.0123abcd.tmp"


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def oldest_first(disk: Disk) -> int:
    """Three delivered rollouts, `r-3` the oldest; the bytes of one."""
    for days, name in ((50, "r-1"), (60, "r-2"), (70, "r-3")):
        disk.add(name, age=days * DAY)
    disk.deliver()
    return sum(disk.path(name).stat().st_size for name in disk.names("r-1"))


@pytest.mark.parametrize(
    ("fitting", "gone"),
    [(3, []), (2, ["r-3"]), (1, ["r-3", "r-2"]), (0, ["r-3", "r-2", "r-1"])],
)
def test_the_oldest_go_until_the_directory_fits(disk: Disk, fitting: int, gone: list[str]) -> None:
    size = oldest_first(disk)
    cleaning = disk.cleaning(older_than=TWO_WEEKS, max_bytes=fitting * size)
    told = {each.rollout_id: each.reason or each.action for each in cleaning.plan()}
    assert list(told) == ["r-3", "r-2", "r-1"]
    assert [name for name, action in told.items() if action == "trash"] == gone
    assert {action for name, action in told.items() if name not in gone} <= {"young"}
    assert cleaning.over == 0


def test_what_may_not_go_counts_and_the_rest_is_named(disk: Disk) -> None:
    size = oldest_first(disk)
    disk.add("r-9")
    cleaning = disk.cleaning(older_than=TWO_WEEKS, max_bytes=size // 2)
    told = {each.rollout_id: each.reason or each.action for each in cleaning.plan()}
    assert told == {"r-3": "trash", "r-2": "trash", "r-1": "trash", "r-9": "no_receipt"}
    assert cleaning.over == size - size // 2


def test_without_a_budget_nothing_is_over_it(disk: Disk) -> None:
    oldest_first(disk)
    cleaning = disk.cleaning(older_than=TWO_WEEKS)
    list(cleaning.plan())
    assert cleaning.over is None


def test_only_rollouts_that_are_asked_for_make_room(disk: Disk) -> None:
    oldest_first(disk)
    told = disk.told(ids=frozenset({"r-1"}), max_bytes=0)
    assert [name for name, action in told.items() if action == "trash"] == ["r-1"]


def test_a_rollout_that_vanishes_meanwhile_needs_no_room(disk: Disk) -> None:
    size = oldest_first(disk)
    cleaning = disk.cleaning(older_than=TWO_WEEKS, max_bytes=2 * size)
    for name in disk.names("r-3"):
        disk.path(name).unlink()
    assert {each.rollout_id: each.reason for each in cleaning.plan()} == dict.fromkeys(("r-2", "r-1"), "young")


def test_what_a_writer_holds_in_the_end_made_no_room(disk: Disk) -> None:
    size = oldest_first(disk)
    cleaning = disk.cleaning(older_than=TWO_WEEKS, max_bytes=2 * size)
    planned = list(cleaning.plan())
    with held(disk.path("r-3.tokens.lock")):
        done = {each.rollout_id: each.done for each in cleaning.carry_out(planned)}
    assert done["r-3"] == "kept" and cleaning.over == size


def test_a_stopped_run_ends_between_two_rollouts(disk: Disk) -> None:
    oldest_first(disk)
    cleaning = disk.cleaning(older_than=TWO_WEEKS)
    cleaning._stopped = lambda: bool(disk.trashed())
    assert [each.rollout_id for each in cleaning.carry_out(cleaning.plan())] == ["r-1"]
    assert disk.names("r-1") == {"r-1.tokens.lock", "r-1.tokens.state.json"}
    assert "r-2.tokens.jsonl" in disk.names()


def test_left_over_temporary_files_go_when_they_are_a_day_old(disk: Disk) -> None:
    for name in (STATE_WRITER, OURS):
        disk.path(name).touch()
    cleaning = disk.cleaning(older_than=TWO_WEEKS)
    assert cleaning.temporary_files() == [] and cleaning.remove_temporary_files() == Removed(0, ())
    disk.grow_older(2 * DAY)
    assert cleaning.temporary_files() == sorted([STATE_WRITER, OURS])
    assert cleaning.remove_temporary_files() == Removed(2, ()) and disk.names() == set()


def test_no_other_file_is_taken_for_a_temporary_one(disk: Disk) -> None:
    (disk.root / "mine").touch()
    names = {
        ".tokens-state-",
        ".tokens-state-a b",
        ".x.0123abc.tmp",
        "..0123abcd.tmp.part",
        "x.0123abcd.tmp",
        ".x.0123abcd.tmp.txt",
        ".nfs0001",
        "notes.txt",
    }
    for name in names:
        disk.path(name).touch()
    disk.path(".tokens-state-folder1").mkdir()
    disk.path(".tokens-state-linked1").symlink_to(disk.root / "mine")
    disk.grow_older(OLD)
    os.utime(disk.root / "mine", (1, 1))
    os.utime(disk.path(".tokens-state-linked1"), (1, 1), follow_symlinks=False)
    assert disk.cleaning(older_than=TWO_WEEKS).temporary_files() == []


def test_a_temporary_file_from_the_future_stays(disk: Disk) -> None:
    disk.path(STATE_WRITER).touch()
    later = time.time() + 10 * DAY
    os.utime(disk.path(STATE_WRITER), (later, later))
    assert disk.cleaning(older_than=TWO_WEEKS).temporary_files() == []


def trashed(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    disk.cleaned(older_than=TWO_WEEKS)


def older_by(disk: Disk, age: float) -> None:
    """The plans in the trash came so long ago."""
    then = disk.cleaning(older_than=1.0).now - age
    for plan in disk.plans:
        os.utime(plan.manifest, (then, then))


def test_the_trash_is_purged_behind_its_grace_and_not_before(disk: Disk) -> None:
    trashed(disk)
    assert disk.cleaning(older_than=TWO_WEEKS).purge_trash(7 * DAY) == Removed(0, ())
    older_by(disk, 6.9 * DAY)
    assert disk.cleaning(older_than=TWO_WEEKS).purge_trash(7 * DAY) == Removed(0, ()) and disk.trashed()
    older_by(disk, 7.1 * DAY)
    assert disk.cleaning(older_than=TWO_WEEKS).purge_trash(7 * DAY) == Removed(1, ())
    assert disk.plans == [] and disk.names() == {"r-1.tokens.lock", "r-1.tokens.state.json"}


def test_a_plan_from_the_future_is_not_purged(disk: Disk) -> None:
    trashed(disk)
    older_by(disk, -DAY)
    assert disk.cleaning(older_than=TWO_WEEKS).purge_trash(0.0) == Removed(0, ())


def test_what_is_finished_late_gets_its_own_grace(disk: Disk) -> None:
    """Killed half way, and the next run comes a month later: what moves now was never in the trash before."""
    disk.add("r-1", raw=True)
    disk.deliver()
    disk.cleaned(older_than=TWO_WEEKS)
    (plan,) = disk.plans
    (plan.path / "r-1.capture.jsonl").rename(disk.path("r-1.capture.jsonl"))
    older_by(disk, OLD)
    cleaning = disk.cleaning(older_than=TWO_WEEKS)
    assert [each.done for each in cleaning.carry_out(cleaning.plan())] == ["trashed"]
    cleaning.purge_trash(7 * DAY)
    assert "r-1.capture.jsonl" in disk.trashed()


def test_a_plan_that_is_half_moved_is_not_purged_before_it_is_finished(disk: Disk) -> None:
    disk.add("r-1", raw=True)
    disk.deliver()
    disk.cleaned(older_than=TWO_WEEKS)
    (plan,) = disk.plans
    (plan.path / "r-1.capture.jsonl").rename(disk.path("r-1.capture.jsonl"))
    with held(disk.path("r-1.tokens.lock")):
        older_by(disk, OLD)
        cleaning = disk.cleaning(older_than=TWO_WEEKS)
        list(cleaning.carry_out(cleaning.plan()))
        cleaning.purge_trash(7 * DAY)
    everywhere = {path.name for path in disk.capture.rglob("r-1.*")}
    assert {"r-1.capture.jsonl", "r-1.tokens.jsonl", "r-1.tokens.intents"} <= everywhere


def test_the_ages_count_from_the_clock_of_the_file_system(disk: Disk) -> None:
    probe = disk.root / "probe"
    before = time.time() - 5
    probe.touch()
    now = disk.cleaning(older_than=1.0).now
    assert before <= now and abs(now - probe.stat().st_mtime) < 5


def test_a_rollout_that_never_goes_takes_its_room(disk: Disk) -> None:
    disk.path("-x.tokens.jsonl").write_bytes(b"x" * 1000)
    disk.add("r-1")
    cleaning = disk.cleaning(older_than=TWO_WEEKS, max_bytes=0)
    assert {each.rollout_id: each.reason for each in cleaning.plan()} == {"r-1": "no_receipt", "-x": "unknown_file"}
    assert cleaning.over == 1000 + sum(disk.path(name).stat().st_size for name in disk.names("r-1"))


def test_a_plan_that_cannot_be_deleted_is_named_and_the_next_one_goes(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    disk.cleaned(older_than=TWO_WEEKS)
    odd = disk.capture / TRASH / "000000-20260101T000000Z"
    (odd / "folder").mkdir(parents=True)
    (odd / "manifest.jsonl").touch()
    removed = disk.cleaning(older_than=TWO_WEEKS).purge_trash(-DAY)
    assert (
        removed.number == 1
        and len(removed.problems) == 1
        and "000000-20260101T000000Z: holds folder" in removed.problems[0]
    )
    assert [plan.name for plan in disk.plans] == ["000000-20260101T000000Z"]
