"""Turns as a request and a response of Messages (contracts.md 4.3, 4.4)."""

from collections.abc import Sequence

import msgspec

from ng_capture.contracts.dialects.block_spelling import Spelling
from ng_capture.contracts.dialects.fields import as_it_stood, whole_message
from ng_capture.contracts.dialects.finishes import Finish
from ng_capture.contracts.dialects.spelled import encode_spelled
from ng_capture.contracts.episode import Json, ModelCall, Role, Turn
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.items.linking import linked
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import UNKNOWN_USAGE

_STOPS: dict[Finish, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
Message = dict[str, object]


class Said(msgspec.Struct, frozen=True):
    """The system text and the messages of a request; `system` is None where there is none."""

    system: str | list[object] | None
    messages: tuple[object, ...]


class Writing:
    """Writes turns as messages and keeps what they do not hold; `own` tells that the turns were read from Messages."""

    def __init__(self, *, own: bool) -> None:
        self._own = own
        self.losses = list[Loss]()

    def request(self, turns: Sequence[Turn]) -> Said:
        """All turns as history: neighbours of one side are one message, results stand before what the user says."""
        system, messages = list[Turn](), list[object]()
        for at, turn in enumerate(turns):
            if turn.role in (Role.SYSTEM, Role.DEVELOPER) and not self._stays(turn):
                if len(system) < at:
                    self._lose("item_order_changed", turn)
                system.append(turn)
            else:
                self._tell(messages, at, turn)
        return Said(self._system(system), tuple(messages))

    def response(self, turn: Turn, model: str | None, at: int, finish: Finish | None) -> Message:
        """The turn of the model as a response; `finish` is why it ended, unknown is null."""
        content = self._spelling(turn, self._call_ids(turn, at)).content()
        call = turn.call
        known = call.response_id if call is not None else None
        envelope = object_in((turn.item or {}).get("envelope")) if self._own else {"stop_sequence": None}
        written: Message = {
            "id": known or made_id("msg_", at, encode_spelled(content).decode()),
            "type": "message",
            "role": "assistant",
            "model": call.model if call and call.model else model,
            "content": [{"type": "text", "text": content}] if content and isinstance(content, str) else content or [],
            "stop_reason": self._stop_reason(turn, finish),
            **envelope,
        }
        return written

    def _tell(self, messages: list[object], at: int, turn: Turn) -> None:
        whole = whole_message(turn.content) if self._own else None
        if whole is not None:
            messages.append(as_it_stood(whole))
            return
        if turn.model_calls == 0:
            self._lose("no_model_call", turn)
        call_ids = self._call_ids(turn, at)
        spelling = self._spelling(turn, call_ids)
        content = spelling.content()
        if turn.role != Role.ASSISTANT or content or not turn.results:
            role = turn.role.value if turn.role in (Role.SYSTEM, Role.ASSISTANT) else "user"
            _add(messages, role, content, apart=self._own and bool((turn.item or {}).get("apart")))
        if turn.results:
            links = linked(turn.results, call_ids, turn.place, self.losses.append)
            _add(messages, "user", [spelling.result(*each) for each in zip(turn.results, links, strict=True)])

    def _stays(self, turn: Turn) -> bool:
        """True for a system turn that was a message among others."""
        return self._own and (turn.extra or {}).get("role") != "instructions"

    def _system(self, turns: Sequence[Turn]) -> str | list[object] | None:
        for turn in turns:
            if turn.role == Role.DEVELOPER:
                self._lose("developer_role", turn)
        contents = [self._spelling(turn, ()).content() for turn in turns]
        if len(contents) == 1:
            return contents[0]
        return [block for content in contents for block in _blocks(content)] or None

    def _spelling(self, turn: Turn, call_ids: Sequence[str]) -> Spelling:
        return Spelling(turn, call_ids, self.losses.append, own=self._own)

    def _call_ids(self, turn: Turn, at: int) -> list[str]:
        """The ids of the calls; one that nobody knows is made of what it calls."""
        unknown = sum(call.call_id is None for call in turn.calls)
        if unknown:
            self.losses.append(Loss("call_id_unknown", turn.place, unknown))
        return [
            call.call_id if call.call_id is not None else made_id("toolu_", at, place, call.name, call.arguments)
            for place, call in enumerate(turn.calls)
        ]

    def _stop_reason(self, turn: Turn, finish: Finish | None) -> str | None:
        """Why the model stopped; one that calls a tool says so."""
        if self._own:
            return turn.call.finish_reason if turn.call is not None else None
        return "tool_use" if finish == "stop" and turn.calls else _STOPS[finish] if finish is not None else None

    def _lose(self, code: str, turn: Turn) -> None:
        self.losses.append(Loss(code, turn.place))


def _add(messages: list[object], role: str, content: str | list[object], *, apart: bool = False) -> None:
    """Put a content behind the messages, into the last one where that is of the same side."""
    last = object_in(messages[-1]) if messages else {}
    if apart or last.get("role") != role:
        messages.append({"role": role, "content": content})
    else:
        messages[-1] = {**last, "content": [*_blocks(last["content"]), *_blocks(content)]}


def _blocks(content: object) -> list[object]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content if isinstance(content, list) else []


def usage_written(call: ModelCall, *, own: bool) -> Json | None:
    """Three numbers that share nothing: read from the cache, written to it, and neither (contracts.md 9.7).

    None where nothing is known; the fresh tokens are null where more were cached than there are.
    """
    usage = call.usage
    if usage == UNKNOWN_USAGE:
        return None
    cached = (usage.cached_tokens or 0) + (usage.cache_creation_tokens or 0)
    fresh = usage.tokens_in - cached if usage.tokens_in is not None and usage.tokens_in >= cached else None
    told: dict[str, object] = {"input_tokens": fresh}
    if usage.cache_creation_tokens is not None:
        told["cache_creation_input_tokens"] = usage.cache_creation_tokens
    if usage.cached_tokens is not None:
        told["cache_read_input_tokens"] = usage.cached_tokens
    return {**told, "output_tokens": usage.tokens_out, **(call.usage_extra or {} if own else {})}
