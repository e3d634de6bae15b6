"""Rollouts brought back from the trash as they were, and the trash emptied."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.errors import SurroundingsError
from ng_capture.retention.restore import Restored, purge, restore
from ng_capture.retention.trash import MANIFEST, TrashedRollout, TrashPlan
from ng_capture.store.snapshot import read_snapshot
from ng_capture.verdicts.judge import judge
from tests.support.forge import canonical
from tests.support.gym_writer import GymWriter, Refused
from tests.support.retention import LONG_AGO, TWO_WEEKS, Contents, Disk, contents, held, past

STATE = "r-1.tokens.state.json"


def trashed(disk: Disk, **how: Any) -> Contents:
    """`r-1` written, delivered and trashed; what it was."""
    disk.add("r-1", **how)
    disk.deliver()
    before = contents(disk.capture)
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    return before


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def back(disk: Disk, patience: float = 0.0) -> Restored:
    plan, rollout = lying(disk)
    return restore(plan, rollout, patience=patience)


def lying(disk: Disk) -> tuple[TrashPlan, TrashedRollout]:
    """The plan of the one rollout in the trash, and the rollout."""
    (found,) = [(plan, rollout) for plan in disk.plans for rollout in plan.rollouts()]
    return found


KINDS: list[dict[str, Any]] = [
    {},
    {"raw": True},
    {"state": False},
    {"intents": False},
    {"state": False, "lock": False},
    {"state": False, "intents": False, "lock": False, "compression": ".gz"},
]


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_a_restored_rollout_has_the_same_bytes_and_times(disk: Disk, how: dict[str, Any]) -> None:
    before = trashed(disk, **how)
    assert back(disk) == Restored("r-1", disk.plans[0].name, None)
    assert contents(disk.capture) == before
    assert disk.trashed() == set() and disk.plans[0].rollouts() == []


def test_a_restored_state_keeps_its_permissions(disk: Disk) -> None:
    disk.add("r-1")
    disk.path(STATE).chmod(0o600)
    disk.deliver()
    before = contents(disk.capture)
    disk.cleaned(older_than=TWO_WEEKS)
    back(disk)
    assert contents(disk.capture) == before


def test_a_restored_rollout_is_verified_and_appended_to_as_if_nothing_had_been(disk: Disk) -> None:
    trashed(disk)
    back(disk)
    forge = past("r-1")
    late = forge.calls[-1].then([6], [7], id="late", created_at=LONG_AGO + 9)
    writer = GymWriter(disk.capture, "r-1")
    writer.begin_call("late")
    writer.append("late", late.line())
    judgement = judge(read_snapshot(disk.listing().get("r-1")))
    assert (judgement.verdict, judgement.metrics.n_calls) == ("trainable", 3)


def test_a_restored_rollout_may_go_again(disk: Disk) -> None:
    before = trashed(disk)
    back(disk)
    assert disk.cleaned(older_than=TWO_WEEKS)["r-1"].done == "trashed"
    back(disk)
    assert contents(disk.capture) == before


@pytest.mark.parametrize("how", KINDS, ids=str)
@pytest.mark.parametrize("moved", range(5))
def test_a_second_restore_finishes_what_a_kill_left(disk: Disk, moved: int, how: dict[str, Any]) -> None:
    before = trashed(disk, **how)
    plan, rollout = lying(disk)
    names = [file.name for file in rollout.files]
    if rollout.state is not None:
        names.append(rollout.state.name)
    for name in names[:moved]:
        (plan.path / name).rename(disk.path(name))
    assert back(disk).problem is None
    assert contents(disk.capture) == before and disk.trashed() == set()


def test_a_restored_rollout_that_is_written_again_survives_a_second_restore(disk: Disk) -> None:
    """Killed behind the tombstone's end and before the manifest says so: a writer may have gone on meanwhile."""
    trashed(disk, state=False)
    plan, rollout = lying(disk)
    assert restore(plan, rollout, patience=0.0).problem is None
    plan.announce(rollout)
    GymWriter(disk.capture, "r-1").mark_incomplete("lost")
    before = contents(disk.capture)
    restore(plan, rollout, patience=0.0)
    assert contents(disk.capture) == before


def new_attempt(disk: Disk) -> Contents:
    """Deleted by the reference and written anew under the same id."""
    writer, forge = GymWriter(disk.capture, "r-1"), past("r-1", first="other")
    writer.delete()
    writer.begin_call("other")
    writer.append("other", forge.calls[0].line())
    return contents(disk.capture)


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_a_new_attempt_is_never_touched(disk: Disk, how: dict[str, Any]) -> None:
    trashed(disk, **how)
    now, lying_there = new_attempt(disk), disk.trashed()
    problem = back(disk).problem
    assert problem is not None and "newer" in problem
    assert contents(disk.capture) == now and disk.trashed() == lying_there


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_a_new_attempt_that_has_only_begun_its_first_call_is_never_touched(disk: Disk, how: dict[str, Any]) -> None:
    trashed(disk, **how)
    writer = GymWriter(disk.capture, "r-1")
    writer.delete()
    writer.begin_call("other")
    now = contents(disk.capture)
    assert back(disk).problem is not None
    assert contents(disk.capture) == now


@pytest.mark.parametrize("how", KINDS, ids=str)
def test_a_new_attempt_that_is_only_marked_is_never_touched(disk: Disk, how: dict[str, Any]) -> None:
    trashed(disk, **how)
    writer = GymWriter(disk.capture, "r-1")
    writer.delete()
    writer.mark_incomplete("lost")
    now = contents(disk.capture)
    assert back(disk).problem is not None
    assert contents(disk.capture) == now


def test_a_new_attempt_whose_state_cannot_be_read_is_never_touched(disk: Disk) -> None:
    trashed(disk)
    disk.path(STATE).write_bytes(b"{")
    now = contents(disk.capture)
    assert back(disk).problem is not None
    assert contents(disk.capture) == now


def test_it_comes_back_where_the_tombstone_is_gone(disk: Disk) -> None:
    before = trashed(disk)
    disk.path(STATE).unlink()
    assert back(disk).problem is None
    assert contents(disk.capture) == before


def test_a_held_lock_leaves_it_in_the_trash(disk: Disk) -> None:
    trashed(disk)
    lying_there = disk.trashed()
    with held(disk.path("r-1.tokens.lock")):
        problem = back(disk).problem
    assert problem is not None and "locked by another process" in problem
    assert disk.trashed() == lying_there


def test_what_is_neither_here_nor_there_is_not_told_to_be_back(disk: Disk) -> None:
    trashed(disk)
    plan, _ = lying(disk)
    (plan.path / "r-1.tokens.jsonl").unlink()
    problem = back(disk).problem
    assert problem is not None and "r-1.tokens.jsonl" in problem


def test_an_entry_that_names_a_file_elsewhere_moves_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "deep" / "down")
    trashed(disk)
    plan, _ = lying(disk)
    (disk.root / "mine").write_bytes(b"mine")
    line = plan.manifest.read_bytes().replace(b"r-1.tokens.intents", b"../../../mine")
    plan.manifest.write_bytes(line)
    back(disk)
    assert (disk.root / "mine").read_bytes() == b"mine"


def test_a_fence_stands_until_the_payload_is_back(disk: Disk) -> None:
    trashed(disk)
    plan, rollout = lying(disk)
    # the second file cannot come back
    disk.path(rollout.files[1].name).mkdir()
    (plan.path / rollout.files[1].name).unlink()
    (plan.path / rollout.files[1].name).write_bytes(b"")
    assert back(disk).problem is not None
    assert json.loads(disk.path(STATE).read_bytes())["retired"] is True
    with pytest.raises(Refused):
        GymWriter(disk.capture, "r-1").begin_call("late")


def test_purging_a_plan_frees_its_bytes_and_leaves_nothing_of_it(disk: Disk) -> None:
    before = trashed(disk)
    (plan,) = disk.plans
    assert purge(plan) == sum(len(data) for data, _, _ in before.values())
    assert disk.plans == [] and STATE in disk.names()


def test_a_plan_that_cannot_be_emptied_keeps_its_manifest(disk: Disk) -> None:
    trashed(disk)
    (plan,) = disk.plans
    (plan.path / "zz").mkdir()
    with pytest.raises(SurroundingsError, match="zz"):
        purge(plan)
    assert (plan.path / MANIFEST).exists()


def test_purging_goes_on_where_a_kill_left_it(disk: Disk) -> None:
    trashed(disk)
    (plan,) = disk.plans
    (plan.path / "r-1.tokens.jsonl").unlink()
    purge(plan)
    assert disk.plans == []
    plan.path.mkdir()
    purge(plan)
    assert disk.plans == [] and not plan.path.exists()


def test_what_no_manifest_names_stays_in_a_purged_plan(disk: Disk) -> None:
    trashed(disk)
    (disk.root / "mine").write_bytes(b"mine")
    link = disk.plans[0].path / "link"
    link.symlink_to(disk.root / "mine")
    with pytest.raises(SurroundingsError, match="holds link, which its manifest does not name"):
        purge(disk.plans[0])
    assert link.is_symlink() and (disk.root / "mine").read_bytes() == b"mine"


def test_a_tombstone_with_marks_gives_way_to_the_original(disk: Disk) -> None:
    before = trashed(disk)
    tombstone = json.loads(disk.path(STATE).read_bytes())
    disk.path(STATE).write_bytes(canonical({**tombstone, "incomplete": True}))
    assert back(disk).problem is None
    assert contents(disk.capture) == before


def test_a_plan_that_waits_for_files_is_not_purged(disk: Disk) -> None:
    trashed(disk)
    (plan,) = disk.plans
    (plan.path / "r-1.tokens.jsonl").rename(disk.path("r-1.tokens.jsonl"))
    with pytest.raises(SurroundingsError, match="waits for files of"):
        purge(plan)
    assert plan.manifest.exists()
