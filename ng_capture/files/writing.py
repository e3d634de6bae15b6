"""The one module that opens files for writing: the old file or the whole new one, durable before success is told."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from io import RawIOBase
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ng_capture.errors import SurroundingsError, UsageError


def check_place(path: Path) -> None:
    """Raises UsageError where no file can be placed: no directory, or something there that is no file."""
    parent = path.parent
    if not parent.is_dir():
        raise UsageError(f"{parent}: no such directory", hint=f"mkdir -p {parent}")
    if path.is_dir():
        raise UsageError(f"{path}: is a directory; an output file is wanted")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: is no regular file, and would be replaced", hint="-o - writes to a pipe")


class AtomicFile:
    """A file that appears under its name only when all of it is on the disk.

    `sha256` and `size` describe what was written. Leaving the block with an exception leaves the old file.
    Raises SurroundingsError for a full disk or a missing permission, UsageError for a directory that does not exist.
    """

    def __init__(self, path: Path) -> None:
        # a link stays: what it leads to is replaced
        path = path.resolve() if path.is_symlink() else path
        self.path = path
        # in the same directory: a rename across file systems is a copy, and a copy can be cut
        # and with a name of its own: that of the file may be as long as names can be
        self.temporary = path.parent / f".ng-capture.{secrets.token_hex(4)}.tmp"
        self.size = 0
        self._hash = hashlib.sha256()
        self._file: BinaryIO | None = None
        self._placed = False

    def __enter__(self) -> Self:
        check_place(self.path)
        try:
            with _failures_of(self.path):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                descriptor = os.open(self.temporary, flags, 0o666)
                self._file = os.fdopen(descriptor, "wb", buffering=1 << 20)
                with contextlib.suppress(FileNotFoundError):
                    before = self.path.stat()
                    # who could read and write the old file can do so with the new one, if we may say so
                    with contextlib.suppress(PermissionError):
                        os.fchown(descriptor, before.st_uid, before.st_gid)
                    os.fchmod(descriptor, before.st_mode & 0o777)
        except BaseException:
            self._abandon()
            raise
        return self

    def write(self, *chunks: bytes | bytearray | memoryview) -> None:
        assert self._file is not None
        with _failures_of(self.path):
            for chunk in chunks:
                self._file.write(chunk)
                self._hash.update(chunk)
                self.size += len(chunk)

    def settle(self) -> None:
        """Bring what was written to the disk; what cannot go wrong later goes wrong here."""
        assert self._file is not None
        with _failures_of(self.path):
            self._file.flush()
            # before the rename: a name must never point to bytes that a power cut can take away
            os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Settle what was written, and hold the file open no longer: it only waits for its name."""
        assert self._file is not None
        if not self._file.closed:
            self.settle()
            with _failures_of(self.path):
                self._file.close()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        try:
            if kind is None and self._file is not None:
                self.finish()
                with _failures_of(self.path):
                    self.temporary.replace(self.path)
                    self._placed = True
                    # the rename itself is durable only with the directory
                    sync_directory(self.path.parent)
        finally:
            self._abandon()

    def _abandon(self) -> None:
        """Close and remove what did not get its name."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
        if not self._placed:
            with contextlib.suppress(OSError):
                self.temporary.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes) -> None:
    """Atomically and durably put these bytes under this name."""
    with AtomicFile(path) as file:
        file.write(data)


def append_line(path: Path, line: bytes) -> None:
    """Durably put a line behind what a file holds; the file and its name are made where there are none."""
    with _failures_of(path):
        # a cut line must not take the next one with it
        line_break = b"\n" if path.exists() and _is_cut(path) else b""
    append_bytes(path, line_break + line + b"\n")


def append_bytes(path: Path, data: bytes) -> None:
    """Durably put bytes behind what a file holds; the file and its name are made where there are none."""
    with _failures_of(path):
        new = not path.exists()
        with open(path, "ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            try:
                _write_all(file, data)
            except OSError:
                # what found no room must not be left as half a line, that the next one would be glued to
                with contextlib.suppress(OSError):
                    os.ftruncate(file.fileno(), size)
                raise
            # before anything that the line announces: a power cut must not take the announcement away alone
            os.fsync(file.fileno())
        if new:
            sync_directory(path.parent)


def _write_all(file: RawIOBase, data: bytes) -> None:
    """The system writes what fits and says how much that was."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def cut_file(path: Path, size: int) -> None:
    """Durably take away what a file holds behind its first `size` bytes."""
    with _failures_of(path), open(path, "r+b") as file:
        os.ftruncate(file.fileno(), size)
        # before anything is put there: a power cut must not leave the new bytes behind the old ones
        os.fsync(file.fileno())


def _is_cut(path: Path) -> bool:
    """True if the last line has no line break: its writer was killed."""
    with open(path, "rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def make_directory(path: Path) -> None:
    """Durably make a directory, and those above it that are not there."""
    with _failures_of(path):
        if path.is_dir():
            return
        make_directory(path.parent)
        path.mkdir(exist_ok=True)
        # a name in a directory is durable only with that directory
        sync_directory(path.parent)


def copy_durably(source: Path, target: Path) -> None:
    """A copy with the times and permissions of its original, whole and durable under its name."""
    with _failures_of(target):
        status = source.stat()
        with AtomicFile(target) as file:
            file.write(source.read_bytes())
            # before it gets its name: what may be read by its owner alone is never open to others
            file.temporary.chmod(status.st_mode & 0o777)
            with contextlib.suppress(PermissionError):
                os.chown(file.temporary, status.st_uid, status.st_gid)
            file.settle()
            os.utime(file.temporary, ns=(status.st_atime_ns, status.st_mtime_ns))


def move(source: Path, target: Path) -> bool:
    """Give a file another name in the same file system; False where it is not there. Durable with `sync_directory`."""
    with _failures_of(source):
        try:
            source.rename(target)
        except FileNotFoundError:
            return False
        return True


def discard(path: Path) -> None:
    """Remove a file, durably; one that is not there is no failure."""
    with _failures_of(path):
        path.unlink(missing_ok=True)
        # without it a power cut could bring the name back
        sync_directory(path.parent)


def discard_directory(path: Path) -> None:
    """Remove an empty directory, durably."""
    with _failures_of(path):
        path.rmdir()
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    with _failures_of(directory):
        descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _failures_of(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SurroundingsError(f"{path}: cannot be written: {error.strerror or error}") from error
