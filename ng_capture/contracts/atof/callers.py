"""What began an agent: the tool or the context around it, else the call that was open then (contracts.md 2.4)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ng_capture.contracts.atof.actors import Actor
from ng_capture.contracts.atof.links import Linked, Place
from ng_capture.contracts.atof.stream import Stream
from ng_capture.contracts.atof.told import Said
from ng_capture.contracts.episode import Role, Thread
from ng_capture.contracts.tasks import arguments_of, only_one, task_of


class Caller(NamedTuple):
    """What began an agent: a tool that ran or a context, by the uuid of its scope, or a call that no tool answers."""

    scope: str | None = None
    place: Place | None = None


def caller_of(
    child: Actor, thread: Thread, parent: Actor, stream: Stream, said: Sequence[Said], linked: Sequence[Linked]
) -> Caller | None:
    """What began an agent, None where nothing tells; of several calls the one that names the agent's task counts."""
    assert child.scope is not None
    for scope in stream.around(child.scope.parent):
        if scope.uuid == parent.key:
            break
        if scope.category in ("tool", "context"):
            return Caller(scope=scope.uuid)
    began, task = child.events[0].at, task_of(thread)
    running = {
        each.ran.scope.uuid: each.ran.arguments
        for each in linked
        if each.ran.since < began and (each.ran.scope.end is None or each.ran.at > began)
    }
    if running:
        tool = only_one(running, task)
        return Caller(scope=tool) if tool is not None else None
    place = only_one(dict(_waiting(began, said, linked)), task)
    return Caller(place=place) if place is not None else None


def _waiting(began: int, said: Sequence[Said], linked: Sequence[Linked]) -> Iterator[tuple[Place, object]]:
    """The calls of the last turn before then that no tool answers."""
    turns = [at for at, each in enumerate(said) if each.at < began and each.turn.role == Role.ASSISTANT]
    answered = {each.place for each in linked}
    for number, call in enumerate(said[turns[-1]].turn.calls if turns else ()):
        if Place(turns[-1], number) not in answered:
            yield Place(turns[-1], number), arguments_of(call)
