"""Steps by what Gym saw: turns of agents and calls of the model, put on the turns of items (contracts.md 3.4, 2)."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ng_capture.contracts.episode import Json, ModelCall, ToolCall, ToolResult, Turn
from ng_capture.contracts.gym.trajectory import CallRecord, Invocation, Trajectory, TurnRecord, without_nulls
from ng_capture.contracts.items.turns import Grouped, grouped
from ng_capture.contracts.responses.told import Told
from ng_capture.contracts.times import timestamp_of
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import total_usage

_TIMING = ("sandbox_id", "started_at", "completed_at", "duration_ms", "timing_source")


def told_by_calls(made: Grouped, calls: Sequence[CallRecord]) -> Told:
    """The turns of an output, each with its call where both are as many, and called the same tools."""
    inferred = Told.inferred_from(made)
    fresh = [turn for turn in made.turns if turn.fresh]
    good = [call for call in calls if not call.failed]
    if not good or len(good) != len(fresh) or not all(map(_fits, fresh, good)):
        return inferred
    records = iter(good)
    turns = tuple(_with_call(turn, next(records)) if turn.fresh else turn for turn in made.turns)
    return msgspec.structs.replace(inferred, turns=turns, inferred=0)


def _fits(turn: Turn, record: CallRecord) -> bool:
    return record.called is None or record.called == {call.call_id for call in turn.calls}


def _with_call(turn: Turn, record: CallRecord) -> Turn:
    call = record.call
    timestamp = timestamp_of(call.completed_at) if call.completed_at is not None else None
    return _made_by(turn, call, 1, timestamp)


def _made_by(turn: Turn, call: ModelCall, model_calls: int | None, timestamp: str | None) -> Turn:
    tokens = turn.call.tokens if turn.call is not None else None
    whole = msgspec.structs.replace(call, tokens=tokens)
    return msgspec.structs.replace(turn, call=whole, model_calls=model_calls, timestamp=timestamp)


def told_by_turns(trajectory: Trajectory, invocation: Invocation, split_think: bool) -> Told:
    """The turns of an agent's conversation; what a model made before the first turn of the agent is history."""
    records = trajectory.turns_of(invocation)
    items = invocation.conversation
    place = f"/ng_trajectory/invocations/{invocation.place}/conversation"
    if not records:
        return Told.inferred_from(grouped(items, place, split_think=split_think))
    first = min((record.first for record in records if record.first is not None), default=len(items))
    makers = _makers(records, len(items))
    made = grouped(items, place, fresh_from=first, bounds=makers, split_think=split_think)
    turns = tuple(_told_turn(trajectory, turn, makers[at]) for turn, at in zip(made.turns, made.starts, strict=True))
    inferred = sum(turn.fresh and turn.model_calls is None for turn in turns)
    return Told(turns, made.losses, inferred, made.order, made.history)


def _makers(records: Iterable[TurnRecord], length: int) -> list[TurnRecord | None]:
    """For each item of a conversation the turn that made it."""
    makers = list[TurnRecord | None]([None] * length)
    for record in records:
        if record.first is not None:
            end = min(record.first + record.made, length)
            makers[record.first : end] = [record] * (end - record.first)
    return makers


def _told_turn(trajectory: Trajectory, turn: Turn, record: TurnRecord | None) -> Turn:
    turn = msgspec.structs.replace(turn, calls=tuple(_named_calls(turn)), results=tuple(_results(trajectory, turn)))
    if record is None or not turn.fresh:
        return turn
    calls = [found for ref in record.refs if (found := trajectory.call_of(ref)) is not None]
    if not calls:
        return msgspec.structs.replace(turn, timestamp=_time(record))
    call = calls[0].call
    if len(calls) > 1:
        call = ModelCall(model=call.model, dialect=call.dialect, usage=total_usage(each.call.usage for each in calls))
    extra = {**(turn.extra or {}), "nemo_gym": _turn_extra(turn, record, calls)}
    return msgspec.structs.replace(_made_by(turn, call, len(record.refs), _time(record)), extra=extra)


def _time(record: TurnRecord) -> str | None:
    return timestamp_of(record.timestamp) if record.timestamp is not None else None


def _turn_extra(turn: Turn, record: TurnRecord, calls: Sequence[CallRecord]) -> Json:
    """What Gym's own export says of a step beside its fields (contracts.md 3.2)."""
    told = {key: record.raw.get(key) for key in ("turn_no", "step_count", "resolved")}
    reasoning = [item_id for thought in turn.thoughts if (item_id := (thought.item or {}).get("id")) is not None]
    items: dict[str, object] = {"reasoning_ids": reasoning} if reasoning else {}
    if turn.item is not None and turn.item.get("id") is not None:
        items["message_id"] = turn.item["id"]
    extra: dict[str, object] = {
        "turn": {key: value for key, value in told.items() if value is not None},
        "model_call": without_nulls(calls[0].raw),
    }
    return {**extra, "source_items": items} if items else extra


def _named_calls(turn: Turn) -> Iterator[ToolCall]:
    for call in turn.calls:
        item_id = (call.item or {}).get("id")
        extra = call.extra if item_id is None else {"nemo_gym": {"source_item_id": item_id}}
        yield msgspec.structs.replace(call, extra=extra)


def _results(trajectory: Trajectory, turn: Turn) -> Iterator[ToolResult]:
    for result in turn.results:
        record = object_in(trajectory.tools.get(result.call_id or ""))
        told = {key: record[key] for key in _TIMING if record.get(key) is not None}
        item_id = (result.item or {}).get("id")
        told |= {} if item_id is None else {"source_item_id": item_id}
        yield msgspec.structs.replace(result, extra={"nemo_gym": told} if told else result.extra)
