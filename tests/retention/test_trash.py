"""The trash and its manifests, which name every file before it moves."""

from pathlib import Path

import pytest

from ng_capture.retention.trash import MANIFEST, TRASH, TrashedFile, TrashedRollout, TrashPlan, plans_of
from tests.support.retention import TWO_WEEKS, Disk


def entry(rollout_id: str, *, restored: bool = False) -> TrashedRollout:
    file = TrashedFile(f"{rollout_id}.tokens.jsonl", 3, 1)
    return TrashedRollout(
        rollout_id=rollout_id, why="covered", files=(file,), state=None, tombstone=True, restored=restored
    )


@pytest.fixture
def plan(tmp_path: Path) -> TrashPlan:
    made = TrashPlan(str(tmp_path), "000001-20260101T000000Z")
    made.path.mkdir(parents=True)
    return made


def test_a_plan_tells_what_was_announced(plan: TrashPlan) -> None:
    plan.announce(entry("r-1"))
    plan.announce(entry("r-2"))
    assert plan.rollouts() == [entry("r-1"), entry("r-2")]


def test_a_plan_without_a_manifest_tells_nothing(plan: TrashPlan) -> None:
    assert plan.rollouts() == []


def test_what_was_restored_is_told_no_more_until_it_comes_again(plan: TrashPlan) -> None:
    plan.announce(entry("r-1"))
    plan.announce(entry("r-1", restored=True))
    assert plan.rollouts() == []
    plan.announce(entry("r-1"))
    assert plan.rollouts() == [entry("r-1")]


def test_a_line_cut_anywhere_announced_nothing(plan: TrashPlan) -> None:
    plan.announce(entry("r-1"))
    first = plan.manifest.stat().st_size
    plan.announce(entry("r-2"))
    whole = plan.manifest.read_bytes()
    for size in range(first, len(whole) - 1):
        plan.manifest.write_bytes(whole[:size])
        assert plan.rollouts() == [entry("r-1")], whole[:size]


def test_a_line_behind_a_cut_one_is_a_line_of_its_own(plan: TrashPlan) -> None:
    plan.announce(entry("r-1"))
    plan.manifest.write_bytes(plan.manifest.read_bytes()[:-20])
    plan.announce(entry("r-2"))
    assert plan.rollouts() == [entry("r-2")]


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"rollout_id": 5}', b"\xff"])
def test_a_line_that_is_no_entry_hides_no_other(plan: TrashPlan, line: bytes) -> None:
    plan.announce(entry("r-1"))
    with open(plan.manifest, "ab") as file:
        file.write(line + b"\n")
    plan.announce(entry("r-2"))
    assert plan.rollouts() == [entry("r-1"), entry("r-2")]


def test_a_plan_is_as_old_as_its_last_announcement(plan: TrashPlan) -> None:
    assert plan.made_at == plan.path.stat().st_mtime
    plan.announce(entry("r-1"))
    assert plan.made_at == plan.manifest.stat().st_mtime


def test_plans_come_the_oldest_first_and_what_is_no_plan_is_left_out(plan: TrashPlan, tmp_path: Path) -> None:
    trash = plan.path.parent
    plan.announce(entry("r-1"))
    (trash / "000000-20260201T000000Z").mkdir()
    (trash / "gc.lock").touch()
    (trash / "somebody's folder").mkdir()
    (trash / "000002-20260101T000000Z").symlink_to(plan.path)
    foreign = trash / "000003-20260101T000000Z"
    foreign.mkdir()
    (foreign / "without a manifest").touch()
    assert [each.name for each in plans_of(str(tmp_path))] == ["000000-20260201T000000Z", plan.name]


def test_without_a_trash_there_are_no_plans(tmp_path: Path) -> None:
    assert list(plans_of(str(tmp_path))) == []


def test_a_trash_that_is_a_link_is_not_followed(plan: TrashPlan, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / TRASH).symlink_to(plan.path.parent)
    assert list(plans_of(str(elsewhere))) == []


def test_of_plans_made_in_one_second_the_later_one_counts(tmp_path: Path) -> None:
    """An announcement is durable before anything moves: the one that was made last is that of a half moved rollout."""
    names = []
    for _ in range(8):
        disk = Disk(tmp_path)
        disk.receipts.clear()
        disk.add("r-1")
        disk.deliver()
        (disk.capture / "r-1.tokens.state.json").unlink()
        disk.cleaned(older_than=TWO_WEEKS)
        names += [plan.name for plan in disk.plans if plan.name not in names]
    assert [plan.name for plan in plans_of(str(disk.capture))] == names


def test_a_manifest_is_one_file_beside_what_it_names(plan: TrashPlan) -> None:
    plan.announce(entry("r-1"))
    assert [path.name for path in plan.path.iterdir()] == [MANIFEST]
