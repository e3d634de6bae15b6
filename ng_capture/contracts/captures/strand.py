"""A thread while its calls are told one after the other (contracts.md 3.5, 3 and 4)."""

from collections.abc import Container, Iterator, Sequence

import msgspec

from ng_capture.contracts.captures.exchange import Exchange
from ng_capture.contracts.captures.hearing import heard
from ng_capture.contracts.captures.parents import Link
from ng_capture.contracts.episode import (
    Agent,
    Json,
    Role,
    SubagentRef,
    Thread,
    Tool,
    ToolResult,
    Totals,
    Turn,
)
from ng_capture.contracts.identity import content_digest
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import pointer
from ng_capture.records.usage import Usage, total_usage

REWRITTEN: Json = {"context_management": {"type": "compaction", "boundary": "replace"}}
"""The event behind which later calls see nothing of what stands before it (contracts.md 1.4)."""


class Strand:
    """Turns as they come; `exchanges` are the calls that made them, `subagents` the threads that they began."""

    def __init__(self, thread_id: str, session_id: str | None) -> None:
        self.thread_id = thread_id
        self.subagents = list[Strand]()
        self.exchanges = list[Exchange]()
        self._session_id = session_id
        self._turns = list[Turn]()
        self._said = set[bytes]()
        self._callers = dict[str, int]()
        self._answers = list[int]()
        self._unanswered = list[int]()
        self._events = list[tuple[int, Turn]]()
        self._losses = list[Loss]()
        self._of_requests = dict[tuple[str, str, str | None], Loss]()
        self._tools = dict[str, tuple[Tool, ...]]()

    def ask(self, exchange: Exchange) -> None:
        """What a call was asked, where no call was answered."""
        self._tell(exchange, exchange.turns)

    def begin(self, exchange: Exchange, of: "Strand | None" = None) -> None:
        """The first call: all that it was asked is told; what it repeats of another thread is copied."""
        said = of._said if of is not None else frozenset[bytes]()
        self._tell(exchange, None if exchange.turns is None else _copies(exchange, said))
        self._answer(exchange)

    def go_on(self, exchange: Exchange, link: Link) -> None:
        """A call that goes on with the last one: what is new of its request is told."""
        turns = exchange.turns or ()
        if link.how == "conversation":
            for turn in turns[link.matched - len(self.exchanges[-1].said) : link.matched]:
                self._give(self._answers[-1], turn.results)
            self._tell(exchange, turns[link.matched :])
        elif link.how == "server":
            self._tell(exchange, None if exchange.turns is None else tuple(self._new_beside(exchange)))
        else:
            self._tell(exchange, tuple(self._new_behind(exchange)) or None)
        self._answer(exchange)

    def rewrite(self, exchange: Exchange) -> None:
        """A call that was asked with another history: what it repeats of this one is copied."""
        self.end()
        turns = exchange.turns or ()
        self._lose("history_rewritten", exchange)
        self._turns.append(Turn(Role.EVENT, extra=REWRITTEN, place=turns[0].place if turns else exchange.answer.place))
        self._tell(exchange, _copies(exchange, self._said))
        self._answer(exchange)

    def end(self) -> None:
        """No call goes on with the last one: what its tools gave back was never sent."""
        if self._answers:
            self._unanswered.append(self._answers[-1])

    def _new_beside(self, exchange: Exchange) -> Iterator[Turn]:
        """The turns of a request that names what it goes on with; it says again what the system says."""
        for digest, turn in zip(exchange.heard.turns, exchange.turns or (), strict=True):
            if turn.role is not Role.SYSTEM or digest not in self._said:
                yield turn

    def _new_behind(self, exchange: Exchange) -> Iterator[Turn]:
        """The turns of a request that were not said before: its ids, not its words, say what it goes on with."""
        for digest, turn in zip(exchange.heard.turns, exchange.turns or (), strict=True):
            if digest not in self._said:
                yield turn

    def _tell(self, exchange: Exchange, turns: Sequence[Turn] | None) -> None:
        """What was asked; None where nobody knows."""
        if turns is None:
            self._lose("conversation_unavailable", exchange)
        linked = sum(self._add(turn) for turn in turns or ())
        for loss in exchange.losses:
            _, _, side, *rest = loss.path.split("/")
            if loss.code == "output_unlinked" and linked:
                linked -= 1
            elif side == "request":
                # the next request sends it again, and would tell of it again
                self._of_requests.setdefault((loss.code, "/".join(rest), loss.detail), loss)
            else:
                self._losses.append(loss)
        if exchange.tools is not None:
            self._tools.setdefault(exchange.agent[1], exchange.tools)

    def _add(self, turn: Turn) -> int:
        """Tell a turn; gives the number of its results that belong to calls of earlier ones."""
        own = {call.call_id for call in turn.calls}
        strays = [result for result in turn.results if result.call_id not in own and result.call_id in self._callers]
        for result in strays:
            self._give(self._callers[result.call_id or ""], (result,))
        if strays:
            turn = msgspec.structs.replace(turn, results=tuple(each for each in turn.results if each not in strays))
        if turn.content or turn.calls or turn.results or turn.thoughts or not strays:
            if turn.copied and turn.role is Role.ASSISTANT:
                self._losses.append(Loss("copied_context", turn.place))
            self._append(turn)
        return len(strays)

    def _append(self, turn: Turn) -> None:
        self._said.update(heard((turn,)).turns)
        self._callers.update({call.call_id: len(self._turns) for call in turn.calls if call.call_id is not None})
        self._turns.append(turn)

    def _answer(self, exchange: Exchange) -> None:
        self._answers.append(len(self._turns))
        self.exchanges.append(exchange)
        self._append(exchange.answer)

    def _give(self, at: int, results: Sequence[ToolResult]) -> None:
        turn = self._turns[at]
        self._turns[at] = msgspec.structs.replace(turn, results=(*turn.results, *results))

    def holds_answer_of(self, exchange: Exchange) -> bool:
        """True if a request holds something that the model said in this thread."""
        asked = zip(exchange.heard.turns, exchange.turns or (), strict=False)
        return any(turn.role is Role.ASSISTANT and digest in self._said for digest, turn in asked)

    def refer(self, call_id: str, reference: SubagentRef) -> None:
        """Name a sub-agent on the result of the call that began it; where nothing came back, on one without content."""
        at = self._callers[call_id]
        results = list(self._turns[at].results)
        place = next((index for index, each in enumerate(results) if each.call_id == call_id), None)
        if place is None:
            results.append(ToolResult(call_id, None, subagents=(reference,)))
        else:
            known = results[place].subagents
            results[place] = msgspec.structs.replace(results[place], subagents=(*known, reference))
        self._turns[at] = msgspec.structs.replace(self._turns[at], results=tuple(results))

    def note(self, exchange: Exchange, reference: SubagentRef) -> None:
        """Name a sub-agent of which nobody knows what began it, behind what had been answered by then."""
        begun = exchange.call.started_at
        before = [
            at
            for at, each in zip(self._answers, self.exchanges, strict=True)
            if begun is None or each.call.completed_at is None or each.call.completed_at <= begun
        ]
        self._lose("subagent_parent_unknown", exchange)
        event = Turn(Role.EVENT, results=(ToolResult(None, None, subagents=(reference,)),), place=exchange.answer.place)
        self._events.append((before[-1] + 1 if before else 0, event))

    def _lose(self, code: str, exchange: Exchange) -> None:
        self._losses.append(Loss(code, pointer(exchange.call.index or 0)))

    def losses(self) -> Iterator[Loss]:
        """What this thread and those that it began do not tell."""
        yield from self._of_requests.values()
        yield from self._losses
        if len(self._tools) > 1:
            yield Loss("request_fields_dropped", "/tools", len(self._tools) - 1, "which tools were offered when")
        for at in self._unanswered:
            results = self._turns[at].results
            answered = {each.call_id for each in results if each.content is not None or not each.subagents}
            open_ = sum(call.call_id not in answered for call in self._turns[at].calls)
            if open_:
                yield Loss("tool_output_not_captured", self._turns[at].place, open_)
        for strand in self.subagents:
            yield from strand.losses()

    def usage(self) -> Usage:
        """Of all its calls, and of those of its sub-agents."""
        return total_usage([each.call.usage for each in self.exchanges] + [each.usage() for each in self.subagents])

    def thread(self, usage: Usage | None = None, extra: Json | None = None) -> Thread:
        """The thread; `usage` is what it counts, where that is more than its calls."""
        turns = list(self._turns)
        for at, event in sorted(self._events, key=lambda each: each[0], reverse=True):
            turns.insert(at, event)
        model = next((each.call.model for each in self.exchanges if each.call.model is not None), None)
        offered = {content_digest([tool.dialect, tool.value]): tool for tools in self._tools.values() for tool in tools}
        return Thread(
            turns=tuple(turns),
            agent=Agent(model=model, tools=tuple(offered.values()) if self._tools else None),
            trajectory_id=self.thread_id,
            session_id=self._session_id,
            totals=Totals(usage if usage is not None else self.usage()),
            subagents=tuple(strand.thread() for strand in self.subagents),
            extra=extra,
        )


def _copies(exchange: Exchange, said: Container[bytes]) -> list[Turn]:
    """What a call was asked, copied where it was said before."""
    turns = zip(exchange.heard.turns, exchange.turns or (), strict=False)
    return [msgspec.structs.replace(turn, copied=True) if digest in said else turn for digest, turn in turns]
