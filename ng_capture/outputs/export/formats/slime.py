"""`slime`: sample dictionaries as slime and miles keep them, one a line."""

import msgspec

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import SPAN, Arrays, Record, TrainerFormat
from ng_capture.outputs.forms import LINES


def _row(row: FlatRow) -> Record:
    start, head = row.response_start, row.head
    versions = {str(span.weight_version) for span in head.spans if span.weight_version is not None}
    return {
        "tokens": row.tokens,
        "response_length": len(row.tokens) - start,
        "loss_mask": row.loss_mask[start:],
        "rollout_log_probs": row.log_probs[start:],
        "reward": head.reward,
        "rollout_id": head.rollout_id,
        "group_index": head.group_id,
        "status": "truncated" if head.truncated else "completed",
        "weight_versions": sorted(versions),
        "prompt": "",
        "response": "",
        "label": None,
        "metadata": {
            "spans": msgspec.to_builtins(head.spans),
            "trajectory_index": head.trajectory_index,
            "n_trajectories": head.n_trajectories,
            "row_weight": head.row_weight,
        },
    }


def _read(row: Record) -> Arrays:
    before = len(row["tokens"]) - row["response_length"]
    log_probs = [*[0.0] * before, *row["rollout_log_probs"]]
    return Arrays(list(row["tokens"]), [*[0] * before, *row["loss_mask"]], log_probs)


SLIME = TrainerFormat(
    name="slime",
    trainer="slime, miles",
    checked="read, not run",
    alignment="full ids; mask and log probabilities of the response only",
    columns={
        "tokens": "ids",
        "response_length": "int",
        "loss_mask": "mask",
        "rollout_log_probs": "floats",
        "reward": "number",
        "rollout_id": "text",
        "group_index": "text",
        "status": "text",
        "weight_versions": ["text"],
        "prompt": "text",
        "response": "text",
        "label": "text",
        "metadata": {
            "spans": [SPAN],
            "trajectory_index": "int",
            "n_trajectories": "int",
            "row_weight": "number",
        },
    },
    row=_row,
    read=_read,
    needs_reward=True,
    forms=LINES,
)
