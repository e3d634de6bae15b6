"""The one module that opens files for writing: the old file or the whole new one, durable before success is told."""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from ng_capture.errors import SurroundingsError, UsageError


class AtomicFile:
    """A file that appears under its name only when all of it is on the disk.

    `sha256` and `size` describe what was written. Leaving the block with an exception leaves the old file.
    Raises SurroundingsError for a full disk or a missing permission, UsageError for a directory that does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hash = hashlib.sha256()

    def __enter__(self) -> Self:
        parent = self.path.parent
        if not parent.is_dir():
            raise UsageError(f"{parent}: no such directory", hint=f"mkdir -p {parent}")
        if self.path.is_dir():
            raise UsageError(f"{self.path}: is a directory; an output file is wanted")
        with _failures_of(self.path):
            # in the same directory: a rename across file systems is a copy, and a copy can be cut
            descriptor, name = tempfile.mkstemp(prefix=f".{self.path.name}.", suffix=".tmp", dir=parent)
            os.fchmod(descriptor, _mode_of(self.path))
        self.temporary = Path(name)
        self._file = os.fdopen(descriptor, "wb", buffering=1 << 20)
        return self

    def write(self, *chunks: bytes | bytearray | memoryview) -> None:
        with _failures_of(self.path):
            for chunk in chunks:
                self._file.write(chunk)
                self._hash.update(chunk)
                self.size += len(chunk)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        try:
            if kind is None:
                with _failures_of(self.path):
                    self._file.flush()
                    # before the rename: a name must never point to bytes that a power cut can take away
                    os.fsync(self._file.fileno())
                    self.temporary.replace(self.path)
                    # the rename itself is durable only with the directory
                    sync_directory(self.path.parent)
        finally:
            with contextlib.suppress(OSError):
                self._file.close()
            self.temporary.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes) -> None:
    """Atomically and durably put these bytes under this name."""
    with AtomicFile(path) as file:
        file.write(data)


def discard(path: Path) -> None:
    """Remove a file, durably; one that is not there is no failure."""
    with _failures_of(path):
        path.unlink(missing_ok=True)
        # without it a power cut could bring the name back
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode_of(path: Path) -> int:
    """The mode of the file that is replaced, or what the user's umask gives a new one."""
    try:
        return path.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


@contextlib.contextmanager
def _failures_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SurroundingsError(f"{path}: cannot be written: {error.strerror or error}") from error
