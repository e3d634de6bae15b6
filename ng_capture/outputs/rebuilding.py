"""How to rebuild: the choices of the user."""

from enum import StrEnum

import msgspec

from ng_capture.outputs.export.choices import NO_CHOICE, Export
from ng_capture.outputs.forms import Form
from ng_capture.verdicts.judging import Judging


class Shape(StrEnum):
    """What a rebuild writes: finished rows with rebuilt responses, one row a chain, its text, or a trainer's format."""

    ROLLOUTS = "rollouts"
    ROWS = "rows"
    GYM_RESPONSE = "gym-response"
    MESSAGES = "messages"
    PAIRS = "pairs"
    HF_LABELS = "hf-labels"
    LLAMAFACTORY = "llamafactory"
    TINKER = "tinker"
    TRL_GRPO = "trl-grpo"
    SKYRL_SFT = "skyrl-sft"
    SKYRL = "skyrl"
    VERL = "verl"
    SLIME = "slime"
    PRIME_RL = "prime-rl"


ALIASES = dict.fromkeys(("trl-sft", "axolotl", "unsloth"), Shape.HF_LABELS)
"""Shapes by the names of trainers that load them (policies-and-exports.md 2.3)."""


class Masked(StrEnum):
    """What becomes of the rows of masked rollouts."""

    KEEP = "keep"
    DROP = "drop"


class Rebuild(msgspec.Struct, frozen=True):
    """How to rebuild. `form` is that of the output; `copied`: lines that may leave the process.

    `attach_calls`: every finished row also gets the model calls of its rollout (capture-files.md 7.4).
    `export` is for everything but finished rows.
    """

    shape: Shape
    judging: Judging
    masked: Masked = Masked.KEEP
    sealing: bool = False
    attach_calls: bool = False
    export: Export = NO_CHOICE
    form: Form = Form.JSONL
    copied: bool = False

    @property
    def table(self) -> bool:
        """Rows are wanted as arrays, not as lines."""
        return self.form is not Form.JSONL
