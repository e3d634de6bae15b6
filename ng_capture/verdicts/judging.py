"""How to judge: the choices of the user."""

from enum import StrEnum

import msgspec


class Policy(StrEnum):
    """Which chains are delivered."""

    STRICT = "strict"
    TERMINAL = "terminal"
    ALL = "all"


class Judging(msgspec.Struct, frozen=True):
    """The policy, the policy's model where other models also called, links inferred where none are recorded."""

    policy: Policy = Policy.TERMINAL
    policy_model: str | None = None
    infer_links: bool = False
