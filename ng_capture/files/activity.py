"""Is somebody still writing? When the files of a rollout changed last, and whether its lock is held."""

import os
from collections.abc import Iterable

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import LOCK_NAME

# not blocking: a pipe that bears a lock's name must not hang the run
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


def last_change(files: RolloutFiles) -> float:
    """When the youngest file of a rollout was written, in seconds since 1970; raises SurroundingsError."""
    return max(status.st_mtime for status in _statuses(files))


def signature(files: RolloutFiles) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of every file: the same again means that nothing was written in between."""
    statuses = zip(files.names, _statuses(files), strict=True)
    return tuple((str(name), status.st_size, status.st_mtime_ns) for name, status in statuses)


def is_locked(files: RolloutFiles) -> bool:
    """True if another process holds the rollout's lock; looks without making the lock file, and lets go at once."""
    # here: only a rollout that seems to have been left is looked at
    import filelock

    try:
        descriptor = os.open(os.path.join(files.directory, f"{files.rollout_id}.{LOCK_NAME}"), _FLAGS)  # noqa: PTH118
    except OSError:
        return False
    try:
        return not filelock.lock_descriptor(descriptor, blocking=False)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _statuses(files: RolloutFiles) -> Iterable[os.stat_result]:
    for name in files.names:
        try:
            yield os.stat(files.path(name))  # noqa: PTH116
        except OSError as error:
            raise SurroundingsError(f"{files.path(name)}: cannot be looked at: {error.strerror}") from error
