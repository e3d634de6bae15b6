"""How turns are counted."""

from enum import StrEnum


class TurnRule(StrEnum):
    """`chain`: in the conversation that a request holds; `preview`: over all calls, as NeMo Gym's preview did."""

    CHAIN = "chain"
    PREVIEW = "preview"
