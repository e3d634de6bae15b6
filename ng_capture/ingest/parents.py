"""Which call a request continues, by the conversation that it sends again, where no link was recorded.

Presumed: a harness that edits, shortens or compacts history is still followed, so that its breaks can be explained.
Nothing that is delivered rests on it: a link is held against the tokens wherever it is used.
"""

import operator
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ng_capture.ingest.messages import ASSISTANT, Message


class Conversation(Protocol):
    """A call by its turns; `started_at` in seconds, `line` for calls of one time."""

    @property
    def call_id(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def started_at(self) -> float: ...
    @property
    def asked(self) -> tuple[Message, ...]: ...
    @property
    def conversation(self) -> tuple[Message, ...]: ...


class _Talk(NamedTuple):
    """A call in numbers: equal turns have equal numbers, and so have equal beginnings of conversations.

    `begins[n]` stands for the first `n` turns of what was asked and answered. Comparing numbers is quick, comparing
    whole texts again and again is not.
    """

    asked: list[int]
    held: list[int]
    begins: list[int]
    answer_place: int
    last_answer: int | None

    @property
    def request(self) -> int:
        """The beginning that is all that was asked."""
        return self.begins[len(self.asked)]

    @property
    def answered(self) -> int:
        """The beginning after which the answer stands; a call that went on with a cut answer asked that, too."""
        return self.begins[self.answer_place]


def presumed_parents(exchanges: Sequence[Conversation]) -> dict[str, str | None]:
    """The parent of every call, None for one that begins a conversation of its own.

    The same request again has the parent that it had. The last answer in a request is that of its parent: the call
    that asked what stands before it. Where no call did, history was edited or compacted: then the call with which it
    shares most turns, of equals the last, unless that one's conversation went on as it stood. A request without an
    answer that is no longer than the first one of that conversation is a first one, too: a sub-agent's, a next task's.
    """
    made = sorted(exchanges, key=lambda exchange: (exchange.started_at, len(exchange.asked), exchange.line))
    talks = _numbered(made)
    last_with = {begin: index for index, talk in enumerate(talks) for begin in talk.begins[: len(talk.asked) + 1]}
    earlier: dict[int, list[int]] = defaultdict(list)
    of_request: dict[int, int | None] = {}
    first_lengths: list[int] = []
    parents: dict[str, str | None] = {}
    for index, (exchange, talk) in enumerate(zip(made, talks, strict=True)):
        if talk.request not in of_request:
            parent = _answered(index, talks, earlier)
            of_request[talk.request] = _edited(index, talks, last_with, first_lengths) if parent is None else parent
        found = of_request[talk.request]
        first_lengths.append(len(talk.asked) if found is None else first_lengths[found])
        parents[exchange.call_id] = None if found is None else made[found].call_id
        earlier[talk.answered].append(index)
    return parents


def _numbered(made: Sequence[Conversation]) -> list[_Talk]:
    turns: dict[Message, int] = {}
    beginnings: dict[tuple[int, int], int] = {}
    talks = []
    for exchange in made:
        held = [turns.setdefault(turn, len(turns)) for turn in exchange.conversation]
        begins = [0]
        for turn in held:
            begins.append(beginnings.setdefault((begins[-1], turn), len(beginnings) + 1))
        answers = [place for place, turn in enumerate(exchange.asked) if turn.role == ASSISTANT]
        asked = held[: len(exchange.asked)]
        went_on = bool(answers) and answers[-1] == len(asked) - 1
        talks.append(_Talk(asked, held, begins, len(asked) - went_on, answers[-1] if answers else None))
    return talks


def _answered(index: int, talks: Sequence[_Talk], earlier: Mapping[int, Sequence[int]]) -> int | None:
    """The call that asked what stands before the last answer of a request, best the one that gave this answer."""
    mine = talks[index]
    if mine.last_answer is None:
        return None
    answer = mine.begins[mine.last_answer + 1]
    fit = [
        (talks[place].begins[-1] == answer, _shared(talks[place], mine), place)
        for place in earlier.get(mine.begins[mine.last_answer], ())
        # the same request again is another answer to it, no continuation
        if talks[place].asked != mine.asked
    ]
    _, turns, place = max(fit, default=(False, 0, 0))
    return place if turns else None


def _edited(
    index: int, talks: Sequence[_Talk], last_with: Mapping[int, int], first_lengths: Sequence[int]
) -> int | None:
    """The call with which a request shares most turns, if nothing continues that as it stands.

    `first_lengths` are the turns of the request with which the conversation of each earlier call began.
    """
    mine = talks[index]
    fit = [(_shared(talks[place], mine), place) for place in range(index)]
    turns, place = max(fit, default=(0, 0))
    if not turns or (mine.last_answer is None and len(mine.asked) <= first_lengths[place]):
        return None
    went_on = last_with.get(talks[place].begins[-1], -1) > index
    return None if went_on else place


def _shared(one: _Talk, other: _Talk) -> int:
    """How many turns the one holds where the other asked the same."""
    return sum(map(operator.eq, one.held, other.asked))
