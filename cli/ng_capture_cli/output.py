"""Where a command's data goes: standard output, or a file that appears whole."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ng_capture.errors import SurroundingsError


class Sink(Protocol):
    """Takes bytes in order."""

    def write(self, data: bytes, /) -> object: ...


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
