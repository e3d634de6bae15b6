"""TRL's GRPO trainer replays `trl-grpo`: the rollouts, groups, advantages and trained tokens of the captures."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from ng_capture.errors import UsageError
from ng_capture.replay import Replay
from tests.trainers.captured import CAPTURED
from tests.trainers.conftest import Export
from tests.trainers.tiny import tiny_model, tiny_tokenizer, token_log_probs

GROUP = 2


class Watched(GRPOTrainer):
    """Keeps what it was about to train."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.batches: list[dict[str, torch.Tensor]] = []

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self.batches.append(inputs)
        return super()._compute_loss(model, inputs)


def trainer_of(replay: Replay, path: Path, **config: Any) -> Watched:
    chosen = {
        "output_dir": str(path),
        "max_steps": 2,
        "per_device_train_batch_size": len(CAPTURED),
        "num_generations": GROUP,
        "max_completion_length": replay.longest,
        "learning_rate": 1e-3,
        "loss_type": "grpo",
        "shuffle_dataset": False,
        "use_cpu": True,
        "bf16": False,
        "report_to": [],
        "save_strategy": "no",
        "logging_steps": 1,
        "disable_tqdm": True,
        **config,
    }
    return Watched(
        model=tiny_model(),
        args=GRPOConfig(**chosen),
        train_dataset=Dataset.from_list(replay.prompts),
        rollout_func=replay.rollouts,
        reward_funcs=replay.reward,
        processing_class=tiny_tokenizer(),
    )


def trained_tokens(batch: dict[str, torch.Tensor]) -> list[list[int]]:
    """The tokens of each row that its masks let through."""
    masks = (batch["completion_mask"] * batch["tool_mask"]).bool()
    return [ids[mask].tolist() for ids, mask in zip(batch["completion_ids"], masks, strict=True)]


def prompts(batch: dict[str, torch.Tensor]) -> list[list[int]]:
    return [ids[mask.bool()].tolist() for ids, mask in zip(batch["prompt_ids"], batch["prompt_mask"], strict=True)]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_two_steps_train_the_generated_tokens_with_the_advantages_of_their_groups(
    export: Export, tmp_path: Path, ending: str
) -> None:
    told = [json.loads(line) for line in export("rows", "--advantage", "grpo").read_text().splitlines()]
    before = [parameter.clone() for parameter in tiny_model().parameters()]
    trainer = trainer_of(Replay(export("trl-grpo", ending=ending), GROUP), tmp_path)
    trainer.train()
    assert trainer.state.global_step == len(trainer.batches) == 2
    for batch in trainer.batches:
        # TRL may shuffle the rows of a batch, never what belongs to one of them
        found = sorted(zip(trained_tokens(batch), prompts(batch), batch["advantages"].tolist(), strict=True))
        expected = sorted(
            (
                [token for token, mask in zip(each.tokens, each.mask, strict=True) if mask],
                each.tokens[: each.mask.index(1)],
                row["advantage"],
            )
            for each, row in zip(CAPTURED, told, strict=True)
        )
        assert [row[:2] for row in found] == [row[:2] for row in expected]
        assert [row[2] for row in found] == pytest.approx([row[2] for row in expected], abs=1e-5)
    assert any(not torch.equal(old, new) for old, new in zip(before, trainer.model.parameters(), strict=True))


def test_the_gradient_is_that_of_the_generated_tokens_alone(export: Export, tmp_path: Path) -> None:
    """By hand: the advantage times the log probability of each trained token, a mean over each row, then over rows."""
    trainer = trainer_of(Replay(export("trl-grpo"), GROUP), tmp_path, max_steps=1, learning_rate=0.0)
    trainer.train()
    (batch,) = trainer.batches
    trainer.model.zero_grad()
    trainer.compute_loss(trainer.model, batch).backward()
    found = torch.cat([parameter.grad.flatten() for parameter in trainer.model.parameters()])

    model = tiny_model()
    advantages = {each.rollout_id: 0.0 for each in CAPTURED}
    for line in export("rows", "--advantage", "grpo").read_text().splitlines():
        row = json.loads(line)
        advantages[row["rollout_id"]] = row["advantage"]
    losses = []
    for each in CAPTURED:
        log_probs = token_log_probs(model, each.tokens)[torch.tensor(each.mask[1:]).bool()]
        losses.append(-advantages[each.rollout_id] * torch.exp(log_probs - log_probs.detach()).mean())
    torch.stack(losses).mean().backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
    assert float(expected.norm()) > 1e-2
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize("options", [(), ("--max-length", "11", "--on-overflow", "cut")], ids=["whole", "cut"])
def test_no_completion_counts_as_truncated_whose_last_answer_ended(
    export: Export, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """The trap: TRL looks at the last id only, and what a tool said is no stop token. One row is cut behind such."""
    replay = Replay(export("trl-grpo", *options), GROUP)
    trainer = trainer_of(replay, tmp_path, mask_truncated_completions=True, max_steps=1)
    trainer.train()
    ratio = next(each["completions/clipped_ratio"] for each in trainer.state.log_history if "loss" in each)
    assert ratio == 0.0
    assert all(trained_tokens(trainer.batches[0]))


def test_a_row_that_were_replayed_with_its_tail_would_count_as_truncated(export: Export, tmp_path: Path) -> None:
    """The trap itself, in TRL."""
    replay = Replay(export("trl-grpo"), GROUP)
    served = replay.rollouts

    def with_tail(names: list[str], trainer: object) -> dict[str, list[Any]]:
        told = served(names, trainer)
        told["completion_ids"][0].append(40)
        told["env_mask"][0].append(0)
        told["logprobs"][0].append(0.0)
        return told

    replay.rollouts = with_tail  # type: ignore[method-assign]
    trainer = trainer_of(replay, tmp_path, max_steps=1)
    trainer.train()
    ratio = next(each["completions/clipped_ratio"] for each in trainer.state.log_history if "loss" in each)
    assert ratio == 1 / len(CAPTURED)


def test_the_captured_log_probabilities_reach_the_trainer(export: Export, tmp_path: Path) -> None:
    served: list[dict[str, list[Any]]] = []
    replay = Replay(export("trl-grpo"), GROUP)
    rollouts = replay.rollouts
    replay.rollouts = lambda *told: served.append(rollouts(*told)) or served[-1]  # type: ignore[method-assign,func-returns-value]
    trainer_of(replay, tmp_path, max_steps=1).train()
    for each, found in zip(CAPTURED, served[0]["logprobs"], strict=True):
        assert found == each.log_probs[each.mask.index(1) :]


def test_a_trainer_with_another_group_size_is_stopped_at_its_first_batch(export: Export, tmp_path: Path) -> None:
    """Its advantages would be over rollouts of several groups, or over some of one."""
    trainer = trainer_of(Replay(export("trl-grpo"), GROUP), tmp_path, num_generations=4)
    with pytest.raises(UsageError, match="groups are 4 rollouts, those of the file 2"):
        trainer.train()
