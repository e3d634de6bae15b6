"""Which call a request goes on with: by the conversation that it sends again, else by what was recorded (3.5, 2)."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from ng_capture.contracts.captures.exchange import Exchange


class Link(msgspec.Struct, frozen=True):
    """The call that a call goes on with, by its place in the list, and how that is known.

    `conversation`: the first `matched` turns of the request are those of the parent's request and its answer;
    `server`: the request names the parent's response; `record`: the token record names it, or its ids begin with it.
    """

    parent: int | None = None
    how: Literal["none", "conversation", "server", "record"] = "none"
    matched: int = 0


NO_LINK = Link()


def links_of(exchanges: Sequence[Exchange]) -> list[Link]:
    """The link of every call. No call goes on with itself, however long the way round."""
    by_conversation = _Conversations(exchanges)
    links = [by_conversation.link_of(at) for at in range(len(exchanges))]
    by_response = {name: at for at, each in enumerate(exchanges) if (name := each.call.response_id) is not None}
    by_call = {name: at for at, each in enumerate(exchanges) if (name := each.call.call_id) is not None}
    for at, exchange in enumerate(exchanges):
        for link in _told(exchange, by_response, by_call):
            better = links[at].parent is None or link.how == "server"
            if better and link.parent is not None and at not in set(_ancestors(link.parent, links)):
                links[at] = link
    return links


def _told(exchange: Exchange, by_response: Mapping[str, int], by_call: Mapping[str, int]) -> Iterator[Link]:
    if exchange.previous is not None and exchange.previous in by_response:
        yield Link(by_response[exchange.previous], "server")
    elif exchange.record is not None and (parent := exchange.record.parent) is not None and parent in by_call:
        yield Link(by_call[parent], "record")


def _ancestors(at: int, links: Sequence[Link]) -> Iterator[int]:
    """A call and those before it."""
    here: int | None = at
    while here is not None:
        yield here
        here = links[here].parent


class _Conversations:
    """Calls by all that they were asked and answered."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = exchanges
        self._said = frozenset(digest for each in exchanges for digest in each.said)
        self._holding: dict[bytes, list[int]] = defaultdict(list)
        for at, exchange in enumerate(exchanges):
            if exchange.holds is not None:
                self._holding[exchange.holds].append(at)

    def link_of(self, at: int) -> Link:
        """The call whose conversation is the longest beginning of a request; of several the last before it.

        No later answer may stand in the request: then what stands before that was changed, and nothing is gone on with.
        """
        mine = self._exchanges[at]
        answers = [place for place, digest in enumerate(mine.heard.turns) if digest in self._said]
        for matched in range(len(mine.turns or ()), answers[-1] if answers else 0, -1):
            fit = [each for each in self._holding.get(mine.heard.begins[matched], ()) if self._precedes(each, at)]
            if fit:
                return Link(max(fit, key=lambda each: self._likelihood(each, mine)), "conversation", matched)
        return NO_LINK

    def _precedes(self, parent: int, at: int) -> bool:
        """True if the results that a call was sent are those that the request holds for the same turns."""
        asked, mine = self._exchanges[parent].heard, self._exchanges[at].heard
        return parent != at and asked.results[-1] == mine.results[len(asked.turns)]

    def _likelihood(self, parent: int, mine: Exchange) -> tuple[bool, bool, float, int]:
        exchange = self._exchanges[parent]
        recorded = mine.record is not None and mine.record.parent == exchange.call.call_id
        ended, begun = exchange.call.completed_at, mine.call.started_at
        return recorded, ended is None or begun is None or ended <= begun, ended or 0.0, parent
