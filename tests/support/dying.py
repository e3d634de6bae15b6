"""Work that dies half way: done by a forked child, which ends without a word at its n-th change of the file system."""

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

_CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "os.chmod"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_DIED, _FAILED = 9, 1


def dies_at(number: int, work: Callable[[], object]) -> bool:
    """Do the work in a child; True if it died before its end. What it raises is a failure of the test."""
    with warnings.catch_warnings():
        # the child runs this one function and ends
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            _die_at(number)
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, _DIED), f"the work failed: {code}"
    return code == _DIED


def _die_at(number: int) -> None:
    left = number

    def count(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in _CHANGES or (event == "open" and arguments[2] & _WRITING):
            left -= 1
            if left < 0:
                os._exit(_DIED)

    sys.addaudithook(count)
