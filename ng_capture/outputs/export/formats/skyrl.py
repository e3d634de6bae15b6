"""`skyrl-sft` and `skyrl`: SkyRL's loss-masked rows, and its generator output with one trajectory step a row."""

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import (
    PROVENANCE,
    Arrays,
    Record,
    TrainerFormat,
    provenance,
    split_arrays,
)


def _sft(row: FlatRow) -> Record:
    return {"input_ids": row.tokens, "loss_mask": row.loss_mask}


def _step(row: FlatRow) -> Record:
    start, head = row.response_start, row.head
    last = head.trajectory_index == head.n_trajectories - 1
    rewards = [0.0] * (len(row.tokens) - start)
    if last and head.reward is not None:
        # on the last token of the rollout's last row
        rewards[-1] = head.reward
    return {
        "prompt_token_ids": row.tokens[:start],
        "response_ids": row.tokens[start:],
        "loss_masks": row.loss_mask[start:],
        "rollout_logprobs": row.log_probs[start:],
        "rewards": rewards,
        "stop_reasons": row.stop,
        "trajectory_ids": head.rollout_id,
        "is_last_step": last,
        "group_id": head.group_id,
        **provenance(head),
    }


SKYRL_SFT = TrainerFormat(
    name="skyrl-sft",
    trainer="SkyRL SFT",
    checked="skyrl 0.4.0",
    alignment="full, unshifted",
    columns={"input_ids": "ids", "loss_mask": "mask"},
    row=_sft,
    read=lambda row: Arrays(list(row["input_ids"]), list(row["loss_mask"]), None),
    tells=frozenset(),
    drops="log probabilities, rewards, spans",
)
SKYRL = TrainerFormat(
    name="skyrl",
    trainer="SkyRL RL",
    checked="skyrl 0.4.0",
    alignment="prompt and response apart; rows of one rollout adjacent, the last one flagged",
    columns={
        "prompt_token_ids": "ids",
        "response_ids": "ids",
        "loss_masks": "mask",
        "rollout_logprobs": "floats",
        "rewards": "floats",
        "stop_reasons": "text",
        "trajectory_ids": "text",
        "is_last_step": "flag",
        "group_id": "text",
        **PROVENANCE,
    },
    row=_step,
    read=lambda row: split_arrays(row, "prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs"),
    needs_reward=True,
    whole_reward=True,
)
