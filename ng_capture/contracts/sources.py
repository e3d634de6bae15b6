"""What a conversion reads: a file, standard input, or a folder; plain or compressed, whole or line by line."""

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ng_capture.contracts.careful_json import Careful, read_carefully
from ng_capture.contracts.rules import Fault
from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import compression_of, shown
from ng_capture.files.reading import CaptureFile, StreamFault
from ng_capture.natural_order import natural_key

STANDARD_INPUT = "-"


class JsonLine(msgspec.Struct, frozen=True):
    """One line that is not blank: its number, its bytes, what they hold, and whether it ends with a line break."""

    number: int
    data: bytes
    careful: Careful
    terminated: bool

    @property
    def value(self) -> Any:
        """The value that was read, None where there is none."""
        return self.careful.value


class Source:
    """One thing to be read; `name` is what faults call it.

    Raises UsageError for a path that does not exist, and its methods SurroundingsError for what cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == STANDARD_INPUT else shown(path)
        self.path = None if path == STANDARD_INPUT else Path(path)
        if self.path is not None and not self.path.exists():
            raise UsageError(f"{self.name}: no such file or directory")
        self._data: bytes | None = None
        self._damage: StreamFault | None = None

    @property
    def is_folder(self) -> bool:
        return self.path is not None and self.path.is_dir()

    def names(self) -> list[str]:
        """The names of what lies in a folder, none for anything else; raises SurroundingsError."""
        if self.path is None or not self.path.is_dir():
            return []
        try:
            return sorted(os.listdir(self.path))  # noqa: PTH208 (a capture directory holds a million)
        except OSError as error:
            raise SurroundingsError(f"{self.name}: cannot be listed: {error.strerror}") from error

    @property
    def file_name(self) -> str:
        """The last part of the path, without the end that tells its compression."""
        if self.path is None:
            return STANDARD_INPUT
        name = self.path.name
        return name.removesuffix(compression_of(name)) if compression_of(name) else name

    def read(self) -> bytes:
        """All bytes, decompressed; of a damaged compressed file those before the damage."""
        if self.path is not None:
            # the sources of a whole folder are known before the first is converted: kept, they would all be in memory
            return b"".join(self._file_lines(self.path))
        if self._data is None:
            self._data = sys.stdin.buffer.read()
        return self._data

    def document(self, contract: str) -> Careful:
        """The one JSON document of the file; its faults name rules of that contract."""
        return read_carefully(self.read(), contract)

    def lines(self, contract: str) -> Iterator[JsonLine]:
        """Every line that is not blank as JSON, one at a time; faults name rules of that contract."""
        for number, data in enumerate(self._raw_lines(), start=1):
            if data.strip():
                # a text that breaks off does so in its line, not in the next
                careful = read_carefully(data.removesuffix(b"\n"), contract, number)
                yield JsonLine(number, data, careful, data.endswith(b"\n"))

    def _raw_lines(self) -> Iterator[bytes]:
        if self.path is None:
            yield from io.BytesIO(self.read())
            return
        yield from self._file_lines(self.path)

    def _file_lines(self, path: Path) -> Iterator[bytes]:
        with CaptureFile(str(path), compression_of(path.name)) as file:
            for line in file.lines():
                yield line.data
            self._damage = file.fault

    @property
    def damage(self) -> tuple[Fault, ...]:
        """What is told of a compressed file that could not be decompressed to its end, once that was tried."""
        if self._damage is None:
            return ()
        how = "ends too early" if self._damage.truncated else "cannot be decompressed"
        message = f"the compressed file {how}: what came after is lost"
        return (Fault("source.compression", "error", message, line=self._damage.number),)

    def beside(self, relative: str) -> Path | None:
        """The file that a document names, by its place beside it; None for an address, or where it is not there."""
        if self.path is None or "://" in relative or "\0" in relative:
            return None
        try:
            path = self.path.parent / relative
            return path if path.is_file() else None
        except OSError:
            return None


def read_beside(path: Path) -> bytes:
    """The bytes of a file that a document names; raises SurroundingsError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SurroundingsError(f"{path}: cannot be read: {error.strerror}") from error


def entries_of(folder: Source) -> list[str]:
    """The files and folders in a folder, in natural order; hidden ones and links to folders are somebody's own."""
    assert folder.path is not None
    paths = [folder.path / name for name in sorted(folder.names(), key=natural_key) if not name.startswith(".")]
    return [str(path) for path in paths if path.is_file() or (path.is_dir() and not path.is_symlink())]
