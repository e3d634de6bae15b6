"""Put on PYTHONPATH, it counts what a process does to the file system and strikes at one of these events.

NG_SHIM_LOG    a file that gets the name of every event, one a line
NG_SHIM_AT     number of the event to strike at, from 1
NG_SHIM_HOW    `kill`: after the event, in the middle of a write; the name of an errno: instead of the event;
               the name of a signal: before the event, or with `-after` behind it right after the event

Events are what the system sees: opening for writing, each write that reaches the kernel, fsync, rename, unlink and so
on. Buffers are made small so that there are many. Standard output and error are no files here.
"""

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable
from typing import Any

_LOG, _AT, _HOW = (os.environ.pop(f"NG_SHIM_{name}", "") for name in ("LOG", "AT", "HOW"))
_BUFFER = 600
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_count = 0
_log = os.open(_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if _LOG else -1
_write, _kill, _open, _close = os.write, os.kill, io.open, os.close


def _event(name: str, operation: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
    global _count
    _count += 1
    if _log >= 0:
        _write(_log, f"{name}\n".encode())
    if str(_count) != _AT:
        return operation()
    if _HOW == "kill":
        (half or operation)()
        _kill(os.getpid(), signal.SIGKILL)
    if _HOW in errno.errorcode.values():
        raise OSError(getattr(errno, _HOW), os.strerror(getattr(errno, _HOW)))
    if _HOW.endswith("-after"):
        done = operation()
        _kill(os.getpid(), getattr(signal, _HOW.removesuffix("-after")))
        return done
    _kill(os.getpid(), getattr(signal, _HOW))
    return operation()


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        return _event(name, lambda: function(*arguments, **named))

    return wrapped


class _Raw(io.FileIO):
    def write(self, data: Any) -> int:
        half = lambda: super(_Raw, self).write(memoryview(data)[: len(data) // 2])  # noqa: E731
        return _event("write", lambda: super(_Raw, self).write(data), half)


def _opened(file: Any, mode: str = "r", buffering: int = -1, *more: Any, **named: Any) -> Any:
    """`open` whose every write is an event."""
    if not set(mode) & set("wxa+"):
        return _open(file, mode, buffering, *more, **named)
    plain = mode.replace("b", "").replace("t", "")
    raw = _Raw(file, plain) if isinstance(file, int) else _event("open", lambda: _Raw(file, plain))
    binary = io.BufferedRandom(raw, _BUFFER) if "+" in mode else io.BufferedWriter(raw, _BUFFER)
    if "b" in mode:
        return binary
    return io.TextIOWrapper(
        binary, *more, **{key: value for key, value in named.items() if key in ("encoding", "newline")}
    )


def _os_open(path: Any, flags: int, *more: Any, **named: Any) -> int:
    function = lambda: _real_os_open(path, flags, *more, **named)  # noqa: E731
    return _event("open", function) if flags & _WRITING else function()


_real_os_open = os.open
if _LOG or _AT:
    os.open = _os_open
    io.open = builtins.open = _opened
    for _name in (
        *("write", "pwrite", "fsync", "fdatasync", "truncate", "ftruncate", "replace", "rename", "unlink", "remove"),
        *("mkdir", "rmdir", "link", "symlink", "chmod", "fchmod", "chown", "utime", "sendfile", "copy_file_range"),
    ):
        setattr(os, _name, _counted(_name, getattr(os, _name)))
