"""What a turn says as blocks of Messages (contracts.md 4.3, 4.4)."""

from collections.abc import Callable, Iterator, Sequence

from ng_capture.contracts.dialects.blocks import RESULT, THINKING, UNREAD
from ng_capture.contracts.dialects.fields import as_it_stood
from ng_capture.contracts.dialects.media import omitted, parse_data_url
from ng_capture.contracts.episode import (
    Content,
    Json,
    Media,
    Opaque,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Turn,
)
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import SpelledObject, encode_json, objects_in

Block = dict[str, object]
Lose = Callable[[Loss], None]

_KNOWN = frozenset(
    {
        *("document", "search_result", "container_upload", "tool_reference", "server_tool_use", "mcp_tool_use"),
        *("mcp_tool_result", "web_search_tool_result", "web_fetch_tool_result", "tool_search_tool_result"),
        *("code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result"),
    }
)
"""Blocks that Messages alone have."""


class Spelling:
    """Writes what a turn says as blocks and tells what they do not hold.

    `own` tells that it was read from Messages: what it kept of the blocks as they stood counts, and any of them goes
    back.
    """

    def __init__(self, turn: Turn, call_ids: Sequence[str | None], lose: Lose, *, own: bool) -> None:
        self._turn, self._call_ids, self._told, self._own = turn, call_ids, lose, own

    def content(self) -> str | list[object]:
        """All that the turn says: a text where it says nothing else, else thoughts, words, calls, or as they stood."""
        turn, rests = self._turn, self._rests()
        if rests is not None:
            return list(self._as_they_stood(rests))
        alone = not turn.thoughts and not turn.calls
        if alone and (turn.content is None or isinstance(turn.content, str)):
            return turn.content or ""
        # an empty text beside other blocks is refused
        parts = self.parts(turn.content) if turn.content else []
        thoughts = [block for thought in turn.thoughts for block in self._thought(thought)]
        return [*thoughts, *parts, *(self._call(at) for at in range(len(turn.calls)))]

    def result(self, result: ToolResult, call_id: str | None) -> Block:
        """What came back for a call."""
        rest = dict(result.item or {}) if self._own else {}
        rests = list(objects_in(rest.pop("blocks", None)))
        content: object = result.content or ""
        if rests or not isinstance(content, str):
            content = self.parts(result.content, rests)
        block: Block = {"type": RESULT, "tool_use_id": call_id, "content": content}
        return {**block, **({} if result.is_error is None else {"is_error": result.is_error}), **rest}

    def parts(self, content: Content | None, rests: Sequence[Json] = ()) -> list[object]:
        """The blocks of a content; `rests` is what is left of the blocks as they stood."""
        parts = _parts(content)
        fitting = rests if len(rests) == len(parts) else [{}] * len(parts)
        return [_with(self._part(part), rest) for part, rest in zip(parts, fitting, strict=True)]

    def _rests(self) -> list[Json] | None:
        """What is left of the blocks as they stood; None where that is not known, or is of other blocks."""
        told = self._turn.item.get("blocks") if self._own and self._turn.item else None
        if not isinstance(told, list):
            return None
        rests = list(objects_in(told))
        families = [_family(rest) for rest in rests]
        turn = self._turn
        held = {"thought": len(turn.thoughts), "part": len(_parts(turn.content)), "call": len(turn.calls)}
        return rests if all(families.count(each) == count for each, count in held.items()) else None

    def _as_they_stood(self, rests: Sequence[Json]) -> Iterator[object]:
        thoughts, parts = iter(self._turn.thoughts), iter(_parts(self._turn.content))
        calls = iter(range(len(self._turn.calls)))
        for rest in rests:
            match _family(rest):
                case "thought":
                    thought = next(thoughts)
                    yield {"type": rest["type"], **_of_thought(thought), **rest}
                case "call":
                    yield {**self._call(next(calls)), **rest}
                case _:
                    yield _with(self._part(next(parts)), rest)

    def _part(self, part: Part) -> object:
        match part:
            case Text(text):
                return {"type": "text", "text": text}
            case Media(kind="image", source=source) if (parsed := parse_data_url(source)) is not None:
                kept = {"type": "base64", "media_type": parsed.media_type, "data": parsed.data}
                return {"type": "image", "source": kept}
            case Media(kind="image", source=source) if source.startswith(("http://", "https://")):
                return {"type": "image", "source": {"type": "url", "url": source}}
            case Media(kind=kind, source=source):
                self._lose("media_omitted", kind)
                return {"type": "text", "text": omitted(kind, source)}
            case Opaque(kind="refusal", value=value):
                return {"type": "text", "text": str(value.get("refusal"))}
            case Opaque(kind=kind, value=value):
                if self._own or kind in _KNOWN:
                    return as_it_stood(part)
                self._lose("content_type_unsupported", kind)
                return {"type": "text", "text": encode_json(value).decode()}

    def _thought(self, thought: Thought) -> list[Block]:
        """A thinking block, or one for each of several texts that no signature holds together."""
        proof = thought.signature if thought.signature is not None else thought.encrypted
        if not thought.texts:
            if proof is None and not thought.redacted:
                return []
            if not self._own:
                self._lose("reasoning_encrypted_opaque")
            return [{"type": "redacted_thinking", "data": proof}]
        if thought.content and thought.summary:
            self._lose("reasoning_summary_dropped")
        if proof is None:
            self._lose("signature_unknown")
            return [{"type": "thinking", "thinking": text, "signature": ""} for text in thought.texts]
        if len(thought.texts) > 1:
            self._lose("reasoning_segments_joined")
        return [{"type": "thinking", "thinking": "\n".join(thought.texts), "signature": proof}]

    def _call(self, at: int) -> Block:
        call = self._turn.calls[at]
        if call.kind != "function":
            self._lose("item_type_mapped", call.kind)
        return {"type": "tool_use", "id": self._call_ids[at], "name": call.name, "input": self._input(call)}

    def _input(self, call: ToolCall) -> object:
        """The arguments; an input must be an object, so that anything else is wrapped."""
        try:
            value = call.value
        except ValueError:
            if not self._own:
                self._lose("arguments_not_object")
            return {UNREAD: call.arguments} if call.arguments.strip() else {}
        if isinstance(value, dict):
            return SpelledObject(value, call.arguments)
        self._lose("arguments_not_object")
        return {"value": value}

    def _lose(self, code: str, detail: str | None = None) -> None:
        self._told(Loss(code, self._turn.place, detail=detail))


def is_plain(turn: Turn, content: object) -> bool:
    """True if a turn alone, nothing known of how it stood, is written as that content."""
    lost = list[Loss]()
    call_ids = [call.call_id for call in turn.calls]
    return Spelling(turn, call_ids, lost.append, own=True).content() == content and not lost


def _parts(content: Content | None) -> tuple[Part, ...]:
    return (Text(content),) if isinstance(content, str) else content or ()


def _with(block: object, rest: Json) -> object:
    """A block with what else stood in it; what is no object has nothing else."""
    return {**block, **rest} if isinstance(block, dict) else block


def _of_thought(thought: Thought) -> Block:
    """What a thought holds of a block that it was read from."""
    if thought.redacted:
        return {} if thought.encrypted is None else {"data": thought.encrypted}
    told: Block = {"thinking": thought.summary[0]} if thought.summary else {}
    return told if thought.signature is None else {**told, "signature": thought.signature}


def _family(rest: Json) -> str:
    kind = rest.get("type")
    return "thought" if kind in THINKING else "call" if kind == "tool_use" else "part"
