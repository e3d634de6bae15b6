"""The health of what was judged before: saved verdicts, and rebuilt rollouts with or without their receipt."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.listing import Selection
from ng_capture.files.names import compression_of, parse_name
from ng_capture.files.reading import CaptureFile, Line
from ng_capture.outputs.documents import DOCUMENT_HEADS, ReceiptFile, TextLine, entries, text_lines
from ng_capture.outputs.health.gym_rows import METRICS_KEY, health_of_row
from ng_capture.outputs.receipt import receipt_place
from ng_capture.records.json_text import decode_as, decode_json
from ng_capture.records.rollout_row import BadRow, decode_row
from ng_capture.verdicts.health.rollout import RolloutHealth

STANDARD_INPUT = "-"


class SavedFault(msgspec.Struct, frozen=True):
    """A line that tells of no rollout."""

    path: str
    line: int
    message: str


class SavedFile:
    """One file of verdicts (`verify -f jsonl` or `json`), a receipt, or rebuilt rollouts; `-` is standard input.

    An output with its receipt beside it, whose digest it has, is told by the receipt, which knows all that `verify`
    knew. Without one the rows of rebuilt rollouts tell what NeMo Gym writes into them, and the rest is unknown.
    `rollouts` raises UsageError for a file that holds none of these; `faults` are there once it is through.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.faults: list[SavedFault] = []
        self.only_rows = False
        self._told: dict[str, tuple[int, int]] = {}

    def rollouts(self) -> Iterator[RolloutHealth]:
        """Every rollout of the file, each once, in the order of the file."""
        receipt = self._receipt()
        if receipt is not None:
            yield from receipt.rollouts(RolloutHealth)
            return
        lines = self._lines()
        first = next(lines, None)
        if first is None:
            return
        if first.data.startswith(DOCUMENT_HEADS):
            yield from entries(self.path, _again(first, lines), RolloutHealth)
        else:
            yield from self._read(_again(first, lines))

    def _receipt(self) -> ReceiptFile | None:
        """The receipt that describes the file as it is, None where there is none."""
        place = receipt_place(self.path)
        if self.path == STANDARD_INPUT or not Path(place).is_file():
            return None
        try:
            receipt = ReceiptFile(place)
        except UsageError:
            return None
        return receipt if receipt.describes(Path(self.path)) else None

    def _lines(self) -> Iterator[TextLine]:
        if self.path == STANDARD_INPUT:
            if sys.stdin is None:
                raise SurroundingsError("standard input is closed")
            yield from text_lines(Line(number, 0, data) for number, data in enumerate(sys.stdin.buffer, 1))
            return
        compression = compression_of(self.path)
        with CaptureFile(self.path, compression) as file:
            yield from text_lines(file.lines())
            if file.fault is not None:
                message = "the compressed file is cut or damaged"
                self.faults.append(SavedFault(self.path, file.fault.number, message))

    def _read(self, lines: Iterable[TextLine]) -> Iterator[RolloutHealth]:
        read: Callable[[TextLine], RolloutHealth | None] | None = None
        rebuilt = False
        for line in lines:
            try:
                value, _ = decode_json(line.data)
            except ValueError:
                self._fault(line, "no JSON object")
                continue
            read = read or self._reader(value)
            rollout = read(line)
            if rollout is not None:
                rebuilt = rebuilt or rollout.metrics is not None or rollout.verdict == "trainable"
                if self._is_new(line, rollout):
                    yield rollout
        if read is None:
            raise UsageError(f"{self.path}: no JSON lines", hint="ng-capture health <capture directory>")
        if self.only_rows and not rebuilt and not self.faults:
            message = f"{self.path}: no row has {METRICS_KEY}: these rollouts were never rebuilt"
            raise UsageError(message, hint=f"ng-capture health <capture directory> --rollouts {self.path}")

    def _is_new(self, line: TextLine, rollout: RolloutHealth) -> bool:
        """False for a rollout that was told before: rows of its chains say the same; one that does not is named."""
        now = hash(msgspec.json.encode(rollout))
        before = self._told.setdefault(rollout.rollout_id, (line.number, now))
        if before[1] != now:
            self._fault(line, f"says otherwise of rollout {rollout.rollout_id} than line {before[0]}, which counts")
        return before[0] == line.number

    def _reader(self, value: object) -> Callable[[TextLine], RolloutHealth | None]:
        """How to read this file, by its first object."""
        keys = value.keys() if isinstance(value, dict) else set()
        if {"rollout_id", "verdict", "findings"} <= keys:
            return self._verdict
        if METRICS_KEY in keys or "response" in keys:
            self.only_rows = True
            return self._row
        what = "training rows without their receipt" if "loss_mask" in keys else "neither verdicts nor rebuilt rollouts"
        raise UsageError(
            f"{self.path}: {what}", hint="ng-capture verify -f jsonl <capture directory> -o verdicts.jsonl"
        )

    def _verdict(self, line: TextLine) -> RolloutHealth | None:
        try:
            return decode_as(line.data, RolloutHealth)
        except msgspec.DecodeError as error:
            self._fault(line, f"no verdict: {error}")
            return None

    def _row(self, line: TextLine) -> RolloutHealth | None:
        try:
            row = decode_row(line.data)
        except BadRow as error:
            self._fault(line, str(error))
            return None
        except ValueError:
            self._fault(line, "no JSON object")
            return None
        if row.rollout_id is None:
            self._fault(line, "no capture key")
            return None
        return health_of_row(row.rollout_id, row)

    def _fault(self, line: TextLine, message: str) -> None:
        self.faults.append(SavedFault(self.path, line.number, message))


def _again(first: TextLine, rest: Iterator[TextLine]) -> Iterator[TextLine]:
    yield first
    yield from rest


def is_saved(path: str) -> bool:
    """True for what was judged before: standard input, or a file that is no capture."""
    return path == STANDARD_INPUT or (Path(path).is_file() and parse_name(Path(path).name) is None)


def health_of_saved(files: Iterable[SavedFile], selection: Selection) -> Iterator[RolloutHealth]:
    """The rollouts of some files that are selected; raises UsageError for a rollout that stands in two of them."""
    places: dict[str, SavedFile] = {}
    for file in files:
        for rollout in file.rollouts():
            first = places.setdefault(rollout.rollout_id, file)
            if first is not file:
                raise UsageError(f"rollout {rollout.rollout_id} is in two files: {first.path} and {file.path}")
            if selection.takes(rollout.rollout_id):
                yield rollout
