"""Makes chosen system calls of a Python process fail; imported by it at start, because this folder is on PYTHONPATH.

`NG_TEST_FAULTS` is a JSON list of `{"call", "errno", "under"?, "after_bytes"?}`: calls of that name fail with that
errno, below the folder `under` only, and only once `after_bytes` bytes have been read or written there.
"""

import builtins
import errno
import fcntl
import io
import json
import os
import sys
from collections.abc import Callable
from typing import Any

_CALLS = {
    "chmod": ("chmod", "fchmod"),
    "fsync": ("fsync", "fdatasync"),
    "link": ("link",),
    "listdir": ("scandir", "listdir"),
    "mkdir": ("mkdir",),
    "open": ("open",),
    "read": ("read", "readv", "pread"),
    "rename": ("rename", "replace"),
    "rmdir": ("rmdir",),
    "stat": ("stat", "lstat", "fstat"),
    "symlink": ("symlink",),
    "truncate": ("truncate", "ftruncate"),
    "unlink": ("unlink", "remove"),
    "utime": ("utime",),
    "write": ("write", "writev", "pwrite", "sendfile", "copy_file_range"),
}
_ALIASES = {"replace": "rename", "renameat": "rename", "fdatasync": "fsync", "scandir": "listdir", "remove": "unlink"}
_LOCKS = {"flock": ("flock",), "fcntl_lock": ("lockf", "fcntl")}


class _Fault:
    def __init__(self, said: dict[str, Any]) -> None:
        self._errno = getattr(errno, said["errno"])
        self._under = os.path.realpath(said["under"]) if said.get("under") else None
        self._left = said.get("after_bytes", 0)

    def strike(self, targets: tuple[object, ...]) -> None:
        if self._left <= 0 and self._concerns(targets):
            raise OSError(self._errno, os.strerror(self._errno), _shown(targets))

    def room(self, targets: tuple[object, ...], wanted: int) -> int:
        """How many bytes may still pass, of those wanted."""
        if not self._concerns(targets):
            return wanted
        passing = min(wanted, self._left)
        self._left -= passing
        return passing

    def _concerns(self, targets: tuple[object, ...]) -> bool:
        paths = [_path_of(target) for target in targets]
        if self._under is None:
            # a terminal or a pipe is no file
            return not any(path is None for path in paths) or not paths
        below = self._under + os.sep
        return any(path is not None and (path + os.sep).startswith(below) for path in paths)


def _path_of(target: object) -> str | None:
    """The file behind a path or a descriptor, None for what is no file."""
    if hasattr(target, "fileno"):
        target = target.fileno()
    if isinstance(target, int) and not isinstance(target, bool):
        try:
            path = _readlink(f"/proc/self/fd/{target}")
        except OSError:
            return None
        return path if path.startswith("/") and not path.startswith("/dev/") else None
    if not isinstance(target, str | bytes | os.PathLike):
        return None
    folder, name = os.path.split(os.path.abspath(os.fsdecode(target)))  # noqa: PTH100
    return os.path.join(os.path.realpath(folder), name)  # noqa: PTH118


def _shown(targets: tuple[object, ...]) -> object:
    return next((target for target in targets if isinstance(target, str | bytes | os.PathLike)), None)


def _failing(call: Callable[..., Any], fault: _Fault, targets: int) -> Callable[..., Any]:
    def wrapped(*args: Any, **options: Any) -> Any:
        fault.strike(args[:targets])
        return call(*args, **options)

    return wrapped


def _failing_write(call: Callable[..., int], fault: _Fault) -> Callable[..., int]:
    def wrapped(descriptor: int, data: Any, *rest: Any) -> int:
        whole = memoryview(data).cast("B")
        fault.strike((descriptor,))
        return call(descriptor, whole[: fault.room((descriptor,), len(whole))], *rest)

    return wrapped


def _failing_read(call: Callable[..., bytes], fault: _Fault) -> Callable[..., bytes]:
    def wrapped(descriptor: int, length: int, *rest: Any) -> bytes:
        fault.strike((descriptor,))
        return call(descriptor, fault.room((descriptor,), length), *rest)

    return wrapped


def _through_python() -> None:
    """Files in pure Python, which call `os.open`, `os.read` and `os.write` by their names, instead of those in C."""
    import _io
    import _pyio

    _pyio.open_code = io.open_code
    io.FileIO = _io.FileIO = _pyio.FileIO
    builtins.open = io.open = _io.open = _pyio.open


def _install(said: dict[str, Any]) -> None:
    fault = _Fault(said)
    name = _ALIASES.get(said["call"], said["call"])
    if name in _LOCKS:
        for call in _LOCKS[name]:
            setattr(fcntl, call, _failing(getattr(fcntl, call), fault, 1))
        return
    if name not in _CALLS:
        sys.exit(f"no fault for calls of {said['call']}")
    for call in _CALLS[name]:
        real = getattr(os, call, None)
        if real is None:
            continue
        if call == "write":
            wrapped = _failing_write(real, fault)
        elif call == "read":
            wrapped = _failing_read(real, fault)
        else:
            wrapped = _failing(real, fault, 2 if name in ("rename", "link", "symlink") else 1)
        setattr(os, call, wrapped)
    if name in ("open", "read", "write"):
        _through_python()


_readlink = os.readlink
for _said in json.loads(os.environ.get("NG_TEST_FAULTS", "[]")):
    _install(_said)
