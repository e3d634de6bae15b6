"""The writer's lock of one rollout: a lock file that is never emptied and never removed (capture-files.md 1.3)."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ng_capture.errors import SurroundingsError

_PAUSE = 0.02


class Busy(SurroundingsError):
    """Another process holds the lock."""


def check_locks(directory: Path) -> None:
    """Raises SurroundingsError where the file system of a directory knows no locks; leaves no trace.

    One that is not there lies where the next one above it does.
    """
    there = next(parent for parent in (directory, *directory.absolute().parents) if parent.is_dir())
    try:
        descriptor = os.open(there, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except (OSError, AttributeError):
        # no file without a name here: the first lock will tell
        return
    try:
        _locked(descriptor, str(directory))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def exclusive(path: str, patience: float) -> Iterator[None]:
    """Hold the lock for the block; raises Busy after `patience` seconds, SurroundingsError where locks do not work."""
    try:
        # appended to, never truncated: what is locked must stay the file that other processes wait for
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise SurroundingsError(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        _wait_for(descriptor, path, patience)
        yield
    finally:
        # closing releases the lock; the file stays, since unlinking it would give the next two processes two locks
        os.close(descriptor)


def _wait_for(descriptor: int, path: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    while not _locked(descriptor, path):
        if time.monotonic() >= deadline:
            raise Busy(f"{path}: locked by another process for {patience:g} s", hint="try again later")
        time.sleep(_PAUSE)


def _locked(descriptor: int, path: str) -> bool:
    # here: only sealing takes a lock
    import filelock

    try:
        return filelock.lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        raise SurroundingsError(f"{path}: cannot be locked: {error.strerror}") from error


@contextlib.contextmanager
def exclusive_if_there(path: str, patience: float) -> Iterator[bool]:
    """Hold an existing lock for the block; False where there is no lock file: then nobody has written by the protocol.

    The file is never made, emptied or removed. Raises Busy after `patience` seconds.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        yield False
        return
    except OSError as error:
        raise SurroundingsError(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        _wait_for(descriptor, path, patience)
        yield True
    finally:
        os.close(descriptor)
