"""What a row has no place for: times, fields of steps, ids and notes (contracts.md 3.6)."""

from collections.abc import Iterator

from ng_capture.contracts.dialects.beside import fields_beside, is_named
from ng_capture.contracts.episode import Episode, ModelCall, Thread, Turn
from ng_capture.contracts.gym.envelope import envelope_of, model_of, only_response_id
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.unplaced import response_fields
from ng_capture.records.usage import UNKNOWN_USAGE

_WRITTEN = frozenset({"role", "messages", "tokens", "ng_capture"})
"""Extras of a turn that items say, or that are our own."""


def left_out(episode: Episode, *, mapped: bool = False) -> Iterator[Loss]:
    """The losses of writing a row; one that was a row keeps its evidence and loses nothing of it.

    `mapped` tells that only turns are written, no evidence and no envelope.
    """
    if episode.contract == "gym" and not mapped:
        return
    thread = episode.main
    counted = sum(turn.call is not None and turn.call.usage != UNKNOWN_USAGE for turn in thread.turns)
    response_id = (episode.response or {}).get("id") or (None if mapped else only_response_id(thread))
    for turn in thread.turns:
        if turn.timestamp is not None or _timed(turn.call):
            yield Loss("timestamps_dropped", turn.place)
        for name in _fields(turn, thread, counted > 1, response_id):
            yield Loss("step_fields_dropped", turn.place, detail=name)
    names = [name for name, value in _unwritten(thread) if value]
    if mapped or envelope_of(episode, episode.contract == "responses") is None:
        names += response_fields(episode)
    if names:
        yield Loss("metadata_dropped", detail=", ".join(names))
    if episode.omitted:
        yield Loss("step_fields_dropped", count=len(episode.omitted), detail="calls that made no step")


def unnamed(episode: Episode) -> Iterator[Loss]:
    """The loss of the names that a row has beside its request and response."""
    thread = episode.main
    named = {
        "rollout_id": episode.rollout_id,
        "trajectory_id": thread.trajectory_id,
        "session_id": thread.session_id,
        "agent.name": thread.agent.name,
        "agent.version": thread.agent.version,
        "notes": thread.notes,
    }
    names = [name for name, value in named.items() if value is not None]
    if names:
        yield Loss("metadata_dropped", detail=", ".join(names))


def _timed(call: ModelCall | None) -> bool:
    return call is not None and any(
        time is not None for time in (call.started_at, call.completed_at, call.latency_ms, call.latency_ttft_ms)
    )


def _fields(turn: Turn, thread: Thread, several: bool, response_id: object) -> Iterator[str]:
    call = turn.call
    if call is not None and call.model is not None and call.model != model_of(thread):
        yield "model_name"
    if is_named(call) or (call is not None and call.response_id not in (None, response_id)):
        yield "model_call"
    if call is not None and (call.cost_usd is not None or (several and call.usage != UNKNOWN_USAGE)):
        yield "metrics"
    if turn.reasoning_effort is not None:
        yield "reasoning_effort"
    yield from fields_beside(turn)
    if (turn.extra or {}).keys() - _WRITTEN - ({"context_management"} if _is_compaction(turn) else set()):
        yield "extra"
    if any(each.extra for each in turn.calls):
        yield "tool_calls.extra"
    if any((each.extra or {}).keys() - {"tool_result"} for each in turn.results):
        yield "observation.extra"
    if any(each.subagents for each in turn.results):
        yield "subagent_trajectory_ref"
    if turn.model_calls is not None and turn.model_calls > 1:
        yield "llm_call_count"


def _is_compaction(turn: Turn) -> bool:
    """True for an item that says itself how it changes what later calls see."""
    return isinstance(turn.content, tuple) and [getattr(part, "kind", None) for part in turn.content] == ["compaction"]


def _unwritten(thread: Thread) -> Iterator[tuple[str, object]]:
    yield "agent.extra", thread.agent.extra
    yield "continued_trajectory_ref", thread.continued
    yield "extra", (thread.extra or {}).keys() - {"ng_capture"}
    yield "final_metrics", thread.totals is not None and thread.totals.cost_usd
