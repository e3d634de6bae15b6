"""Turns as messages of Chat Completions, and the last as a choice (contracts.md 4.5)."""

import itertools
from collections.abc import Iterator, Sequence

from ng_capture.contracts.dialects.chat import FIELDS, LEGACY_CALL
from ng_capture.contracts.dialects.chat_parts import PartSpelling
from ng_capture.contracts.dialects.fields import as_it_stood, is_refusal, whole_message
from ng_capture.contracts.dialects.finishes import Finish
from ng_capture.contracts.dialects.thinking import with_think_tags
from ng_capture.contracts.episode import Content, Json, ModelCall, Opaque, Part, Role, Text, Thought, ToolCall, Turn
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.interface import Options, Thinking
from ng_capture.contracts.items.linking import linked
from ng_capture.contracts.items.tokens import write_tokens
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import UNKNOWN_USAGE

Message = dict[str, object]
_BESIDE = ("envelope", "choice")


class Writing:
    """Writes turns as messages and keeps what they do not hold.

    `own` tells that the turns were read from chat: what they kept of the messages as they stood goes back. Reasoning
    stands in `reasoning_content`, or where it stood: in another field, or between think tags, unless those are split.
    """

    def __init__(self, options: Options, *, own: bool) -> None:
        self._restores_tags = options.thinking is not Thinking.SPLIT
        self._own = own
        self.losses = list[Loss]()

    def request(self, turns: Sequence[Turn]) -> list[object]:
        """All turns as history, each with the results of its calls behind it."""
        first = self._first(turns)
        told: list[object] = [] if first is None else [first[0]]
        skipped = 0 if first is None else first[1]
        return [*told, *(message for at in range(skipped, len(turns)) for message in self._turn(at, turns[at]))]

    def choice(self, turn: Turn, at: int, finish: Finish | None) -> Message:
        """The turn of the model as a choice; `finish` is why it ended."""
        beside = object_in((turn.item or {}).get("choice")) if self._own else {}
        return {
            "index": 0,
            "message": self.message(turn, self._call_ids(turn, at)),
            "finish_reason": self._finish_reason(turn, finish),
            **beside,
        }

    def message(self, turn: Turn, call_ids: Sequence[str]) -> Message:
        """The message of a turn, without the results of its calls."""
        item = turn.item or {} if self._own else {}
        rest = {key: value for key, value in item.items() if key not in (*_BESIDE, "content")}
        message: Message = {"role": turn.role.value, "content": None}
        message |= self._said(turn)
        message |= self._called(turn, call_ids)
        message |= self._tokens(turn)
        return {**message, **rest}

    def _first(self, turns: Sequence[Turn]) -> tuple[Message, int] | None:
        """One system message of instructions and the system turns behind them, as Gym makes it, and how many they are.

        None where there are no instructions, or nothing that they are to be put together with.
        """
        if not turns or (turns[0].extra or {}).get("role") != "instructions":
            return None
        leading = list(itertools.takewhile(lambda turn: turn.role in (Role.SYSTEM, Role.DEVELOPER), turns))
        texts = [_text(turn.content) for turn in leading]
        if len(leading) == 1 or any(text is None for text in texts):
            return None
        self.losses.append(Loss("parts_flattened", turns[0].place, detail=f"{len(leading)} messages of the system"))
        for turn in leading:
            if turn.role == Role.DEVELOPER:
                self._lose("developer_role", turn)
            if isinstance(turn.content, tuple):
                self._lose("parts_flattened", turn)
        return {"role": "system", "content": "\n\n".join(filter(None, texts))}, len(leading)

    def _turn(self, at: int, turn: Turn) -> Iterator[object]:
        whole = whole_message(turn.content) if self._own else None
        if whole is not None:
            yield as_it_stood(whole)
            return
        if turn.model_calls == 0:
            self._lose("no_model_call", turn)
        call_ids = self._call_ids(turn, at)
        if turn.content is not None or turn.thoughts or turn.calls or not turn.results:
            yield self.message(turn, call_ids)
        links = linked(turn.results, call_ids, turn.place, self.losses.append) if turn.results else []
        for result, call_id in zip(turn.results, links, strict=True):
            if result.is_error:
                self._lose("is_error_dropped", turn)
            rest = result.item or {} if self._own else {}
            kept = {key: value for key, value in rest.items() if key != "content"}
            content = self._parts(turn).content(result.content, rest.get("content"))
            named = {} if kept.get("role") == "function" else {"tool_call_id": call_id}
            yield {"role": "tool", **named, "content": content, **kept}

    def _said(self, turn: Turn) -> Message:
        """What the message says: its content, its refusal, its sound, its reasoning."""
        content, rests = turn.content, (turn.item or {}).get("content") if self._own else None
        said: Message = {}
        if isinstance(content, tuple) and rests is None:
            content, said = _beside(content, own=self._own)
        elif isinstance(content, str) and is_refusal(turn):
            content, said = None, {"refusal": content}
        reasoning = list[str]()
        for thought in turn.thoughts:
            fields = object_in(thought.item).get(FIELDS)
            tagged = self._tagged(content, thought)
            if self._own and isinstance(fields, list):
                said |= dict.fromkeys(map(str, fields), "".join(thought.texts))
            elif tagged is not None:
                content = tagged
            else:
                reasoning += self._readable(turn, thought)
        if reasoning:
            if len(reasoning) > 1:
                self._lose("reasoning_segments_joined", turn)
            said["reasoning_content"] = "\n".join(reasoning)
        return {"content": self._parts(turn).content(content, rests), **said}

    def _tagged(self, content: Content | None, thought: Thought) -> str | None:
        """The content with the think tags that it had; None where the thought did not stand in it, or shall not."""
        if not self._restores_tags or not (content is None or isinstance(content, str)):
            return None
        return with_think_tags(content or "", thought)

    def _readable(self, turn: Turn, thought: Thought) -> tuple[str, ...]:
        if thought.content and thought.summary:
            self._lose("reasoning_summary_dropped", turn)
        if thought.signature is not None or (thought.encrypted is not None and thought.texts):
            self._lose("reasoning_signature_dropped", turn)
        elif thought.encrypted is not None:
            self._lose("reasoning_dropped", turn, "only its provider can read it")
        return thought.texts

    def _called(self, turn: Turn, call_ids: Sequence[str]) -> Message:
        called: Message = {}
        calls = list[Message]()
        for call, call_id in zip(turn.calls, call_ids, strict=True):
            if self._own and object_in(call.item).get(FIELDS) == LEGACY_CALL:
                called["function_call"] = {"name": call.name, "arguments": call.arguments}
            else:
                calls.append(self._call(turn, call, call_id))
        return {**called, "tool_calls": calls} if calls else called

    def _call(self, turn: Turn, call: ToolCall, call_id: str) -> Message:
        rest = call.item or {} if self._own else {}
        if call.kind == "custom_tool_call":
            return {"id": call_id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}, **rest}
        if call.kind != "function":
            self._lose("item_type_mapped", turn, call.kind)
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": call_id, "type": "function", "function": function, **rest}

    def _call_ids(self, turn: Turn, at: int) -> list[str]:
        """The ids of the calls; one that nobody knows is made of what it calls."""
        unknown = sum(call.call_id is None and object_in(call.item).get(FIELDS) != LEGACY_CALL for call in turn.calls)
        if unknown:
            self.losses.append(Loss("call_id_unknown", turn.place, unknown))
        return [
            call.call_id if call.call_id is not None else made_id("call_", at, place, call.name, call.arguments)
            for place, call in enumerate(turn.calls)
        ]

    def _tokens(self, turn: Turn) -> Json:
        """The token fields as the model servers of Gym put them on a message: all of them, or none."""
        tokens = turn.call.tokens if turn.call is not None else None
        if tokens is None:
            return {}
        if tokens.complete or (self._own and tokens.completion_ids is not None):
            return write_tokens(tokens)
        self._lose("tokens_incomplete", turn)
        return {}

    def _finish_reason(self, turn: Turn, finish: Finish | None) -> str | None:
        """Why the model stopped; one that calls a tool says so."""
        if self._own:
            return turn.call.finish_reason if turn.call is not None else None
        return "tool_calls" if finish == "stop" and turn.calls else finish

    def _parts(self, turn: Turn) -> PartSpelling:
        return PartSpelling(turn.place, self.losses.append, own=self._own)

    def _lose(self, code: str, turn: Turn, detail: str | None = None) -> None:
        self.losses.append(Loss(code, turn.place, detail=detail))


def usage_written(call: ModelCall, *, own: bool) -> Json | None:
    """The counts of a call; None where none is known."""
    usage = call.usage
    if usage == UNKNOWN_USAGE:
        return None
    told: dict[str, object] = {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.tokens_total,
    }
    if usage.cached_tokens is not None:
        told["prompt_tokens_details"] = {"cached_tokens": usage.cached_tokens}
    if usage.tokens_reasoning is not None:
        told["completion_tokens_details"] = {"reasoning_tokens": usage.tokens_reasoning}
    for key, value in (call.usage_extra or {}).items() if own else ():
        told[key] = {**object_in(told.get(key)), **value} if isinstance(value, dict) else value
    return told


def _beside(content: tuple[Part, ...], *, own: bool) -> tuple[Content | None, Message]:
    """The content without what has a field of its own beside it: a refusal, a sound that was said."""
    beside: Message = {}
    kept = list[Part]()
    for part in content:
        if isinstance(part, Opaque) and part.kind == "refusal" and "refusal" not in beside:
            beside["refusal"] = part.value.get("refusal")
        elif own and isinstance(part, Opaque) and part.kind == "audio" and "type" not in part.value:
            beside["audio"] = part.value
        else:
            kept.append(part)
    if not beside:
        return content, {}
    if len(kept) == 1 and isinstance(kept[0], Text):
        return kept[0].text, beside
    return tuple(kept) or None, beside


def _text(content: Content | None) -> str | None:
    """The text of a content, that of parts line by line; None where it has a part that is no text."""
    if content is None or isinstance(content, str):
        return content or ""
    if any(not isinstance(part, Text) for part in content):
        return None
    return "\n".join(part.text for part in content if isinstance(part, Text) and part.text)
