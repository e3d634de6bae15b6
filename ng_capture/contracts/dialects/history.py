"""The turns of a request as they are told, and the results of tools on the turns that called (contracts.md 3.4, 5)."""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from ng_capture.contracts.episode import Role, ToolResult, Turn
from ng_capture.contracts.losses import Loss


class History:
    """Turns in their order. A result goes to the call that it names, else to the first one that has none.

    What is told stays: a longer history has the same turns, but for results that come later.
    """

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        self._results: defaultdict[int, list[ToolResult]] = defaultdict(list)
        self._callers: dict[str, int] = {}
        self._unanswered: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self._open: dict[int, list[int]] = {}
        self._by_place: dict[int, str] = {}
        self._assistant: int | None = None
        self._losses: list[Loss] = []

    def say(self, turn: Turn) -> None:
        """The next turn."""
        at = len(self._turns)
        self._turns.append(turn)
        if turn.role == Role.ASSISTANT:
            self._assistant = at
        if turn.calls:
            self._open[at] = list(range(len(turn.calls)))
        for index, call in reversed(list(enumerate(turn.calls))):
            if call.call_id:
                self._callers[call.call_id] = at
                self._unanswered[call.call_id].append((at, index))

    def answer(self, result: ToolResult, place: str, name: str | None = None) -> None:
        """What a tool gave back; `name` is the tool's, where the dialect tells it instead of a call."""
        found = self._named(result.call_id) if result.call_id else self._next(name)
        if found is None:
            self._losses.append(Loss("output_unlinked", place))
            at = self._last_assistant(place)
        else:
            at, index = found
            if index is not None:
                self._open[at].remove(index)
            if not result.call_id:
                self._losses.append(Loss("link_by_position", place))
                self._by_place[at] = place
                call = self._turns[at].calls[index or 0]
                result = msgspec.structs.replace(result, call_id=call.call_id)
        self._results[at].append(result)
        if at < len(self._turns) - 1:
            self._losses.append(Loss("item_order_changed", place))

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns with their results."""
        return tuple(
            msgspec.structs.replace(turn, results=tuple(self._results[at])) if at in self._results else turn
            for at, turn in enumerate(self._turns)
        )

    @property
    def losses(self) -> Iterator[Loss]:
        """What linking could not tell for certain."""
        yield from self._losses
        for at, place in self._by_place.items():
            # fewer results than calls: any of them could be meant
            if self._open[at]:
                yield Loss("link_ambiguous", place)

    def _named(self, call_id: str) -> tuple[int, int | None] | None:
        """The latest call of that id that has no result yet, else the latest; servers give ids again and again."""
        waiting = self._unanswered.get(call_id, [])
        while waiting:
            at, index = waiting.pop()
            if index in self._open[at]:
                return at, index
        return (self._callers[call_id], None) if call_id in self._callers else None

    def _next(self, name: str | None) -> tuple[int, int] | None:
        """The first call without a result of the turn that called last."""
        at = next(reversed(self._open), None)
        if at is None:
            return None
        calls = self._turns[at].calls
        index = next((each for each in self._open[at] if name is None or calls[each].name == name), None)
        return None if index is None else (at, index)

    def _last_assistant(self, place: str) -> int:
        if self._assistant is None:
            self.say(Turn(Role.ASSISTANT, copied=True, place=place))
        assert self._assistant is not None
        return self._assistant
