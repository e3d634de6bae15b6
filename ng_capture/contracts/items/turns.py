"""Items put together into turns (contracts.md 3.4, 1 to 6): what one call made is one turn, with its results."""

from collections.abc import Hashable, Iterable, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from ng_capture.contracts.episode import (
    Content,
    Json,
    ModelCall,
    Opaque,
    Part,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Turn,
)
from ng_capture.contracts.items.pieces import Message, Other, Piece, ServerCall, piece_of
from ng_capture.contracts.items.think import opened
from ng_capture.contracts.items.tokens import has_tokens, is_placeholder, read_tokens
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import pointer
from ng_capture.records.json_text import object_in

Bounds = Literal["inferred", "one"] | Sequence[Hashable]
"""What tells turns apart: the order of the items, nothing (all are one turn), or for each item the call of it."""

HISTORY_ORDER = "history_order"
"""The key among `extra.ng_capture` of a thread: where each item before the output stood, likewise."""
ORDER = "item_order"
"""The key among `extra.ng_capture` of a thread: where each item of the output stood, where turns change the order."""
OUTPUT_FROM = "output_from"
"""The key beside it: the first turn of an output that begins with what no model of this episode wrote."""
TOOLS_FROM = "tools_from"
"""The key beside them: `response` where the request named no tools, and the response did."""


class Grouped(msgspec.Struct, frozen=True):
    """The turns of some items.

    `order` and `history` hold the items of the output and those before it in the order in which a writer would write
    them: for each, where it stood among them; nothing where that is the order in which they stood. `starts` is where
    each turn began.
    """

    turns: tuple[Turn, ...] = ()
    losses: tuple[Loss, ...] = ()
    order: tuple[int, ...] = ()
    history: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


def grouped(
    items: Iterable[object],
    place: str,
    *,
    fresh_from: int = 0,
    bounds: Bounds = "inferred",
    split_think: bool = False,
) -> Grouped:
    """The turns of a list of items; `place` is its pointer.

    What a model made before `fresh_from` is history, which another call made.
    """
    grouping = _Grouping(place, fresh_from, bounds, split_think)
    for at, item in enumerate(items):
        grouping.add(at, item)
    return grouping.done()


class _Open:
    """A turn of the model while its items come."""

    def __init__(self, at: int, place: str, copied: bool) -> None:
        self.at, self.place, self.copied = at, place, copied
        self.thoughts = list[tuple[int, Thought]]()
        self.messages = list[tuple[int, Content | None, Json | None]]()
        self.calls = list[tuple[int, ToolCall]]()
        self.results = list[tuple[int | None, ToolResult]]()
        self.carriers = list[tuple[int, Json]]()

    def order(self) -> list[int]:
        written = (self.thoughts, self.messages, self.calls, self.results)
        return [entry[0] for entries in written for entry in entries if entry[0] is not None]

    def turn(self) -> Turn:
        content, item, extra = _joined(self.messages)
        carried = [(at, tokens) for at, carrier in self.carriers if (tokens := read_tokens(carrier)) is not None]
        made = [entry[0] for entries in (self.thoughts, self.messages, self.calls) for entry in entries]
        if len(carried) > 1 or [at for at, _ in carried] not in ([], made[-1:]):
            told = ({"item": at, "place": made.index(at), **msgspec.to_builtins(tokens)} for at, tokens in carried)
            extra["tokens"] = list(told)
        return Turn(
            Role.ASSISTANT,
            content,
            tuple(thought for _, thought in self.thoughts),
            tuple(call for _, call in self.calls),
            tuple(result for _, result in self.results),
            call=ModelCall(tokens=carried[-1][1]) if carried else None,
            copied=self.copied,
            item=item,
            extra=extra or None,
            place=self.place,
        )


def _joined(
    messages: list[tuple[int, Content | None, Json | None]],
) -> tuple[Content | None, Json | None, dict[str, object]]:
    """The words of a turn; of several messages all parts, with what tells them apart."""
    if not messages:
        return None, None, {}
    if len(messages) == 1:
        return messages[0][1], messages[0][2], {}
    parts = [_parts(content) for _, content, _ in messages]
    told = [{"parts": len(each), "item": item} for each, (_, _, item) in zip(parts, messages, strict=True)]
    return tuple(part for each in parts for part in each), None, {"messages": told}


def _parts(content: Content | None) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return content or ()


class _Grouping:
    def __init__(self, place: str, fresh_from: int, bounds: Bounds, split_think: bool) -> None:
        self._place, self._fresh_from, self._bounds, self._split_think = place, fresh_from, bounds, split_think
        self._turns = list[_Open | tuple[int, Turn]]()
        self._open: _Open | None = None
        self._last: _Open | None = None
        self._maker: Hashable = None
        self._callers = dict[str, _Open]()
        self._answered = set[str]()
        self._losses = list[Loss]()

    def add(self, at: int, item: object) -> None:
        place = f"{self._place}{pointer(at)}"
        piece = piece_of(item)
        if self._bounds == "one" and isinstance(piece, Message) and piece.role != Role.ASSISTANT:
            piece = Other(Opaque("message", object_in(item)))
        match piece:
            case None:
                self._losses.append(Loss("content_type_unsupported", place, detail="no JSON object"))
                return
            case ToolResult():
                self._result(at, piece, place)
            case Message(role=role) if role != Role.ASSISTANT:
                self._turn(at, Turn(role, piece.content, item=piece.item, place=place))
            case Other(part=part) if self._bounds != "one":
                self._turn(at, Turn(Role.SYSTEM, (part,), extra=_managed(part), place=place))
            case _:
                self._made(at, piece, place)
        self._tokens(at, object_in(item), piece, place)

    def _turn(self, at: int, turn: Turn) -> None:
        self._turns.append((at, turn))
        self._open = None

    def _made(self, at: int, piece: Piece, place: str) -> None:
        """What the model wrote, on the turn that is open or on a new one."""
        turn = self._open
        if turn is None or self._begins(at, turn, piece):
            turn = self._begin(at, place, at < self._fresh_from)
            self._maker = None if isinstance(self._bounds, str) else self._bounds[at]
        match piece:
            case Thought():
                turn.thoughts.append((at, piece))
            case Message(content=content, item=item):
                turn.messages.append((at, self._opened(at, turn, content, place), item))
            case Other(part=part):
                turn.messages.append((at, (part,), None))
            case ToolCall():
                self._call(at, turn, piece)
            case ServerCall(call=call, result=result):
                self._call(at, turn, call)
                turn.results.append((None, result))
                if result.call_id is not None:
                    self._answered.add(result.call_id)

    def _opened(self, at: int, turn: _Open, content: Content | None, place: str) -> Content | None:
        """The words without the think tag that they begin with, where that was asked for."""
        rest, thought = opened(content) if self._split_think else (content, None)
        if thought is not None:
            self._losses.append(Loss("think_tags_split", place))
            turn.thoughts.append((at, thought))
        elif _has_think_tags(content):
            self._losses.append(Loss("think_tags_in_text", place))
        return rest

    def _call(self, at: int, turn: _Open, call: ToolCall) -> None:
        turn.calls.append((at, call))
        if call.call_id is not None:
            self._callers[call.call_id] = turn
            self._answered.discard(call.call_id)

    def _begins(self, at: int, turn: _Open, piece: Piece) -> bool:
        """True if an item begins another turn than the one that is open (3.4, 2)."""
        if turn.copied != (at < self._fresh_from):
            return True
        if not isinstance(self._bounds, str):
            return self._maker != self._bounds[at]
        if self._bounds == "one":
            return False
        match piece:
            case Thought():
                return bool(turn.messages or turn.calls)
            case Message():
                return bool(turn.messages)
        return False

    def _begin(self, at: int, place: str, copied: bool) -> _Open:
        self._open = self._last = turn = _Open(at, place, copied)
        self._turns.append(turn)
        return turn

    def _result(self, at: int, result: ToolResult, place: str) -> None:
        """A result, on the turn whose call it answers; what comes next from the model begins another turn."""
        caller = self._callers.get(result.call_id) if result.call_id is not None else None
        if caller is None:
            self._losses.append(Loss("output_unlinked", place))
            caller = self._last
        elif result.call_id in self._answered:
            self._losses.append(Loss("output_duplicate", place))
        if result.call_id is not None:
            self._answered.add(result.call_id)
        if caller is None:
            caller = self._begin(at, place, copied=True)
        caller.results.append((at, result))
        if self._bounds == "inferred":
            self._open = None

    def _tokens(self, at: int, item: Json, piece: Piece, place: str) -> None:
        if not has_tokens(item) or isinstance(piece, Other):
            return
        if is_placeholder(item):
            self._losses.append(Loss("tokens_placeholder", place))
        elif self._open is None or isinstance(piece, ToolResult):
            self._losses.append(Loss("tokens_dropped", place))
        elif read_tokens(item) is None:
            self._losses.append(Loss("tokens_incomplete", place))
        else:
            self._open.carriers.append((at, item))
            if len(self._open.carriers) == 2:
                self._losses.append(Loss("tokens_multiple_items", place))

    def done(self) -> Grouped:
        turns, starts, order = list[Turn](), list[int](), list[int]()
        for each in self._turns:
            if isinstance(each, _Open):
                turns.append(each.turn())
                starts.append(each.at)
                order += each.order()
            else:
                at, turn = each
                turns.append(turn)
                starts.append(at)
                order.append(at)
        fresh = _ranks([at for at in order if at >= self._fresh_from])
        history = _ranks([at for at in order if at < self._fresh_from])
        if fresh or history:
            self._losses.append(Loss("item_order_changed", self._place))
        return Grouped(tuple(turns), tuple(self._losses), fresh, history, tuple(starts))


def _ranks(places: Sequence[int]) -> tuple[int, ...]:
    """Where each stood among them; nothing where they stand in order."""
    if all(earlier <= later for earlier, later in pairwise(places)):
        return ()
    ranks = {place: rank for rank, place in enumerate(sorted(places))}
    return tuple(ranks[place] for place in places)


def _managed(part: Opaque) -> Json | None:
    """How an item changes what later calls see (contracts.md 1.4)."""
    return {"context_management": {"type": "compaction", "boundary": "replace"}} if part.kind == "compaction" else None


def _has_think_tags(content: Content | None) -> bool:
    texts = [content] if isinstance(content, str) else [part.text for part in content or () if isinstance(part, Text)]
    return any("<think>" in text or "</think>" in text for text in texts)
