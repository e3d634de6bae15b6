"""Put on PYTHONPATH, it counts what a process does to the file system and strikes at one of these events.

NG_SHIM_LOG    a file that gets the name of every event, one a line
NG_SHIM_TREE   a directory; what lies in it after every event goes into the file NG_SHIM_JOURNAL (see `power.py`)
NG_SHIM_AT     number of the event to strike at, from 1
NG_SHIM_HOW    `kill`: after the event, in the middle of a write; the name of an errno: instead of the event;
               the name of a signal: before the event, with `-after` behind it right after the event, with `-group` to
               the whole process group before the event

Events are what the system sees: opening for writing, each write that reaches the kernel, fsync, rename, unlink and so
on. Buffers are made small so that there are many. Pipes and terminals are no files.
"""

import builtins
import contextlib
import errno
import io
import os
import pickle
import signal
import stat
from collections.abc import Callable
from typing import Any

_LOG, _AT, _HOW, _TREE, _JOURNAL = (
    os.environ.pop(f"NG_SHIM_{name}", "") for name in ("LOG", "AT", "HOW", "TREE", "JOURNAL")
)
_BUFFER = 2000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_count = 0
_log = os.open(_LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if _LOG else -1
_write, _kill, _open = os.write, os.kill, io.open
_journal = _open(_JOURNAL, "ab") if _JOURNAL else None


def _recorded(name: str, operation: Callable[[], Any], target: str) -> Any:
    """Do it, and write down what lies in the tree then: bytes for files, None for directories."""
    result = operation()
    tree: dict[str, tuple[int, int, int, bytes | None]] = {}
    for place, folders, files in os.walk(_TREE):
        for entry in (*folders, *files):
            path = f"{place}/{entry}"
            status = os.lstat(path)
            told = (status.st_ino, status.st_mode, status.st_mtime_ns)
            with contextlib.nullcontext() if entry in folders else _open(path, "rb") as file:
                tree[os.path.relpath(path, _TREE)] = (*told, None if file is None else file.read())
    pickle.dump((name, os.path.relpath(target, _TREE) if target else "", tree), _journal)
    _journal.flush()
    return result


def _event(
    name: str,
    operation: Callable[[], Any],
    half: Callable[[], Any] | None = None,
    path: Any = None,
    target: str = "",
) -> Any:
    global _count
    _count += 1
    if _log >= 0:
        _write(_log, f"{name}\n".encode())
    if str(_count) != _AT:
        return operation() if _journal is None else _recorded(name, operation, target)
    if _HOW == "kill":
        try:
            (half or operation)()
        finally:
            _kill(os.getpid(), signal.SIGKILL)
    if _HOW in errno.errorcode.values():
        raise OSError(getattr(errno, _HOW), os.strerror(getattr(errno, _HOW)), path)
    signalled, _, when = _HOW.partition("-")
    if when != "after":
        # a terminal signals the whole group
        _kill(0 if when == "group" else os.getpid(), getattr(signal, signalled))
        return operation()
    try:
        return operation()
    finally:
        _kill(os.getpid(), getattr(signal, signalled))


def _counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        first = arguments[0]
        if isinstance(first, int) and not _is_file(first):
            return function(*arguments, **named)
        path, target = (None, _place_of(first)) if isinstance(first, int) else (first, "")
        return _event(name, lambda: function(*arguments, **named), path=path, target=target)

    return wrapped


def _place_of(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}") if _TREE else ""  # noqa: PTH115 (of the events themselves)


def _is_file(descriptor: int) -> bool:
    """False for pipes and terminals."""
    return stat.S_IFMT(os.fstat(descriptor).st_mode) in (stat.S_IFREG, stat.S_IFDIR)


class _Raw(io.FileIO):
    def write(self, data: Any) -> int:
        half = lambda: super(_Raw, self).write(memoryview(data)[: len(data) // 2])  # noqa: E731
        return _event("write", lambda: super(_Raw, self).write(data), half)


def _opened(file: Any, mode: str = "r", buffering: int = -1, *more: Any, **named: Any) -> Any:
    """`open` whose every write is an event."""
    if not set(mode) & set("wxa+") or (isinstance(file, int) and not _is_file(file)):
        return _open(file, mode, buffering, *more, **named)
    plain = mode.replace("b", "").replace("t", "")
    # who brings an opener opens by `os.open`, which is an event of its own
    how = {key: named[key] for key in ("closefd", "opener") if key in named}
    raw = (
        _Raw(file, plain, **how)
        if isinstance(file, int) or named.get("opener")
        else _event("open", lambda: _Raw(file, plain), path=file)
    )
    if buffering == 0:
        return raw
    binary = io.BufferedRandom(raw, _BUFFER) if "+" in mode else io.BufferedWriter(raw, _BUFFER)
    if "b" in mode:
        return binary
    return io.TextIOWrapper(binary, *more, **{key: named[key] for key in ("encoding", "newline") if key in named})


def _os_open(path: Any, flags: int, *more: Any, **named: Any) -> int:
    function = lambda: _real_os_open(path, flags, *more, **named)  # noqa: E731
    return _event("open", function, path=path) if flags & _WRITING else function()


_real_os_open = os.open
if _LOG or _AT or _JOURNAL:
    os.open = _os_open
    io.open = builtins.open = _opened
    for _name in (
        *("write", "pwrite", "fsync", "fdatasync", "truncate", "ftruncate", "replace", "rename", "unlink", "remove"),
        *("mkdir", "rmdir", "link", "symlink", "chmod", "fchmod", "chown", "utime", "sendfile", "copy_file_range"),
    ):
        setattr(os, _name, _counted(_name, getattr(os, _name)))
