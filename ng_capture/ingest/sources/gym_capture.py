"""NeMo Gym's `<rollout id>.capture.jsonl`: a call a line, in three dialects, streamed or not (capture-files.md 7.1)."""

from collections.abc import Iterator

import msgspec

from ng_capture.files.names import FileKind, parse_name
from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.bodies import Body, exchange, read_stream
from ng_capture.ingest.sources.fields import number_of, seconds_of, status_of, text_of
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, one_by_one
from ng_capture.ingest.sources.lines import JsonLine, json_lines
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import field_claims, file_name_claims
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import object_in


def _recognises(head: Head) -> bool:
    name = parse_name(head.name)
    if name is not None:
        return name.kind is FileKind.CAPTURE
    return head.has("model_call_id") and head.has_any("dialect", "request", "response", "response_raw")


def _read(file: SourceFile) -> Iterator[Reading]:
    for line in json_lines(file):
        if isinstance(line, Defect):
            yield line
            continue
        yield _exchange(line, file)
        if not line.terminated:
            yield Defect(reason="missing_newline", file=file.name, line=line.number, byte=line.byte)
    if file.has_beside(FileKind.CAPTURE_INCOMPLETE):
        yield Defect(reason="capture_incomplete", file=file.name, detail="a write of raw calls failed")


def _exchange(line: JsonLine, file: SourceFile) -> RawExchange:
    value = line.value
    raw = text_of(value, "response_raw")
    captured = Body(object_in(value.get("response")), raw)
    streamed = read_stream(raw) if raw else captured
    # what Gym put together of a stream lacks the token fields and mixes the choices (ingest.md 0, fact 9)
    response = streamed if streamed.value else msgspec.structs.replace(streamed, value=captured.value)
    return exchange(
        line,
        Body(object_in(value.get("request"))),
        response,
        [*file_name_claims(file.file_name), *field_claims(value)],
        # every line of this form has an id, but of old or hand-made ones (ingest.md 4, N94)
        call_id=text_of(value, "model_call_id") or f"line:{line.number}",
        dialect=text_of(value, "dialect"),
        model_ref=object_in(value.get("model_ref")) or None,
        started_at=seconds_of(value, "started_at"),
        completed_at=seconds_of(value, "completed_at"),
        latency_ms=number_of(value, "latency_ms"),
        latency_ttft_ms=number_of(value, "latency_ttft_ms"),
        status_code=status_of(value, "status_code"),
        error_category=text_of(value, "error_category"),
        client_session_id=text_of(value, "client_session_id"),
    )


GYM_CAPTURE = LogFormat("gym-capture", _recognises, one_by_one(_read))
