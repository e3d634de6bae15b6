"""`trl-grpo`: what a replay rollout function of TRL's GRPO gives back, one completion a row."""

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import PROVENANCE, Record, TrainerFormat, provenance, split_arrays


def _row(row: FlatRow) -> Record:
    start, head = row.response_start, row.head
    return {
        "prompt_ids": row.tokens[:start],
        "completion_ids": row.tokens[start:],
        "logprobs": row.log_probs[start:],
        "env_mask": row.loss_mask[start:],
        "reward": head.reward,
        "group_id": head.group_id,
        **provenance(head),
    }


TRL_GRPO = TrainerFormat(
    name="trl-grpo",
    trainer="TRL GRPO, replayed by ng_capture.replay",
    checked="trl 1.16.0",
    alignment="prompt and completion apart; mask and log probabilities of the completion only",
    columns={
        "prompt_ids": "ids",
        "completion_ids": "ids",
        "logprobs": "floats",
        "env_mask": "mask",
        "reward": "number",
        "group_id": "text",
        **PROVENANCE,
    },
    row=_row,
    read=lambda row: split_arrays(row, "prompt_ids", "completion_ids", "env_mask", "logprobs"),
    needs_reward=True,
)
