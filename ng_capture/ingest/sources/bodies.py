"""The body of a request or a response, whether it was logged as an object, as JSON text or as a stream's text."""

from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.sources.decoding import NOTHING_NOTICED, Noticed, decode_events, decode_raw
from ng_capture.ingest.sources.lines import JsonLine
from ng_capture.ingest.sources.rollouts import strongest_first
from ng_capture.records.assembling import assemble
from ng_capture.records.json_text import objects_in

_DIALECTS = {
    "/chat/completions": "chat",
    "/responses": "responses",
    "/messages": "messages",
    "/completions": "completions",
    "/inference/v1/generate": "generate",
    "/generate": "generate",
    "/generate_stream": "generate",
    "/completion": "llamacpp",
}


class Body(msgspec.Struct, frozen=True, eq=False):
    """A body: the object it is, or the events of its stream and what they add up to; `text` where it was no object."""

    value: Mapping[str, object] = {}
    text: str | None = None
    events: Sequence[Mapping[str, object]] = ()
    noticed: Noticed = NOTHING_NOTICED


NO_BODY = Body()


def read_body(value: object) -> Body:
    """The body in any spelling; what is neither object nor text is no body."""
    if isinstance(value, dict):
        return Body(value)
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        # a proxy that logs a stream as the list of its chunks
        return Body(assemble(value), events=value)
    if not isinstance(value, str) or not value:
        return NO_BODY
    streamed = read_stream(value)
    if streamed.events:
        return streamed
    try:
        decoded = decode_raw(value.encode("utf-8", "surrogatepass"))
    except ValueError:
        return streamed
    return Body(decoded.value, noticed=decoded.noticed) if isinstance(decoded.value, dict) else streamed


def read_stream(text: str) -> Body:
    """A body that was captured as text: its events, or nothing but the text where it is no stream."""
    decoded = decode_events(text)
    return Body(assemble(decoded.events), text, decoded.events, decoded.noticed)


def exchange(
    line: JsonLine, request: Body, response: Body, claims: Sequence[RolloutClaim], **told: object
) -> RawExchange:
    """The exchange of two bodies at a place of a log; `told` are fields of RawExchange that the log has."""
    noticed = line.noticed.joined(request.noticed, response.noticed)
    known = RawExchange(
        file=line.file,
        line=line.number,
        byte=line.byte,
        claims=strongest_first([*claims, *line.chosen]),
        request=request.value,
        response=response.value,
        events=response.events,
        response_raw=response.text,
        duplicate_key=noticed.duplicate_key,
        lone_surrogate=noticed.lone_surrogate,
    )
    if told.get("dialect") is None:
        told["dialect"] = _dialect_by_shape(response.value)
    return msgspec.structs.replace(known, **told)


def _dialect_by_shape(response: Mapping[str, object]) -> str | None:
    """The API that a response is of, None where that is not to be seen."""
    first = next(objects_in(response.get("choices")), {})
    if "message" in first:
        return "chat"
    if isinstance(response.get("output"), list) and response.get("object") == "response":
        return "responses"
    return "messages" if response.get("type") == "message" else None


def dialect_of(path: str) -> str | None:
    """The API that a URL's path belongs to, None where it is none that generates."""
    path = path.partition("?")[0].rstrip("/")
    return next((dialect for end, dialect in _DIALECTS.items() if path.endswith(end)), None)
