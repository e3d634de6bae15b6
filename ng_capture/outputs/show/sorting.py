"""The orders of a list of rollouts."""

from enum import StrEnum


class SortBy(StrEnum):
    """What a list is sorted by: the id upwards, reasons by name, numbers from the largest down."""

    ID = "id"
    REASON = "reason"
    CALLS = "calls"
    CHAINS = "chains"
    TOKENS = "tokens"
    TRAINED = "trained"
    REWARD = "reward"
