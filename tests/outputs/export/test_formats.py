"""Every format of two turns, 1 2 -> 3 4 and 5 -> 6, as policies-and-exports.md 4.1 tells it."""

from pathlib import Path
from typing import Any

import pytest

from ng_capture.outputs.chunks import joined
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.made import make
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.records.json_text import decode_json
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.judging import Judging
from tests.support.forge import Forge
from tests.support.judging import judged

LABELS = {"input_ids": [1, 2, 3, 4, 5, 6], "attention_mask": [1] * 6, "labels": [-100, -100, 3, 4, -100, 6]}
RESPONSE, MASK, LOG_PROBS = [3, 4, 5, 6], [1, 1, 0, 1], [-0.11, -0.12, 0.0, -0.21]
ONE_ROW = {"trajectory_index": 0, "n_trajectories": 1}


def datum(**tensors: tuple[str, list[float]]) -> dict[str, Any]:
    told = {name: {"data": data, "dtype": dtype, "shape": [5]} for name, (dtype, data) in tensors.items()}
    return {
        "model_input": {"chunks": [{"type": "encoded_text", "tokens": [1, 2, 3, 4, 5]}]},
        "loss_fn_inputs": {"target_tokens": {"data": [2, 3, 4, 5, 6], "dtype": "int64", "shape": [5]}, **told},
    }


EXPECTED: dict[str, dict[str, Any]] = {
    "rows": {
        "tokens": [1, 2, 3, 4, 5, 6],
        "loss_mask": [0, 0, 1, 1, 0, 1],
        "logprobs": [0.0, 0.0, -0.11, -0.12, 0.0, -0.21],
        "reward": 1.0,
        "group_id": "3",
    },
    "hf-labels": LABELS,
    "llamafactory": {**LABELS, "images": [], "videos": [], "audios": []},
    "tinker": datum(weights=("float32", [0.0, 1.0, 1.0, 0.0, 1.0])),
    "trl-grpo": {
        "prompt_ids": [1, 2],
        "completion_ids": RESPONSE,
        "env_mask": MASK,
        "logprobs": LOG_PROBS,
        "reward": 1.0,
        "group_id": "3",
    },
    "skyrl-sft": {"input_ids": [1, 2, 3, 4, 5, 6], "loss_mask": [0, 0, 1, 1, 0, 1]},
    "skyrl": {
        "prompt_token_ids": [1, 2],
        "response_ids": RESPONSE,
        "loss_masks": MASK,
        "rollout_logprobs": LOG_PROBS,
        "rewards": [0.0, 0.0, 0.0, 1.0],
        "is_last_step": True,
    },
    "verl": {
        "prompts": [1, 2],
        "responses": RESPONSE,
        "response_mask": MASK,
        "rollout_log_probs": LOG_PROBS,
        "score": 1.0,
        "uid": "3",
    },
    "slime": {
        "tokens": [1, 2, 3, 4, 5, 6],
        "response_length": 4,
        "loss_mask": MASK,
        "rollout_log_probs": LOG_PROBS,
        "reward": 1.0,
        "status": "completed",
    },
    "prime-rl": {
        "prompt_ids": [1, 2],
        "prompt_mask": [False, False],
        "completion_ids": RESPONSE,
        "completion_mask": [True, True, False, True],
        "completion_logprobs": LOG_PROBS,
        "reward": 1.0,
    },
}
"""What a row holds at least."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes the one row of a format, with this advantage."""
    forge = Forge("r-1")
    first = forge.root([1, 2], [3, 4], id="A", generation_log_probs=[-0.11, -0.12])
    scored = first.then([5], [6], id="B", generation_log_probs=[-0.21])
    store: Path = tmp_path_factory.mktemp("store")
    forge.write(store)
    judgement = judged(store)
    row = decode_row(b'{"reward": 1.0, "_ng_task_index": 3}')

    def make_row(name: str, advantage: float | None = None) -> dict[str, Any]:
        assert scored.full == [1, 2, 3, 4, 5, 6]
        (line,) = make(judgement, row, Rebuild(Shape(name), Judging()), advantage).lines
        value = decode_json(joined(line)).value
        assert isinstance(value, dict)
        return value

    return make_row


@pytest.mark.parametrize("name", ["rows", *FORMATS])
def test_a_row_is_laid_out_as_its_trainer_takes_it(made: Any, name: str) -> None:
    row = made(name)
    assert {key: row.get(key) for key in EXPECTED[name]} == EXPECTED[name]
    if name in FORMATS:
        assert row.keys() == FORMATS[name].columns.keys()


def test_a_datum_of_rl_has_advantages_where_tokens_are_trained(made: Any) -> None:
    log_probs, advantages = [0.0, -0.11, -0.12, 0.0, -0.21], [0.0, 0.5, 0.5, 0.0, 0.5]
    expected = datum(logprobs=("float32", log_probs), advantages=("float32", advantages))
    row = made("tinker", advantage=0.5)
    assert {key: row[key] for key in expected} == expected


def test_a_finished_row_has_contiguous_items(made: Any) -> None:
    row = made("gym-response")
    items = [item for item in row["response"]["output"] if "generation_token_ids" in item]
    assert [(item["prompt_token_ids"], item["generation_token_ids"]) for item in items] == [
        ([1, 2], [3, 4]),
        ([1, 2, 3, 4, 5], [6]),
    ]
    assert [item["generation_log_probs"] for item in items] == [[-0.11, -0.12], [-0.21]]
    assert (row["reward"], row["mask_sample"], row["_ng_task_index"]) == (1.0, False, "3")
