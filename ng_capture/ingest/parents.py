"""Which call a request continues, by the conversation that it sends again, where no link was recorded.

Presumed, for the eye: a harness that edits, shortens or compacts history is still followed, so that its breaks can be
explained. Nothing that is delivered rests on it.
"""

import operator
from collections.abc import Sequence

from ng_capture.ingest.exchange import Exchange
from ng_capture.ingest.messages import Message


def presumed_parents(exchanges: Sequence[Exchange]) -> dict[str, str | None]:
    """The parent of every call, None for one that begins a conversation of its own.

    Among the calls before it the one with which it shares most turns; of equals the last. A request that shares nothing
    but the system prompt continues the last call that had it: its history was compacted or dropped.
    """
    made = sorted(exchanges, key=lambda exchange: (exchange.started_at, exchange.line))
    # equal turns have equal numbers: comparing those is quick, comparing whole texts again and again is not
    numbers: dict[Message, int] = {}
    asked = [[numbers.setdefault(turn, len(numbers)) for turn in exchange.asked] for exchange in made]
    held = [[numbers.setdefault(turn, len(numbers)) for turn in exchange.conversation] for exchange in made]
    parents: dict[str, str | None] = {}
    for index, exchange in enumerate(made):
        # the same request again is another answer to it, no continuation
        earlier = [place for place in range(index) if asked[place] != asked[index]]
        shared = [(sum(map(operator.eq, held[place], asked[index])), place) for place in earlier]
        turns, place = max(shared, default=(0, 0))
        parents[exchange.call_id] = made[place].call_id if turns else None
    return parents
