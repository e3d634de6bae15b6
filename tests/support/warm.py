"""The command in a process that has loaded it already, and forks itself for each run: a tenth of the time of a start.

    python -m tests.support.warm        # requests come on standard input, answers go to standard output

A run is a process of its own in a session of its own: its environment, its directory, its limits and pipes, and under
`shim` its events, are those of a fresh one.
"""

import atexit
import importlib
import os
import pickle
import pkgutil
import queue
import resource
import runpy
import selectors
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

SHIM = str(Path(__file__).parent / "shim")
_LOADED = (
    *("ng_capture.files", "ng_capture.records", "ng_capture.store", "ng_capture.chains", "ng_capture.retention"),
    *("ng_capture.ingest", "ng_capture.verdicts", "ng_capture_cli"),
)


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: bytes
    err: str


class Wanted(NamedTuple):
    """A run that is asked for; `limit` is the greatest size of a file."""

    arguments: tuple[str, ...]
    env: dict[str, str]
    cwd: str | None
    limit: int | None


class Warm:
    """A process that waits with the command loaded; `before` are the words that begin its command line."""

    _idle: "queue.SimpleQueue[Warm]" = queue.SimpleQueue()

    def __init__(self, before: list[str]) -> None:
        # what measures coverage writes too, and would be struck
        env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        self._process = subprocess.Popen(
            [*before, sys.executable, "-m", "tests.support.warm"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**env, "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=Path(__file__).parents[2],
        )

    @classmethod
    def run(cls, wanted: Wanted, before: list[str]) -> Ended:
        """Run it in a process that is idle, or in a new one."""
        try:
            warm = cls._idle.get_nowait()
        except queue.Empty:
            warm = cls(before)
        ended = warm._ask(wanted)
        cls._idle.put(warm)
        return ended

    def _ask(self, wanted: Wanted) -> Ended:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None and answers is not None
        pickle.dump(tuple(wanted), asked)
        asked.flush()
        return Ended(*pickle.load(answers))


def _serve(asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer every request; in the forked child it returns, ready to run."""
    while asked.peek(1):  # type: ignore[attr-defined]
        wanted = Wanted(*pickle.load(asked))
        pipes = os.pipe(), os.pipe()
        child = os.fork()
        if child == 0:
            _become(wanted, pipes[0][1], pipes[1][1])
            return
        for _, writing in pipes:
            os.close(writing)
        out, err = _read_all(pipes[0][0], pipes[1][0])
        _, status = os.waitpid(child, 0)
        pickle.dump((os.waitstatus_to_exitcode(status), out, err.decode()), answers)
        answers.flush()
    os._exit(0)


def _read_all(*descriptors: int) -> list[bytes]:
    """All that comes out of pipes until they are closed."""
    read = {descriptor: bytearray() for descriptor in descriptors}
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                if data := os.read(key.fd, 65536):
                    read[key.fd] += data
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return [bytes(data) for data in read.values()]


def _become(wanted: Wanted, out: int, err: int) -> None:
    """Be as a process that was just started with these words."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, place in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(descriptor, place)
    os.closerange(3, 64)
    if wanted.limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (wanted.limit, wanted.limit))
    os.environ.clear()
    os.environ.update(wanted.env)
    if wanted.cwd is not None:
        os.chdir(wanted.cwd)
    sys.argv = ["-c", *wanted.arguments]
    runpy.run_path(f"{SHIM}/sitecustomize.py")


def _end(run: Callable[[], None]) -> None:
    """Run it and leave without taking down all that was loaded, which takes longer than most runs."""
    code = 1
    try:
        run()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _load() -> None:
    importlib.import_module("filelock")
    for name in _LOADED:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(found.name)


if __name__ == "__main__":
    _load()
    from ng_capture_cli.main import run

    _serve(sys.stdin.buffer, sys.stdout.buffer)
    _end(run)
