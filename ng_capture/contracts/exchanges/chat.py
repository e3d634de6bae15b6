"""The contract `chat`: documents of Chat Completions (contracts.md 4.5, 4.6)."""

from collections.abc import Iterator
from typing import Any

from ng_capture.contracts.dialects.chat import CHAT as DIALECT
from ng_capture.contracts.dialects.chat_parameters import written_parameters, written_tool
from ng_capture.contracts.dialects.chat_writing import Writing, usage_written
from ng_capture.contracts.dialects.spelled import encode_spelled
from ng_capture.contracts.episode import Episode, Json, Turn
from ng_capture.contracts.exchanges.pairs import WRITTEN, finish_told, is_own, left_out, pair_of, written_threads
from ng_capture.contracts.exchanges.reading import GIVES, LINKING, Api, Document, pair_in
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.interface import Contract, Feature, Head, Options, Reader, Writer, Written
from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import decode_exact, object_in, objects_in

_SPOKEN = ("messages", "tools", "functions")


def _shape(value: Any) -> Document | None:
    if isinstance(value, list):
        return Document(request={"messages": value}, spoken=True)
    told = object_in(value)
    pair = pair_in(value, DIALECT.name)
    if pair is not None:
        return pair
    if isinstance(told.get("messages"), list):
        if "model" in told:
            return Document(request=told)
        kept = {key: _decoded(told[key]) for key in _SPOKEN if key in told}
        return Document(request=kept, spoken=True, rest={key: told[key] for key in told if key not in _SPOKEN})
    return Document(response=told) if isinstance(told.get("choices"), list) else None


def _decoded(value: object) -> object:
    """Tools that stand as JSON text, as rows for trainers have them."""
    if not isinstance(value, str):
        return value
    try:
        return decode_exact(value.encode("utf-8", "surrogatepass"))
    except ValueError:
        return value


_API = Api(DIALECT, _shape)


def _recognises(head: Head) -> bool:
    """True for messages with roles, for a list of choices, and for a pair of both."""
    value = object_in(head.value)
    if head.is_folder or "dialect" in value:
        return False
    request = object_in(value.get("request")) or value
    response = object_in(value.get("response")) or value
    messages = head.value if isinstance(head.value, list) else request.get("messages")
    first = next(objects_in(messages), {})
    answered = any("message" in choice for choice in objects_in(response.get("choices")))
    return answered or ("role" in first and first.get("type", "message") == "message")


def _write(episode: Episode, options: Options) -> Written:
    return written_threads(episode, options, lambda each: _document(each, options))


def _document(episode: Episode, options: Options) -> tuple[Json, list[Loss]]:
    """A pair, or the request alone where no call answers it, or the response alone where nothing was asked."""
    own = is_own(episode, DIALECT.name)
    pair, writing = pair_of(episode.main), Writing(options, own=own)
    fields = written_parameters(episode.request, own=own)
    messages = writing.request(pair.history)
    request: dict[str, object] = dict(fields.values)
    tools = episode.main.agent.tools or ()
    written = [tool for each in tools if (tool := written_tool(each)) is not None]
    if written or episode.main.agent.tools == ():
        request["tools"] = written
    losses = [*left_out(episode, pair, own=own), *_unwritten(pair.answer, len(tools) - len(written), fields.dropped)]
    if messages or pair.answer is None or request:
        request["messages"] = messages
    if pair.answer is None:
        return request, [*losses, *writing.losses]
    response = _response(
        episode, pair.answer, writing.choice(pair.answer, pair.place, finish_told(episode, pair.answer))
    )
    losses += writing.losses
    return ({"request": request, "response": response} if request else response), losses


def _response(episode: Episode, answer: Turn, choice: Json) -> Json:
    own, call = is_own(episode, DIALECT.name), answer.call
    model = episode.main.agent.model
    response: dict[str, object] = {
        "id": call.response_id if call and call.response_id else made_id("chatcmpl-", encode_spelled(choice).decode()),
        "object": "chat.completion",
        **(object_in((answer.item or {}).get("envelope")) if own else {}),
        "model": call.model if call and call.model else model,
        "choices": [choice],
    }
    usage = usage_written(call, own=own) if call is not None else None
    return response if usage is None else {**response, "usage": usage}


def _unwritten(answer: Turn | None, tools: int, parameters: tuple[str, ...]) -> Iterator[Loss]:
    """What chat has no place for, where other APIs have one."""
    if tools:
        yield Loss("tool_definition_not_function", count=tools)
    yield from (Loss("request_fields_dropped", detail=name) for name in parameters)
    if answer is not None and answer.call is not None and answer.call.usage.cache_creation_tokens:
        yield Loss("cache_write_dropped", answer.place)


CHAT = Contract(
    name=DIALECT.name,
    title="a request and a response of Chat Completions",
    authority="what a chat endpoint was asked and what it answered",
    join_key="the id of the response",
    reader=Reader(
        recognises=_recognises,
        read=_API.read,
        gives=GIVES | {Feature.DEVELOPER, Feature.TOKENS},
        losses=frozenset({*LINKING, "choice_dropped", "think_tags_split", "stream_rebuilt"}),
    ),
    writer=Writer(
        write=_write,
        suffix=".chat.json",
        losses={
            **WRITTEN,
            "cache_write_dropped": Feature.CACHE_WRITES,
            "is_error_dropped": Feature.FAILED_RESULTS,
            "parts_flattened": Feature.SYSTEM,
            "reasoning_dropped": Feature.ENCRYPTED_REASONING,
            "reasoning_signature_dropped": Feature.ENCRYPTED_REASONING,
            "tokens_incomplete": Feature.TOKENS,
        },
    ),
)
