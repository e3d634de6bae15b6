"""Writes a rebuild: the output whole or not at all, its receipt after it (design.md, promises 2 and 3)."""

import contextlib
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec
from msgspec import UNSET

from ng_capture.files.names import shown
from ng_capture.files.reading import CaptureFile
from ng_capture.files.writing import AtomicFile, discard
from ng_capture.outputs.chunks import Chunk
from ng_capture.outputs.dataset import DatasetDirectory
from ng_capture.outputs.export.choices import NO_CHOICE
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.forms import Form
from ng_capture.outputs.parts import Part
from ng_capture.outputs.rebuild import Rebuilt
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.receipt import ReceiptOptions, ReceiptOutput, receipt_head, receipt_place, receipt_tail
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.records.snapshot import InputFile


class _Table(Protocol):
    """Takes rows one by one, and is closed or abandoned."""

    def add(self, row: Any, /) -> None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...


class RebuildWriter:
    """Takes rebuilt rollouts in order and puts them under `output`, with a receipt beside it.

    Standard output (`-`) has no receipt unless one is named. Raises what AtomicFile raises.
    """

    def __init__(
        self,
        output: str,
        receipt: str | None,
        how: Rebuild,
        rows: InputFile | None,
        part: Part | None = None,
    ) -> None:
        self.output = output
        self.rows = 0
        self._printed = 0
        self._hash = hashlib.sha256()
        self._options = _options(how, rows, part)
        self._how = how
        self._file = None if output == "-" else _place(output, how)
        place = receipt if receipt is not None else None if output == "-" else receipt_place(output)
        self._receipt = AtomicFile(Path(place)) if place is not None else None
        self._entries = 0
        self._shared: dict[str, tuple[int, ...]] = {}
        self._table: _Table | None = None
        self._complete = False
        self._stack = contextlib.ExitStack()

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._file.size if self._file is not None else self._printed

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            # left in the opposite order: the old receipt goes, the output appears, the new receipt last
            if self._receipt is not None:
                opening.enter_context(self._receipt)
                self._receipt.write(receipt_head(self._options))
            if self._file is not None:
                opening.enter_context(self._file)
            opening.push(self._drop_old_receipt)
            if self._how.table:
                self._table = self._open_table()
            opening.push(self._leave_table)
            self._stack = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:
            self.complete()

    def complete(self) -> None:
        """Bring output and receipt to the disk, where both only wait for their names: nothing can be added any more."""
        if self._complete:
            return
        if self._table is not None:
            self._table.close()
            self._table = None
        self._complete = True
        if self._receipt is not None:
            name = Path(self.output).name
            if isinstance(self._file, DatasetDirectory):
                name = f"{name}/{self._file.data_name}"
            sha256 = self._file.sha256 if self._file is not None else self._hash.hexdigest()
            self._receipt.write(receipt_tail(ReceiptOutput(shown(name), self.size, self.rows, sha256)))
        # both are whole on the disk before the old receipt goes: what fails until here leaves everything as it was
        if self._file is not None:
            self._file.finish()
        if self._receipt is not None:
            self._receipt.finish()

    def write_all(self, results: Iterable[Rebuilt]) -> None:
        """Write every rollout, and its entry in the receipt."""
        for result in results:
            self.add(result)

    def add(self, result: Rebuilt) -> None:
        """Write one rollout, and its entry in the receipt."""
        for line in result.lines:
            self._write(line)
        for row in (*result.table, *result.records):
            assert self._table is not None
            self._table.add(row)
        self._note(result, result.rows)

    def _write(self, line: list[Chunk]) -> None:
        if self._file is not None:
            self._file.write(*line, b"\n")
        else:
            for chunk in (*line, b"\n"):
                sys.stdout.buffer.write(chunk)
                self._hash.update(chunk)
                self._printed += len(chunk)

    def _open_table(self) -> _Table:
        from ng_capture.outputs.tables.writing import RecordTable, RowTable

        assert self._file is not None
        if self._how.shape is Shape.ROWS:
            return RowTable(self._file, self._how.form)
        return RecordTable(self._file, FORMATS[self._how.shape.value].columns, self._how.form)

    def _leave_table(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is not None and self._table is not None:
            # before its file is taken away: it would write its end there later
            with contextlib.suppress(Exception):
                self._table.abandon()
        return False

    def _note(self, result: Rebuilt, count: int) -> None:
        if self._receipt is not None and result.receipt is not None:
            places = self._places_of(result, count)
            # what was left out may still be wanted
            covered = result.receipt.covered and bool(places) and not result.left_out
            entry = msgspec.structs.replace(result.receipt, rows=places, covered=covered)
            self._receipt.write(b",\n" if self._entries else b"\n", msgspec.json.encode(entry))
            self._entries += 1
        self.rows += count

    def _places_of(self, result: Rebuilt, count: int) -> tuple[int, ...]:
        """The rows of a rollout; one that shares its row with another has it where the first of both was written."""
        places = tuple(range(self.rows, self.rows + count))
        if result.partner is None or result.receipt is None:
            return places
        if places:
            self._shared[result.partner] = places
        return places or self._shared.pop(result.receipt.rollout_id, ())

    def _drop_old_receipt(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None and self._receipt is not None:
            # a receipt implies its output: the old one must be gone before other bytes stand under the output's name
            discard(self._receipt.path)
        return False


def _place(output: str, how: Rebuild) -> AtomicFile | DatasetDirectory:
    if how.form is Form.DIRECTORY:
        return DatasetDirectory(Path(output), FORMATS[how.shape.value].columns)
    return AtomicFile(Path(output))


def described(rows: RowsFile | None) -> InputFile | None:
    """The finished rows as a receipt tells of them."""
    if rows is None:
        return None
    with CaptureFile(rows.path, hashed=True) as file:
        return InputFile(shown(Path(rows.path).name), file.size, file.sha256)


def _options(how: Rebuild, rows: InputFile | None, part: Part | None) -> ReceiptOptions:
    return ReceiptOptions(
        to=how.shape.value,
        policy=how.judging.policy.value,
        policy_model=how.judging.policy_model,
        infer_links=how.judging.infer_links,
        masked=how.masked.value,
        rollouts=rows,
        attach_calls=how.attach_calls or UNSET,
        export=how.export if how.export != NO_CHOICE else UNSET,
        part=part or UNSET,
    )
