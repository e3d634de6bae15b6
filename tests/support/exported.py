"""What a row of a trainer's format holds, read back by what the trainer does with it."""

import struct
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Recovered(NamedTuple):
    """Tokens, loss mask and log probabilities of full length; None where the format has no place for them."""

    tokens: list[int]
    loss_mask: list[int]
    log_probs: list[float] | None


def recovered(name: str, row: Row) -> Recovered:
    """The arrays of one row of the named format."""
    return _READERS[name](row)


def _labels(row: Row) -> Recovered:
    tokens = list(row["input_ids"])
    assert list(row["attention_mask"]) == [1] * len(tokens)
    assert all(label in (-100, token) for label, token in zip(row["labels"], tokens, strict=True))
    return Recovered(tokens, [int(label != -100) for label in row["labels"]], None)


def _labels_without_media(row: Row) -> Recovered:
    assert [row["images"], row["videos"], row["audios"]] == [[], [], []]
    return _labels(row)


def _split(prompt: str, response: str, mask: str, log_probs: str) -> Callable[[Row], Recovered]:
    def read(row: Row) -> Recovered:
        before = [0] * len(row[prompt])
        assert len(row[response]) == len(row[mask]) == len(row[log_probs])
        return Recovered([*row[prompt], *row[response]], [*before, *row[mask]], [*map(float, before), *row[log_probs]])

    return read


def _sample(row: Row) -> Recovered:
    tokens = list(row["tokens"])
    before = [0] * (len(tokens) - row["response_length"])
    assert len(row["loss_mask"]) == len(row["rollout_log_probs"]) == row["response_length"]
    return Recovered(tokens, [*before, *row["loss_mask"]], [*map(float, before), *row["rollout_log_probs"]])


def _datum(row: Row) -> Recovered:
    """Shifted: what stands at a position is about the token behind it."""
    (chunk,) = row["model_input"]["chunks"]
    inputs = row["loss_fn_inputs"]
    assert {len(tensor["data"]) for tensor in inputs.values()} == {len(chunk["tokens"])}
    assert all(tensor["shape"] == [len(tensor["data"])] for tensor in inputs.values())
    targets = inputs["target_tokens"]["data"]
    assert targets[:-1] == chunk["tokens"][1:]
    tokens = [chunk["tokens"][0], *targets]
    if "weights" in inputs:
        return Recovered(tokens, [0, *map(int, inputs["weights"]["data"])], None)
    mask = [0, *(int(value != 0.0) for value in inputs["advantages"]["data"])]
    return Recovered(tokens, mask, [0.0, *inputs["logprobs"]["data"]])


_READERS: Mapping[str, Callable[[Row], Recovered]] = {
    "rows": lambda row: Recovered(list(row["tokens"]), list(row["loss_mask"]), list(row["logprobs"])),
    "hf-labels": _labels,
    "llamafactory": _labels_without_media,
    "skyrl-sft": lambda row: Recovered(list(row["input_ids"]), list(row["loss_mask"]), None),
    "trl-grpo": _split("prompt_ids", "completion_ids", "env_mask", "logprobs"),
    "skyrl": _split("prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs"),
    "verl": _split("prompts", "responses", "response_mask", "rollout_log_probs"),
    "slime": _sample,
    "prime-rl": _split("prompt_ids", "completion_ids", "completion_mask", "completion_logprobs"),
    "tinker": _datum,
}


def in_float32(value: float) -> float:
    """The nearest 32-bit float, which is what tables hold."""
    (rounded,) = struct.unpack("<f", struct.pack("<f", value))
    return float(rounded)
