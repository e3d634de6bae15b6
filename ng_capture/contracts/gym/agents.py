"""The agents of a trajectory as threads: the one that nobody called, and those that it called (contracts.md 5.4)."""

from collections.abc import Iterator, Mapping

import msgspec

from ng_capture.contracts.episode import Agent, Json, SubagentRef, Thread, ToolResult, Turn
from ng_capture.contracts.gym.evidence import told_by_turns
from ng_capture.contracts.gym.trajectory import Invocation, Trajectory
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.responses.told import Told


class Agents(msgspec.Struct, frozen=True):
    """The turns of the main agent, and the threads of all others."""

    main: Told
    subagents: tuple[Thread, ...]
    losses: tuple[Loss, ...]


def agents_told(trajectory: Trajectory, split_think: bool) -> Agents | None:
    """The agents, where the conversation of the one that nobody called is there, with its turns."""
    root = trajectory.root
    if root is None or not root.conversation or not trajectory.turns_of(root):
        return None
    told = {
        each.invocation_id: told_by_turns(trajectory, each, split_think)
        for each in trajectory.invocations
        if each is root or each.conversation
    }
    losses = list[Loss]()
    main = _joined(trajectory, root, told)
    others = [each for each in trajectory.invocations if each is not root and each.invocation_id in told]
    for each in others:
        losses += told[each.invocation_id].losses
        if not _called(told.get(each.parent_id or ""), each.spawned_by):
            losses.append(Loss("subagent_parent_unknown", f"/ng_trajectory/invocations/{each.place}"))
    known = {each.invocation_id for each in others}
    loose = [each for each in others if each.parent_id not in known]
    threads = tuple(_thread(trajectory, each, told) for each in loose)
    return Agents(msgspec.structs.replace(told[root.invocation_id], turns=main), threads, tuple(losses))


def _thread(trajectory: Trajectory, own: Invocation, told: dict[str, Told]) -> Thread:
    called = [
        each
        for each in trajectory.invocations
        if each.parent_id == own.invocation_id and each.invocation_id in told and each is not own
    ]
    turns = _joined(trajectory, own, told)
    model = next((turn.call.model for turn in turns if turn.call is not None and turn.call.model), None)
    return Thread(
        turns,
        Agent(model=model),
        trajectory_id=own.invocation_id,
        subagents=tuple(_thread(trajectory, each, told) for each in called),
        extra=_status(own),
    )


def _status(own: Invocation) -> Json:
    kept = {key: own.raw[key] for key in ("status", "error_type", "duration_ms") if own.raw.get(key) is not None}
    return {"nemo_gym": {"invocation": {"invocation_id": own.invocation_id, **kept}}}


def _joined(trajectory: Trajectory, own: Invocation, told: dict[str, Told]) -> tuple[Turn, ...]:
    """The turns of an agent, with a reference on the result of each call that began another agent."""
    spawned = {
        call_id: each.invocation_id
        for each in trajectory.invocations
        if each.parent_id == own.invocation_id
        and (call_id := each.spawned_by) is not None
        and each.invocation_id in told
    }
    turns = told[own.invocation_id].turns
    if not spawned:
        return turns
    return tuple(msgspec.structs.replace(turn, results=tuple(_referring(turn, spawned))) for turn in turns)


def _referring(turn: Turn, spawned: Mapping[str, str]) -> Iterator[ToolResult]:
    for result in turn.results:
        child = spawned.get(result.call_id) if result.call_id is not None else None
        refs = () if child is None else (SubagentRef(trajectory_id=child),)
        yield msgspec.structs.replace(result, subagents=(*result.subagents, *refs))


def _called(parent: Told | None, call_id: str | None) -> bool:
    """True where a call with a result is known to have begun an agent."""
    if parent is None or call_id is None:
        return False
    return any(result.call_id == call_id for turn in parent.turns for result in turn.results)
