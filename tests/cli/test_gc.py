"""`ng-capture gc` as a user and a cron job run it."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.asked import PATIENCE, on_a_terminal
from tests.support.command import COMMAND, Run, run
from tests.support.fixtures import ROOT
from tests.support.retention import (
    CAN_MOUNT,
    DAY,
    OLD,
    Disk,
    contents,
    held,
    mounted,
    past,
    past_masked,
)
from tests.support.runs import write_retired
from tests.support.struck import AS_OTHERS_DO, ROOT_ONLY, struck, tree

AGED = ("--older-than", "14d")


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """Three rollouts that are delivered, one that is masked, one that no receipt covers, one that is young."""
    made = Disk(tmp_path)
    for name in ("r-1", "r-2", "r-3"):
        made.add(name)
    made.add(past_masked("m-1"))
    made.add("y-1", age=0.0)
    made.deliver()
    made.add("u-1")
    return made


def gc(disk: Disk, *arguments: object, **environment: str) -> Run:
    receipts = [word for receipt in disk.receipts for word in ("--delivered-to", receipt)]
    return run("gc", disk.capture, *receipts, *arguments, **environment)


def told(done: Run) -> dict[str, str]:
    """Action by rollout id, from `--json`."""
    return {row["rollout_id"]: row["action"] for row in done.rows}


def test_what_is_covered_and_old_goes_and_the_rest_is_kept_with_its_reason(disk: Disk) -> None:
    done = gc(disk, *AGED)
    assert done.code == 0, done.err
    lines = dict(line.split(": ", 1) for line in done.out.splitlines())
    assert list(lines) == ["m-1", "r-1", "r-2", "r-3", "u-1", "y-1"]
    assert lines["r-1"] == "trashed: covered by a receipt (2.1 kB)"
    assert lines["m-1"].startswith("kept: masked: masked, as its receipt says")
    assert lines["u-1"].startswith("kept: no_receipt: ")
    assert lines["y-1"].startswith("kept: young: last written 0.0 days ago")
    assert disk.names("r-1") == {"r-1.tokens.lock", "r-1.tokens.state.json"}


def test_a_run_is_one_line_in_the_log(disk: Disk) -> None:
    done = gc(disk, *AGED)
    (line,) = done.err.splitlines()
    stamp, rest = line.split(" ", 1)
    assert time.strptime(stamp, "%Y-%m-%dT%H:%M:%S%z")
    assert rest.startswith(f"gc {disk.capture}: 3 trashed, 0 purged (6.3 kB); 3 kept (")
    assert {"masked 1", "no_receipt 1", "young 1"} == set(rest.split("kept (")[1].split(")")[0].split(", "))
    assert "0 temporary files, 0 plans of the trash deleted; 0 failed; " in rest
    assert gc(disk, *AGED, "--quiet").err == ""


def test_a_dry_run_changes_nothing_and_lists_exactly_what_a_run_moves(disk: Disk) -> None:
    write_retired(disk.capture, "t-1")
    disk.grow_older(OLD, "t-1")
    disk.path(".tokens-state-abcdefgh").touch()
    disk.grow_older(OLD, ".tokens-state-abcdefgh")
    os.utime(disk.path(".tokens-state-abcdefgh"), (1, 1))
    words = (*AGED, "--tombstone-age", "20d", "--json")
    before = tree(disk.root)
    planned = gc(disk, *words, "--dry-run")
    assert (planned.code, planned.err, tree(disk.root)) == (0, "", before)
    names = told(planned)
    assert names.pop(".tokens-state-abcdefgh") == "remove"
    does = {"trash": "trashed", "purge": "purged", "keep": "kept"}
    done = told(gc(disk, *words))
    assert done.pop(".tokens-state-abcdefgh") == "removed"
    assert done == {name: does[action] for name, action in names.items()}
    assert not disk.path(".tokens-state-abcdefgh").exists() and not disk.path("t-1.tokens.state.json").exists()
    assert sorted(names.values()) == ["keep"] * 3 + ["purge"] + ["trash"] * 3


def test_a_dry_run_says_what_it_would_do_in_words(disk: Disk) -> None:
    lines = gc(disk, *AGED, "--dry-run").out.splitlines()
    assert "r-1: trash: covered by a receipt (2.1 kB)" in lines
    assert any(line.startswith("u-1: keep: no_receipt: no receipt covers it") for line in lines)


def test_json_is_one_object_a_rollout(disk: Disk) -> None:
    rows = {row.pop("rollout_id"): row for row in gc(disk, *AGED, "--json").rows}
    assert rows["r-1"] == {"action": "trashed", "reason": None, "why": "covered by a receipt", "bytes": 2097}
    assert (rows["u-1"]["action"], rows["u-1"]["reason"]) == ("kept", "no_receipt")


def test_a_second_run_has_nothing_left_to_do(disk: Disk) -> None:
    gc(disk, *AGED)
    before = contents(disk.capture)
    done = gc(disk, *AGED, "--json")
    assert set(told(done).values()) == {"kept"} and contents(disk.capture) == before


def test_only_what_is_asked_for_by_id_whatever_its_age(disk: Disk) -> None:
    done = gc(disk, "--rollout", "y-1", "--rollout", "u-1", "--json")
    assert (done.code, told(done)) == (0, {"u-1": "kept", "y-1": "trashed"})
    assert "r-1.tokens.jsonl" in disk.names()


def test_an_id_that_is_not_there_is_named(disk: Disk) -> None:
    done = gc(disk, "--rollout", "r-1", "--rollout", "r-77")
    assert f"ng-capture: {disk.capture}: no rollout r-77" in done.err.splitlines()


def test_without_a_receipt_trainable_rollouts_go_by_age(disk: Disk) -> None:
    done = told(gc(disk, *AGED, "--without-receipt", "--json"))
    assert done == dict.fromkeys(("r-1", "r-2", "r-3", "u-1"), "trashed") | dict.fromkeys(("m-1", "y-1"), "kept")


def test_masked_rollouts_go_where_they_are_asked_for_with_their_own_age(disk: Disk) -> None:
    assert told(gc(disk, *AGED, "--include-masked", "--masked-older-than", "60d", "--json"))["m-1"] == "kept"
    assert told(gc(disk, *AGED, "--include-masked", "--json"))["m-1"] == "trashed"


def test_tombstones_go_for_good_when_they_are_asked_for(disk: Disk) -> None:
    gc(disk, *AGED)
    disk.grow_older(OLD, "r-1")
    assert told(gc(disk, *AGED, "--json"))["r-1"] == "kept"
    assert told(gc(disk, *AGED, "--tombstone-age", "20d", "--json"))["r-1"] == "purged"
    assert disk.names("r-1") == {"r-1.tokens.lock"}


def test_a_receipt_without_its_output_covers_nothing_and_is_named(disk: Disk) -> None:
    (disk.root / "out.jsonl").unlink()
    done = gc(disk, *AGED, "--json")
    assert done.code == 0 and set(told(done).values()) == {"kept"}
    assert done.err.startswith(f"ng-capture: {disk.receipts[0]}: covers nothing: {disk.root / 'out.jsonl'} is gone")


def test_a_budget_frees_the_oldest_first(disk: Disk) -> None:
    for days, name in ((40, "r-1"), (60, "r-2"), (50, "r-3")):
        disk.grow_older(days * DAY, name)
    total = sum(path.stat().st_size for path in disk.capture.iterdir())
    done = gc(disk, *AGED, "--max-bytes", total - 2100, "--json")
    assert done.code == 0, done.err
    assert [row["rollout_id"] for row in done.rows if row["action"] == "trashed"] == ["r-2", "r-3"]
    assert [row["reason"] for row in done.rows if row["rollout_id"] == "r-1"] == ["young"]


def test_a_budget_that_cannot_be_kept_is_said_and_is_code_3(disk: Disk) -> None:
    done = gc(disk, *AGED, "--max-bytes", "1KB")
    assert done.code == 3 and "still 5.3 kB over its budget" in done.err
    assert "r-1.tokens.jsonl" not in disk.names()


def test_the_budget_is_that_of_the_directory_whatever_rollouts_are_asked_for(disk: Disk) -> None:
    total = sum(path.stat().st_size for path in disk.capture.iterdir())
    done = gc(disk, "--rollout", "r-1", "--max-bytes", total - 100, "--json")
    assert (done.code, told(done)) == (0, {"r-1": "trashed"})


def test_the_trash_is_purged_after_its_grace(disk: Disk) -> None:
    gc(disk, *AGED)
    assert gc(disk, *AGED).code == 0 and disk.trashed()
    for plan in disk.plans:
        then = plan.manifest.stat().st_mtime - 3 * DAY
        os.utime(plan.manifest, (then, then))
    assert gc(disk, *AGED).code == 0 and disk.trashed()
    done = gc(disk, *AGED, "--trash-grace", "2d")
    assert "1 plan of the trash deleted" in done.err and not disk.trashed()


def test_the_gauges_are_those_of_the_run(disk: Disk) -> None:
    file = disk.root / "gc.prom"
    begun = time.time()
    gc(disk, *AGED, "--prometheus", file, "--max-bytes", "1KB")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(file.read_text())
        for sample in family.samples
    }
    assert found["ng_capture_gc_trashed",] == 3 and found["ng_capture_gc_bytes",] == 3 * 2097
    assert found["ng_capture_gc_kept", "no_receipt"] == 1 and found["ng_capture_gc_over_budget_bytes",] > 0
    assert begun - 1 <= found["ng_capture_gc_last_run_timestamp_seconds",] <= time.time() + 1


WRONG = [
    ([], "--older-than or --rollout is wanted"),
    (["--older-than", "14"], "--older-than 14: an age like 14d"),
    (["--older-than", "14d", "--masked-older-than", "1d"], "--include-masked"),
    (["--older-than", "14d", "--max-bytes", "lots"], "--max-bytes lots: a size like"),
    (["--older-than", "14d", "--tombstone-age", "x"], "--tombstone-age x"),
    (["--older-than", "14d", "--trash-grace", "x"], "--trash-grace x"),
    (["--older-than", "14d", "--delivered-to", "nowhere.json"], "nowhere.json: no such receipt"),
    (["--older-than", "14d", "--delivered-to", ROOT / "rollouts.jsonl"], "no receipt"),
    (["--older-than", "14d", "--prometheus", "/nowhere/gc.prom"], "/nowhere"),
    (["--older-than", "14d", "--lock-timeout", "-1"], "--lock-timeout"),
    (["--older-than", "14d", "--lock-timeout", "nan"], "--lock-timeout"),
    (["--older-than", "14d", "--dry-run", "--prometheus", "gc.prom"], "takes no --dry-run"),
    (["--older-than", "14d", "--prometheus", "/"], "/: is a directory"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_wrong_use_is_code_2_and_touches_nothing(disk: Disk, arguments: list[object], message: str) -> None:
    before = tree(disk.root)
    done = gc(disk, *arguments)
    assert done.code == 2 and message in done.err, done
    assert tree(disk.root) == before


def test_gauges_never_replace_a_capture_or_a_receipt(disk: Disk) -> None:
    for place in (disk.path("u-1.tokens.jsonl"), disk.path("new.capture.jsonl.gz"), disk.receipts[0]):
        before = tree(disk.root)
        done = gc(disk, *AGED, "--prometheus", place)
        assert done.code == 2 and "the gauges would replace" in done.err
        assert tree(disk.root) == before


@pytest.mark.parametrize("place", ["nowhere", "out.jsonl"])
def test_what_is_no_directory_is_wrong_use(disk: Disk, place: str) -> None:
    assert run("gc", disk.root / place, *AGED).code == 2


def test_an_empty_name_is_not_the_directory_one_stands_in(disk: Disk) -> None:
    """As a variable leaves it that was never set."""
    before = tree(disk.capture)
    done = run("gc", "", *AGED, "--without-receipt", cwd=disk.capture)
    assert done.code == 2 and "no such directory" in done.err and tree(disk.capture) == before


def test_no_directory_is_wrong_use_and_says_what_to_type() -> None:
    done = run("gc", *AGED)
    assert done.code == 2 and "hint: ng-capture gc" in done.err


def test_options_are_environment_variables_too(disk: Disk) -> None:
    assert told(gc(disk, "--json", NG_CAPTURE_GC_OLDER_THAN="14d"))["r-1"] == "trashed"


def test_a_rollout_that_a_writer_holds_stays_and_the_others_go(disk: Disk) -> None:
    with held(disk.path("r-2.tokens.lock")):
        done = gc(disk, *AGED, "--json")
    assert done.code == 0
    assert [row["reason"] for row in done.rows if row["rollout_id"] == "r-2"] == ["busy"]
    assert {told(done)[name] for name in ("r-1", "r-3")} == {"trashed"}


def test_what_cannot_be_moved_is_named_and_code_3_and_the_rest_is_done(disk: Disk) -> None:
    lock = disk.path("r-2.tokens.lock")
    lock.unlink()
    lock.mkdir()
    done = gc(disk, *AGED, "--json")
    assert (done.code, told(done)["r-1"], told(done)["r-2"]) == (3, "trashed", "kept")
    assert done.err.startswith(f"ng-capture: r-2: {lock}: ") and "1 failed" in done.err


@pytest.mark.parametrize("words", [["--json"], []], ids=["json", "text"])
def test_a_name_that_is_no_utf8_is_no_obstacle(disk: Disk, words: list[str]) -> None:
    Path(os.fsdecode(os.fsencode(disk.capture) + b"/\xe9\x1b[2J.tokens.jsonl")).touch()
    done = gc(disk, *AGED, *words)
    assert done.code == 0 and "\x1b" not in done.out + done.err, done.err
    assert "unknown_file" in gc(disk, "--older-than", "0s", *words).out


@pytest.mark.skipif(ROOT_ONLY, reason="root may write everywhere")
def test_a_read_only_directory_is_one_line_and_code_3_and_a_dry_run_needs_no_more(disk: Disk) -> None:
    disk.capture.chmod(0o555)
    before = tree(disk.root)
    words = ("gc", disk.capture, "--delivered-to", disk.receipts[0], *AGED)
    planned = struck(*words, "--dry-run", "--json")
    assert planned.code == 0 and b'"trash"' in planned.out
    done = struck(*words)
    assert (done.code, done.out, len(done.err.splitlines())) == (3, b"", 1)
    assert str(disk.capture) in done.err and "Permission denied" in done.err
    assert tree(disk.root) == before
    disk.capture.chmod(0o755)


@pytest.mark.skipif(not CAN_MOUNT, reason="no mount namespace may be made here")
def test_a_network_file_system_is_refused_with_the_reason_unless_it_is_allowed(disk: Disk, tmp_path: Path) -> None:
    mount = f"30 20 0:40 / {disk.root} rw - nfs4 server:/data rw\n"
    words = [COMMAND, "gc", disk.capture, "--delivered-to", disk.receipts[0], *AGED]
    done = mounted(tmp_path, mount, *words)
    assert done.returncode == 3 and f"lies on nfs4 ({disk.root})" in done.stderr
    assert "hint: " in done.stderr and "--allow-network-fs" in done.stderr
    assert "r-1.tokens.jsonl" in disk.names() and not disk.trashed()
    assert mounted(tmp_path, mount, *words, "--allow-network-fs").returncode == 0
    assert "r-1.tokens.jsonl" not in disk.names()


def test_the_current_rollout_is_finished_when_the_run_is_terminated(disk: Disk) -> None:
    words = ("gc", disk.capture, "--delivered-to", disk.receipts[0], *AGED)
    log = disk.root / "log"
    kept = {path.name: path.read_bytes() for path in disk.capture.iterdir()}
    assert struck(*words, "--dry-run", log=log).code == 0
    planning = len(log.read_text().split())
    # inside the announcement of the first rollout that goes: its manifest is being written
    for event in range(planning + 8, planning + 40, 6):
        again = Disk(disk.root / str(event))
        for name in ("r-1", "r-2", "r-3"):
            again.add(name)
        again.deliver()
        done = struck("gc", again.capture, "--delivered-to", again.receipts[0], *AGED, at=event, how="SIGTERM")
        assert (done.code, len(done.err.splitlines())) == (143, 1), done
        moved = [line.split(b":")[0].decode() for line in done.out.splitlines()]
        assert 1 <= len(moved) < 3 and "0 failed" in done.err
        for name in ("r-1", "r-2", "r-3"):
            whole = {f"{name}.tokens.jsonl", f"{name}.tokens.intents"}
            assert whole <= again.trashed() if name in moved else whole <= again.names()
            assert not (whole & again.names() and whole & again.trashed())
    assert {path.name: path.read_bytes() for path in disk.capture.iterdir()} == kept


def words(disk: Disk, *more: object) -> tuple[Any, ...]:
    return ("gc", disk.capture, "--delivered-to", disk.receipts[0], *AGED, *more)


@pytest.mark.skipif(not CAN_MOUNT, reason="no mount namespace may be made here")
def test_a_trash_on_another_file_system_is_refused(disk: Disk) -> None:
    """There a rename would be a copy, and a kill would leave half of one."""
    place = disk.capture / ".trash"
    place.mkdir()
    script = f'mount -t tmpfs none "{place}" && exec "$@"'
    line = ["unshare", "--mount", "sh", "-c", script, "sh", COMMAND, *map(str, words(disk))]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 3 and f"{place}: lies on another file system" in done.stderr
    assert "r-1.tokens.jsonl" in disk.names()


def test_a_person_is_asked_and_a_no_changes_nothing(disk: Disk) -> None:
    before = contents(disk.capture)
    with on_a_terminal(*words(disk)) as asked:
        assert f"Move 3 rollouts of {disk.capture} to its trash?" in asked.until("(n)")
        assert asked.answer("n") == (0, "")
    assert contents(disk.capture) == before and disk.plans == []


def test_a_person_who_says_yes_gets_it(disk: Disk) -> None:
    with on_a_terminal(*words(disk, "--json")) as asked:
        asked.until("(n)")
        code, out = asked.answer("y")
    assert code == 0 and out.count('"trashed"') == 3


def test_a_person_who_gave_yes_or_has_nothing_to_lose_is_not_asked(disk: Disk) -> None:
    for _ in range(2):
        with on_a_terminal(*words(disk, "--yes")) as asked:
            assert "(n)" not in asked.until("failed")
    with on_a_terminal(*words(disk)) as asked:
        assert "(n)" not in asked.until("failed")


def test_a_second_gc_leaves_with_code_3_and_names_the_holder(disk: Disk) -> None:
    with on_a_terminal(*words(disk)) as first:
        first.until("(n)")
        second = gc(disk, *AGED)
        assert (second.code, second.out) == (3, "")
        assert f"{disk.capture}: another gc is at work: process {first.process.pid} on " in second.err
        restoring = run("trash", "restore", disk.capture, "r-1", "--lock-timeout", "0")
        assert restoring.code == 3 and str(first.process.pid) in restoring.err
        assert gc(disk, *AGED, "--dry-run").code == 0
        assert first.answer("y")[0] == 0


def test_a_second_gc_waits_where_it_is_told_to(disk: Disk) -> None:
    with on_a_terminal(*words(disk)) as first:
        first.until("(n)")
        line = [COMMAND, *map(str, words(disk, "--wait", "30", "--json"))]
        with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as second:
            with pytest.raises(subprocess.TimeoutExpired):
                second.wait(0.7)
            assert first.answer("y")[0] == 0
            out, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 0 and b'"trashed"' not in out


def test_the_reader_of_the_output_may_leave(disk: Disk) -> None:
    for number in range(20):
        disk.add(past(f"z-{number}"), state=False)
    script = '"$@" | head -n 1'
    line = ["bash", "-o", "pipefail", "-c", script, "bash", COMMAND, *map(str, words(disk, "--dry-run"))]
    done = subprocess.run(line, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_work_is_done_though_the_reader_left(disk: Disk) -> None:
    for number in range(40):
        disk.add(past(f"z-{number}"))
    disk.deliver()
    line = ["bash", "-c", '"$@" | true', "bash", COMMAND, *map(str, words(disk))]
    done = subprocess.run(line, capture_output=True, timeout=PATIENCE, check=False)
    assert b"44 trashed" in done.stderr and b"Traceback" not in done.stderr
    assert not [name for name in disk.names() if name.startswith("z-") and name.endswith(".jsonl")]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_where_the_output_finds_no_room_the_work_is_done_and_the_loss_is_code_3(disk: Disk) -> None:
    line = ["bash", "-c", '"$@" > /dev/full', "bash", COMMAND, *map(str, words(disk))]
    done = subprocess.run(line, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 3 and b"output: No space left" in done.stderr and b"3 trashed" in done.stderr
    assert b"Traceback" not in done.stderr and "r-1.tokens.jsonl" not in disk.names()


def test_the_work_is_done_though_there_is_no_output(disk: Disk) -> None:
    line = ["bash", "-c", '"$@" >&-', "bash", COMMAND, *map(str, words(disk))]
    done = subprocess.run(line, capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0 and b"3 trashed" in done.stderr


def test_a_dry_run_names_the_plans_that_would_be_purged_and_what_is_over_the_budget(disk: Disk) -> None:
    gc(disk, *AGED)
    (plan,) = disk.plans
    then = time.time() - 30 * DAY
    os.utime(plan.manifest, (then, then))
    done = gc(disk, "--older-than", "14d", "--max-bytes", "1", "--dry-run")
    assert f"{plan.name}: purge: a plan of the trash past its grace" in done.out
    assert done.code == 3 and "over the budget, even then" in done.err


def test_the_cron_recipe_of_the_readme_does_what_it_says(tmp_path: Path) -> None:
    readme = (ROOT.parent / "README.md").read_text()
    recipe = readme.split("<!-- cron -->\n```sh\n")[1].split("```\n<!-- /cron -->")[0]
    disk = Disk(tmp_path)
    disk.add("r-1")
    disk.add("y-1", age=0.0)
    disk.deliver()
    (tmp_path / "runs").mkdir()
    disk.capture.rename(tmp_path / "runs" / "42")
    disk.capture = tmp_path / "runs" / "42"
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            ["sh", "-e", "-c", recipe], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
        assert (done.stdout, done.stderr) == (b"", b"")
    log = (tmp_path / "gc.log").read_text().splitlines()
    assert len(log) == 2 and "1 trashed" in log[0] and "0 trashed" in log[1]
    assert (tmp_path / "gc.txt").read_text().startswith("r-1: trashed: covered by a receipt")
    assert list(text_string_to_metric_families((tmp_path / "gc.prom").read_text()))
    assert "r-1.tokens.jsonl" in disk.trashed() and "y-1.tokens.jsonl" in disk.names()


@pytest.mark.skipif(not AS_OTHERS_DO, reason="only root is let in where it may not write")
def test_a_lock_of_somebody_else_is_named_and_the_rest_is_done(disk: Disk) -> None:
    disk.path("r-2.tokens.lock").chmod(0o444)
    done = struck(*words(disk, "--json"))
    assert done.code == 3 and done.out.count(b'"trashed"') == 2
    assert "r-2.tokens.lock" in done.err and "Permission denied" in done.err


def test_a_plan_of_the_trash_that_cannot_be_deleted_is_named_and_the_run_has_its_line(disk: Disk) -> None:
    odd = disk.capture / ".trash" / "000000-20260101T000000Z"
    (odd / "folder").mkdir(parents=True)
    (odd / "manifest.jsonl").touch()
    done = gc(disk, *AGED, "--trash-grace", "0s")
    assert done.code == 3 and "000000-20260101T000000Z: holds folder" in done.err
    assert "3 trashed" in done.err and "1 failed" in done.err.splitlines()[-1]
