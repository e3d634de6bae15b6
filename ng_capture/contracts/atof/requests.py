"""Which turns of a request are new: by their place in the history, not by what they say (contracts.md 2.4)."""

from collections.abc import Hashable, Sequence

import msgspec

from ng_capture.contracts.episode import Role, Turn
from ng_capture.contracts.sameness import spoken

_LEADING = frozenset({Role.SYSTEM, Role.DEVELOPER})
_ROOT = 0
_ANSWER = "the answer"


class New(msgspec.Struct, frozen=True):
    """What a request adds to those before it.

    `turns` are told for the first time; `beyond` is where in the request what goes on from the known history begins,
    None where all of it is known; `rewritten` tells that the request goes on from none of the histories before it.
    """

    turns: tuple[Turn, ...]
    beyond: str | None
    rewritten: bool


class Requests:
    """The histories that the calls of one agent were asked with, as a tree of turns."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, Hashable], int] = {}
        self._branched, self._answered = set[int](), set[int]()
        self._heads, self._last_head = set[tuple[Hashable, ...]](), list[Hashable]()

    def add(self, turns: Sequence[Turn]) -> tuple[New, int]:
        """What the next request adds, and the place of its end in the tree."""
        leading = next((at for at, turn in enumerate(turns) if turn.role not in _LEADING), len(turns))
        new, at, beyond, rewritten = self._head(turns[:leading]), _ROOT, None, False
        for turn in turns[leading:]:
            key = spoken(turn)
            known = self._next.get((at, key))
            answers = turn.role == Role.ASSISTANT and at in self._answered
            if known is None and answers:
                known = self._next.get((at, _ANSWER))
            if known is not None:
                at = known
                continue
            if beyond is None:
                beyond, rewritten = turn.place, at in self._branched
            if not answers:
                new.append(turn)
            at = self._grow(at, _ANSWER if answers else key)
        return New(tuple(new), beyond, rewritten), at

    def answered(self, end: int) -> None:
        """The request that ended there has its answer: a turn of the model behind it is that, however it is spelled."""
        self._answered.add(end)

    def _grow(self, at: int, key: Hashable) -> int:
        made = len(self._next) + 1
        self._next[at, key] = made
        self._branched.add(at)
        return made

    def _head(self, leading: Sequence[Turn]) -> list[Turn]:
        """The instructions, where no request had them; of changed ones those that are not as in the last request."""
        keys = [spoken(turn) for turn in leading]
        if tuple(keys) in self._heads:
            return []
        self._heads.add(tuple(keys))
        same = 0
        while same < min(len(keys), len(self._last_head)) and keys[same] == self._last_head[same]:
            same += 1
        self._last_head = keys
        return list(leading[same:])
