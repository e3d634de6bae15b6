"""The conversation of each actor, with those of the agents that it called (contracts.md 2.4)."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.contracts.atof.actors import Actor, Cast
from ng_capture.contracts.atof.assembly import Called, assemble
from ng_capture.contracts.atof.callers import caller_of
from ng_capture.contracts.atof.events import Phase
from ng_capture.contracts.atof.extras import Extras, with_ours
from ng_capture.contracts.atof.links import link
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.atof.telling import tell
from ng_capture.contracts.atof.told import Told
from ng_capture.contracts.episode import Agent, Json, SubagentRef, Thread
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss

TOOLKIT_VERSION = "1.0.0"
"""What the NeMo Agent Toolkit writes for an agent that tells no version (2.2, 1)."""
_IN_THE_CONVERSATION = frozenset({"llm", "tool", "agent", "context", None})


class Conversation(msgspec.Struct, frozen=True):
    """An actor's thread with those under it, the parameters of its first request, and all that was lost on the way."""

    thread: Thread
    request: Json | None
    losses: tuple[Loss, ...]


def conversations(cast: Cast, extras: Extras, options: Options) -> Mapping[str, Conversation]:
    """The conversation of every actor, by its key."""
    made = dict[str, Conversation]()
    called = defaultdict[str | None, list[Actor]](list)
    for actor in cast.actors:
        called[actor.above].append(actor)
    for actor in reversed(cast.actors):
        under = [(child, made[child.key]) for child in called[actor.key]]
        made[actor.key] = _conversation(actor, under, extras, options)
    return made


def _conversation(
    actor: Actor, under: Sequence[tuple[Actor, Conversation]], extras: Extras, options: Options
) -> Conversation:
    told = tell(actor, extras, options)
    linked = link(told.said, told.runs)
    called, losses = list[Called](), list[Loss]()
    for child, each in under:
        losses += each.losses
        place = child.events[0].event.place
        if not each.thread.turns:
            losses.append(Loss("subagent_dropped", place, detail="it holds no conversation"))
            continue
        caller = caller_of(child, each.thread, actor, extras.stream, told.said, linked)
        ref = SubagentRef(each.thread.trajectory_id, session_id=each.thread.session_id)
        first = child.events[0]
        called.append(Called(ref, caller, first.at, first.event.moment.spelled, place))
    whole = assemble(told, linked, called, extras)
    thread = Thread(
        turns=whole.turns,
        agent=_agent(actor, told, options),
        trajectory_id=actor.key if actor.above is not None else None,
        session_id=_session(actor),
        subagents=tuple(each.thread for _, each in under if each.thread.turns),
        extra=with_ours(None, atof=_beside(actor, told)),
    )
    own = (*told.losses, *whole.losses, *_unknown(actor, options), *_unfinished(actor, extras))
    return Conversation(thread, told.first.parameters if told.first else None, (*own, *losses))


def _agent(actor: Actor, told: Told, options: Options) -> Agent:
    models = (said.turn.call.model for said in told.said if said.turn.call is not None and not said.turn.copied)
    version = _metadata(actor).get("version")
    return Agent(
        name=actor.name,
        version=version if isinstance(version, str) else options.agent_version or TOOLKIT_VERSION,
        model=next((model for model in models if model), None),
        tools=told.first.tools if told.first else None,
    )


def _unknown(actor: Actor, options: Options) -> Iterator[Loss]:
    if not isinstance(_metadata(actor).get("version"), str) and options.agent_version is None:
        place = actor.events[0].event.place
        yield Loss("agent_version_unknown", place, detail=f"{TOOLKIT_VERSION}, as the NeMo Agent Toolkit has it")


def _session(actor: Actor) -> str | None:
    """The run that an actor belongs to: as it is told, else the actor's own uuid."""
    told = _metadata(actor).get("session_id")
    if isinstance(told, str) and told:
        return told
    return actor.scope.uuid if actor.scope is not None else None


def _metadata(actor: Actor) -> Json:
    return actor.scope.metadata if actor.scope is not None else {}


def _beside(actor: Actor, told: Told) -> Json | None:
    """What belongs to no turn: the scope's own data, scopes and marks by category, calls that failed."""
    kinds = Counter(
        placed.event.category
        for placed in actor.events
        if placed.event.phase != Phase.END
        and placed.event.category not in _IN_THE_CONVERSATION
        and placed.event.uuid != actor.key
    )
    told_beside = {
        "scope": _own(actor.scope) if actor.scope is not None else None,
        "categories": dict(sorted(kinds.items())) or None,
        "failed_calls": list(told.failed) or None,
        "request": told.first.parameters if told.first is not None and actor.above is not None else None,
    }
    return {key: value for key, value in told_beside.items() if value is not None} or None


def _own(scope: Scope) -> Json:
    """An agent's scope beside its conversation."""
    data = {event.phase.value: event.data for event in (scope.start, scope.end) if event and event.data is not None}
    told = {"uuid": scope.uuid, "metadata": scope.metadata, "data": data}
    return {key: value for key, value in told.items() if value}


def _unfinished(actor: Actor, extras: Extras) -> Iterator[Loss]:
    for placed in actor.events:
        if placed.event.phase == Phase.START and extras.stream.scopes[placed.event.uuid].end is None:
            yield Loss("scope_unfinished", placed.event.place, detail=placed.event.category)
