"""Where a command's data goes: standard output, or a file that appears whole."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import compression_of
from ng_capture_cli.terminal import tell_error


class Sink(Protocol):
    """Takes bytes in order."""

    def write(self, data: bytes, /) -> object: ...


def refuse_compressed(output: str) -> None:
    """Raises UsageError for a name that promises a compressed file."""
    compression = compression_of(output)
    if compression:
        plain = output.removesuffix(compression.value)
        raise UsageError(f"{output}: what is written is not compressed", hint=f"-o {plain}, or -o - and a pipe")


@contextlib.contextmanager
def open_sink(output: str) -> Iterator[Sink]:
    """`-` is standard output; any other name a file that is replaced when all of it is written."""
    if output == "-":
        if sys.stdout is None:
            raise SurroundingsError("standard output is closed", hint="-o FILE writes to a file")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    from ng_capture.files.writing import AtomicFile

    with AtomicFile(Path(output)) as file:
        yield file


class StandardOutput:
    """What a command that changes something prints: where nobody reads it, or it finds no room, the work goes on.

    `lost` tells that it found no room.
    """

    def __init__(self) -> None:
        self._on = sys.stdout is not None
        self.lost = False

    def write(self, data: bytes) -> None:
        self._attempt(data)

    def end(self) -> None:
        self._attempt(b"", flush=True)

    def _attempt(self, data: bytes, *, flush: bool = False) -> None:
        if not self._on:
            return
        try:
            sys.stdout.buffer.write(data)
            if flush:
                sys.stdout.buffer.flush()
        except BrokenPipeError:
            self._off()
        except OSError as error:
            self.lost = True
            tell_error(f"output: {error.strerror}")
            self._off()

    def _off(self) -> None:
        self._on = False
        # what is still buffered must not fail again when the process ends
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
