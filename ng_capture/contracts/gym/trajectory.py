"""What Gym saw of a rollout, as far as it can be read: `ng_trajectory`, `ng_model_call_capture` (contracts.md 5.4)."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.contracts.dialects.fields import others, text_in
from ng_capture.contracts.episode import Json, ModelCall
from ng_capture.records.json_text import object_in, objects_in
from ng_capture.records.rollout_row import number
from ng_capture.records.usage import Usage, count


class CallRef(msgspec.Struct, frozen=True):
    """How a call of the model is named: by its id, or by server and response."""

    model_call_id: str | None
    model_ref: tuple[str | None, str | None] | None
    response_id: str | None


class CallRecord(msgspec.Struct, frozen=True):
    """A call of the model that was captured. `called` are the ids of the tools that it called, None where unknown."""

    ref: CallRef
    call: ModelCall
    called: frozenset[str] | None
    raw: Json

    @property
    def failed(self) -> bool:
        """True for a call that gave no answer."""
        code = self.call.status_code
        return self.call.error_category is not None or (code is not None and not 200 <= code < 300)

    def answers(self, ref: CallRef) -> bool:
        """True if this is the call that is named."""
        if ref.model_call_id is not None:
            return ref.model_call_id == self.ref.model_call_id
        same = (self.ref.model_ref, self.ref.response_id)
        return ref.response_id is not None and (ref.model_ref, ref.response_id) == same


class TurnRecord(msgspec.Struct, frozen=True):
    """A turn of an agent. `first` is where in the conversation the items stand that it made, `made` their number."""

    invocation_id: str
    turn_no: int
    timestamp: float | None
    first: int | None
    made: int
    refs: tuple[CallRef, ...]
    raw: Json


class Invocation(msgspec.Struct, frozen=True):
    """An agent that ran: its conversation whole, and who called it."""

    invocation_id: str
    parent_id: str | None
    spawned_by: str | None
    conversation: Sequence[object]
    place: int
    raw: Json


class Trajectory(msgspec.Struct, frozen=True):
    """All of it; what cannot be read is left out, and `validate` tells it."""

    invocations: tuple[Invocation, ...]
    turns: tuple[TurnRecord, ...]
    calls: tuple[CallRecord, ...]
    tools: Mapping[str, Json]
    raw: Json

    def turns_of(self, invocation: Invocation) -> list[TurnRecord]:
        """The turns of an agent in their order."""
        own = (turn for turn in self.turns if turn.invocation_id == invocation.invocation_id)
        return sorted(own, key=lambda turn: turn.turn_no)

    def call_of(self, ref: CallRef) -> CallRecord | None:
        """The one call that is named; None where none or several are meant."""
        found = [call for call in self.calls if call.answers(ref)]
        return found[0] if len(found) == 1 else None

    @property
    def root(self) -> Invocation | None:
        """The agent that nobody called; the first, where there are several."""
        known = {each.invocation_id for each in self.invocations}
        return next((each for each in self.invocations if each.parent_id not in known), None)


def read_trajectory(value: object) -> Trajectory | None:
    """The trajectory of a row; None where it has none."""
    if not isinstance(value, dict):
        return None
    tools = {name: tool for tool in objects_in(value.get("tool_calls")) if (name := text_in(tool, "tool_call_id"))}
    return Trajectory(tuple(_invocations(value)), tuple(_turns(value)), tuple(_trajectory_calls(value)), tools, value)


def captured_calls(value: object) -> tuple[CallRecord, ...]:
    """The calls of `ng_model_call_capture`."""
    return tuple(_captured(record) for record in objects_in(object_in(value).get("calls")))


def _invocations(value: Json) -> Iterator[Invocation]:
    invocations = value.get("invocations")
    for place, each in enumerate(invocations if isinstance(invocations, list) else ()):
        invocation_id = text_in(object_in(each), "invocation_id")
        if invocation_id is not None:
            conversation = each.get("conversation")
            yield Invocation(
                invocation_id,
                text_in(each, "parent_invocation_id"),
                text_in(each, "spawned_by_tool_call_id"),
                conversation if isinstance(conversation, list) else [],
                place,
                each,
            )


def _turns(value: Json) -> Iterator[TurnRecord]:
    for each in objects_in(value.get("turns")):
        invocation_id, turn_no = text_in(each, "invocation_id"), count(each.get("turn_no"))
        if invocation_id is None or turn_no is None:
            continue
        question = each.get("question")
        made = sum(len(items) for key in ("reasoning_content", "answer") if isinstance(items := each.get(key), list))
        yield TurnRecord(
            invocation_id,
            turn_no,
            number(each.get("timestamp")),
            len(question) if isinstance(question, list) else None,
            made,
            tuple(map(_ref, objects_in(each.get("model_calls")))),
            each,
        )


def _ref(value: Json) -> CallRef:
    model_ref = value.get("model_ref")
    named = (text_in(model_ref, "type"), text_in(model_ref, "name")) if isinstance(model_ref, dict) else None
    return CallRef(text_in(value, "model_call_id"), named, text_in(value, "response_id"))


def _trajectory_calls(value: Json) -> Iterator[CallRecord]:
    for each in objects_in(value.get("model_calls")):
        told, stats = object_in(each.get("response_metadata")), object_in(each.get("token_stats"))
        usage = Usage(
            tokens_in=count(stats.get("prompt_tokens")),
            tokens_out=count(stats.get("completion_tokens")),
            tokens_reasoning=count(stats.get("reasoning_tokens")),
            tokens_total=count(stats.get("total_tokens")),
            cached_tokens=count(stats.get("cached_tokens")),
        )
        ref = _ref({**told, "model_call_id": each.get("model_call_id")})
        yield CallRecord(ref, _call(each, told, usage, number(each.get("duration_ms"))), None, each)


def _captured(record: Json) -> CallRecord:
    usage = Usage(
        tokens_in=count(record.get("tokens_in")),
        tokens_out=count(record.get("tokens_out")),
        tokens_reasoning=count(record.get("tokens_reasoning")),
        tokens_total=count(record.get("tokens_total")),
        cached_tokens=count(record.get("cached_tokens")),
        cache_creation_tokens=count(record.get("cache_creation_tokens")),
    )
    calls = record.get("tool_calls")
    named = (text_in(call, "call_id") for call in objects_in(calls))
    called = frozenset(each for each in named if each is not None) if isinstance(calls, list) else None
    return CallRecord(
        _ref(record), _call(record, record, usage, number(record.get("latency_total_ms"))), called, record
    )


def _call(record: Json, told: Json, usage: Usage, latency: float | None) -> ModelCall:
    return ModelCall(
        call_id=text_in(record, "model_call_id"),
        index=count(record.get("call_index")),
        response_id=text_in(told, "response_id"),
        model=text_in(told, "model"),
        server=text_in(object_in(told.get("model_ref")), "name"),
        dialect=text_in(told, "dialect"),
        finish_reason=text_in(told, "finish_reason"),
        status_code=count(told.get("status_code")),
        error_category=text_in(told, "error_category"),
        started_at=number(record.get("started_at")),
        completed_at=number(record.get("completed_at")),
        latency_ms=latency,
        latency_ttft_ms=number(told.get("latency_ttft_ms")),
        usage=usage,
    )


def without_nulls(value: Json) -> Json:
    """A record as Gym writes it into extras: no nulls at its top, nor in the objects in it."""
    kept = others(value) or {}
    return {key: without_nulls(member) if isinstance(member, dict) else member for key, member in kept.items()}
