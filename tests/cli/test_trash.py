"""`ng-capture trash`: look, bring back, empty."""

import os
from pathlib import Path

import pytest

from tests.support.asked import on_a_terminal
from tests.support.command import Run, run
from tests.support.forge import Forge
from tests.support.gym_writer import GymWriter
from tests.support.retention import DAY, LONG_AGO, TWO_WEEKS, Contents, Disk, contents, held, past
from tests.support.struck import ROOT_ONLY, struck, tree


class Emptied(Disk):
    """A directory whose rollouts went to the trash; `before` is what lay in it."""

    before: Contents


@pytest.fixture
def disk(tmp_path: Path) -> Emptied:
    """Two rollouts in the trash, by one plan."""
    made = Emptied(tmp_path)
    for name in ("r-1", "r-2"):
        made.add(name)
    made.deliver()
    made.before = contents(made.capture)
    run("gc", made.capture, "--delivered-to", made.receipts[0], "--older-than", "14d")
    return made


def before(disk: Emptied, rollout_id: str = "") -> Contents:
    return {name: told for name, told in disk.before.items() if name.startswith(rollout_id)}


def now(disk: Emptied, rollout_id: str = "") -> Contents:
    return {name: told for name, told in contents(disk.capture).items() if name.startswith(rollout_id)}


def trash(command: str, disk: Emptied, *arguments: object) -> Run:
    return run("trash", command, disk.capture, *arguments)


def test_the_list_tells_plan_rollout_size_and_reason(disk: Emptied) -> None:
    (plan,) = disk.plans
    done = trash("ls", disk)
    assert (done.code, done.err) == (0, "")
    lines = [line.split("  ") for line in done.out.splitlines()]
    assert [(name, rollout, why) for name, rollout, _, why in lines] == [
        (plan.name, name, "covered by a receipt") for name in ("r-1", "r-2")
    ]
    rows = trash("ls", disk, "--json").rows
    assert [(row["plan"], row["rollout_id"], row["why"]) for row in rows] == [
        (plan.name, name, "covered by a receipt") for name in ("r-1", "r-2")
    ]


def test_the_list_counts_the_bytes_that_lie_there(disk: Emptied) -> None:
    told = {row["rollout_id"]: row["bytes"] for row in trash("ls", disk, "--json").rows}
    assert told == {name: sum(len(data) for data, _, _ in before(disk, name).values()) for name in ("r-1", "r-2")}


def test_looking_changes_nothing(disk: Emptied) -> None:
    was = tree(disk.root)
    trash("ls", disk)
    assert tree(disk.root) == was


def test_an_empty_trash_lists_nothing(tmp_path: Path) -> None:
    assert run("trash", "ls", tmp_path) == Run(0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_rollout_comes_back_byte_for_byte_and_the_others_stay(disk: Emptied) -> None:
    (plan,) = disk.plans
    assert trash("restore", disk, "r-1") == Run(0, f"r-1: restored from {plan.name}\n", "")
    assert now(disk, "r-1") == before(disk, "r-1")
    assert [row["rollout_id"] for row in trash("ls", disk, "--json").rows] == ["r-2"]


def test_a_whole_plan_comes_back(disk: Emptied) -> None:
    assert trash("restore", disk, disk.plans[0].name).code == 0
    assert now(disk) == before(disk) and trash("ls", disk).out == ""


def test_a_restored_rollout_verifies_and_is_written_again(disk: Emptied) -> None:
    trash("restore", disk, "r-1")
    assert run("verify", disk.capture, "--include", "r-1").code == 0
    late = past("r-1").calls[-1].then([6], [7], id="late", created_at=LONG_AGO + 9)
    writer = GymWriter(disk.capture, "r-1")
    writer.begin_call("late")
    writer.append("late", late.line())
    done = run("verify", disk.capture, "--include", "r-1", "-f", "jsonl")
    assert (done.code, done.rows[0]["metrics"]["n_calls"]) == (0, 3)


def test_a_restored_rollout_may_go_again_and_come_back_again(disk: Emptied) -> None:
    for _ in range(2):
        assert trash("restore", disk, "r-1", "r-2").code == 0
        assert now(disk) == before(disk)
        gone = run("gc", disk.capture, "--delivered-to", disk.receipts[0], "--older-than", "14d")
        assert "2 trashed" in gone.err


def test_the_last_of_several_attempts_comes_back(disk: Emptied) -> None:
    GymWriter(disk.capture, "r-1").delete()
    disk.add(past("r-1", first="other"))
    disk.deliver("later.jsonl")
    was = now(disk, "r-1")
    disk.cleaned(ids=frozenset({"r-1"}))
    for plan in disk.plans[:-1]:
        os.utime(plan.manifest, (LONG_AGO, LONG_AGO))
    assert trash("restore", disk, "r-1").code == 0
    assert now(disk, "r-1") == was
    assert {row["rollout_id"] for row in trash("ls", disk, "--json").rows} == {"r-1", "r-2"}


def test_a_new_attempt_is_not_touched_and_named_with_code_3(disk: Emptied) -> None:
    writer = GymWriter(disk.capture, "r-1")
    writer.delete()
    writer.append("other", past("r-1", first="other").calls[0].line())
    was = now(disk, "r-1")
    done = trash("restore", disk, "r-1", "r-2")
    assert done.code == 3 and done.err.startswith("ng-capture: r-1: stays in the trash: a newer ")
    assert now(disk, "r-1") == was and now(disk, "r-2") == before(disk, "r-2")


def test_a_held_lock_is_waited_for_and_then_named(disk: Emptied) -> None:
    with held(disk.path("r-1.tokens.lock")):
        done = trash("restore", disk, "r-1", "--lock-timeout", "0.1")
    assert done.code == 3 and "r-1: stays in the trash: " in done.err and "locked by another process" in done.err


def test_a_name_that_is_not_there_is_wrong_use_and_says_what_to_type(disk: Emptied) -> None:
    done = trash("restore", disk, "r-77")
    assert done.code == 2 and f"{disk.capture}: not in its trash: r-77" in done.err
    assert "hint: ng-capture trash ls" in done.err


def test_a_code_2_means_that_nothing_was_written(disk: Emptied) -> None:
    was = now(disk)
    done = trash("restore", disk, "r-1", "r-77")
    assert "r-77" in done.err
    assert (done.code, now(disk) == was) in ((2, True), (3, False))


@pytest.mark.parametrize("command", ["ls", "restore", "purge"])
def test_what_is_no_directory_is_wrong_use(command: str, tmp_path: Path) -> None:
    names = ["r-1"] if command == "restore" else []
    done = run("trash", command, tmp_path / "nowhere", *names)
    assert done.code == 2 and "no such directory" in done.err
    assert list(tmp_path.iterdir()) == []


def test_purging_deletes_all_plans_and_says_how_much_it_frees(disk: Emptied) -> None:
    size = sum(len(data) for data, _, _ in before(disk).values())
    done = trash("purge", disk)
    assert (done.code, done.out) == (0, "")
    assert done.err == f"1 plan deleted, {size / 1000:.1f} kB freed\n"
    assert disk.plans == [] and disk.names() >= {"r-1.tokens.state.json", "r-1.tokens.lock"}


def test_purging_by_age_leaves_the_younger_plans(disk: Emptied) -> None:
    (old,) = disk.plans
    disk.add("r-3")
    disk.deliver("later.jsonl")
    disk.cleaned(older_than=TWO_WEEKS)
    then = old.manifest.stat().st_mtime - 8 * DAY
    os.utime(old.manifest, (then, then))
    assert trash("purge", disk, "--older-than", "7d").err.startswith("1 plan deleted")
    assert [row["rollout_id"] for row in trash("ls", disk, "--json").rows] == ["r-3"]


def test_a_wrong_age_is_wrong_use(disk: Emptied) -> None:
    assert trash("purge", disk, "--older-than", "x").code == 2 and disk.trashed()


def test_a_person_is_asked_before_it_is_purged(disk: Emptied) -> None:
    with on_a_terminal("trash", "purge", disk.capture) as asked:
        assert f"Delete 1 plan of {disk.capture} for good?" in asked.until("(n)")
        assert asked.answer("n")[0] == 0
    assert disk.trashed()
    with on_a_terminal("trash", "purge", disk.capture) as asked:
        asked.until("(n)")
        assert asked.answer("y")[0] == 0
    assert not disk.trashed()


def test_a_person_who_gave_yes_is_not_asked(disk: Emptied) -> None:
    with on_a_terminal("trash", "purge", disk.capture, "--yes") as asked:
        assert "(n)" not in asked.until("freed")


def test_an_id_is_printed_so_that_no_terminal_acts_on_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.add(Forge("r-1"))
    plan = disk.capture / ".trash" / "000001-20260101T000000Z"
    plan.mkdir(parents=True)
    (plan / "manifest.jsonl").write_text(
        '{"rollout_id":"\\u001b[2J","why":"\\u001b[31m","files":[],"state":null,"tombstone":false}\n'
    )
    done = run("trash", "ls", disk.capture)
    assert done.code == 0 and "\x1b" not in done.out


def test_a_plan_that_cannot_be_purged_is_named_and_the_others_go(disk: Emptied) -> None:
    odd = disk.capture / ".trash" / "000000-20260101T000000Z"
    (odd / "folder").mkdir(parents=True)
    (odd / "manifest.jsonl").touch()
    done = trash("purge", disk)
    assert done.code == 3 and "000000-20260101T000000Z: holds folder" in done.err and "1 plan deleted" in done.err
    assert [plan.name for plan in disk.plans] == ["000000-20260101T000000Z"]


def test_a_plan_that_waits_for_files_is_not_purged(disk: Emptied) -> None:
    (plan,) = disk.plans
    (plan.path / "r-1.tokens.jsonl").rename(disk.path("r-1.tokens.jsonl"))
    done = trash("purge", disk)
    assert done.code == 3 and f"waits for files of {disk.capture}" in done.err and "hint: run gc first" in done.err
    assert disk.plans and disk.path("r-1.tokens.jsonl").exists()


@pytest.mark.skipif(ROOT_ONLY, reason="root reads everything")
def test_a_manifest_that_cannot_be_read_is_named_and_the_other_plans_are_listed(disk: Emptied) -> None:
    odd = disk.capture / ".trash" / "000000-20260101T000000Z"
    odd.mkdir()
    (odd / "manifest.jsonl").touch(mode=0)
    done = struck("trash", "ls", disk.capture)
    assert done.code == 3 and "manifest.jsonl: cannot be read" in done.err and b"r-1" in done.out
