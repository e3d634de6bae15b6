"""Rollouts that a killed run left half in the trash and half in the directory (design.md, promise 7)."""

import os
from collections.abc import Iterator

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.retention.trash import TrashedFile, TrashedRollout, TrashPlan, plans_of, state_file
from ng_capture.store.retire import is_retired


class HalfMoved(msgspec.Struct, frozen=True):
    """A rollout, the plan that announced it, and those of its files that still wait in the directory."""

    plan: TrashPlan
    rollout: TrashedRollout
    waiting: tuple[TrashedFile, ...]


def half_moved(directory: str) -> dict[str, HalfMoved]:
    """All of them, by id; a plan that cannot be read says nothing here, and is named when it is purged."""
    return {each.rollout.rollout_id: each for plan in plans_of(directory) for each in half_moved_of(plan)}


def half_moved_of(plan: TrashPlan) -> Iterator[HalfMoved]:
    """Those of one plan: announced files as they were announced, behind their tombstone or apart from the others."""
    try:
        rollouts = plan.rollouts()
    except SurroundingsError:
        return
    for rollout in rollouts:
        waiting = tuple(file for file in rollout.files if _waits(plan, file))
        moved = any((plan.path / file.name).exists() for file in rollout.files)
        begun = moved or is_retired(state_file(plan.directory, rollout.rollout_id))
        if waiting and begun and (plan.holds(rollout) or rollout.state is None):
            yield HalfMoved(plan, rollout, waiting)


def _waits(plan: TrashPlan, file: TrashedFile) -> bool:
    try:
        status = os.lstat(plan.directory / file.name)
    except OSError:
        return False
    same = (status.st_size, status.st_mtime_ns) == (file.size, file.mtime_ns)
    return same and not (plan.path / file.name).exists()
