"""What a user chooses about exported rows beside their format (policies-and-exports.md 2.3)."""

from enum import StrEnum

import msgspec


class OnOverflow(StrEnum):
    """What becomes of a row that is too long."""

    DROP = "drop"
    CUT_TURN = "cut-turn"
    CUT = "cut"
    FAIL = "fail"


class RewardSplit(StrEnum):
    """How the reward of a rollout stands in its rows: all of it in each, by trained tokens, or in the last one."""

    FULL = "full"
    SHARE = "share"
    LAST = "last"


class AdvantageOf(StrEnum):
    """How an advantage is made of the rewards of a group."""

    NONE = "none"
    GRPO = "grpo"
    LOO = "loo"
    MEAN_CENTRED = "mean-centred"


class Weight(StrEnum):
    """What counts once: a rollout, however many rows it has, or a token."""

    ROLLOUT = "rollout"
    TOKEN = "token"


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """The choices; `reward_field` and `group_by` are paths into the finished row, None for NeMo Gym's own fields.

    `min_gap` is how far apart the rewards of a pair are at least; None is any distance.
    """

    max_length: int | None = None
    on_overflow: OnOverflow = OnOverflow.DROP
    mask_truncated: bool = False
    min_trainable: int = 1
    reward: RewardSplit = RewardSplit.FULL
    reward_field: str | None = None
    group_by: str | None = None
    advantage: AdvantageOf = AdvantageOf.NONE
    weight: Weight = Weight.ROLLOUT
    min_gap: float | None = None


NO_CHOICE = Export()
