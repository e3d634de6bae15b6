"""What may go, and why the rest stays: one test a reason (reasons.md, gc)."""

import json
import os
from pathlib import Path

import pytest

from ng_capture.files.names import FileKind
from ng_capture.retention.asking import DAY
from ng_capture.retention.plan import PlannedRollout
from ng_capture.retention.receipts import read_coverage
from ng_capture.store.seal import Sealed, seal
from ng_capture.verdicts.reasons import REASONS
from tests.support.retention import LONG_AGO, OLD, TWO_WEEKS, Disk, held, no_file_can_be_opened, past, past_masked
from tests.support.runs import write_retired


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def only(disk: Disk, **permission: object) -> PlannedRollout:
    (planned,) = disk.planned(**permission).values()
    return planned


def kept(disk: Disk, **permission: object) -> str | None:
    """The reason why the one rollout stays, which must be one of the registry."""
    planned = only(disk, **permission)
    assert planned.action == "keep" and planned.reason in REASONS, planned
    return planned.reason


def test_what_a_receipt_covers_goes_when_it_is_old_enough(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    planned = only(disk, older_than=TWO_WEEKS)
    assert (planned.action, planned.reason, planned.why) == ("trash", None, "covered by a receipt")
    assert {file.name for file in planned.files} == disk.names() - {"r-1.tokens.lock"}
    assert planned.size == sum(disk.path(file.name).stat().st_size for file in planned.files) > 0


def test_planning_changes_nothing(disk: Disk) -> None:
    disk.add("r-1")
    disk.add(past_masked("r-2"), lock=False)
    disk.deliver()
    before = {path: path.lstat() for path in [disk.capture, *disk.capture.rglob("*")]}
    disk.planned(older_than=TWO_WEEKS, without_receipt=True, include_masked=True, max_bytes=0)
    after = {path: path.lstat() for path in [disk.capture, *disk.capture.rglob("*")]}
    assert {path: status[:9] for path, status in after.items()} == {path: status[:9] for path, status in before.items()}


def test_rollouts_come_in_natural_order_and_only_those_asked_for(disk: Disk) -> None:
    for name in ("r-10", "r-2", "r-1"):
        disk.add(name)
    assert list(disk.planned(older_than=TWO_WEEKS)) == ["r-1", "r-2", "r-10"]
    assert list(disk.planned(ids=frozenset({"r-10", "r-1"}))) == ["r-1", "r-10"]


def test_no_receipt_no_trash(disk: Disk) -> None:
    disk.add("r-1")
    assert kept(disk, older_than=TWO_WEEKS) == "no_receipt"
    assert kept(disk, ids=frozenset({"r-1"})) == "no_receipt"


def test_without_a_receipt_a_trainable_rollout_goes_by_age_alone_and_the_plan_says_so(disk: Disk) -> None:
    disk.add("r-1")
    planned = only(disk, older_than=TWO_WEEKS, without_receipt=True)
    assert (planned.action, planned.why) == ("trash", "trainable, by age alone: no receipt covers it")


def test_a_young_file_keeps_its_rollout(disk: Disk) -> None:
    disk.add("r-1", age=13 * DAY)
    disk.deliver()
    assert kept(disk, older_than=TWO_WEEKS) == "young"
    assert "13.0 days ago" in only(disk, older_than=TWO_WEEKS).why
    assert only(disk, older_than=12 * DAY).action == "trash"


@pytest.mark.parametrize("permission", [{"without_receipt": True}, {}])
def test_the_newest_file_counts_not_the_oldest(disk: Disk, permission: dict[str, bool]) -> None:
    disk.add("r-1")
    disk.deliver()
    disk.path("r-1.tokens.intents").touch()
    assert kept(disk, older_than=TWO_WEEKS, **permission) == "young"


def test_the_newest_record_counts_whatever_the_times_of_the_files(disk: Disk) -> None:
    forge = past("r-1")
    now = disk.cleaning(older_than=1.0).now
    forge.calls[-1].fields["created_at"] = now - 2 * DAY
    disk.add(forge)
    assert kept(disk, older_than=TWO_WEEKS, without_receipt=True) == "young"
    disk.deliver()
    assert kept(disk, older_than=TWO_WEEKS) == "young"
    assert only(disk, older_than=DAY).action == "trash"


def test_a_time_in_the_future_is_never_old(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    now = disk.cleaning(older_than=1.0).now
    os.utime(disk.path("r-1.tokens.intents"), (now + 3600, now + 3600))
    assert kept(disk, older_than=0.0) == "time_in_future"
    assert kept(disk, ids=frozenset({"r-1"})) == "time_in_future"


def test_a_record_from_the_future_is_never_old(disk: Disk) -> None:
    forge = past("r-1")
    forge.calls[-1].fields["created_at"] = disk.cleaning(older_than=1.0).now + 3600
    disk.add(forge)
    disk.deliver()
    assert kept(disk, older_than=0.0) == "time_in_future"


def test_what_is_asked_for_by_id_goes_whatever_its_age(disk: Disk) -> None:
    disk.add("r-1", age=0.0)
    disk.deliver()
    assert only(disk, ids=frozenset({"r-1"})).action == "trash"
    assert kept(disk, ids=frozenset({"r-1"}), older_than=DAY) == "young"


def test_nothing_is_old_where_no_age_is_given_and_no_id(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    assert kept(disk) == "young"


def test_a_tombstone_age_alone_lets_no_payload_go(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    assert kept(disk, tombstone_age=DAY) == "young"


def test_a_held_lock_keeps_its_rollout(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    with held(disk.path("r-1.tokens.lock")):
        assert kept(disk, older_than=TWO_WEEKS) == "busy"
    assert only(disk, older_than=TWO_WEEKS).action == "trash"


def test_a_rollout_that_vanishes_while_it_is_looked_at_is_busy(disk: Disk) -> None:
    disk.add("r-1")
    cleaning = disk.cleaning(older_than=TWO_WEEKS)
    disk.path("r-1.tokens.intents").unlink()
    (planned,) = cleaning.plan()
    assert planned.reason == "busy"


def test_changed_bytes_keep_their_rollout(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    tokens = disk.path("r-1.tokens.jsonl")
    tokens.write_bytes(tokens.read_bytes().replace(b"-0.25", b"-0.26"))
    disk.grow_older(OLD)
    assert kept(disk, older_than=TWO_WEEKS) == "changed_since_receipt"


def test_a_file_that_came_behind_the_receipt_keeps_its_rollout(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    disk.path("r-1.capture.incomplete").touch()
    disk.grow_older(OLD)
    assert kept(disk, older_than=TWO_WEEKS) == "changed_since_receipt"


def test_a_mark_behind_the_receipt_keeps_its_rollout_though_no_record_changed(disk: Disk) -> None:
    forge = disk.add("r-1")
    disk.deliver()
    disk.path("r-1.tokens.state.json").write_text(json.dumps(forge.state(incomplete=True, version=3)))
    disk.grow_older(OLD)
    assert kept(disk, older_than=TWO_WEEKS) == "changed_since_receipt"


def test_a_freeze_behind_the_receipt_changes_nothing_that_was_delivered(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    assert isinstance(seal(disk.listing().get("r-1")), Sealed)
    disk.grow_older(OLD)
    assert only(disk, older_than=TWO_WEEKS).action == "trash"


def test_a_sealed_rollout_is_planned_with_the_snapshot_of_its_receipt(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver(sealing=True)
    disk.grow_older(OLD)
    state = json.loads(disk.path("r-1.tokens.state.json").read_bytes())
    planned = only(disk, older_than=TWO_WEEKS)
    assert (planned.snapshot_id, planned.version) == (state["snapshot_id"], state["version"])


def test_of_several_receipts_any_one_that_fits_covers(disk: Disk) -> None:
    forge = disk.add("r-1")
    disk.deliver("early.jsonl")
    forge.calls[-1].then([6], [7], created_at=LONG_AGO)
    disk.add(forge)
    assert kept(disk, older_than=TWO_WEEKS) == "changed_since_receipt"
    disk.deliver("late.jsonl")
    assert only(disk, older_than=TWO_WEEKS).action == "trash"


def test_masked_rollouts_stay_unless_they_are_asked_for(disk: Disk) -> None:
    disk.add(past_masked("r-1"))
    disk.deliver()
    assert kept(disk, older_than=TWO_WEEKS) == "masked"
    assert kept(disk, older_than=TWO_WEEKS, without_receipt=True) == "masked"
    planned = only(disk, older_than=TWO_WEEKS, include_masked=True, masked_older_than=TWO_WEEKS)
    assert planned.action == "trash" and planned.why == "masked, as its receipt says"


def test_what_one_receipt_covers_goes_though_another_saw_it_retired(disk: Disk) -> None:
    """A rebuild that ran while a killed restore had left the tombstone: an output has the bytes all the same."""
    disk.add("r-1")
    disk.deliver("covering.jsonl")
    state = disk.path("r-1.tokens.state.json")
    whole = state.read_bytes()
    state.write_bytes(whole.replace(b'"retired":false', b'"retired":true'))
    disk.deliver("masking.jsonl")
    state.write_bytes(whole)
    disk.grow_older(OLD)
    assert "r-1" in read_coverage(disk.receipts).masked
    assert only(disk, older_than=TWO_WEEKS).action == "trash"


def test_the_snapshot_that_is_compared_is_that_of_the_bytes_that_lie_here(disk: Disk) -> None:
    """A receipt of other bytes, that knows no snapshot, is no witness for these."""
    disk.add("r-1")
    disk.deliver("sealed.jsonl", sealing=True)
    disk.add(past("r-1", first="other"))
    disk.deliver("other.jsonl")
    disk.add("r-1")
    disk.grow_older(OLD)
    assert kept(disk, older_than=TWO_WEEKS) == "changed_since_receipt"


def test_a_masked_rollout_without_a_receipt_is_judged_before_it_goes(disk: Disk) -> None:
    disk.add(past_masked("r-1"))
    assert kept(disk, older_than=TWO_WEEKS, without_receipt=True) == "masked"
    assert kept(disk, older_than=TWO_WEEKS) == "no_receipt"


def test_masked_rollouts_have_an_age_of_their_own(disk: Disk) -> None:
    disk.add(past_masked("r-1"))
    allowed = {"older_than": DAY, "include_masked": True}
    assert kept(disk, masked_older_than=60 * DAY, **allowed) == "young"
    assert only(disk, masked_older_than=20 * DAY, **allowed).action == "trash"


def test_masked_allows_no_trainable_rollout(disk: Disk) -> None:
    disk.add("r-1")
    assert kept(disk, older_than=TWO_WEEKS, masked_older_than=TWO_WEEKS, include_masked=True) == "no_receipt"


def test_a_retired_tombstone_stays_until_its_own_age(disk: Disk) -> None:
    write_retired(disk.capture, "r-1")
    disk.grow_older(OLD)
    assert kept(disk, older_than=TWO_WEEKS) == "retired"
    assert kept(disk, older_than=TWO_WEEKS, tombstone_age=60 * DAY) == "retired"
    planned = only(disk, older_than=TWO_WEEKS, tombstone_age=20 * DAY)
    assert (planned.action, planned.why) == ("purge", "a tombstone past its age")


def test_what_another_retired_with_its_payload_here_goes_by_a_receipt_alone(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    write_retired(disk.capture, "r-1")
    disk.grow_older(OLD)
    assert only(disk, older_than=TWO_WEEKS).action == "trash"
    disk.receipts.clear()
    assert kept(disk, older_than=TWO_WEEKS) == "no_receipt"
    assert kept(disk, older_than=TWO_WEEKS, without_receipt=True) == "masked"


def test_intents_beside_a_tombstone_go_with_it_and_not_before(disk: Disk) -> None:
    """No call lies in them, and of a retired rollout none is waited for."""
    write_retired(disk.capture, "r-1")
    disk.path("r-1.tokens.intents").write_bytes(b"a\n")
    disk.grow_older(OLD)
    assert kept(disk, older_than=TWO_WEEKS, without_receipt=True) == "retired"
    planned = only(disk, tombstone_age=TWO_WEEKS)
    assert planned.action == "purge" and len(planned.files) == 2


def test_a_state_that_cannot_be_read_keeps_its_rollout(disk: Disk) -> None:
    disk.add("r-1")
    disk.path("r-1.tokens.state.json").write_bytes(b"{")
    disk.grow_older(OLD)
    assert kept(disk, older_than=TWO_WEEKS, without_receipt=True) == "state_unreadable"


@pytest.mark.parametrize("kind", list(FileKind))
def test_a_link_is_not_followed(disk: Disk, kind: FileKind) -> None:
    disk.add("r-1", raw=True)
    disk.deliver()
    place = disk.path(f"r-1.{kind}")
    elsewhere = disk.root / "elsewhere"
    elsewhere.write_bytes(place.read_bytes() if place.exists() else b"")
    place.unlink(missing_ok=True)
    place.symlink_to(elsewhere)
    assert kept(disk, older_than=0.0) == "symbolic_link"


def test_an_id_that_must_not_become_a_file_name_stays(disk: Disk) -> None:
    disk.path("-x.tokens.jsonl").write_bytes(b"")
    disk.grow_older(OLD)
    assert kept(disk, older_than=TWO_WEEKS) == "unknown_file"


def test_a_directory_with_the_name_of_a_file_is_not_removable(disk: Disk) -> None:
    disk.path("r-1.tokens.jsonl").mkdir()
    assert kept(disk, older_than=0.0) == "not_removable"
    assert only(disk, older_than=0.0).why == "r-1.tokens.jsonl is no regular file"


def test_a_rollout_that_cannot_be_read_is_not_removable(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    cleaning = disk.cleaning(older_than=TWO_WEEKS)
    with no_file_can_be_opened():
        (planned,) = cleaning.plan()
    assert planned.reason == "not_removable" and "Too many open files" in planned.why


def test_an_announced_rollout_whose_state_cannot_be_read_is_not_taken_for_half_moved(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    disk.cleaned(older_than=TWO_WEEKS)
    disk.add("r-1")
    cleaning = disk.cleaning(older_than=TWO_WEEKS)
    with no_file_can_be_opened():
        (planned,) = cleaning.plan()
    assert planned.reason == "not_removable"


def test_a_new_attempt_under_an_announced_id_is_judged_on_its_own(disk: Disk) -> None:
    disk.add("r-1")
    disk.deliver()
    disk.cleaned(older_than=TWO_WEEKS)
    disk.add(past("r-1", first="other"))
    assert kept(disk, older_than=TWO_WEEKS) == "changed_since_receipt"
