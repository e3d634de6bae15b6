"""Calls of one rollout as `ingest` holds them before they are linked, and trees of calls to make them of.

candidates(rows)                   # of raw calls
words_and_ids(1, [1, 2], [3])      # a call of words and tokens, see `Made`
conversations()                    # a strategy: trees of calls, whole or with faults
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from ng_capture.ingest.candidate import Candidate, candidate_of_call
from ng_capture.ingest.normalise import normalise
from ng_capture.records.fingerprint import Beginnings
from tests.support.forge import Row
from tests.support.raw_calls import chat_call, says, user
from tests.support.raw_exchanges import exchange_of


def candidates(rows: Iterable[Row]) -> list[Candidate]:
    """What is read of raw calls, in their order."""
    made = []
    for line, row in enumerate(rows, 1):
        answers = normalise(exchange_of(json.dumps(row).encode(), line))
        made += [candidate_of_call("r-1", answer, len(answers), Beginnings()) for answer in answers]
    return made


@dataclass(eq=False)
class Made:
    """A call that was truly made: its turns and its tokens, and the call that it continues."""

    name: str
    turns: list[Row]
    prompt: list[int]
    generation: list[int]
    answer: str
    parent: "Made | None"
    at: float
    fields: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        after = f"<{self.parent.name}" if self.parent else ""
        return f"{self.name}{after}@{self.at:g} {len(self.turns)} turns {self.prompt}+{self.generation} {self.answer!r}"

    @property
    def full(self) -> list[int]:
        return [*self.prompt, *self.generation]

    def row(self, *, words: bool = True) -> Row:
        """The raw call; without words it is tokens alone."""
        made = chat_call(
            self.name, self.turns, says(self.answer), prompt=self.prompt, generation=self.generation, at=self.at
        )
        return made if words else {**made, "request": {}}


def rows_of(calls: Sequence[Made], *, words: bool = True) -> list[Row]:
    return [call.row(words=words) for call in calls]


@st.composite
def conversations(draw: st.DrawFn, *, alike: bool = False, broken: bool = False) -> list[Made]:
    """Up to seven calls in the order in which they were made; each continues one before it or begins anew.

    `alike`: questions, answers and tokens of different calls may be the same; `broken`: a prompt may hold anything.
    """
    ids = st.integers(1, 3) if alike or broken else st.integers(1, 2**31 - 1)
    calls: list[Made] = []
    for number in range(draw(st.integers(1, 7))):
        parent = draw(st.sampled_from([None, *calls]))
        before = [*parent.turns, says(parent.answer)] if parent else []
        about = draw(st.sampled_from("xy")) if alike else f"question {number}"
        answer = draw(st.sampled_from("ab")) if alike else f"answer {number}"
        added = [draw(ids)] if alike or broken else [1000 + number, 2000 + number]
        held = parent.full if parent else []
        prompt = draw(st.lists(ids, min_size=1, max_size=5)) if broken and draw(st.booleans()) else [*held, *added]
        generation = [draw(ids)] if alike or broken else [3000 + number]
        calls.append(Made(f"c{number}", [*before, user(about)], prompt, generation, answer, parent, 100.0 + number))
    return calls
