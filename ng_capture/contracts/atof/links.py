"""Which call of a model a tool answers (contracts.md 2.4)."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ng_capture.contracts.atof.told import Ran, Said
from ng_capture.contracts.episode import ToolCall
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.sameness import parsed
from ng_capture.records.json_text import encode_json


class Place(NamedTuple):
    """A call: of which turn, which of its calls."""

    turn: int
    call: int


class Linked(msgspec.Struct, frozen=True):
    """A tool that ran and the call that it answers, None where there is none; `loss` is what linking cannot tell."""

    ran: Ran
    place: Place | None
    loss: Loss | None = None


def link(said: Sequence[Said], runs: Sequence[Ran]) -> list[Linked]:
    """Each tool with its call, in the order in which they ended.

    By id, else, where it names none, by name and arguments if they fit just one call that nothing answers.
    """
    calls = _Calls(said)
    linked = [calls.of(ran) for ran in sorted(runs, key=lambda ran: ran.since)]
    return sorted(linked, key=lambda each: each.ran.at)


class _Calls:
    """The calls of an actor's turns, and which of them a tool answers already."""

    def __init__(self, said: Sequence[Said]) -> None:
        self._said = said
        self._by_id, self._by_work = defaultdict[str, list[Place]](list), defaultdict[object, list[Place]](list)
        self._answered = set[Place]()
        for at, each in enumerate(said):
            for number, call in enumerate(each.turn.calls):
                if call.call_id:
                    self._by_id[call.call_id].append(Place(at, number))
                self._by_work[call.name, parsed(call)].append(Place(at, number))

    def of(self, ran: Ran) -> Linked:
        return self._by_name(ran) if ran.call_id is None else self._by_call_id(ran, ran.call_id)

    def _by_call_id(self, ran: Ran, call_id: str) -> Linked:
        """The latest open call of that id before the tool ran: servers give ids again and again."""
        places = self._by_id.get(call_id, [])
        open_ones = [place for place in places if place not in self._answered]
        if not open_ones:
            loss = Loss("output_duplicate", ran.scope.told.place) if places else None
            return Linked(ran, places[-1] if places else None, loss)
        before = [place for place in open_ones if self._said[place.turn].at <= ran.since]
        place = before[-1] if before else open_ones[0]
        self._answered.add(place)
        return Linked(ran, place)

    def _by_name(self, ran: Ran) -> Linked:
        name = ran.scope.name
        work = name, parsed(ToolCall(None, name, encode_json(ran.arguments).decode()))
        fitting = [place for place in self._by_work[work] if place not in self._answered]
        if len(fitting) != 1:
            return Linked(ran, None)
        self._answered.add(fitting[0])
        return Linked(ran, fitting[0], Loss("link_by_position", ran.scope.told.place, detail="by name and arguments"))
