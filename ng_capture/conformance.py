"""Does a sink keep what it was given, and a source give back what was kept? (capture-files.md 9)

outcome = run_conformance(partial(TokenSink, directory), partial(TokenSource, directory))
assert outcome.failure is None, outcome.failure
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from ng_capture.records.lineage import Parent
from ng_capture.records.token_record import TokenRecord, encode_record, stamped
from ng_capture.store.lineage import FoundParent
from ng_capture.store.source import FrozenRollout

_LOG_PROBS = (-0.30000000000000004, -1e-07, -17.333333333333332)


class Sink(Protocol):
    """Takes the records of one rollout; what it returned from is kept. It may have `begin_call(call_id)`, too."""

    def append(self, record: TokenRecord, /) -> None:
        """Keep a record; the same one again is kept once."""

    def mark_incomplete(self, call_id: str, /) -> None:
        """Note that a call was lost."""


class Source(Protocol):
    """Gives the records of one rollout."""

    def freeze(self) -> FrozenRollout:
        """Everything that is kept; afterwards no record may join it unseen."""

    def drop(self, snapshot_id: str, version: int, /) -> bool:
        """Give up what is kept, only if it is still that snapshot."""


class Lineage(Protocol):
    """Finds the call of one rollout that a request continues (capture-files.md 3)."""

    def resolve(self, request_items: Sequence[object], /) -> FoundParent:
        """The parent by the conversation that the request sends again."""


class Failure(msgspec.Struct, frozen=True):
    """The first check that failed, and why."""

    check: str
    why: str


class Outcome(msgspec.Struct, frozen=True):
    """The names of the checks that passed, and the failure that ended them, if any."""

    passed: tuple[str, ...]
    failure: Failure | None = None


def run_conformance(
    sink_factory: Callable[[str], Sink],
    source_factory: Callable[[str], Source],
    lineage_factory: Callable[[str], Lineage] | None = None,
    rollout_id: str = "conformance",
) -> Outcome:
    """Run every check on a rollout of its own, `<rollout_id>-<check>`, until one fails. The rollouts stay behind.

    A factory makes a fresh client of the rollout that it is given. Without a lineage its two checks are left out, and
    the check of announced calls where the sink has no `begin_call`.
    """
    passed: list[str] = []
    for check in _CHECKS:
        name = check.__name__.lstrip("_")
        bench = _Bench(f"{rollout_id}-{name.replace('_', '-')}", sink_factory, source_factory, lineage_factory)
        try:
            check(bench)
        except _LeftOut:
            continue
        except Exception as error:
            why = str(error) if isinstance(error, _Broken) else f"{type(error).__name__}: {error}"
            return Outcome(tuple(passed), Failure(name, why))
        passed.append(name)
    return Outcome(tuple(passed))


class _Broken(Exception):
    """An assertion of a check does not hold."""


class _LeftOut(Exception):
    """The check does not apply."""


_QUESTION = {"role": "user", "content": "q"}
_ANSWER = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "one"}]}
_MORE = {"role": "user", "content": "more"}


class _Bench:
    """The clients of one check; every call makes a fresh one."""

    def __init__(
        self,
        rollout_id: str,
        sink: Callable[[str], Sink],
        source: Callable[[str], Source],
        lineage: Callable[[str], Lineage] | None,
    ) -> None:
        self._rollout_id = rollout_id
        self._sink, self._source, self._lineage = sink, source, lineage

    def sink(self) -> Sink:
        return self._sink(self._rollout_id)

    def freeze(self) -> FrozenRollout:
        return self._source(self._rollout_id).freeze()

    def drop(self, snapshot: FrozenRollout) -> bool:
        return self._source(self._rollout_id).drop(snapshot.snapshot_id, snapshot.version)

    def lineage(self) -> Lineage:
        if self._lineage is None:
            raise _LeftOut
        return self._lineage(self._rollout_id)

    def record(self, call_id: str = "a", generation: Sequence[int] = (3, 4)) -> TokenRecord:
        """The first call of the rollout: asked `_QUESTION`, answered `_ANSWER`."""
        record = TokenRecord(
            rollout_id=self._rollout_id,
            model_call_id=call_id,
            model="model",
            prompt_token_ids=[1, 2],
            generation_token_ids=generation,
            # of values that no rounding gives back
            generation_log_probs=[_LOG_PROBS[token % len(_LOG_PROBS)] for token in generation],
            output_items=[_ANSWER],
            token_item_index=0,
            response_id=f"resp-{call_id}",
            created_at=1.5,
            parent_resolution="root",
        )
        return stamped(record, [_QUESTION])


def _put_then_freeze_visibility(bench: _Bench) -> None:
    record = bench.record()
    bench.sink().append(record)
    snapshot = bench.freeze()
    _holds(len(snapshot.records) == 1, f"one record was put, and {len(snapshot.records)} are there")
    _holds(not snapshot.incomplete, "a complete rollout is said to be incomplete")
    _holds(bool(snapshot.snapshot_id), "the snapshot has no id")
    _holds(encode_record(snapshot.records[0]) == encode_record(record), "the record came back changed")


def _idempotent_reput(bench: _Bench) -> None:
    bench.sink().append(bench.record())
    bench.sink().append(bench.record())
    snapshot = bench.freeze()
    _holds(len(snapshot.records) == 1, f"one record was put twice, and {len(snapshot.records)} are there")
    _holds(not snapshot.incomplete, "the same record again made the rollout incomplete")


def _conflicting_reput(bench: _Bench) -> None:
    bench.sink().append(bench.record())
    if not _refused(lambda: bench.sink().append(bench.record(generation=[5]))):
        _holds(bench.freeze().incomplete, "another content of a call was taken without a word")


def _mark_incomplete_durability(bench: _Bench) -> None:
    bench.sink().append(bench.record())
    before = bench.freeze()
    bench.sink().mark_incomplete("lost")
    after = bench.freeze()
    _holds(after.incomplete, "a mark after the freeze is not seen by a fresh client")
    _holds(after.version != before.version, "a mark after the freeze does not change the version")
    _holds(not bench.drop(before), "the snapshot from before the mark can be dropped")


def _freeze_idempotency(bench: _Bench) -> None:
    bench.sink().append(bench.record())
    bench.sink().append(bench.record("b"))
    told = [(s.snapshot_id, s.version, *map(encode_record, s.records)) for s in (bench.freeze(), bench.freeze())]
    _holds(told[0] == told[1], "two clients froze two snapshots")


def _post_freeze_write_safety(bench: _Bench) -> None:
    bench.sink().append(bench.record())
    snapshot = bench.freeze()
    if not _refused(lambda: bench.sink().append(bench.record("late"))):
        _holds(not bench.drop(snapshot), "a record that came after the freeze was dropped with it")


def _conditional_retirement(bench: _Bench) -> None:
    bench.sink().append(bench.record())
    snapshot = bench.freeze()
    other = msgspec.structs.replace(snapshot, version=snapshot.version + 1)
    _holds(not bench.drop(other), "another version was dropped")
    _holds(len(bench.freeze().records) == 1, "a refused drop took the record")
    _holds(bench.drop(snapshot), "the snapshot itself cannot be dropped")


def _lineage_visibility(bench: _Bench) -> None:
    lineage = bench.lineage()
    bench.sink().append(bench.record())
    _resolves(lineage)


def _fresh_client_lineage_visibility(bench: _Bench) -> None:
    bench.sink().append(bench.record())
    _resolves(bench.lineage())


def _begin_call_custody(bench: _Bench) -> None:
    begin_call = getattr(bench.sink(), "begin_call", None)
    if begin_call is None:
        raise _LeftOut
    begin_call("a")
    begin_call("lost")
    bench.sink().append(bench.record())
    _holds(bench.freeze().incomplete, "a call was announced and has no record, and the snapshot is complete")


_CHECKS: tuple[Callable[[_Bench], None], ...] = (
    _put_then_freeze_visibility,
    _idempotent_reput,
    _conflicting_reput,
    _mark_incomplete_durability,
    _freeze_idempotency,
    _post_freeze_write_safety,
    _conditional_retirement,
    _lineage_visibility,
    _fresh_client_lineage_visibility,
    _begin_call_custody,
)


def _resolves(lineage: Lineage) -> None:
    found = lineage.resolve([_QUESTION, _ANSWER, _MORE])
    _holds(found.link == Parent("resolved", "a"), "a faithful continuation does not find its parent")
    _holds(list(found.token_ids) == [1, 2, 3, 4], "the parent has other tokens than were put")
    rewritten = lineage.resolve([{"role": "user", "content": "other"}, _ANSWER, _MORE])
    _holds(rewritten.link.resolution == "unresolved", "a rewritten history finds a parent")
    _holds(lineage.resolve([_QUESTION]).link.resolution == "root", "a first request is no root")


def _refused(write: Callable[[], None]) -> bool:
    try:
        write()
    except Exception:
        return True
    return False


def _holds(condition: bool, otherwise: str) -> None:
    if not condition:
        raise _Broken(otherwise)
