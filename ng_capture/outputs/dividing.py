"""Writes a rebuild into several files: each whole or not at all, each with a receipt of its own rollouts.

A rollout's rows never stand in two files, so that each receipt covers what it covers by itself.
"""

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from ng_capture.errors import UsageError
from ng_capture.files.writing import discard
from ng_capture.outputs.dataset import half_of, split_directory
from ng_capture.outputs.documents import ReceiptFile
from ng_capture.outputs.forms import Form
from ng_capture.outputs.parts import Division, Half, Part, first_part
from ng_capture.outputs.rebuild import Rebuilt
from ng_capture.outputs.rebuilding import Rebuild
from ng_capture.outputs.receipt import receipt_place
from ng_capture.outputs.writer import RebuildWriter
from ng_capture.records.snapshot import InputFile


class DividedWriter:
    """Takes rebuilt rollouts in order; no file gets its name before all of them are on the disk.

    `check` refuses a name that would replace what is read. Raises what RebuildWriter raises.
    """

    def __init__(
        self, output: str, how: Rebuild, rows: InputFile | None, division: Division, check: Callable[[str], None]
    ) -> None:
        self._output = output
        self._how = how
        self._rows = rows
        self._division = division
        self._check = check
        self._parts: dict[Half | None, Part] = {}
        self._writers: list[RebuildWriter] = []
        self._open: dict[Half | None, RebuildWriter] = {}
        self._stack = contextlib.ExitStack()

    @property
    def written(self) -> list[tuple[str, int, int]]:
        """Name, rows and bytes of every file."""
        return [(writer.output, writer.rows, writer.size) for writer in self._writers]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            self._stack = opening
            if self._how.form is Form.DIRECTORY:
                opening.enter_context(split_directory(Path(self._output)))
            for half in self._division.halves:
                self._begin(first_part(self._division, half))
            self._stack = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:
            for writer in self._writers:
                writer.complete()
        for part in self._parts.values():
            self._discard_behind(part)

    def write_all(self, results: Iterable[Rebuilt]) -> None:
        """Write every rollout into its file, and its entry into the receipt beside it."""
        size = self._division.shard_size
        for result in results:
            half = self._division.half(result.unit)
            writer = self._open[half]
            if size is not None and writer.rows and writer.rows + result.rows > size:
                writer.complete()
                self._begin(self._parts[half].following())
            self._open[half].add(result)

    def _begin(self, part: Part) -> None:
        name = self._name_of(part)
        self._check(name)
        writer = self._stack.enter_context(RebuildWriter(name, None, self._how, self._rows, part))
        self._writers.append(writer)
        self._parts[part.half] = part
        self._open[part.half] = writer

    def _name_of(self, part: Part) -> str:
        if self._how.form is Form.DIRECTORY and part.half is not None:
            return half_of(self._output, part.half)
        return part.name(self._output)

    def _discard_behind(self, part: Part) -> None:
        """Files of an earlier, longer run: whoever loads all shards would train their rows twice."""
        while part.shard is not None and not part.is_last:
            part = part.following()
            output = Path(part.name(self._output))
            receipt = Path(receipt_place(str(output)))
            if not output.is_file() or not _is_receipt(receipt):
                return
            discard(receipt)
            discard(output)


def _is_receipt(path: Path) -> bool:
    try:
        return path.is_file() and bool(ReceiptFile(str(path)).output.name)
    except UsageError:
        return False
