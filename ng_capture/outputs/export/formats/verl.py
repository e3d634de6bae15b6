"""`verl`: unpadded prompts and responses; a loader pads them into a batch."""

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import Record, TrainerFormat, split_arrays


def _row(row: FlatRow) -> Record:
    start, head = row.response_start, row.head
    return {
        "prompts": row.tokens[:start],
        "responses": row.tokens[start:],
        "response_mask": row.loss_mask[start:],
        "rollout_log_probs": row.log_probs[start:],
        "score": head.reward,
        "uid": head.group_id,
        "rollout_id": head.rollout_id,
        "trajectory_index": head.trajectory_index,
        "n_trajectories": head.n_trajectories,
    }


VERL = TrainerFormat(
    name="verl",
    trainer="verl",
    checked="verl 0.9.1",
    alignment="prompt and response apart, unpadded; mask and log probabilities of the response only",
    columns={
        "prompts": "ids",
        "responses": "ids",
        "response_mask": "mask",
        "rollout_log_probs": "floats",
        "score": "number",
        "uid": "text",
        "rollout_id": "text",
        "trajectory_index": "int",
        "n_trajectories": "int",
    },
    row=_row,
    read=lambda row: split_arrays(row, "prompts", "responses", "response_mask", "rollout_log_probs"),
    needs_reward=True,
    drops="spans and weight versions",
)
