"""The calls of a source by rollout: a capture directory, the files of one rollout, or lines that name their rollouts.

One rollout is in memory at a time, however large the directory is.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ng_capture.contracts.captures.exchange_lines import ExchangeLine, faults_of, foreign_name
from ng_capture.contracts.captures.lifecycle import LIFECYCLE, is_retired, lost_calls_beside
from ng_capture.contracts.captures.rules import fault, fault_of
from ng_capture.contracts.episode import Json
from ng_capture.contracts.interface import Refused
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import EVERYTHING, RolloutFiles, Selection, list_rollouts
from ng_capture.files.names import FileKind, compression_of, parse_name, shown
from ng_capture.files.reading import CaptureFile, Line
from ng_capture.records.damage import kind_of_damage, opens_a_document
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import BOM, decode_json
from ng_capture.records.placing import Placer
from ng_capture.records.raw_call import raw_call_of
from ng_capture.records.token_entry import TokenEntry, Unreadable, decode_entry

EXCHANGES = frozenset({FileKind.CAPTURE, FileKind.CAPTURE_INCOMPLETE})
RECORDS = frozenset({FileKind.TOKENS}) | LIFECYCLE
_READ = (FileKind.TOKENS, FileKind.CAPTURE)
# what stands in a list of ids that are not all in range: those are checked once all lines are there
_NO_PLAIN_IDS = re.compile(rb"[^0-9,\s]|[0-9]{10}")
_UNREADABLE = {
    FileKind.CAPTURE: "model_call_capture_records_unreadable",
    FileKind.TOKENS: "token_records_unreadable",
}


class EntryLine(msgspec.Struct, frozen=True, eq=False):
    """A token record; `whole` is all of its line where something is wrong with it."""

    entry: TokenEntry
    whole: Json | None = None


Gap = tuple[str, str | None]
"""What is missing, with NeMo Gym's code where it has one, and how much of it."""


class Gathered(msgspec.Struct, frozen=True, eq=False):
    """The lines of one rollout, in the order of its files. `gaps` are NeMo Gym's codes for what is missing (5.4)."""

    rollout_id: str
    exchanges: tuple[ExchangeLine, ...]
    entries: tuple[EntryLine, ...]
    gaps: tuple[Gap, ...]
    faults: tuple[Fault, ...]


def gather(
    source: Source, kinds: frozenset[FileKind] = EXCHANGES | RECORDS, selection: Selection = EVERYTHING
) -> Iterator[Gathered | Refused]:
    """Every rollout of a source, and what no rollout could be made of; `kinds` are the files that count.

    Of a folder only the selected rollouts are read.

    Raises SurroundingsError.
    """
    if source.path is not None and (source.is_folder or parse_name(source.path.name) is not None):
        yield from _of_folder(str(source.path), kinds, selection)
    else:
        yield from _of_lines(source)


def _of_folder(path: str, kinds: frozenset[FileKind], selection: Selection) -> Iterator[Gathered]:
    """Every rollout that can be read; then the first of the failures is raised, one never stops the rest."""
    failures = list[SurroundingsError]()
    for files in list_rollouts([path], selection):
        wanted = files.only(kinds)
        try:
            if _holds_calls(wanted):
                yield _of_files(wanted)
        except SurroundingsError as error:
            failures.append(error)
    if failures:
        raise failures[0]


def _holds_calls(files: RolloutFiles) -> bool:
    """True for a rollout that has lines, or should have; what stays of one that was handed off has none."""
    if any(name.kind in _READ for name in files.names):
        return True
    return bool(files.names) and not is_retired(files)


def is_token_record(value: object) -> bool:
    """True for an object that has the ids of a token record."""
    return isinstance(value, dict) and "prompt_token_ids" in value and "generation_token_ids" in value


class _Rollout:
    """Takes the lines of one rollout."""

    def __init__(self, rollout_id: str) -> None:
        self.rollout_id = rollout_id
        self.faults = list[Fault]()
        self.gaps = list[Gap]()
        self.damaged = Counter[FileKind]()
        self._exchanges = list[ExchangeLine]()
        self._placer = Placer()
        self._wholes = dict[tuple[str, int], Json]()

    def add_exchange(self, file: str, line: Line) -> None:
        """Take a line of `.capture.jsonl`; raises Unreadable."""
        try:
            value, surrogate = decode_json(line.data)
        except ValueError:
            raise Unreadable(Defect(reason="damaged_line")) from None
        if not isinstance(value, dict):
            raise Unreadable(Defect(reason="damaged_line", detail="JSON, but no object"))
        foreign = "Gym token record" if is_token_record(value) else foreign_name(value)
        if foreign is not None:
            raise Unreadable(Defect(reason="foreign_line", detail=f"no captured call but of another format: {foreign}"))
        raw = raw_call_of(value, line.number, line.offset)
        if surrogate:
            self.faults.append(fault_of(Defect(reason="lone_surrogate", file=file, line=line.number), "capture"))
        self.faults += faults_of(value, raw, file)
        self._exchanges.append(
            ExchangeLine(line.data, raw, file, len(self._exchanges) + self.damaged[FileKind.CAPTURE])
        )

    def add_record(self, file: str, line: Line) -> None:
        """Take a line of `.tokens.jsonl`; raises Unreadable."""
        entry = decode_entry(line.data, file=file, line=line.number, byte=line.offset)
        named = entry.fields.rollout_id
        if named != self.rollout_id:
            self.faults.append(fault_of(entry.locate(Defect(reason="rollout_id_mismatch", found=named)), "tokens"))
        prompt = entry.stored
        if entry.faults or _NO_PLAIN_IDS.search(prompt.data, prompt.start, prompt.end):
            value = decode_json(line.data).value
            assert isinstance(value, dict)
            self._wholes[file, line.number] = value
        self._placer.add(entry)

    def done(self) -> Gathered:
        placed = self._placer.finish()
        for entry in placed.damaged:
            self.damaged[FileKind.TOKENS] += 1
            self.faults.append(fault_of(entry.locate(Defect(reason="damaged_line")), "tokens"))
        entries = [EntryLine(entry, self._wholes.get((entry.file, entry.line))) for entry in placed.entries]
        for kind, code in _UNREADABLE.items():
            if self.damaged[kind]:
                self.gaps.append((code, f"count={self.damaged[kind]}"))
        return Gathered(self.rollout_id, tuple(self._exchanges), tuple(entries), tuple(self.gaps), tuple(self.faults))


def _of_files(files: RolloutFiles) -> Gathered:
    rollout = _Rollout(shown(files.rollout_id))
    for kind in _READ:
        for name in files.of_kind(kind):
            with CaptureFile(files.path(name), name.compression) as file:
                _read(file, name.shown, kind, rollout)
    gathered = rollout.done()
    lost = lost_calls_beside(files, {line.entry.call_id for line in gathered.entries})
    marked = files.of_kind(FileKind.CAPTURE_INCOMPLETE)
    return msgspec.structs.replace(
        gathered,
        gaps=(
            *gathered.gaps,
            *([("token_capture_incomplete", None)] if lost else []),
            *(("model_call_capture_incomplete", None) for _ in marked),
        ),
        faults=(
            *gathered.faults,
            *(fault_of(defect, "tokens") for defect in lost),
            *(fault_of(Defect(reason="capture_incomplete", file=name.shown), "capture") for name in marked),
        ),
    )


def _read(file: CaptureFile, name: str, kind: FileKind, rollout: _Rollout) -> None:
    family, add = ("tokens", rollout.add_record) if kind is FileKind.TOKENS else ("capture", rollout.add_exchange)
    first = True
    for line in file.lines():
        if line.number == 1 and line.data.startswith(BOM):
            rollout.faults.append(fault_of(Defect(reason="bom", file=name, line=1), family))
            line = Line(1, 0, line.data[len(BOM) :])
        if not line.data.strip():
            continue
        try:
            add(name, line)
            if not line.terminated:
                defect = Defect(reason="missing_newline", file=name, line=line.number)
                rollout.faults.append(fault_of(defect, family))
        except Unreadable as error:
            rollout.damaged[kind] += 1
            if first and opens_a_document(line.data):
                defect = Defect(reason="not_one_object_per_line", file=name, line=line.number)
                rollout.faults.append(fault_of(defect, family))
                return
            rollout.faults.append(
                fault_of(kind_of_damage(error.defect, line.data).at(file=name, line=line.number), family)
            )
        first = False
    if file.fault is not None:
        reason = "file_truncated" if file.fault.truncated else "damaged_line"
        rollout.damaged[kind] += 1
        rollout.faults.append(fault_of(Defect(reason=reason, file=name, line=file.fault.number), family))


class _Known(NamedTuple):
    """What a line says of itself: its rollout, None for one that cannot be read, and whether it is a token record."""

    rollout_id: str | None
    is_record: bool = False


def _of_lines(source: Source) -> Iterator[Gathered | Refused]:
    """The rollouts of one file, whose lines name them; a rollout is done when the last line of it has been read."""
    stem = source.file_name.split(".")[0] or "rollout"
    last, faults = dict[str, int](), list[Fault]()
    for line in _lines_of(source, faults):
        known = _known(line, stem)
        if known.rollout_id is not None:
            last[known.rollout_id] = line.number
    open_: dict[str, _Rollout] = {}
    for line in _lines_of(source, []):
        known = _known(line, stem)
        if known.rollout_id is None:
            faults.append(
                fault_of(kind_of_damage(Defect(reason="damaged_line"), line.data).at(line=line.number), "capture")
            )
            continue
        rollout = open_.setdefault(known.rollout_id, _Rollout(known.rollout_id))
        try:
            (rollout.add_record if known.is_record else rollout.add_exchange)(source.name, line)
        except Unreadable as error:
            family, kind = ("tokens", FileKind.TOKENS) if known.is_record else ("capture", FileKind.CAPTURE)
            rollout.damaged[kind] += 1
            rollout.faults.append(fault_of(error.defect.at(file=source.name, line=line.number), family))
        if last[known.rollout_id] == line.number:
            yield open_.pop(known.rollout_id).done()
    if faults or not last:
        yield Refused(tuple(faults) or (fault("capture.empty_capture", "no call"),))


def _known(line: Line, stem: str) -> _Known:
    try:
        value = decode_json(line.data).value
    except ValueError:
        return _Known(None)
    if not isinstance(value, dict):
        return _Known(None)
    named = value.get("rollout_id")
    return _Known(named if isinstance(named, str) and named else stem, is_token_record(value))


def _lines_of(source: Source, faults: list[Fault]) -> Iterator[Line]:
    """The lines of a file or of standard input that are not blank; what ends them too early is added to the faults."""
    if source.path is None:
        for number, data in enumerate(io.BytesIO(source.read()), start=1):
            if data.strip():
                yield Line(number, 0, data.removeprefix(BOM) if number == 1 else data)
        return
    with CaptureFile(str(source.path), compression_of(source.path.name)) as file:
        for line in file.lines():
            if line.data.strip():
                yield Line(line.number, line.offset, line.data.removeprefix(BOM)) if line.number == 1 else line
        if file.fault is not None:
            reason = "file_truncated" if file.fault.truncated else "damaged_line"
            faults.append(fault_of(Defect(reason=reason, file=source.name, line=file.fault.number), "capture"))
