"""What to do where the store holds another content of a call; apart, so that a command line knows it at once."""

from enum import StrEnum


class OnConflict(StrEnum):
    """Leave the rollout alone and say so, keep what is there, or mask the rollout."""

    FAIL = "fail"
    KEEP = "keep"
    MASK = "mask"
