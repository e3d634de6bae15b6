"""The exceptions of the library.

    NgCaptureError
    ├── UsageError            wrong use: nothing was read or written          (exit code 2)
    ├── SurroundingsError     the machine failed: permission, disk, lock      (exit code 3)
    └── WriteRefused          the store does not take what was to be written: no record was added
        ├── InvalidRecord     values that would not be read back
        ├── ConflictingRecord a call id that has another content on the disk
        ├── RolloutFrozen     the rollout is sealed
        ├── RolloutRetired    the rollout is retired
        └── RolloutDamaged    what lies there cannot be written behind

Bad input is never an exception: it becomes a `Defect` of the record it was found in (design.md, "Judging").
"""


class NgCaptureError(Exception):
    """A failure that a user sees as one line and, where there is one, the next command to type."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(NgCaptureError):
    """The command was used wrongly; nothing was read or written."""


class SurroundingsError(NgCaptureError):
    """Permission, disk or lock: the machine did not do what was asked of it."""


class WriteRefused(NgCaptureError):
    """The store does not take what was to be written; no record was added."""


class InvalidRecord(WriteRefused):
    """Values that would not be read back as they were given; `reason` is a name of reasons.md."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason


class ConflictingRecord(WriteRefused):
    """A call id that has another content on the disk; the rollout is marked incomplete."""


class RolloutFrozen(WriteRefused):
    """The rollout is sealed: no further calls."""


class RolloutRetired(WriteRefused):
    """The rollout is retired: its payload is gone."""


class RolloutDamaged(WriteRefused):
    """State or records are damaged where a write would build on them."""
