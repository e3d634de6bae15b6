"""The conformance kit passes the file store and catches every way to be wrong that it names (capture-files.md 9)."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ng_capture.conformance import Failure, Outcome, run_conformance
from ng_capture.records.lineage import Parent
from ng_capture.records.token_record import TokenRecord
from ng_capture.sink import FoundParent, FrozenRollout, TokenLineage, TokenSink, TokenSource

CHECKS = (
    "put_then_freeze_visibility",
    "idempotent_reput",
    "conflicting_reput",
    "mark_incomplete_durability",
    "freeze_idempotency",
    "post_freeze_write_safety",
    "conditional_retirement",
    "lineage_visibility",
    "fresh_client_lineage_visibility",
    "begin_call_custody",
)


def test_the_file_store_passes_all_ten(tmp_path: Path) -> None:
    store = [partial(each, tmp_path) for each in (TokenSink, TokenSource, TokenLineage)]
    assert run_conformance(*store) == Outcome(CHECKS)  # type: ignore[arg-type]
    ids = {path.name.split(".")[0] for path in tmp_path.iterdir()}
    assert ids == {f"conformance-{check.replace('_', '-')}" for check in CHECKS}


class Memory:
    """A store that keeps its promises, in memory, with one rollout; every wrong one below changes one method."""

    def __init__(self) -> None:
        self.records: list[TokenRecord] = []
        self.marked = self.frozen = self.dropped = False
        self.version = 0

    def append(self, record: TokenRecord) -> None:
        if self.frozen:
            raise RuntimeError("frozen")
        told = {each.model_call_id: msgspec.structs.asdict(each) for each in self.records}
        known = told.get(record.model_call_id)
        if known is None:
            self.records.append(record)
            self.version += 1
        elif known != msgspec.structs.asdict(record):
            raise ValueError("conflict")

    def mark_incomplete(self, call_id: str) -> None:
        self.marked = True
        self.version += 1

    def freeze(self) -> FrozenRollout:
        self.frozen = True
        return FrozenRollout(tuple(self.records), self.marked, "s", self.version)

    def drop(self, snapshot_id: str, version: int) -> bool:
        self.dropped = (snapshot_id, version) == ("s", self.version)
        return self.dropped

    def resolve(self, items: Sequence[Any]) -> FoundParent:
        if len(items) == 1:
            return FoundParent(Parent("root"))
        if items[0]["content"] != "q" or not self.records:
            return FoundParent(Parent("unresolved", reason="no_match"))
        return FoundParent(Parent("resolved", "a"), [1, 2, 3, 4])


def outcome(kind: Callable[[], Memory], *, lineage: bool = True) -> Outcome:
    stores: dict[str, Memory] = {}

    def client(rollout_id: str) -> Memory:
        return stores.setdefault(rollout_id, kind())

    return run_conformance(client, client, client if lineage else None, "base")


def test_a_store_that_keeps_its_promises_passes_what_applies() -> None:
    assert outcome(Memory) == Outcome(CHECKS[:-1])
    assert outcome(Memory, lineage=False) == Outcome(CHECKS[:7])


class Forgets(Memory):
    def append(self, record: TokenRecord) -> None:
        return


class Rounds(Memory):
    def append(self, record: TokenRecord) -> None:
        rounded = [round(value, 9) for value in record.generation_log_probs]
        super().append(msgspec.structs.replace(record, generation_log_probs=rounded))


class KeepsTwice(Memory):
    def append(self, record: TokenRecord) -> None:
        if self.frozen:
            raise RuntimeError("frozen")
        self.records.append(record)


class LastWins(Memory):
    def append(self, record: TokenRecord) -> None:
        self.records = [each for each in self.records if each.model_call_id != record.model_call_id]
        super().append(record)


class ForgetsMarks(Memory):
    def mark_incomplete(self, call_id: str) -> None:
        return


class MarksInSilence(Memory):
    def mark_incomplete(self, call_id: str) -> None:
        self.marked = True


class NewSnapshots(Memory):
    def freeze(self) -> FrozenRollout:
        self.version += 1
        return super().freeze()


class TakesLateRecords(Memory):
    def append(self, record: TokenRecord) -> None:
        self.frozen, version = False, self.version
        super().append(record)
        self.version = version or 1


class DropsAnything(Memory):
    def drop(self, snapshot_id: str, version: int) -> bool:
        return not self.marked


class DropsNothing(Memory):
    def drop(self, snapshot_id: str, version: int) -> bool:
        return False


class FindsNothing(Memory):
    def resolve(self, items: Sequence[Any]) -> FoundParent:
        return FoundParent(Parent("root"))


class OtherTokens(Memory):
    def resolve(self, items: Sequence[Any]) -> FoundParent:
        return msgspec.structs.replace(super().resolve(items), token_ids=[1, 2])


class Guesses(Memory):
    def resolve(self, items: Sequence[Any]) -> FoundParent:
        return FoundParent(Parent("resolved", "a"), [1, 2, 3, 4])


class ForgetsIntents(Memory):
    def begin_call(self, call_id: str) -> None:
        return


@pytest.mark.parametrize(
    ("kind", "check", "why"),
    [
        (Forgets, "put_then_freeze_visibility", "one record was put, and 0 are there"),
        (Rounds, "put_then_freeze_visibility", "the record came back changed"),
        (KeepsTwice, "idempotent_reput", "one record was put twice, and 2 are there"),
        (LastWins, "conflicting_reput", "another content of a call was taken without a word"),
        (ForgetsMarks, "mark_incomplete_durability", "not seen by a fresh client"),
        (MarksInSilence, "mark_incomplete_durability", "does not change the version"),
        (NewSnapshots, "freeze_idempotency", "two clients froze two snapshots"),
        (TakesLateRecords, "post_freeze_write_safety", "dropped with it"),
        (DropsAnything, "conditional_retirement", "another version was dropped"),
        (DropsNothing, "conditional_retirement", "the snapshot itself cannot be dropped"),
        (FindsNothing, "lineage_visibility", "does not find its parent"),
        (OtherTokens, "lineage_visibility", "has other tokens than were put"),
        (Guesses, "lineage_visibility", "a rewritten history finds a parent"),
        (ForgetsIntents, "begin_call_custody", "has no record, and the snapshot is complete"),
    ],
)
def test_the_first_broken_promise_ends_it_and_is_named(kind: type[Memory], check: str, why: str) -> None:
    told = outcome(kind)
    assert told.passed == CHECKS[: CHECKS.index(check)]
    assert told.failure is not None and told.failure.check == check and why in told.failure.why


def test_an_exception_is_a_failure_with_its_name() -> None:
    class Breaks(Memory):
        def freeze(self) -> FrozenRollout:
            raise json.JSONDecodeError("no JSON", "", 0)

    failure = Failure("put_then_freeze_visibility", "JSONDecodeError: no JSON: line 1 column 1 (char 0)")
    assert outcome(Breaks) == Outcome((), failure)
