"""A plan carried out: looked at again under the lock, announced, retired, moved."""

import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from ng_capture.retention.execute import Carried, Executor
from ng_capture.retention.halfway import half_moved_of
from ng_capture.retention.plan import FileState, PlannedRollout
from ng_capture.retention.restore import restore
from ng_capture.retention.trash import TRASH, TrashedFile, TrashedRollout, TrashPlan
from tests.support.forge import Forge, canonical
from tests.support.gym_writer import GymWriter, Refused
from tests.support.retention import LONG_AGO, OLD, TWO_WEEKS, Disk, contents, held, no_file_can_be_opened, past
from tests.support.runs import write_retired

LOCK = "r-1.tokens.lock"
STATE = "r-1.tokens.state.json"


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    made = Disk(tmp_path)
    made.add("r-1")
    made.deliver()
    return made


def plan_of(disk: Disk) -> PlannedRollout:
    return disk.planned(older_than=TWO_WEEKS)["r-1"]


def carried(disk: Disk, planned: PlannedRollout, patience: float = 0.0) -> Carried:
    executor = Executor(str(disk.capture), patience=patience)
    return executor.carry_out(planned, disk.listing().get(planned.rollout_id))


def assert_kept(disk: Disk, planned: PlannedRollout, reason: str, why: str) -> None:
    """It stays for this reason, and nothing at all happened."""
    before = contents(disk.capture)
    done = carried(disk, planned)
    assert (done.done, done.reason) == ("kept", reason) and why in done.why, done
    assert contents(disk.capture) == before and disk.trashed() == set()


def test_payload_moves_with_its_bytes_and_times_and_a_tombstone_stays(disk: Disk) -> None:
    before = contents(disk.capture)
    done = disk.cleaned(older_than=TWO_WEEKS)["r-1"]
    assert (done.done, done.reason, done.failed) == ("trashed", None, False)
    assert done.size == sum(len(data) for data, _, _ in before.values())
    assert disk.names() == {LOCK, STATE}
    (plan,) = disk.plans
    assert {name: told[:2] for name, told in contents(plan.path).items() if name != "manifest.jsonl"} == {
        name: told[:2] for name, told in before.items()
    }


def test_the_manifest_names_every_file_with_its_size_and_time(disk: Disk) -> None:
    before = {name: (len(data), time) for name, (data, time, _) in contents(disk.capture).items()}
    disk.cleaned(older_than=TWO_WEEKS)
    (rollout,) = disk.plans[0].rollouts()
    assert rollout.state is not None
    told = {file.name: (file.size, file.mtime_ns) for file in (*rollout.files, rollout.state)}
    assert (rollout.rollout_id, rollout.why, told) == ("r-1", "covered by a receipt", before)
    assert rollout.tombstone and STATE not in {file.name for file in rollout.files}


def test_a_late_writer_is_refused(disk: Disk) -> None:
    disk.cleaned(older_than=TWO_WEEKS)
    writer, late = GymWriter(disk.capture, "r-1"), past("r-1", first="late").calls[0]
    with pytest.raises(Refused, match="retired"):
        writer.begin_call(late.id)
    with pytest.raises(Refused, match="retired"):
        writer.append(late.id, late.line())
    with pytest.raises(Refused, match="retired"):
        writer.mark_incomplete(late.id)
    assert disk.names() == {LOCK, STATE}


def test_a_new_attempt_may_be_written_after_the_delete_of_the_reference(disk: Disk) -> None:
    disk.cleaned(older_than=TWO_WEEKS)
    writer, call = GymWriter(disk.capture, "r-1"), past("r-1", first="other").calls[0]
    writer.delete()
    writer.append(call.id, call.line())
    assert disk.names() == {LOCK, STATE, "r-1.tokens.jsonl"}
    assert {"r-1.tokens.jsonl", "r-1.tokens.intents"} <= disk.trashed()


def test_all_rollouts_of_a_run_lie_in_one_plan(disk: Disk) -> None:
    disk.add("r-2")
    disk.deliver("both.jsonl")
    disk.cleaned(older_than=TWO_WEEKS)
    (plan,) = disk.plans
    assert [rollout.rollout_id for rollout in plan.rollouts()] == ["r-1", "r-2"]


def test_nothing_to_move_makes_no_plan(disk: Disk) -> None:
    assert disk.cleaned(older_than=2 * OLD)["r-1"].reason == "young"
    assert not disk.path(TRASH).exists()


def test_a_file_that_was_written_since_it_was_planned_keeps_its_rollout(disk: Disk) -> None:
    planned = plan_of(disk)
    writer, late = GymWriter(disk.capture, "r-1"), past("r-1", first="late").calls[0]
    writer.append(late.id, late.line())
    assert_kept(disk, planned, "changed_since_receipt", "r-1.tokens.jsonl was written since it was planned")


def test_a_file_that_went_since_it_was_planned_keeps_its_rollout(disk: Disk) -> None:
    planned = plan_of(disk)
    disk.path("r-1.tokens.intents").unlink()
    assert_kept(disk, planned, "changed_since_receipt", "r-1.tokens.intents is gone")


def test_other_bytes_of_the_same_size_and_time_keep_their_rollout(disk: Disk) -> None:
    planned, tokens = plan_of(disk), disk.path("r-1.tokens.jsonl")
    status = tokens.stat()
    tokens.write_bytes(tokens.read_bytes().replace(b"-0.25", b"-0.26"))
    os.utime(tokens, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert_kept(disk, planned, "changed_since_receipt", "no longer has the receipt's digest")


def test_a_file_that_came_since_it_was_planned_keeps_its_rollout(disk: Disk) -> None:
    planned = plan_of(disk)
    disk.path("r-1.tokens.incomplete").write_bytes(b"lost\n")
    assert_kept(disk, planned, "changed_since_receipt", "r-1.tokens.incomplete")


def test_a_held_lock_keeps_its_rollout(disk: Disk) -> None:
    planned = plan_of(disk)
    with held(disk.path(LOCK)):
        assert_kept(disk, planned, "busy", "locked by another process")
    assert carried(disk, planned).done == "trashed"


def test_a_lock_that_is_no_file_of_its_own_keeps_its_rollout(disk: Disk) -> None:
    planned = plan_of(disk)
    disk.path(LOCK).unlink()
    (disk.root / "elsewhere").touch()
    disk.path(LOCK).symlink_to(disk.root / "elsewhere")
    assert_kept(disk, planned, "not_removable", LOCK)


def test_the_lock_file_stays_the_same_file_with_the_same_bytes(disk: Disk) -> None:
    disk.path(LOCK).write_bytes(b"whatever stood here")
    before = disk.path(LOCK).stat()
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    assert disk.path(LOCK).stat()[:9] == before[:9]


def test_no_lock_file_is_ever_made(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.add("r-1", lock=False)
    disk.deliver()
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    assert disk.names() == {STATE}


def test_a_file_that_cannot_be_looked_at_is_not_removable(disk: Disk) -> None:
    planned = msgspec.structs.replace(plan_of(disk), files=(FileState("x" * 300, 1, 1),))
    done = carried(disk, planned)
    assert (done.reason, done.failed) == ("not_removable", True) and "too long" in done.why


def test_a_rollout_that_cannot_be_moved_never_stops_the_rest(disk: Disk) -> None:
    disk.path("q-1.tokens.jsonl").mkdir()
    done = disk.cleaned(older_than=0.0)
    assert (done["q-1"].reason, done["q-1"].failed) == ("not_removable", True)
    assert done["r-1"].done == "trashed"


def test_where_no_plan_can_be_made_nothing_moves_and_it_is_a_failure(disk: Disk) -> None:
    planned = plan_of(disk)
    disk.path(TRASH).write_bytes(b"no directory")
    done = carried(disk, planned)
    assert (done.reason, done.failed) == ("not_removable", True)
    assert "r-1.tokens.jsonl" in disk.names()


def test_a_process_without_descriptors_moves_nothing(disk: Disk) -> None:
    planned, before = plan_of(disk), contents(disk.capture)
    executor = Executor(str(disk.capture), patience=0.0)
    files = disk.listing().get("r-1")
    with no_file_can_be_opened():
        done = executor.carry_out(planned, files)
    assert (done.reason, done.failed) == ("not_removable", True)
    assert contents(disk.capture) == before


@pytest.mark.parametrize("wrong", [{"snapshot_id": "0" * 32}, {"version": 4}], ids=["snapshot", "version"])
def test_a_state_of_another_snapshot_than_the_receipts_keeps_its_rollout(
    tmp_path: Path, wrong: dict[str, str | int]
) -> None:
    disk = Disk(tmp_path)
    disk.add("r-1")
    disk.deliver(sealing=True)
    disk.grow_older(OLD)
    before = contents(disk.capture)
    done = carried(disk, msgspec.structs.replace(plan_of(disk), **wrong))
    assert (done.done, done.reason) == ("kept", "changed_since_receipt")
    assert contents(disk.capture) == before


@pytest.fixture
def frozen_anew(tmp_path: Path) -> Disk:
    """The calls of the receipt, but deleted, written again and frozen by another."""
    disk = Disk(tmp_path)
    forge = disk.add("r-1")
    disk.deliver(sealing=True)
    disk.path(STATE).write_bytes(canonical(forge.state(frozen=True, snapshot_id="0" * 32, version=3)) + b"\n")
    disk.grow_older(OLD)
    return disk


def test_the_plan_already_says_that_the_state_is_of_another_snapshot(frozen_anew: Disk) -> None:
    assert frozen_anew.told(older_than=TWO_WEEKS) == {"r-1": "changed_since_receipt"}


def test_what_is_kept_is_not_told_to_lie_in_the_trash(frozen_anew: Disk) -> None:
    assert frozen_anew.cleaned(older_than=TWO_WEEKS)["r-1"].done == "kept"
    assert [rollout for plan in frozen_anew.plans for rollout in plan.rollouts()] == []


def test_a_sealed_rollout_is_retired_with_its_snapshot(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.add("r-1")
    disk.deliver(sealing=True)
    disk.grow_older(OLD)
    sealed = json.loads(disk.path(STATE).read_bytes())
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    tombstone = json.loads(disk.path(STATE).read_bytes())
    assert {key: tombstone[key] for key in ("snapshot_id", "version")} == {
        key: sealed[key] for key in ("snapshot_id", "version")
    }


def test_a_rollout_without_a_state_gets_a_tombstone(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.add("r-1", state=False)
    disk.deliver()
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    assert disk.names() == {LOCK, STATE} and STATE not in disk.trashed()
    (rollout,) = disk.plans[0].rollouts()
    assert rollout.state is None and rollout.tombstone
    with pytest.raises(Refused):
        GymWriter(disk.capture, "r-1").begin_call("late")


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_a_compressed_rollout_that_no_writer_uses_leaves_no_tombstone(tmp_path: Path, compression: str) -> None:
    disk = Disk(tmp_path)
    disk.add("r-1", state=False, intents=False, compression=compression, lock=False)
    disk.deliver()
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    assert disk.names() == set() and disk.trashed() == {f"r-1.tokens.jsonl{compression}"}


def test_a_tombstone_past_its_age_goes_for_good_and_its_lock_file_stays(disk: Disk) -> None:
    write_retired(disk.capture, "r-2")
    disk.path("r-2.tokens.lock").touch()
    disk.grow_older(OLD)
    done = disk.cleaned(older_than=2 * OLD, tombstone_age=TWO_WEEKS)["r-2"]
    assert done.done == "purged"
    assert disk.names("r-2") == {"r-2.tokens.lock"} and not disk.path(TRASH).exists()


def half_moved(disk: Disk) -> Forge:
    """As a kill behind the first rename leaves it: retired and announced, its records moved, the rest still here."""
    forge = past("r-1")
    disk.cleaned(older_than=TWO_WEEKS)
    (plan,) = disk.plans
    for name in ("r-1.tokens.intents", "r-1.capture.jsonl"):
        if (plan.path / name).exists():
            (plan.path / name).rename(disk.path(name))
    return forge


def test_what_was_left_half_moved_goes_on_into_the_plan_that_announced_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.add("r-1", raw=True)
    disk.deliver()
    before = contents(disk.capture)
    half_moved(disk)
    # whatever its age, and without a receipt: that was settled when it was announced
    disk.receipts.clear()
    assert disk.cleaned(older_than=100 * OLD)["r-1"].done == "trashed"
    (plan,) = disk.plans
    assert disk.names() == {LOCK, STATE} and disk.trashed() == set(before)
    assert len(plan.rollouts()) == 1


def test_what_was_left_half_moved_goes_on_though_only_its_intents_are_left(disk: Disk) -> None:
    half_moved(disk)
    disk.cleaned(older_than=TWO_WEEKS)
    assert disk.names() == {LOCK, STATE}


def test_what_was_announced_and_touched_before_anything_moved_is_planned_anew(disk: Disk) -> None:
    """Killed between the announcement and the fence: as long as nothing moved, nothing is half moved."""
    disk.cleaned(older_than=TWO_WEEKS)
    (plan,) = disk.plans
    for name in ("r-1.tokens.jsonl", "r-1.tokens.intents"):
        (plan.path / name).rename(disk.path(name))
    shutil.copy2(plan.path / STATE, disk.path(STATE))
    os.utime(disk.path("r-1.tokens.jsonl"), ns=(0, 0))
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    assert disk.names() == {LOCK, STATE}


def test_a_new_file_beside_what_was_left_half_moved_stays(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.add("r-1", raw=True)
    disk.deliver()
    half_moved(disk)
    disk.path("r-1.tokens.incomplete").touch()
    disk.cleaned(older_than=TWO_WEEKS)
    assert disk.names() == {LOCK, STATE, "r-1.tokens.incomplete"}


def test_raw_calls_that_came_beside_a_tombstone_stay(tmp_path: Path) -> None:
    """Evaluation capture asks neither state nor lock."""
    disk = Disk(tmp_path)
    disk.add("r-1")
    disk.deliver()
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    disk.path("r-1.capture.jsonl").write_bytes(b"{}\n")
    disk.grow_older(OLD)
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].reason == "changed_since_receipt"
    assert disk.path("r-1.capture.jsonl").read_bytes() == b"{}\n"


def test_the_tombstone_of_another_comes_back_with_what_lay_beside_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    write_retired(disk.capture, "r-1")
    disk.path("r-1.capture.jsonl").write_bytes(b"{}\n")
    disk.grow_older(OLD)
    before = contents(disk.capture)
    assert disk.cleaned(older_than=TWO_WEEKS, include_masked=True, masked_older_than=0.0)["r-1"].done == "trashed"
    (plan,) = disk.plans
    (entry,) = plan.rollouts()
    assert restore(plan, entry, patience=0.0).problem is None
    assert {name: told for name, told in contents(disk.capture).items() if not name.startswith(".")} == before


class PlanWatchedByAWriter(TrashPlan):
    """A writer comes as soon as a rollout is announced: it makes the lock file, and appends."""

    def announce(self, rollout: TrashedRollout) -> None:
        super().announce(rollout)
        if not rollout.restored:
            (self.directory / LOCK).touch()
            with (self.directory / "r-1.tokens.jsonl").open("ab") as file:
                file.write(b"{}\n")


def test_a_writer_that_comes_before_the_fence_where_no_lock_file_was_keeps_its_rollout(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.add("r-1", lock=False)
    disk.deliver()
    planned, before = plan_of(disk), disk.path(STATE).read_bytes()
    executor = Executor(str(disk.capture), patience=0.0)
    executor.plan = PlanWatchedByAWriter(str(disk.capture), executor.plan.name)
    done = executor.carry_out(planned, disk.listing().get("r-1"))
    assert (done.done, done.reason) == ("kept", "changed_since_receipt")
    assert disk.path(STATE).read_bytes() == before and not any(plan.rollouts() for plan in disk.plans)
    assert disk.path("r-1.tokens.jsonl").read_bytes().endswith(b"{}\n")


def test_an_older_attempt_in_the_trash_is_never_overwritten(disk: Disk) -> None:
    """The reference begins a new attempt, retires it, fence first (newer-c), and dies before its payload goes."""
    disk.cleaned(older_than=TWO_WEEKS)
    (plan,) = disk.plans
    before = contents(plan.path)
    disk.add(past("r-1", first="other"))
    write_retired(disk.capture, "r-1")
    disk.grow_older(OLD)
    other = disk.path("r-1.tokens.jsonl").read_bytes()
    disk.cleaned(older_than=TWO_WEEKS)
    assert {name: told for name, told in contents(plan.path).items() if name in before} == before
    everywhere = [path.read_bytes() for path in disk.capture.rglob("r-1.tokens.jsonl")]
    assert other in everywhere


def test_a_record_made_after_the_planning_is_never_moved(disk: Disk) -> None:
    cleaning = disk.cleaning(older_than=TWO_WEEKS)
    planned = list(cleaning.plan())
    forge = past("r-1")
    late = forge.calls[-1].then([6], [7], id="late", created_at=LONG_AGO)
    GymWriter(disk.capture, "r-1").append(late.id, late.line())
    (done,) = cleaning.carry_out(planned)
    assert done.done == "kept" and late.line() in disk.path("r-1.tokens.jsonl").read_bytes()


def test_a_compressed_rollout_killed_between_two_renames_is_finished(tmp_path: Path) -> None:
    """No tombstone tells of it: nobody writes there, so no fence was put up."""
    disk = Disk(tmp_path)
    disk.add("r-1", state=False, intents=False, raw=True, compression=".gz", lock=False)
    disk.deliver()
    disk.cleaned(older_than=TWO_WEEKS)
    (plan,) = disk.plans
    (plan.path / "r-1.tokens.jsonl.gz").rename(disk.path("r-1.tokens.jsonl.gz"))
    disk.receipts.clear()
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    assert disk.names() == set() and disk.trashed() == {"r-1.tokens.jsonl.gz", "r-1.capture.jsonl.gz"}


def test_what_was_announced_by_a_run_that_was_killed_before_the_first_rename_is_planned_anew(disk: Disk) -> None:
    plan = TrashPlan.new(str(disk.capture))
    plan.path.mkdir(parents=True)
    files = tuple(TrashedFile(name, len(data), time) for name, (data, time, _) in contents(disk.capture).items())
    plan.announce(TrashedRollout(rollout_id="r-1", why="covered", files=files, state=None, tombstone=True))
    disk.receipts.clear()
    assert plan_of(disk).reason == "no_receipt"


def test_a_plan_whose_manifest_cannot_be_read_says_nothing_of_what_is_half_moved(disk: Disk) -> None:
    half_moved(disk)
    (plan,) = disk.plans
    assert [each.rollout.rollout_id for each in half_moved_of(plan)] == ["r-1"]
    with no_file_can_be_opened():
        assert list(half_moved_of(plan)) == []
