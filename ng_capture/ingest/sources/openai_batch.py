"""OpenAI Batch files, also those of `vllm run-batch`: answers, joined with their requests by `custom_id`."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.ingest.raw import RawExchange
from ng_capture.ingest.sources.bodies import Body, dialect_of, exchange, read_body
from ng_capture.ingest.sources.decoding import RawJson, decode_raw
from ng_capture.ingest.sources.fields import id_of, status_of, text_of
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading
from ng_capture.ingest.sources.lines import JsonLine, json_lines
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import field_claims
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import object_in


class _Place(msgspec.Struct, frozen=True):
    """Where a request stands; `held` are its bytes where the file cannot be sought."""

    file: SourceFile
    byte: int
    size: int
    held: bytes | None

    def data(self) -> bytes:
        if self.held is not None:
            return self.held
        try:
            with open(self.file.path, "rb") as opened:
                opened.seek(self.byte)
                return opened.read(self.size)
        except OSError as error:
            raise SurroundingsError(f"{self.file.name}: cannot be read: {error.strerror}") from error

    def request(self) -> RawJson:
        try:
            return decode_raw(self.data())
        except ValueError:
            raise SurroundingsError(f"{self.file.name}: changed while it was read") from None


def _recognises(head: Head) -> bool:
    return head.has("custom_id") and head.has_any("response", "error", "body")


def _read(files: Sequence[SourceFile]) -> Iterator[Reading]:
    """Requests are looked up where they stand, their places are held; a request without an answer is no call."""
    places: dict[str, _Place | None] = {}
    for file in files:
        for line in json_lines(file):
            if not isinstance(line, Defect) and _is_request(line.value):
                yield from _placed(file, line, places)
    for file in files:
        for line in json_lines(file):
            if isinstance(line, Defect):
                yield line
            elif not _is_request(line.value):
                yield _exchange(line, places.get(text_of(line.value, "custom_id") or ""))


def _is_request(value: Mapping[str, object]) -> bool:
    return "body" in value and "response" not in value


def _placed(file: SourceFile, line: JsonLine, places: dict[str, _Place | None]) -> Iterator[Defect]:
    name = text_of(line.value, "custom_id")
    if name is None:
        return
    # the first line may stand behind a byte order mark
    held = line.data if file.compressed or line.number == 1 else None
    place = _Place(file, line.byte, len(line.data), held)
    known = places.setdefault(name, place)
    if known is not place and (known is None or known.data() != line.data):
        # which of them was answered nothing says
        places[name] = None
        clash = Defect(reason="conflicting_records", file=file.name, line=line.number, byte=line.byte)
        yield clash.at(call=name, count=2, detail="request")


def _exchange(line: JsonLine, place: _Place | None) -> RawExchange:
    decoded = RawJson({}) if place is None else place.request()
    asked = object_in(decoded.value)
    body = read_body(asked.get("body"))
    request = msgspec.structs.replace(body, noticed=decoded.noticed.joined(body.noticed))
    response = object_in(line.value.get("response"))
    error = object_in(line.value.get("error"))
    return exchange(
        line,
        request,
        read_body(response.get("body")) if response else Body({"error": error} if error else {}),
        field_claims(line.value, request.value),
        call_id=id_of(line.value, "id", "custom_id"),
        dialect=dialect_of(text_of(asked, "url") or ""),
        status_code=status_of(response, "status_code"),
        error_category=text_of(error, "code", "message"),
    )


OPENAI_BATCH = LogFormat("openai-batch", _recognises, _read)
