"""Who acts in a stream: agents, and what acts where no agent is told of (contracts.md 2.2, 2.4)."""

from collections.abc import Iterator, Mapping
from itertools import chain

import msgspec

from ng_capture.contracts.atof.events import Event, Phase
from ng_capture.contracts.atof.scopes import Scope
from ng_capture.contracts.atof.stream import Stream

_CALLS = frozenset({"llm", "tool", "context"})
_WORKFLOWS = frozenset({"function", "custom", "unknown"})


class Placed(msgspec.Struct, frozen=True):
    """An event and its place among all events of the stream."""

    at: int
    event: Event


class Actor(msgspec.Struct, frozen=True):
    """Who does what its events tell.

    `scope` is the agent's, or that of a workflow that no agent is told of; None where calls stand in a scope that is
    not in the file. `above` is the actor that it works for. `events` are its own, not those of agents that it called.
    """

    key: str
    scope: Scope | None
    above: str | None
    events: tuple[Placed, ...]

    @property
    def name(self) -> str | None:
        return (self.scope.name or None) if self.scope is not None else None


class Cast(msgspec.Struct, frozen=True):
    """All actors, each after the one that it works for, and the events of none of them."""

    actors: tuple[Actor, ...]
    beside: tuple[Event, ...]

    @property
    def tops(self) -> Iterator[Actor]:
        """Those that work for nobody: each has a conversation of its own."""
        return (actor for actor in self.actors if actor.above is None)


def cast_of(stream: Stream) -> Cast:
    """The actors of a stream, and what nobody did."""
    events: dict[str, list[Placed]] = {}
    for at, event in enumerate(stream.events):
        events.setdefault(_owner(event, stream), []).append(Placed(at, event))
    above = {key: _above(key, stream) for key in events}
    acting = {key for key in events if _acts(key, events, above, stream)}
    actors = {
        key: Actor(key, stream.scopes.get(key), above[key] if above[key] in acting else None, tuple(own))
        for key, own in events.items()
        if key in acting
    }
    beside = chain.from_iterable(own for key, own in events.items() if key not in acting)
    return Cast(tuple(_in_rank(actors)), tuple(placed.event for placed in sorted(beside, key=lambda each: each.at)))


def _in_rank(actors: Mapping[str, Actor]) -> Iterator[Actor]:
    """Each actor after the one that it works for, whatever their clocks say."""
    ranks = dict[str, int]()
    for key in actors:
        path, at = list[str](), key
        while at in actors and at not in ranks:
            path.append(at)
            at = actors[at].above or ""
        ranks |= {each: rank for rank, each in enumerate(reversed(path), ranks.get(at, 0) + 1)}
    return (actors[key] for key in sorted(actors, key=lambda key: ranks[key]))


def _owner(event: Event, stream: Stream) -> str:
    """Whose event it is: the nearest agent's, else the outermost scope's that is no call, else that of no scope."""
    return _around(event.parent if event.phase == Phase.MARK else event.uuid, event.parent, stream)


def _around(scope: str | None, parent: str | None, stream: Stream) -> str:
    outermost = None
    for outermost in stream.around(scope):
        if outermost.category == "agent":
            return outermost.uuid
    if outermost is not None and outermost.category not in _CALLS:
        return outermost.uuid
    # what stands in one scope that is not in the file belongs together
    return f"\0{(parent if outermost is None else outermost.told.parent) or ''}"


def _above(key: str, stream: Stream) -> str | None:
    scope = stream.scopes.get(key)
    return None if scope is None or scope.parent is None else _around(scope.parent, None, stream)


def _acts(key: str, events: Mapping[str, list[Placed]], above: Mapping[str, str | None], stream: Stream) -> bool:
    """True for an agent, for what calls models or tools itself, for a workflow that tells what it was given or gave.

    And for what is all that there is.
    """
    scope, own = stream.scopes.get(key), events[key]
    if len(events) == 1 or (scope is not None and scope.category == "agent"):
        return True
    if any(placed.event.phase != Phase.MARK and placed.event.category in _CALLS for placed in own):
        return True
    tells = any(placed.event.uuid == key and placed.event.data for placed in own)
    return scope is not None and scope.category in _WORKFLOWS and tells and key not in above.values()
