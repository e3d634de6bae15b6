"""Read the files of one rollout into a snapshot; bad bytes become defects, the good lines around them stay."""

from collections.abc import Callable

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import CaptureName, FileKind, is_rollout_id, shown
from ng_capture.files.reading import CaptureFile, Line
from ng_capture.records.damage import kind_of_damage, opens_a_document
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import BOM
from ng_capture.records.lifecycle import NamedLine, StoreState, decode_call_lines, decode_state
from ng_capture.records.placing import Placer
from ng_capture.records.raw_call import RawCall, decode_raw_call
from ng_capture.records.snapshot import InputFile, Snapshot
from ng_capture.records.token_entry import TokenEntry, Unreadable, decode_entry

_SIDECARS = (FileKind.STATE, FileKind.INTENTS, FileKind.INCOMPLETE)


def read_snapshot(files: RolloutFiles, *, hashed: bool = False, live: bool = False) -> Snapshot:
    """Everything that lies on disk for a rollout; takes no lock and writes nothing.

    State and intents are read first and the records last: beside a live writer nothing is then missed that was there
    (design.md, Command line). `hashed` keeps the digest of every file; `live` leaves a last line without its line break
    to the next reading. Raises SurroundingsError for an unreadable file.
    """
    return _Reader(files, hashed, live).read()


class _Reader:
    def __init__(self, files: RolloutFiles, hashed: bool, live: bool) -> None:
        self._rollout = files
        self._hashed = hashed
        self._live = live
        self._defects: list[Defect] = []
        self._files: list[InputFile] = []
        self._text_size = 0
        self._line_ends: set[int] = {0}

    def read(self) -> Snapshot:
        rollout_id = shown(self._rollout.rollout_id)
        if not is_rollout_id(self._rollout.rollout_id):
            self._defects.append(Defect(reason="bad_rollout_id", found=rollout_id, file=self._rollout.names[0].shown))
        state = self._state()
        intents, intents_file = self._calls_named_in(FileKind.INTENTS)
        marks, marks_file = self._calls_named_in(FileKind.INCOMPLETE)
        for name in self._rollout.of_kind(FileKind.CAPTURE_INCOMPLETE):
            with self._open(name):
                pass
        placer = Placer()
        self._each_line(FileKind.TOKENS, lambda name, line: placer.add(_entry(name, line)))
        covered = state.indexed_size if state is not None else None
        index_fits = covered is None or covered > self._text_size or covered in self._line_ends
        tokens_size = self._text_size if self._rollout.of_kind(FileKind.TOKENS) else None
        placed = placer.finish()
        self._defects += [
            Defect(reason="damaged_line", file=entry.file, line=entry.line, byte=entry.byte) for entry in placed.damaged
        ]
        lines: list[RawCall | None] = []
        self._each_line(FileKind.CAPTURE, lambda _, line: lines.append(_raw_call(line)))
        raw_calls = tuple(call for call in lines if call is not None)
        captures = self._rollout.of_kind(FileKind.CAPTURE)
        return Snapshot(
            rollout_id=rollout_id,
            entries=placed.entries,
            raw_calls=raw_calls if captures else None,
            unidentified_lines=len(lines) - len(raw_calls),
            state=state,
            intents=intents,
            intents_file=intents_file,
            marks=marks,
            marks_file=marks_file,
            capture_files=tuple(name.shown for name in captures),
            defects=tuple(self._defects),
            files=tuple(sorted(self._files, key=lambda file: file.name)),
            tokens_size=tokens_size,
            index_fits=index_fits,
        )

    def _open(self, name: CaptureName) -> "_Recorded":
        return _Recorded(self._rollout.path(name), name, self._hashed, self._files)

    def _small(self, kind: FileKind) -> tuple[bytes, str] | None:
        for name in self._rollout.of_kind(kind):
            with self._open(name) as file:
                return file.read(), name.shown
        return None

    def _state(self) -> StoreState | None:
        found = self._small(FileKind.STATE)
        if found is None:
            return None
        data, file = found
        try:
            return decode_state(data)
        except ValueError as error:
            detail = "empty" if not data else str(error)
            self._defects.append(Defect(reason="state_unreadable", file=file, line=1, byte=0, detail=detail))
            return None

    def _calls_named_in(self, kind: FileKind) -> tuple[tuple[NamedLine, ...] | None, str]:
        found = self._small(kind)
        return (tuple(decode_call_lines(found[0])), found[1]) if found else (None, "")

    def _each_line(self, kind: FileKind, take: Callable[[str, Line], None]) -> None:
        """Hand on every line of the files of a kind that `take` can read; note what is wrong with the others."""
        for name in self._rollout.of_kind(kind):
            with self._open(name) as file:
                self._text_size += self._lines_of(name.shown, file, take)
                if file.fault is not None:
                    reason = "file_truncated" if file.fault.truncated else "damaged_line"
                    self._note(Defect(reason=reason), name.shown, file.fault.number, file.fault.offset)

    def _lines_of(self, name: str, file: CaptureFile, take: Callable[[str, Line], None]) -> int:
        size, nothing_read = 0, True
        for line in file.lines():
            if self._live and not line.terminated:
                break
            size = line.offset + len(line.data)
            self._line_ends.add(size)
            if line.number == 1 and line.data.startswith(BOM):
                self._note(Defect(reason="bom"), name, 1, 0)
                line = Line(1, 0, line.data[len(BOM) :])
            if not line.data or line.data.isspace():
                continue
            try:
                take(name, line)
                if not line.terminated:
                    self._note(Defect(reason="missing_newline"), name, line.number, line.offset)
            except Unreadable as error:
                if nothing_read and opens_a_document(line.data):
                    self._note(Defect(reason="not_one_object_per_line"), name, line.number, line.offset)
                    break
                self._note(kind_of_damage(error.defect, line.data), name, line.number, line.offset)
            nothing_read = False
        return size

    def _note(self, defect: Defect, file: str, line: int, byte: int) -> None:
        self._defects.append(defect.at(file=file, line=line, byte=byte))


class _Recorded(CaptureFile):
    """A file that is listed among the inputs once it has been read."""

    def __init__(self, path: str, name: CaptureName, hashed: bool, files: list[InputFile]) -> None:
        super().__init__(path, name.compression, hashed=hashed)
        self._name = name.shown
        self._digest = hashed
        self._inputs = files

    def __exit__(self, *details: object) -> None:
        self._inputs.append(InputFile(self._name, self.size, self.sha256 if self._digest else None))
        super().__exit__(*details)


def _entry(name: str, line: Line) -> TokenEntry:
    return decode_entry(line.data, file=name, line=line.number, byte=line.offset)


def _raw_call(line: Line) -> RawCall | None:
    try:
        return decode_raw_call(line.data, line.number, line.offset)
    except ValueError:
        raise Unreadable(Defect(reason="damaged_line")) from None
