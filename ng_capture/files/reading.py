"""Reading capture files: no lock, nothing written, never past the size a file had when it was opened.

Lines come with their number and their byte offset in the uncompressed stream.
"""

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Self

from ng_capture.errors import SurroundingsError
from ng_capture.files.names import Compression

if TYPE_CHECKING:
    import gzip

    import zstandard

_BUFFER = 1 << 20
# compressed bytes at a time: four of them can stand for 128 KiB, and all that they stand for comes at once
_FEED = 1 << 12


class Line(NamedTuple):
    """One line as it was read, with its line break where it has one."""

    number: int
    offset: int
    data: bytes

    @property
    def terminated(self) -> bool:
        """False for a last line without a line break."""
        return self.data.endswith(b"\n")


class StreamFault(NamedTuple):
    """A compressed stream that ends too early (`truncated`) or cannot be decompressed, after `offset` bytes of text."""

    number: int
    offset: int
    truncated: bool


class CaptureFile:
    """One open file, bounded by the size it had when it was opened; raises SurroundingsError if it cannot be read."""

    def __init__(self, path: str, compression: Compression = Compression.NONE, *, hashed: bool = False) -> None:
        self._compression = compression
        try:
            # not blocking: a pipe that bears a capture's name must not hang the run
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
            self._raw = _Bounded(descriptor, path, hashed)
        except OSError as error:
            raise _unread(path, error) from error
        self.size = self._raw.size
        self.fault: StreamFault | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.release()

    @property
    def sha256(self) -> str:
        """Digest of the bytes as they lie on disk; what was not read yet is read for it."""
        while self._raw.read(_BUFFER):
            pass
        return self._raw.hash.hexdigest()

    def read(self) -> bytes:
        """All bytes: for the small files beside the records."""
        return self._raw.readall()

    def lines(self) -> Iterator[Line]:
        """Every line; a fault of the compressed stream ends them and is kept in `fault`."""
        number, offset = 0, 0
        with self._text() as text:
            while True:
                try:
                    data = text.readline()
                except _decompression_errors(self._compression) as error:
                    self.fault = StreamFault(number + 1, offset, isinstance(error, EOFError))
                    return
                if not data:
                    return
                number += 1
                yield Line(number, offset, data)
                offset += len(data)

    def _text(self) -> io.BufferedReader:
        if self._compression is Compression.GZIP:
            import gzip

            return io.BufferedReader(_GzipReader(gzip.GzipFile(fileobj=self._raw)), _BUFFER)
        if self._compression is Compression.ZSTD:
            return io.BufferedReader(_ZstdReader(self._raw), _BUFFER)
        return io.BufferedReader(self._raw, _BUFFER)


def open_line(path: str) -> bytes:
    """What stands behind the last line break of a plain file: the line that a killed writer left open, mostly none.

    Raises SurroundingsError.
    """
    try:
        with open(path, "rb") as file:
            end = file.seek(0, os.SEEK_END)
            tail = b""
            while end and b"\n" not in tail:
                start = max(0, end - _FEED)
                file.seek(start)
                tail, end = file.read(end - start) + tail, start
    except OSError as error:
        raise _unread(path, error) from error
    return tail[tail.rfind(b"\n") + 1 :]


def _decompression_errors(compression: Compression) -> tuple[type[Exception], ...]:
    """What a damaged stream raises; the libraries are loaded for files that need them."""
    if compression is Compression.GZIP:
        import gzip
        import zlib

        return EOFError, zlib.error, gzip.BadGzipFile
    if compression is Compression.ZSTD:
        import zstandard

        return EOFError, zstandard.ZstdError
    return ()


class _Bounded(io.RawIOBase):
    """A regular file up to its size at opening, hashed as it is read."""

    def __init__(self, descriptor: int, path: str, hashed: bool) -> None:
        self._path = path
        self._file = io.FileIO(descriptor, "rb")
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise OSError(0, "not a regular file")
        self.size = self._left = status.st_size
        self._hashed = hashed
        self.hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        window = memoryview(buffer)[: self._left]
        try:
            count = self._file.readinto(window) or 0
        except OSError as error:
            raise _unread(self._path, error) from error
        self._left -= count
        if self._hashed:
            self.hash.update(window[:count])
        return count

    def close(self) -> None:
        # the readers above close what they wrap; the file itself is closed by its owner, after the digest
        pass

    def release(self) -> None:
        self._file.close()
        super().close()


def _unread(path: str, error: OSError) -> SurroundingsError:
    return SurroundingsError(f"{path}: cannot be read: {error.strerror}")


class _GzipReader(io.RawIOBase):
    """A piece at a time: what stands before a cut is read before the cut is told."""

    def __init__(self, stream: "gzip.GzipFile") -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._stream.read1(min(len(buffer), _FEED))
        buffer[: len(data)] = data
        return len(data)


class _ZstdReader(io.RawIOBase):
    """Frames one behind the other; EOFError where the last one is cut (the library's own reader says nothing)."""

    def __init__(self, source: io.RawIOBase) -> None:
        self._source = source
        self._frame = _new_frame()
        self._inside = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            if not self._fill():
                return 0
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _fill(self) -> bool:
        data = (self._frame.unused_data if self._frame.eof else b"") or self._source.read(_FEED) or b""
        if not data:
            if self._inside:
                raise EOFError("the last frame is cut")
            return False
        if self._frame.eof:
            self._frame = _new_frame()
        self._ready = memoryview(self._frame.decompress(data))
        self._inside = not self._frame.eof
        return True


def _new_frame() -> "zstandard.ZstdDecompressionObj":
    import zstandard

    return zstandard.ZstdDecompressor().decompressobj()
