"""Rewards and advantages of rows; masked rollouts have no vote in their group (policies-and-exports.md I18, I19)."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ng_capture.outputs.export.choices import AdvantageOf, Export, RewardSplit, Weight
from ng_capture.outputs.export.flat import FlatRow
from ng_capture.records.json_text import object_in, printable
from ng_capture.records.rollout_row import RolloutRow, number

_EPSILON = 1e-4


class Scored(msgspec.Struct, frozen=True):
    """A rollout that may be trained, its group and its reward."""

    rollout_id: str
    group_id: str | None
    reward: float | None


def reward_of(row: RolloutRow, export: Export) -> float | None:
    """The reward of a finished row; None where it is no finite number."""
    if export.reward_field is None:
        return row.reward
    value = _at(row.values, export.reward_field)
    return number(value)


def group_of(row: RolloutRow, export: Export) -> str | None:
    """The group of a finished row; None where it names none."""
    if export.group_by is None or export.group_by == "task":
        return row.group_id
    value = _at(row.values, export.group_by)
    return None if value is None else printable(str(value))


def advantages(scored: Iterable[Scored], how: AdvantageOf) -> dict[str, float | None]:
    """The advantage of every rollout among those of its group; None where it cannot be told."""
    if how is AdvantageOf.NONE:
        return {}
    groups: dict[str | None, list[Scored]] = {}
    for each in scored:
        groups.setdefault(each.group_id, []).append(each)
    found: dict[str, float | None] = {}
    for group_id, group in groups.items():
        known = [each for each in group if each.reward is not None] if group_id is not None else []
        rewards = [each.reward for each in known if each.reward is not None]
        found |= {each.rollout_id: None for each in group}
        found |= {each.rollout_id: _advantage(index, rewards, how) for index, each in enumerate(known)}
    return found


def _advantage(index: int, rewards: Sequence[float], how: AdvantageOf) -> float | None:
    mine, mean = rewards[index], math.fsum(rewards) / len(rewards)
    if how is AdvantageOf.MEAN_CENTRED:
        return mine - mean
    if len(rewards) < 2:
        return None
    if how is AdvantageOf.LOO:
        return mine - (math.fsum(rewards) - mine) / (len(rewards) - 1)
    return (mine - mean) / (statistics.stdev(rewards) + _EPSILON)


def rewarded(rows: Sequence[FlatRow], export: Export, advantage: float | None) -> list[FlatRow]:
    """The rows of one rollout with their part of the reward, the advantage, and what they count for."""
    total = sum(row.trained for row in rows)
    return [
        msgspec.structs.replace(
            row,
            head=msgspec.structs.replace(
                row.head,
                trajectory_index=index,
                n_trajectories=len(rows),
                reward=_part(row, index, len(rows), total, export.reward),
                advantage=advantage,
                rollout_trainable_tokens=total,
                row_weight=row.trained / total if export.weight is Weight.ROLLOUT else 1.0,
            ),
        )
        for index, row in enumerate(rows)
    ]


def _part(row: FlatRow, index: int, count: int, total: int, split: RewardSplit) -> float | None:
    reward = row.head.reward
    if reward is None or split is RewardSplit.FULL:
        return reward
    if split is RewardSplit.SHARE:
        return reward * row.trained / total
    # the terminal's row stands first; the last one of a trainer's rollout is that in which the reward was earned
    return reward if index == count - 1 else 0.0


def _at(values: Mapping[str, object], path: str) -> object:
    """The value at a path of keys with dots between."""
    value: object = values
    for key in path.split("."):
        value = object_in(value).get(key)
    return value
