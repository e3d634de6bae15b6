"""How to rebuild: the choices of the user."""

from enum import StrEnum

import msgspec

from ng_capture.verdicts.judging import Judging


class Shape(StrEnum):
    """What a rebuild writes: finished rows with rebuilt responses, or one training row per chain."""

    ROLLOUTS = "rollouts"
    ROWS = "rows"


class Masked(StrEnum):
    """What becomes of the rows of masked rollouts."""

    KEEP = "keep"
    DROP = "drop"


class Rebuild(msgspec.Struct, frozen=True):
    """How to rebuild. `table`: rows as arrays, for a columnar file; `copied`: lines that may leave the process.

    `attach_calls`: every finished row also gets the model calls of its rollout (capture-files.md 7.4).
    """

    shape: Shape
    judging: Judging
    masked: Masked = Masked.KEEP
    sealing: bool = False
    attach_calls: bool = False
    table: bool = False
    copied: bool = False
