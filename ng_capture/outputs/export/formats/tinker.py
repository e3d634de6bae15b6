"""`tinker`: one datum a line, of SFT, or of RL where advantages are asked for, with spans that say whence it is."""

import msgspec

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import Arrays, Record, TrainerFormat


def _row(row: FlatRow) -> Record:
    head, size = row.head, len(row.tokens) - 1
    inputs = {"target_tokens": _tensor(row.tokens[1:], "int64")}
    mask = row.loss_mask[1:]
    if head.advantage is None:
        inputs["weights"] = _tensor([float(trained) for trained in mask], "float32")
    else:
        inputs["logprobs"] = _tensor(row.log_probs[1:], "float32")
        inputs["advantages"] = _tensor([head.advantage if trained else 0.0 for trained in mask], "float32")
    spans = [span for span in head.spans if span.start < size]
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": row.tokens[:-1]}]},
        "loss_fn_inputs": inputs,
        "provenance": {
            "rollout_id": head.rollout_id,
            "group_id": head.group_id,
            "trajectory_index": head.trajectory_index,
            "n_trajectories": head.n_trajectories,
            "reward": head.reward,
            "row_weight": head.row_weight,
            "spans": msgspec.to_builtins(spans),
        },
    }


def _read(row: Record) -> Arrays:
    inputs = row["loss_fn_inputs"]
    tokens = [*row["model_input"]["chunks"][0]["tokens"][:1], *inputs["target_tokens"]["data"]]
    if "weights" in inputs:
        return Arrays(tokens, [0, *(int(weight != 0.0) for weight in inputs["weights"]["data"])], None)
    # an advantage of 0 trains nothing, and a sampled token of probability 1 is of no use either
    log_probs = [0.0, *inputs["logprobs"]["data"]]
    return Arrays(tokens, [int(value != 0.0) for value in log_probs], log_probs)


def _tensor(data: list[int] | list[float], dtype: str) -> Record:
    return {"data": data, "dtype": dtype, "shape": [len(data)]}


TINKER = TrainerFormat(
    name="tinker",
    trainer="tinker",
    checked="tinker 0.38.0",
    alignment="shifted left, one shorter: position i is about token i + 1",
    columns={"model_input": "json", "loss_fn_inputs": "json", "provenance": "json"},
    row=_row,
    read=_read,
    tables=False,
)
