"""Where `convert` puts documents: standard output, one file, or a folder with a file for each."""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ng_capture.contracts.conversion import Converted, FileName
from ng_capture.contracts.interface import SideFile, Written
from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import parse_name
from ng_capture.files.writing import AtomicFile, check_place, make_directory, replace_file
from ng_capture_cli.output import refuse_compressed


class Outputs:
    """Takes what was converted; nothing is created before there is something to write, and each file appears whole.

    `whole` tells that a file holds one document. Raises UsageError where an output would replace a source, or a capture
    that is there; SurroundingsError for a full disk or a missing permission.
    """

    def __init__(self, output: str, *, whole: bool, sources: Sequence[Path], loss_report: Path | None) -> None:
        self._whole = whole
        self._sources = {path.resolve() for path in sources}
        self._path = None if output == "-" else Path(output)
        self._folder = self._path is not None and (output.endswith("/") or self._path.is_dir())
        self._open: AtomicFile | None = None
        self._exits = contextlib.ExitStack()
        self._names: set[str] = set()
        if self._path is not None and not self._folder:
            refuse_compressed(output)
            self._check(self._path)
        if loss_report is not None:
            self._check_report(loss_report)

    def _check_report(self, report: Path) -> None:
        if str(report) == "-":
            if self._path is None:
                message = "the documents and the loss report would both go to standard output"
                raise UsageError(message, hint="-o FILE for the documents, or --loss-report FILE")
            return
        if self._path is not None and report.resolve() == self._path.resolve():
            raise UsageError(f"{report}: the loss report would replace the output")
        if report.resolve() in self._sources:
            raise UsageError(f"{report}: the loss report would replace a source")
        check_place(report)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exits.__exit__(kind, error, trace)

    def take(self, converted: Converted) -> str | None:
        """Write one document, with the files it names; the name of its file, None where nothing was written."""
        if converted.written is None:
            return None
        if self._path is None:
            self._put_aside(converted.written.files, Path())
            if sys.stdout is None:
                raise SurroundingsError("standard output is closed", hint="-o FILE writes to a file")
            sys.stdout.buffer.write(_lines(converted.written))
            return "-"
        if self._folder:
            return self._put_in_folder(self._path, converted.name, converted.written)
        self._put_aside(converted.written.files, self._path.parent)
        self._append(self._path, converted.written)
        return str(self._path)

    def _append(self, path: Path, written: Written) -> None:
        if self._open is None:
            self._open = self._exits.enter_context(AtomicFile(path))
        elif self._whole:
            raise UsageError(
                f"{path}: holds one document, and there are more", hint=f"-o {path.parent}/ for a file each"
            )
        self._open.write(_lines(written))

    def _put_in_folder(self, folder: Path, name: FileName, written: Written) -> str:
        path = folder / self._free(name)
        self._check(path)
        make_directory(folder)
        # first what the document names: one that is there has all that it speaks of
        self._put_aside(written.files, folder)
        replace_file(path, _lines(written))
        return str(path)

    def _free(self, name: FileName) -> str:
        """A name of its own for each document, also where case does not count."""
        number, free = 1, f"{name.stem}{name.suffix}"
        while free.lower() in self._names:
            number += 1
            free = f"{name.stem}-{number}{name.suffix}"
        self._names.add(free.lower())
        return free

    def _put_aside(self, files: Sequence[SideFile], folder: Path) -> None:
        for file in files:
            path = folder / file.name
            self._check(path)
            make_directory(path.parent)
            replace_file(path, file.data)

    def _check(self, path: Path) -> None:
        if path.resolve() in self._sources:
            raise UsageError(f"{path}: the output would replace a source")
        if parse_name(path.name) is not None and path.exists():
            hint = f"ng-capture ingest adds to a capture directory; or write to another place than {path.parent}"
            raise UsageError(f"{path}: a capture is there, and would be replaced", hint=hint)


def _lines(written: Written) -> bytes:
    return b"".join(document + b"\n" for document in written.documents)
