"""The lines of a JSONL log and whole JSON documents, one held at a time; bad bytes become defects."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from ng_capture.files.reading import CaptureFile, Line
from ng_capture.ingest.raw import RolloutClaim
from ng_capture.ingest.sources.decoding import Noticed, decode_raw
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import option_claims
from ng_capture.records.damage import kind_of_damage, opens_a_document
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import BOM
from ng_capture.records.token_entry import Unreadable

_Read = TypeVar("_Read")
_CALL = re.compile(rb'"model_call_id"\s*:\s*"([A-Za-z0-9._:-]{1,200})"')


class JsonLine(msgspec.Struct, frozen=True, eq=False):
    """One JSON object and its place; `data` are its bytes, `terminated` tells whether a line break stood behind it.

    `chosen` is the rollout in the field that the user named, where there is one.
    """

    value: Mapping[str, object]
    noticed: Noticed
    data: bytes
    file: str
    number: int
    byte: int
    terminated: bool = True
    chosen: Sequence[RolloutClaim] = ()


def json_lines(file: SourceFile) -> Iterator[JsonLine | Defect]:
    """Every object of a JSONL file; what is no object is a defect, blank lines are passed over."""
    return each_line(file, lambda line: _json_line(file, line))


def each_line(file: SourceFile, decode: Callable[[Line], _Read]) -> Iterator[_Read | Defect]:
    """What `decode` makes of every line; it raises Unreadable for what it cannot read."""
    nothing_read = True
    with file.open() as opened:
        for line in opened.lines():
            if file.live and not line.terminated:
                return
            if line.number == 1 and line.data.startswith(BOM):
                yield Defect(reason="bom", file=file.name, line=1, byte=0)
                line = Line(1, 0, line.data[len(BOM) :])
            if not line.data or line.data.isspace():
                continue
            try:
                yield decode(line)
            except Unreadable as error:
                place = error.defect.at(file=file.name, line=line.number, byte=line.offset)
                if nothing_read and opens_a_document(line.data):
                    yield place.at(reason="not_one_object_per_line")
                    return
                yield _of_damage(place, line.data)
            nothing_read = False
        yield from _fault(file, opened)


def whole_document(file: SourceFile) -> Iterator[JsonLine | Defect]:
    """The one JSON object or array that is the whole file, which is held; an array has its members one by one."""
    with file.open() as opened:
        data = b"".join(line.data for line in opened.lines())
        faults = list(_fault(file, opened))
    if faults:
        yield from faults
        return
    if data.startswith(BOM):
        yield Defect(reason="bom", file=file.name, line=1, byte=0)
    try:
        decoded = decode_raw(data.removeprefix(BOM))
    except ValueError:
        yield _of_damage(Defect(reason="damaged_line", file=file.name, line=1, byte=0), data + b"\n")
        return
    values = decoded.value if isinstance(decoded.value, list) else [decoded.value]
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield entry_of(file, value, number, decoded.noticed)
        else:
            yield Defect(reason="damaged_line", file=file.name, line=number, byte=0, detail="no JSON object")


def entry_of(file: SourceFile, value: Mapping[str, object], number: int, noticed: Noticed) -> JsonLine:
    """One of several objects in a document; its number stands for the line."""
    chosen = option_claims(value, file.rollout_from)
    return JsonLine(value, noticed, b"", file.name, number, 0, chosen=chosen)


def _json_line(file: SourceFile, line: Line) -> JsonLine:
    try:
        decoded = decode_raw(line.data)
    except ValueError:
        raise Unreadable(Defect(reason="damaged_line")) from None
    if not isinstance(decoded.value, dict):
        raise Unreadable(Defect(reason="damaged_line"))
    chosen = option_claims(decoded.value, file.rollout_from)
    return JsonLine(
        decoded.value, decoded.noticed, line.data, file.name, line.number, line.offset, line.terminated, chosen
    )


def _of_damage(place: Defect, data: bytes) -> Defect:
    """What kind of damage it is, and the one call that is named in it: that is missed until it comes whole."""
    named = _CALL.findall(data)
    if place.reason == "damaged_line" and len(named) == 1:
        place = place.at(call=named[0].decode())
    return kind_of_damage(place, data)


def _fault(file: SourceFile, opened: CaptureFile) -> Iterator[Defect]:
    if opened.fault is not None:
        reason = "file_truncated" if opened.fault.truncated else "damaged_line"
        yield Defect(reason=reason, file=file.name, line=opened.fault.number, byte=opened.fault.offset)
