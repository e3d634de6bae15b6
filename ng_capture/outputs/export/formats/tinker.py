"""`tinker`: one datum a line, of SFT, or of RL where advantages are asked for.

`provenance` stands beside the datum, whose wire model takes two keys only: what the row is, and the runs that tile its
input and its targets, for `Datum.with_provenance`.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats.interface import SPAN, Arrays, Kind, Record, TrainerFormat
from ng_capture.outputs.forms import LINES
from ng_capture.outputs.training_rows import Span

_TENSOR: Mapping[str, Kind] = {"dtype": "text", "shape": ["int"]}
_RUN: Mapping[str, Kind] = {"kind": "text", "sequence_id": "text", "offset": "int", "length": "int"}


def _row(row: FlatRow) -> Record:
    head, size = row.head, len(row.tokens) - 1
    inputs = {"target_tokens": _tensor(row.tokens[1:], "int64")}
    mask = row.loss_mask[1:]
    if head.advantage is None:
        inputs["weights"] = _tensor([float(trained) for trained in mask], "float32")
    else:
        inputs["logprobs"] = _tensor(row.log_probs[1:], "float32")
        inputs["advantages"] = _tensor([head.advantage if trained else 0.0 for trained in mask], "float32")
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
            "spans": msgspec.to_builtins(head.spans),
            "model_input_spans": list(_runs(head.spans, 0, size)),
            "loss_fn_input_spans": list(_runs(head.spans, 1, size + 1)),
        },
    }


def _runs(spans: Iterable[Span], first: int, end: int) -> Iterator[Record]:
    """The spans of tokens first..end as tinker tells them: what of a call's prompt, or of what it sampled."""
    for span in spans:
        start, stop = max(span.start, first), min(span.end, end)
        if start < stop:
            yield {
                "kind": "prompt" if span.kind == "prompt" else "sampled",
                "sequence_id": span.call_id,
                "offset": span.call_offset + start - span.start,
                "length": stop - start,
            }


def _read(row: Record) -> Arrays:
    inputs = row["loss_fn_inputs"]
    tokens = [*row["model_input"]["chunks"][0]["tokens"][:1], *inputs["target_tokens"]["data"]]
    if "weights" in inputs:
        return Arrays(tokens, [0, *(int(weight != 0.0) for weight in inputs["weights"]["data"])], None)
    # a token of probability 1 is told by its advantage; one that has none either trains nothing
    log_probs, gains = [0.0, *inputs["logprobs"]["data"]], [0.0, *inputs["advantages"]["data"]]
    return Arrays(tokens, [int(any(pair)) for pair in zip(log_probs, gains, strict=True)], log_probs)


def _tensor(data: list[int] | list[float], dtype: str) -> Record:
    return {"data": data, "dtype": dtype, "shape": [len(data)]}


TINKER = TrainerFormat(
    name="tinker",
    trainer="tinker",
    checked="tinker 0.38.0",
    alignment="shifted left, one shorter: position i is about token i + 1",
    columns={
        "model_input": {"chunks": [{"type": "text", "tokens": "ids"}]},
        "loss_fn_inputs": {
            "target_tokens": {"data": "ids", **_TENSOR},
            "weights": {"data": "floats", **_TENSOR},
            "logprobs": {"data": "floats", **_TENSOR},
            "advantages": {"data": "floats", **_TENSOR},
        },
        "provenance": {
            "rollout_id": "text",
            "group_id": "text",
            "trajectory_index": "int",
            "n_trajectories": "int",
            "reward": "number",
            "row_weight": "number",
            "spans": [SPAN],
            "model_input_spans": [_RUN],
            "loss_fn_input_spans": [_RUN],
        },
    },
    row=_row,
    read=_read,
    forms=LINES,
    takes_advantages=True,
)
