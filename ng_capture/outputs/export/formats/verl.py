"""`verl`: unpadded prompts and responses; a loader pads them into a batch."""

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import PROVENANCE, Record, TrainerFormat, provenance, split_arrays


def _row(row: FlatRow) -> Record:
    start, head = row.response_start, row.head
    return {
        "prompts": row.tokens[:start],
        "responses": row.tokens[start:],
        "response_mask": row.loss_mask[start:],
        "rollout_log_probs": row.log_probs[start:],
        "score": head.reward,
        "uid": head.group_id,
        **provenance(head),
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
        **PROVENANCE,
    },
    row=_row,
    read=lambda row: split_arrays(row, "prompts", "responses", "response_mask", "rollout_log_probs"),
    needs_reward=True,
)
