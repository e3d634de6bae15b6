"""One captured call: what was asked as turns, what was answered as one, and how both compare to others (3.5, 1)."""

from collections.abc import Mapping, Sequence
from itertools import takewhile

import msgspec

from ng_capture.contracts.captures.exchange_lines import ExchangeLine, evidence_in, has_payload, number_in
from ng_capture.contracts.captures.hearing import Heard, heard
from ng_capture.contracts.captures.token_records import Recorded
from ng_capture.contracts.dialects.chat import CHAT
from ng_capture.contracts.dialects.interface import Answered, Asked, Dialect
from ng_capture.contracts.dialects.messages import MESSAGES
from ng_capture.contracts.dialects.responses import RESPONSES
from ng_capture.contracts.episode import Json, ModelCall, Role, Tool, Turn
from ng_capture.contracts.identity import content_digest
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import pointer
from ng_capture.contracts.times import timestamp_of
from ng_capture.records.assembling import assemble
from ng_capture.records.json_text import object_in, objects_in
from ng_capture.records.streams import stream_events
from ng_capture.records.usage import UNKNOWN_USAGE, Usage, count

_DIALECTS = {dialect.name: dialect for dialect in (RESPONSES, CHAT, MESSAGES)}
_BLOCKS = frozenset({"text", "tool_use", "thinking", "redacted_thinking"})
_NOTHING_ASKED = heard(())


class Exchange(msgspec.Struct, frozen=True, eq=False):
    """A call.

    `answer` is the turn of the model with all that is known of the call; `answered` tells that there is a good answer.
    `turns` are those of the request, None where nobody knows them; `holds` stands for them and the answer as a later
    request sends them again, `said` for the turns of that answer. `agent` tells system text and tools apart, `previous`
    is the response that the server is asked to go on with. Loss paths are pointers into the list of the lines.
    """

    answer: Turn
    answered: bool
    turns: tuple[Turn, ...] | None
    heard: Heard
    holds: bytes | None
    said: tuple[bytes, ...]
    agent: tuple[str, str]
    tools: tuple[Tool, ...] | None = None
    parameters: Json | None = None
    previous: str | None = None
    record: Recorded | None = None
    losses: tuple[Loss, ...] = ()

    @property
    def call(self) -> ModelCall:
        assert self.answer.call is not None
        return self.answer.call

    @property
    def category(self) -> str:
        """Why there is no good answer."""
        return self.call.error_category or "no_response"


class Shared:
    """Turns and tools that requests send again and again, each once in memory."""

    def __init__(self) -> None:
        self._turns: dict[tuple[bytes, bytes], Turn] = {}
        self._tools: dict[str, tuple[Tool, ...]] = {}

    def turns(self, turns: Sequence[Turn], told: Heard, place: str) -> tuple[Turn, ...]:
        """The turns of a request at that place; one that was there before stands where it stood first."""
        keys = zip(told.begins[1:], told.results[1:], strict=True)
        return tuple(self._turn(key, turn, place) for key, turn in zip(keys, turns, strict=True))

    def _turn(self, key: tuple[bytes, bytes], turn: Turn, place: str) -> Turn:
        known = self._turns.get(key)
        if known is not None and msgspec.structs.replace(turn, place=known.place) == known:
            return known
        placed = msgspec.structs.replace(turn, place=f"{place}{turn.place}")
        return self._turns.setdefault(key, placed) if known is None else placed

    def tools(self, tools: tuple[Tool, ...] | None, name: str) -> tuple[Tool, ...] | None:
        """The tools of that name."""
        return None if tools is None else self._tools.setdefault(name, tools)


def exchange_of(line: ExchangeLine, record: Recorded | None, options: Options, shared: Shared) -> Exchange:
    """The call of a line of `.capture.jsonl`, and of its token record where there is one."""
    value, raw = line.value, line.raw
    request = object_in(value.get("request"))
    # what NeMo Gym put together of a stream lacks signatures and mixes the choices (contracts.md 4.7)
    response = assemble(stream_events(value.get("response_raw"))) or object_in(value.get("response"))
    dialect = _DIALECTS.get(str(value.get("dialect"))) or _by_shape(request, response)
    asked = dialect.asked(request, options) if dialect is not None and request else None
    if dialect is not None and response:
        said, resent = dialect.answered(response, options), _sent_again(dialect, response, options)
    elif record is not None or isinstance(value.get("output_items"), list):
        items = value.get("output_items") if record is None else record.entry.fields.output_items
        said, resent = answer_of(list(objects_in(items)), options)
    else:
        said, resent = Answered(None), ()
    place = pointer(line.index)
    call = _model_call(value, response, line, said.turn, record)
    told = _NOTHING_ASKED if asked is None else heard(asked.turns)
    agent = ("", "") if asked is None else _agent(asked)
    return Exchange(
        answer=_answer(said.turn, call, f"{place}/response", evidence_in(value)),
        answered=raw.answered and (bool(response) or record is not None or not has_payload(value)),
        turns=None if asked is None else shared.turns(asked.turns, told, f"{place}/request"),
        heard=told,
        holds=told.then(resent) if asked is not None and resent else None,
        said=heard(resent).turns,
        agent=agent,
        tools=None if asked is None else shared.tools(asked.tools, agent[1]),
        parameters=None if asked is None else asked.parameters,
        previous=_text(request.get("previous_response_id")),
        record=record,
        losses=(
            *(_moved(loss, f"{place}/request") for loss in (asked.losses if asked is not None else ())),
            *(_moved(loss, f"{place}/response") for loss in said.losses),
            *([Loss("stream_rebuilt", f"{place}/response_raw")] if raw.stream_truncated and response else []),
        ),
    )


def exchange_of_record(record: Recorded, index: int, options: Options) -> Exchange:
    """The call of a token record that has no raw exchange: nobody knows in words what was asked."""
    said, resent = answer_of(record.entry.fields.output_items, options)
    place = pointer(index, "output_items")
    fields = record.entry.fields
    facts = _facts(record.facts)
    call = msgspec.structs.replace(
        facts,
        call_id=record.call_id or None,
        index=index,
        response_id=fields.response_id,
        model=fields.model or None,
        completed_at=fields.created_at or None if facts.completed_at is None else facts.completed_at,
        usage=_counted(record) if facts.usage == UNKNOWN_USAGE else facts.usage,
        tokens=record.tokens,
        record=record.fields,
    )
    losses = tuple(msgspec.structs.replace(loss, path=place) for loss in said.losses)
    answer = msgspec.structs.replace(_answer(said.turn, call, place), place=place)
    said_again = heard(resent).turns
    return Exchange(answer, True, None, _NOTHING_ASKED, None, said_again, ("", ""), record=record, losses=losses)


def answer_of(items: Sequence[Mapping[str, object]], options: Options) -> tuple[Answered, tuple[Turn, ...]]:
    """The answer that the items of a token record hold, and its turns as a request would hold them.

    The items of a chat answer are messages, those of a Messages answer have its blocks (capture-files.md 2.2).
    """
    response: Json
    if any(isinstance(item.get("tool_calls"), list) or isinstance(item.get("content"), str) for item in items):
        dialect, response = CHAT, {"choices": [{"message": item} for item in items if item.get("type") != "reasoning"]}
    elif any(str(block.get("type")) in _BLOCKS for item in items for block in objects_in(item.get("content"))):
        dialect, response = MESSAGES, {"content": [block for item in items for block in _blocks_of(item)]}
    else:
        dialect, response = RESPONSES, {"output": list(items)}
    return dialect.answered(response, options), _sent_again(dialect, response, options)


def _blocks_of(item: Json) -> list[object]:
    if item.get("type") != "reasoning":
        content = item.get("content")
        return content if isinstance(content, list) else []
    texts = [part.get("text") for part in objects_in(item.get("summary"))]
    hidden = item.get("encrypted_content")
    blocks: list[object] = [{"type": "thinking", "thinking": text} for text in texts]
    return [*blocks, {"type": "redacted_thinking", "data": hidden}] if isinstance(hidden, str) else blocks


def _by_shape(request: Json, response: Json) -> Dialect | None:
    """The dialect of a line that does not name one of the three."""
    if "choices" in response:
        return CHAT if "messages" in request or not request else None
    if "output" in response or "input" in request:
        return RESPONSES
    if "content" in response or "max_tokens" in request:
        return MESSAGES
    return CHAT if "messages" in request else None


def _sent_again(dialect: Dialect, response: Json, options: Options) -> tuple[Turn, ...]:
    """The turns of an answer as a later request holds them."""
    if dialect is RESPONSES:
        return dialect.asked({"input": response.get("output")}, options).turns
    if dialect is MESSAGES:
        said = {"role": "assistant", "content": response.get("content")}
        return dialect.asked({"messages": [said]}, options).turns if response.get("content") else ()
    choices = list(objects_in(response.get("choices")))
    if not choices:
        return ()
    return dialect.asked({"messages": [{"role": "assistant", **object_in(choices[0].get("message"))}]}, options).turns


def _model_call(
    value: Json, response: Json, line: ExchangeLine, turn: Turn | None, record: Recorded | None
) -> ModelCall:
    raw = line.raw
    said = turn.call if turn is not None and turn.call is not None else ModelCall()
    fields = record.entry.fields if record is not None else None
    facts = _facts(value)
    usage = raw.usage if raw.usage != UNKNOWN_USAGE else facts.usage
    if usage == UNKNOWN_USAGE and record is not None:
        usage = _counted(record)
    return msgspec.structs.replace(
        facts,
        call_id=raw.call_id or None,
        index=line.index,
        response_id=_text(response.get("id")) or (fields.response_id if fields else _text(value.get("response_id"))),
        model=raw.model or said.model or _text(value.get("model")) or (fields.model or None if fields else None),
        dialect=facts.dialect or said.dialect,
        finish_reason=raw.finish_reason or said.finish_reason or facts.finish_reason,
        status_code=raw.status_code,
        error_category=raw.category,
        usage=usage,
        usage_extra=said.usage_extra,
        tokens=record.tokens if record is not None and record.tokens is not None else said.tokens,
        record=record.fields if record is not None else None,
    )


def _facts(value: Json) -> ModelCall:
    """What a captured line says of a call beside request and response; a line of a table of calls counts, too (5.2)."""
    return ModelCall(
        server=_text(object_in(value.get("model_ref")).get("name")) or _text(value.get("model_server")),
        dialect=_text(value.get("dialect")),
        finish_reason=_text(value.get("finish_reason")),
        status_code=count(value.get("status_code")),
        error_category=_text(value.get("error_category")),
        started_at=number_in(value, "started_at"),
        completed_at=number_in(value, "completed_at"),
        latency_ms=number_in(value, "latency_ms", "latency_total_ms"),
        latency_ttft_ms=number_in(value, "latency_ttft_ms"),
        usage=Usage(*(count(value.get(name)) for name in Usage.__struct_fields__)),
    )


def _counted(record: Recorded) -> Usage:
    """What a call used, by its ids."""
    if record.prompt is None:
        return UNKNOWN_USAGE
    prompt, generated = len(record.prompt), record.entry.generated
    return Usage(tokens_in=prompt, tokens_out=generated, tokens_total=prompt + generated)


def _answer(turn: Turn | None, call: ModelCall, place: str, evidence: Json | None = None) -> Turn:
    made = turn or Turn(Role.ASSISTANT)
    extra = made.extra if evidence is None else {**(made.extra or {}), "ng_capture": {"captured": evidence}}
    return msgspec.structs.replace(
        made,
        call=call,
        copied=False,
        model_calls=1,
        extra=extra,
        timestamp=None if call.completed_at is None else timestamp_of(call.completed_at),
        place=f"{place}{made.place}",
    )


def _agent(asked: Asked) -> tuple[str, str]:
    """What tells agents apart: what the system says, and the tools."""
    system = list(takewhile(lambda turn: turn.role in (Role.SYSTEM, Role.DEVELOPER), asked.turns))
    tools = content_digest([tool.value for tool in asked.tools]) if asked.tools else ""
    return heard(system).whole.hex() if system else "", tools


def _moved(loss: Loss, place: str) -> Loss:
    return msgspec.structs.replace(loss, path=f"{place}{loss.path}")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
