"""Turns written as items (contracts.md 3.6): reasoning, words, calls, outputs, in this order."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ng_capture.contracts.episode import Content, Json, Opaque, Part, Role, Text, Tokens, ToolResult, Turn
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.items.linking import linked
from ng_capture.contracts.items.lowering import lowered
from ng_capture.contracts.items.pieces import ITEM_TYPES, OBJECT_CALLS, TEXT_CALLS
from ng_capture.contracts.items.spelling import Item, spell_call, spell_message, spell_result, spell_thought
from ng_capture.contracts.items.tokens import write_tokens
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import encode_json, objects_in
from ng_capture.records.usage import count

CARRIERS = frozenset({"message", "reasoning", "function_call"})
"""Items that Gym has a training variant of."""
_MODELS = ("message", "reasoning")


class Writing:
    """Writes turns one after the other and keeps what the items do not hold.

    `seed` names the conversation: an id that is made is of the seed, its place and its item, so that a conversation
    that goes on keeps its ids. `own` tells that the episode was read from items: any type of them is written back.
    """

    def __init__(self, seed: str, own: bool) -> None:
        self.seed, self._own = seed, own
        self._at = 0
        self.losses = list[Loss]()

    def turn(self, at: int, turn: Turn, output: bool) -> list[Item]:
        """The items of a turn; `output` tells on which side of a row they stand."""
        self._at = at
        if turn.role != Role.ASSISTANT:
            return self._other(turn, output)
        made = [spell_thought(each, self._id("rs_", place, each.texts)) for place, each in enumerate(turn.thoughts)]
        made += self._words(turn, output)
        call_ids = [self._call_id(turn, place) for place in range(len(turn.calls))]
        made += [self._call(turn, place, call_id) for place, call_id in enumerate(call_ids)]
        if turn.model_calls == 0:
            made = [item for item in made if item["type"] not in _MODELS]
            self._no_model(turn)
        else:
            self._carry(turn, made)
        return made + self._results(turn, call_ids)

    def _other(self, turn: Turn, output: bool) -> list[Item]:
        """What another side than the model said."""
        if turn.results:
            self._lose("step_fields_dropped", turn, "observation", len(turn.results))
        alone = turn.content[0] if isinstance(turn.content, tuple) and len(turn.content) == 1 else None
        if turn.role == Role.SYSTEM and turn.item is None and isinstance(alone, Opaque):
            return [self._opaque(alone, turn)]
        if output:
            self._lose("system_step_in_output", turn)
        content = self._lowered(turn.content, False, turn)
        return [spell_message(turn.role.value, content, self._message(turn.item), None)]

    def _lowered(self, content: Content | None, said_by_model: bool, turn: Turn) -> Content | None:
        """A content as items can hold it: what was read from items stands there again, whatever it is."""
        return content if self._own else lowered(content, said_by_model, turn.place, self.losses.append)

    def _message(self, item: object) -> Json | None:
        """What is left of a message of Responses; the input may leave out its type, but so do other dialects."""
        return item if isinstance(item, dict) and (self._own or item.get("type") == "message") else None

    def _words(self, turn: Turn, output: bool) -> list[Item]:
        """The messages of the model; an empty one only where it stood, or where the turn has nothing else."""
        told = list(objects_in((turn.extra or {}).get("messages")))
        counts = [count(each.get("parts")) or 0 for each in told]
        if told and isinstance(turn.content, tuple) and sum(counts) == len(turn.content):
            return self._several(turn, turn.content, zip(counts, told, strict=True), output)
        stood_there = "role" in (turn.item or {})
        if turn.content or stood_there or not (turn.thoughts or turn.calls or turn.results):
            content = self._lowered(turn.content, True, turn)
            new_id = self._id("msg_", 0, turn.content) if output else None
            return [spell_message("assistant", content, self._message(turn.item), new_id)]
        return []

    def _several(self, turn: Turn, parts: Sequence[Part], told: Iterable[tuple[int, Json]], output: bool) -> list[Item]:
        """The messages, and the items of other kinds, that a turn was put together from."""
        items, start = list[Item](), 0
        for place, (size, each) in enumerate(told):
            own = parts[start : start + size]
            start += size
            if len(own) == 1 and isinstance(own[0], Opaque):
                items.append(self._opaque(own[0], turn))
            else:
                plain = own[0].text if len(own) == 1 and isinstance(own[0], Text) else tuple(own)
                content = self._lowered(plain, True, turn)
                new_id = self._id("msg_", place, plain) if output else None
                items.append(spell_message("assistant", content, self._message(each.get("item")), new_id))
        return items

    def _opaque(self, part: Opaque, turn: Turn) -> Item:
        """An item of another kind as it stood; one that Responses do not know is the text of its JSON."""
        if self._own or part.kind in ITEM_TYPES:
            return dict(part.value)
        self._lose("item_type_opaque", turn, part.kind)
        return spell_message("system", encode_json(part.value).decode(), None, None)

    def _call(self, turn: Turn, place: int, call_id: str) -> Item:
        call = turn.calls[place]
        if call.kind not in ("function", *TEXT_CALLS, *OBJECT_CALLS):
            self._lose("item_type_mapped", turn, call.kind)
        if call.call_id is None and not self._own:
            self._lose("call_id_unknown", turn)
        named = call.call_id if self._own else call_id
        item = spell_call(call, named, self._id("fc_", place, call.name, call.arguments))
        answer = next((each for each in turn.results if each.call_id == call_id), None)
        if item["type"] == "mcp_call" and answer is not None and isinstance(answer.content, str):
            return {**item, "output": answer.content}
        return item

    def _call_id(self, turn: Turn, place: int) -> str:
        call = turn.calls[place]
        return call.call_id if call.call_id is not None else self._id("call_", place, call.name, call.arguments)

    def _results(self, turn: Turn, call_ids: Sequence[str]) -> list[Item]:
        kinds = {call_id: call.kind for call_id, call in zip(call_ids, turn.calls, strict=True)}
        items = list[Item]()
        for place, (result, call_id) in enumerate(zip(turn.results, self._links(turn, call_ids), strict=True)):
            kind = kinds.get(call_id or "", "function")
            if kind != "mcp_call":
                items.append(self._result(turn, result, call_id, kind, place))
        return items

    def _links(self, turn: Turn, call_ids: Sequence[str]) -> list[str | None]:
        """The call of every result; one that was an item names the one that it named, or none."""
        if self._own:
            return [result.call_id for result in turn.results]
        links = linked(turn.results, call_ids, turn.place, self.losses.append)
        made = (self._id("call_", len(turn.calls) + place) for place in range(len(links)))
        return [each if link is None else link for link, each in zip(links, made, strict=True)]

    def _result(self, turn: Turn, result: ToolResult, call_id: str | None, kind: str, place: int) -> Item:
        if result.is_error:
            self._lose("is_error_dropped", turn)
        if result.content is None and not (result.extra or {}).get("tool_result"):
            self._lose("call_without_output", turn)
        content = self._lowered(result.content, False, turn)
        return spell_result(result, content, call_id, kind, self._id("fco_", place, call_id))

    def _no_model(self, turn: Turn) -> None:
        self._lose("no_model_call", turn)
        for name, value in (("message", turn.content), ("reasoning", turn.thoughts)):
            if value:
                self._lose("step_fields_dropped", turn, name)
        if turn.call is not None and turn.call.tokens is not None:
            self._lose("tokens_dropped", turn)

    def _carry(self, turn: Turn, made: Sequence[Item]) -> None:
        """Tokens stand where they stood, else on the last item of the model, as Gym's chat converter has them.

        All of them or none.
        """
        tokens = turn.call.tokens if turn.call is not None else None
        if tokens is None:
            return
        places = [place for place, item in enumerate(made) if item.get("type", "message") in CARRIERS]
        carried = _several_tokens(turn, places) or dict.fromkeys(places[-1:], tokens)
        if not places:
            self._lose("tokens_dropped", turn)
        for place, each in carried.items():
            if each.complete:
                made[place].update(write_tokens(each))
            else:
                self._lose("tokens_incomplete", turn)

    def _lose(self, code: str, turn: Turn, detail: str | None = None, count: int = 1) -> None:
        self.losses.append(Loss(code, turn.place, count, detail))

    def _id(self, prefix: str, *named: Any) -> str:
        return made_id(prefix, self.seed, self._at, *msgspec.to_builtins(named))


def _several_tokens(turn: Turn, places: Sequence[int]) -> dict[int, Tokens]:
    """The tokens of each item of a turn that carried some, by its place; nothing where that is not known of all."""
    told = list(objects_in((turn.extra or {}).get("tokens")))
    try:
        carried = {msgspec.convert(each.get("place"), int): msgspec.convert(each, Tokens) for each in told}
    except msgspec.ValidationError:
        return {}
    return carried if set(carried) <= set(places) else {}
