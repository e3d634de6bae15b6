"""The exceptions of the library.

    NgCaptureError
    ├── UsageError        wrong use: nothing was read or written          (exit code 2)
    └── SurroundingsError the machine failed: permission, disk, lock      (exit code 3)

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
