"""A command that a person runs: standard input and standard error are a terminal."""

import contextlib
import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator

from tests.support.command import COMMAND

PATIENCE = 20.0


class Asked:
    """A running command, and the terminal that it asks on."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self._terminal = terminal

    def until(self, wanted: str) -> str:
        """What the terminal shows up to and with these words; fails where they never come."""
        text, deadline = "", time.monotonic() + PATIENCE
        while wanted not in text:
            assert time.monotonic() < deadline, f"never seen {wanted!r} in {text!r}"
            if select.select([self._terminal], [], [], 0.1)[0]:
                text += os.read(self._terminal, 65536).decode()
        return text

    def answer(self, text: str) -> tuple[int, str]:
        """The exit code and what stands on standard output."""
        os.write(self._terminal, f"{text}\n".encode())
        out, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out.decode()


@contextlib.contextmanager
def on_a_terminal(*arguments: object) -> Iterator[Asked]:
    """Run `ng-capture` with these arguments, its standard output in a pipe."""
    reading, writing = pty.openpty()
    line = [COMMAND, *map(str, arguments)]
    process = subprocess.Popen(line, stdin=writing, stdout=subprocess.PIPE, stderr=writing)
    os.close(writing)
    try:
        yield Asked(process, reading)
    finally:
        process.kill()
        process.communicate()
        os.close(reading)
