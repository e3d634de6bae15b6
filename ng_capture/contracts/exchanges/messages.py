"""The contract `messages`: documents of the Anthropic Messages API (contracts.md 4.1 to 4.4)."""

from collections.abc import Iterator
from typing import Any

from ng_capture.contracts.dialects.messages import MESSAGES as DIALECT
from ng_capture.contracts.dialects.messages_parameters import written_parameters, written_tool
from ng_capture.contracts.dialects.messages_writing import Writing, usage_written
from ng_capture.contracts.dialects.spelled import with_spelled_inputs
from ng_capture.contracts.episode import Episode, Json
from ng_capture.contracts.exchanges.pairs import (
    WRITTEN,
    finish_told,
    is_own,
    left_out,
    pair_of,
    refusals,
    written_threads,
)
from ng_capture.contracts.exchanges.reading import GIVES, LINKING, Api, Document, pair_in
from ng_capture.contracts.interface import Contract, Feature, Head, Options, Reader, Writer, Written
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import object_in, objects_in

_MARKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document"})
"""Types of blocks that chat does not have."""


def _shape(value: Any) -> Document | None:
    if isinstance(value, list):
        return Document(request={"messages": value}, spoken=True)
    told = object_in(value)
    pair = pair_in(value, DIALECT.name)
    if pair is not None:
        return pair
    if isinstance(told.get("messages"), list):
        if "model" in told or "max_tokens" in told:
            return Document(request=told)
        kept = {key: told[key] for key in ("messages", "system", "tools") if key in told}
        return Document(request=kept, spoken=True, rest={key: told[key] for key in told if key not in kept})
    return Document(response=told) if isinstance(told.get("content"), list) and "role" in told else None


_API = Api(DIALECT, _shape, with_spelled_inputs)


def _recognises(head: Head) -> bool:
    """True for what only Messages have: system text, blocks, tools by their schema."""
    value = object_in(head.value)
    if head.is_folder or "dialect" in value or isinstance(head.value, list):
        return not head.is_folder and isinstance(head.value, list) and _has_marks(head.value)
    request = object_in(value.get("request")) or value
    response = object_in(value.get("response")) or value
    return (
        ("messages" in request and ("system" in request or "anthropic_version" in request))
        or _has_marks(request.get("messages"))
        or any("input_schema" in tool for tool in objects_in(request.get("tools")))
        or (response.get("type") == "message" and response.get("role") == "assistant")
    )


def _has_marks(messages: object) -> bool:
    blocks = (block for message in objects_in(messages) for block in objects_in(message.get("content")))
    return any(isinstance(kind := block.get("type"), str) and kind in _MARKS for block in blocks)


def _write(episode: Episode, options: Options) -> Written:
    return written_threads(episode, options, _document)


def _document(episode: Episode) -> tuple[Json, list[Loss]]:
    """A pair, or the request alone where no call answers it, or the response alone where nothing was asked."""
    own = is_own(episode, DIALECT.name)
    pair, writing = pair_of(episode.main), Writing(own=own)
    fields = written_parameters(episode.request, own=own)
    said = writing.request(pair.history)
    request: dict[str, object] = dict(fields.values)
    if said.system is not None:
        request["system"] = said.system
    tools = episode.main.agent.tools or ()
    written = [tool for each in tools if (tool := written_tool(each)) is not None]
    if written or (tools and own) or episode.main.agent.tools == ():
        request["tools"] = written
    losses = [*left_out(episode, pair, own=own), *_unwritten(episode, len(tools) - len(written), fields.dropped)]
    if said.messages or pair.answer is None or request:
        request["messages"] = list(said.messages)
    if pair.answer is None:
        return request, [*losses, *writing.losses]
    response = writing.response(pair.answer, episode.main.agent.model, pair.place, finish_told(episode, pair.answer))
    usage = usage_written(pair.answer.call, own=own) if pair.answer.call is not None else None
    if usage is not None:
        response["usage"] = usage
    losses += writing.losses
    return ({"request": request, "response": response} if request else response), losses


def _unwritten(episode: Episode, tools: int, parameters: tuple[str, ...]) -> Iterator[Loss]:
    """What Messages have no place for, where other APIs have one."""
    if episode.contract != DIALECT.name:
        yield from refusals(episode.main.turns)
    if tools:
        yield Loss("tool_definition_not_function", count=tools)
    yield from (Loss("request_fields_dropped", detail=name) for name in parameters)
    carriers = [turn for turn in episode.main.turns if turn.call is not None and turn.call.tokens is not None]
    if carriers:
        yield Loss("tokens_dropped", carriers[0].place, len(carriers))


MESSAGES = Contract(
    name=DIALECT.name,
    title="a request and a response of the Anthropic Messages API",
    authority="what a Messages endpoint was asked and what it answered: its blocks, signatures and counts",
    join_key="the id of the response",
    reader=Reader(
        recognises=_recognises,
        read=_API.read,
        gives=GIVES | {Feature.ENCRYPTED_REASONING, Feature.SIGNATURES, Feature.FAILED_RESULTS, Feature.CACHE_WRITES},
        losses=frozenset({*LINKING, "step_fields_dropped", "stream_rebuilt", "think_tags_split"}),
    ),
    writer=Writer(
        write=_write,
        suffix=".messages.json",
        losses={
            **WRITTEN,
            "arguments_not_object": Feature.ANY_ARGUMENTS,
            "item_order_changed": Feature.SYSTEM,
            "parts_flattened": Feature.OTHER_CONTENT,
            "reasoning_encrypted_opaque": Feature.ENCRYPTED_REASONING,
            "signature_unknown": Feature.REASONING,
            "tokens_dropped": Feature.TOKENS,
        },
    ),
)
