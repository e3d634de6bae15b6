"""HAR, as browsers write it and mitmproxy exports it: the calls to a model among its entries (ingest.md 2)."""

import base64
import binascii
from collections.abc import Iterator, Mapping

from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.bodies import Body, dialect_of, exchange, read_body
from ng_capture.ingest.sources.fields import headers_of, number_of, seconds_of, status_of, text_of
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, one_by_one
from ng_capture.ingest.sources.lines import JsonLine, entry_of, whole_document
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import field_claims, header_claims, path_claims
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import object_in, objects_in

_CALL_ID = "x-litellm-call-id"


def _recognises(head: Head) -> bool:
    return head.has("log") and head.has_any("log.entries", "log.creator", "log.version")


def _read(file: SourceFile) -> Iterator[Reading]:
    """The lines of its exchanges are the numbers of the entries."""
    for document in whole_document(file):
        if isinstance(document, Defect):
            yield document
            continue
        for number, entry in enumerate(objects_in(object_in(document.value.get("log")).get("entries")), start=1):
            call = _exchange(entry_of(file, entry, number, document.noticed))
            if call is not None:
                yield call


def _exchange(line: JsonLine) -> RawExchange | None:
    """The call of an entry, None where it asks no model: pages, lists of models, other methods."""
    request, response = object_in(line.value.get("request")), object_in(line.value.get("response"))
    url = text_of(request, "url") or ""
    dialect = dialect_of(url)
    if dialect is None or text_of(request, "method") != "POST":
        return None
    headers = headers_of(request.get("headers"))
    body = read_body(_text(object_in(request.get("postData"))))
    started, took = seconds_of(line.value, "startedDateTime"), number_of(line.value, "time")
    return exchange(
        line,
        body,
        _answer(object_in(response.get("content"))),
        [*path_claims(url), *field_claims(body.value), *header_claims(headers)],
        byte=None,
        call_id=headers_of(response.get("headers")).get(_CALL_ID),
        dialect=dialect,
        started_at=started,
        completed_at=started + took / 1000 if started is not None and took is not None else None,
        latency_ms=took,
        status_code=status_of(response, "status"),
        # HAR's word for a request that no response came to
        error_category="connection" if number_of(response, "status") == 0 else None,
        client_session_id=headers.get("x-session-id"),
    )


def _answer(content: Mapping[str, object]) -> Body:
    return read_body(_text(content))


def _text(content: Mapping[str, object]) -> str | None:
    """The text of a body; what is no UTF-8 in it is replaced, as Gym does."""
    text = content.get("text")
    if not isinstance(text, str) or content.get("encoding") != "base64":
        return text if isinstance(text, str) else None
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return text


HAR = LogFormat("har", _recognises, one_by_one(_read))
