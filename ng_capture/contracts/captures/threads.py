"""Chains as threads: the main one, histories that were rewritten, sub-agents and what began them (3.5, 3)."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from ng_capture.contracts.captures.chains import Chain, Forest
from ng_capture.contracts.captures.exchange import Exchange
from ng_capture.contracts.captures.hearing import texts_of
from ng_capture.contracts.captures.strand import Strand
from ng_capture.contracts.episode import Role, SubagentRef, ToolCall


def strand_of(forest: Forest, exchanges: Sequence[Exchange], rollout_id: str, session_id: str) -> Strand:
    """The main thread, with all others in it."""
    return _Weaving(forest, exchanges, rollout_id, session_id).main


class _Caller(msgspec.Struct, frozen=True, eq=False):
    """A call whose arguments hold what a sub-agent was asked."""

    strand: Strand
    call_id: str


class _Weaving:
    def __init__(self, forest: Forest, exchanges: Sequence[Exchange], rollout_id: str, session_id: str) -> None:
        self._forest, self._exchanges = forest, exchanges
        self._rollout_id, self._session_id = rollout_id, session_id
        self._strands = [Strand(rollout_id, session_id)]
        self._of_call: dict[int, Strand] = {}
        self.main = self._strands[0]
        if not forest.chains:
            self.main.ask(exchanges[0])
        for place, chain in enumerate(forest.chains):
            if place:
                self._place(chain)
            else:
                self.main.begin(exchanges[chain.calls[0]])
                self._follow(chain, self.main)
        for strand in self._strands:
            strand.end()

    def _follow(self, chain: Chain, strand: Strand) -> None:
        self._of_call.update(dict.fromkeys(chain.calls, strand))
        for at in chain.calls[1:]:
            strand.go_on(self._exchanges[at], self._forest.links[at])

    def _place(self, chain: Chain) -> None:
        first = self._exchanges[chain.calls[0]]
        caller = self._caller(first) if chain.fork is None else None
        if caller is None:
            strand = self._rewritten(chain, first)
            if strand is not None:
                strand.rewrite(first)
                self._follow(chain, strand)
                return
        parent = caller.strand if caller is not None else self._parent_of(chain)
        child = Strand(f"{self._rollout_id}:{first.call.call_id or first.call.index}", self._session_id)
        reference = SubagentRef(child.thread_id, session_id=self._session_id)
        if caller is None:
            parent.note(first, reference)
        else:
            parent.refer(caller.call_id, reference)
        parent.subagents.append(child)
        self._strands.append(child)
        child.begin(first, parent if chain.fork is not None else None)
        self._follow(chain, child)

    def _parent_of(self, chain: Chain) -> Strand:
        return self.main if chain.fork is None else self._of_call[chain.fork]

    def _rewritten(self, chain: Chain, first: Exchange) -> Strand | None:
        """The thread whose history the chain replaces: the same agent, which had no call left."""
        candidates = self._strands if chain.fork is None else [self._of_call[chain.fork]]
        return next((each for each in candidates if _is_over(each, first) and _is_same_agent(each, first)), None)

    def _caller(self, first: Exchange) -> _Caller | None:
        """The call that began a sub-agent: its arguments hold what the sub-agent was asked first.

        An argument that is nothing else goes before one that holds more, and a later call before an earlier one.
        """
        asked = next((turn for turn in first.turns or () if turn.role is Role.USER), None)
        text = " ".join(texts_of(asked.content)).strip() if asked is not None else ""
        if not text:
            return None
        within = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
        holding: _Caller | None = None
        for strand, call in self._calls_before(first):
            words = list(_words_in(call))
            if any(word.strip() == text for word in words):
                return _Caller(strand, call.call_id or "")
            if holding is None and any(within.search(word) for word in words):
                holding = _Caller(strand, call.call_id or "")
        return holding

    def _calls_before(self, first: Exchange) -> Iterator[tuple[Strand, ToolCall]]:
        """The calls of tools that were there when a call began, the last one first."""
        answers = [
            (exchange.call.index or 0, strand, exchange)
            for strand in self._strands
            for exchange in strand.exchanges
            if _is_before(exchange, first)
        ]
        for _, strand, exchange in sorted(answers, key=lambda each: each[0], reverse=True):
            yield from ((strand, call) for call in exchange.answer.calls if call.call_id is not None)


def _is_before(one: Exchange, other: Exchange) -> bool:
    """True if the one had ended when the other began, as far as that is known."""
    ended, begun = one.call.completed_at, other.call.started_at
    if ended is None or begun is None:
        return (one.call.index or 0) < (other.call.index or 0)
    return ended <= begun


def _is_over(strand: Strand, first: Exchange) -> bool:
    return all(_is_before(each, first) for each in strand.exchanges)


def _is_same_agent(strand: Strand, first: Exchange) -> bool:
    """True for a history that holds answers of the thread, or of the same agent one that begins with the same turn.

    The first is more than contracts.md 3.5, 3 asks for: a system text that tells the time makes no other agent.
    """
    if strand.holds_answer_of(first):
        return True
    began = strand.exchanges[0]
    if not first.turns or not began.turns or began.agent != first.agent:
        return False
    return began.heard.begins[1] == first.heard.begins[1]


def _words_in(call: ToolCall) -> Iterator[str]:
    """The texts in the arguments of a call."""
    try:
        level: list[object] = [call.value]
    except ValueError:
        level = [call.arguments]
    while level:
        value = level.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            level += value.values()
        elif isinstance(value, list):
            level += value
