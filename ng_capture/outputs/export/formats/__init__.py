"""The formats by their names."""

from ng_capture.outputs.export.formats.hf_labels import HF_LABELS
from ng_capture.outputs.export.formats.interface import TrainerFormat
from ng_capture.outputs.export.formats.llamafactory import LLAMAFACTORY
from ng_capture.outputs.export.formats.prime_rl import PRIME_RL
from ng_capture.outputs.export.formats.skyrl import SKYRL, SKYRL_SFT
from ng_capture.outputs.export.formats.slime import SLIME
from ng_capture.outputs.export.formats.tinker import TINKER
from ng_capture.outputs.export.formats.trl_grpo import TRL_GRPO
from ng_capture.outputs.export.formats.verl import VERL

FORMATS: dict[str, TrainerFormat] = {
    each.name: each for each in (HF_LABELS, LLAMAFACTORY, TINKER, TRL_GRPO, SKYRL_SFT, SKYRL, VERL, SLIME, PRIME_RL)
}
