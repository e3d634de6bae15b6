"""A thread to a trajectory, with those of its sub-agents in it (contracts.md 3.4, 7 to 9; 3.5, 3)."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ng_capture.contracts.atif.agents import write_agent
from ng_capture.contracts.atif.draft import Draft
from ng_capture.contracts.atif.metrics import write_totals
from ng_capture.contracts.atif.schema import OBJECTS
from ng_capture.contracts.atif.write_step import write_step
from ng_capture.contracts.episode import ModelCall, Thread, Totals, Turn
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.rules import pointer
from ng_capture.records.usage import UNKNOWN_USAGE, total_usage


def write_trajectory(thread: Thread, draft: Draft, path: str = "") -> dict[str, Any]:
    """The trajectory of a thread but for its version; `path` is its pointer in the document."""
    turns = thread.turns if draft.same else _with_usage(thread)
    totals = _totals(thread, turns, draft)
    embedded = list(_embedded(thread, draft, path))
    members: dict[str, Any] = {
        "session_id": thread.session_id,
        "trajectory_id": thread.trajectory_id,
        "agent": write_agent(thread.agent, draft, f"{path}/agent"),
        "steps": [
            write_step(turn, number, draft, f"{path}{pointer('steps', number - 1)}")
            for number, turn in enumerate(turns, start=1)
        ],
        "notes": thread.notes,
        "final_metrics": None if totals is None else write_totals(totals),
        "continued_trajectory_ref": thread.continued,
        "extra": None if thread.extra is None else dict(thread.extra),
        "subagent_trajectories": embedded or None,
    }
    return in_order({name: value for name, value in members.items() if value is not None})


def in_order(trajectory: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a trajectory as ATIF lists them."""
    return {name: trajectory[name] for name in OBJECTS["trajectory"] if name in trajectory}


def stamp(trajectory: dict[str, Any], version: str) -> dict[str, Any]:
    """The trajectory, and those in it, with their version."""
    told = {**trajectory, "schema_version": version}
    if "subagent_trajectories" in told:
        told["subagent_trajectories"] = [stamp(each, version) for each in told["subagent_trajectories"]]
    return in_order(told)


def _embedded(thread: Thread, draft: Draft, path: str) -> Iterator[dict[str, Any]]:
    for at, child in enumerate(thread.subagents):
        place = f"{path}{pointer('subagent_trajectories', at)}"
        if child.trajectory_id is None:
            child = msgspec.structs.replace(child, trajectory_id=made_id("trajectory_", draft.name, place))
        yield write_trajectory(child, draft, place)


def _with_usage(thread: Thread) -> tuple[Turn, ...]:
    """The turns; where one call made the rollout, what the rollout used is what the call used (3.4, 7)."""
    fresh = [at for at, turn in enumerate(thread.turns) if turn.fresh]
    usage = UNKNOWN_USAGE if thread.totals is None else thread.totals.usage
    if len(fresh) != 1 or usage == UNKNOWN_USAGE:
        return thread.turns
    turn = thread.turns[fresh[0]]
    call = turn.call or ModelCall()
    if call.usage != UNKNOWN_USAGE or turn.model_calls not in (None, 1):
        return thread.turns
    told = msgspec.structs.replace(turn, call=msgspec.structs.replace(call, usage=usage))
    return (*thread.turns[: fresh[0]], told, *thread.turns[fresh[0] + 1 :])


def _totals(thread: Thread, turns: tuple[Turn, ...], draft: Draft) -> Totals | None:
    """The totals that the source has, or sums over the calls of the trajectory's own steps; of costs over all."""
    if draft.same:
        return thread.totals
    given = thread.totals or Totals()
    usage = given.usage
    if usage == UNKNOWN_USAGE:
        usage = total_usage(turn.call.usage for turn in turns if turn.fresh and turn.call is not None)
    cost = _cost(thread) if given.cost_usd is None else given.cost_usd
    return Totals(usage, cost, len(turns), given.extra)


def _cost(thread: Thread) -> float | None:
    own = [turn.call.cost_usd for turn in thread.turns if turn.fresh and turn.call is not None]
    costs = [cost for cost in (*own, *map(_cost, thread.subagents)) if cost is not None]
    return sum(costs) if costs else None
