"""Replays a `trl-grpo` file in TRL's GRPO trainer, whose completions are otherwise sampled by itself.

    replay = Replay("out.jsonl", group_size=8)
    GRPOTrainer(
        model=model,
        args=GRPOConfig(num_generations=8, max_completion_length=replay.longest, ...),
        train_dataset=Dataset.from_list(replay.prompts),
        rollout_func=replay.rollouts,
        reward_funcs=replay.reward,
    )

TRL makes the advantages itself, of consecutive groups: with `scale_rewards="group"`, its default, those of
`--advantage grpo`. Its gradient is that of the policy as it is now: the captured log probabilities come back with each
rollout, and TRL uses them only to correct for another engine. Nothing of TRL is imported here.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any

import msgspec

from ng_capture.errors import UsageError
from ng_capture.loading import load
from ng_capture.outputs.rebuilding import Shape

_SHOWN = 3


class _Completion(msgspec.Struct, frozen=True, eq=False):
    prompt: "array[int]"
    completion: "array[int]"
    mask: "array[int]"
    log_probs: "array[float]"
    reward: float


class Replay:
    """The rollouts of a file by group, in memory; every group has `group_size` of them, `num_generations` of TRL.

    A group that has another number is wrong use, or with `uneven="drop"` stands in `dropped` by name and count. So is
    a rollout of several rows: TRL would count each of them in the group's mean.
    """

    def __init__(self, path: str | PathLike[str], group_size: int, *, uneven: str = "fail") -> None:
        groups: dict[str, list[_Completion]] = {}
        for group_id, completion in _completions(path):
            groups.setdefault(group_id, []).append(completion)
        wrong = {group_id: len(group) for group_id, group in groups.items() if len(group) != group_size}
        if wrong and uneven != "drop":
            first = ", ".join(f"{group_id} {count:,}" for group_id, count in list(wrong.items())[:_SHOWN])
            message = f"{path}: {len(wrong):,} of {len(groups):,} groups have not {group_size} rollouts: {first}"
            raise UsageError(message, hint='uneven="drop" leaves them out')
        self.dropped = wrong
        self._size = group_size
        self._groups = {group_id: group for group_id, group in groups.items() if group_id not in wrong}

    @property
    def prompts(self) -> list[dict[str, str]]:
        """One row a group for TRL's dataset; its prompt is the group's name, which `rollouts` is asked for."""
        return [{"prompt": group_id} for group_id in self._groups]

    @property
    def longest(self) -> int:
        """Tokens of the longest completion."""
        return max((len(each.completion) for group in self._groups.values() for each in group), default=0)

    def rollouts(self, prompts: Sequence[str], trainer: object = None) -> dict[str, list[Any]]:
        """TRL's `rollout_func`: the captured rollouts of the groups named, each name as often as a group is large.

        Raises UsageError for a trainer of other groups, and for a part of one, as a process has that splits it.
        """
        size = getattr(trainer, "num_generations", self._size)
        if size != self._size:
            message = f"the trainer's groups are {size} rollouts, those of the file {self._size}"
            raise UsageError(message, hint=f"num_generations={self._size}")
        for group_id, count in Counter(prompts).items():
            if count % self._size:
                message = f"group {group_id} is asked for {count} times, its rollouts are {self._size}"
                raise UsageError(message, hint="the batch of each process holds whole groups")
        asked: Counter[str] = Counter()
        rows = []
        for group_id in prompts:
            rows.append(self._groups[group_id][asked[group_id] % self._size])
            asked[group_id] += 1
        return {
            "prompt_ids": [row.prompt.tolist() for row in rows],
            "completion_ids": [row.completion.tolist() for row in rows],
            "logprobs": [row.log_probs.tolist() for row in rows],
            "env_mask": [row.mask.tolist() for row in rows],
            "captured_reward": [row.reward for row in rows],
        }

    def reward(self, captured_reward: Sequence[float], **_: object) -> list[float]:
        """TRL's reward function: what the rollouts earned when they were captured."""
        return list(captured_reward)


def _completions(path: str | PathLike[str]) -> Iterator[tuple[str, _Completion]]:
    loaded = load(path)
    if loaded.shape not in (Shape.TRL_GRPO, None):
        raise UsageError(
            f"{path}: a file of {loaded.shape}", hint=f"ng-capture rebuild ... --to {Shape.TRL_GRPO.value}"
        )
    for row in loaded:
        fields = row.fields
        if fields["group_id"] is None:
            raise UsageError(f"{path}: rollout {fields['rollout_id']} belongs to no group", hint="--group-by FIELD")
        if fields["n_trajectories"] != 1:
            message = f"{path}: rollout {fields['rollout_id']} has {fields['n_trajectories']} rows, a group counts one"
            raise UsageError(message, hint="--policy terminal")
        mask = array("b", fields["env_mask"])
        if 1 not in mask:
            raise UsageError(f"{path}: rollout {fields['rollout_id']} trains no token")
        # TRL takes what does not end in a stop token for cut off: nothing behind the last trained token is of use
        end = len(mask) - mask[::-1].index(1)
        yield (
            fields["group_id"],
            _Completion(
                array("i", fields["prompt_ids"]),
                array("i", fields["completion_ids"][:end]),
                mask[:end],
                array("f", fields["logprobs"][:end]),
                fields["reward"],
            ),
        )
