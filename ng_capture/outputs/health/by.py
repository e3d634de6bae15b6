"""What a breakdown goes by."""

from enum import StrEnum


class By(StrEnum):
    """The part of a run that a rollout belongs to."""

    MODEL = "model"
    TASK = "task"
    ATTEMPT = "attempt"
    GROUP = "group"
