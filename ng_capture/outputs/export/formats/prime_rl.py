"""`prime-rl`: training samples by the names of their fields, since their order changes from commit to commit."""

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import Record, TrainerFormat, split_arrays
from ng_capture.outputs.forms import LINES


def _row(row: FlatRow) -> Record:
    start, head = row.response_start, row.head
    return {
        "prompt_ids": row.tokens[:start],
        "prompt_mask": [False] * start,
        "completion_ids": row.tokens[start:],
        "completion_mask": [bool(trained) for trained in row.loss_mask[start:]],
        "completion_logprobs": row.log_probs[start:],
        "advantage": head.advantage,
        "reward": head.reward,
    }


PRIME_RL = TrainerFormat(
    name="prime-rl",
    trainer="prime-rl",
    checked="read, not run",
    alignment="prompt and completion apart; mask and log probabilities of the completion",
    columns={
        "prompt_ids": "ids",
        "prompt_mask": ["flag"],
        "completion_ids": "ids",
        "completion_mask": ["flag"],
        "completion_logprobs": "floats",
        "advantage": "number",
        "reward": "number",
    },
    row=_row,
    read=lambda row: split_arrays(row, "prompt_ids", "completion_ids", "completion_mask", "completion_logprobs"),
    needs_reward=True,
    drops="spans, weight versions, ids: build TrainingSample(**row) with the names of your commit",
    forms=LINES,
    takes_advantages=True,
)
