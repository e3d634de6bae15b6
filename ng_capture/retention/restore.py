"""Bring rollouts back from the trash, byte for byte, times included; or empty it."""

import os

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.locking import exclusive_if_there
from ng_capture.files.names import LOCK_NAME, is_rollout_id, names_of
from ng_capture.files.writing import discard, discard_directory, move, sync_directory
from ng_capture.retention.halfway import half_moved_of
from ng_capture.retention.trash import TEMPORARY, TrashedRollout, TrashPlan, state_file
from ng_capture.store.retire import is_retired


class Restored(msgspec.Struct, frozen=True):
    """What became of a rollout that was asked back; `problem` is why it stayed in the trash, None where it is back."""

    rollout_id: str
    plan: str
    problem: str | None


def restore(plan: TrashPlan, rollout: TrashedRollout, *, patience: float) -> Restored:
    """Bring one rollout back: its payload first, the fence goes last; a second call finishes what a kill left."""
    directory = plan.directory
    try:
        with exclusive_if_there(str(directory / f"{rollout.rollout_id}.{LOCK_NAME}"), patience):
            problem = _obstacle(plan, rollout)
            if problem is not None:
                return Restored(rollout.rollout_id, plan.name, problem)
            for file in rollout.files:
                move(plan.path / file.name, directory / file.name)
            # the payload is durable in its place before the state says that it is there
            sync_directory(directory)
            put_state_back(plan, rollout)
            sync_directory(directory)
            sync_directory(plan.path)
            plan.announce(msgspec.structs.replace(rollout, restored=True))
    except SurroundingsError as error:
        return Restored(rollout.rollout_id, plan.name, error.message)
    return Restored(rollout.rollout_id, plan.name, None)


def purge(plan: TrashPlan) -> int:
    """Delete a plan for good; returns the bytes freed. The manifest goes last: it tells what is still there.

    Raises SurroundingsError, for a plan too that waits for files of a killed run, or holds what nobody announced.
    """
    if any(half_moved_of(plan)):
        raise SurroundingsError(f"{plan.path}: waits for files of {plan.directory}", hint="run gc first")
    freed = 0
    named, left = plan.names(), []
    for path in sorted(plan.path.iterdir()):
        if path.is_file() and (path.name in named or TEMPORARY.fullmatch(path.name)):
            freed += path.lstat().st_size
            discard(path)
        elif path != plan.manifest:
            left.append(path.name)
    if left:
        raise SurroundingsError(f"{plan.path}: holds {left[0]}, which its manifest does not name: it stays")
    discard(plan.manifest)
    discard_directory(plan.path)
    return freed


def _obstacle(plan: TrashPlan, rollout: TrashedRollout) -> str | None:
    """What stands in the way, None where nothing does: a new attempt under the same id is never touched."""
    payload = {file.name for file in rollout.files}
    names = payload if rollout.state is None else payload | {rollout.state.name}
    possible = {str(name) for name in names_of(rollout.rollout_id)}
    if not is_rollout_id(rollout.rollout_id) or not names <= possible:
        return "its manifest names files of another rollout"
    here = {name for name in possible if os.path.lexists(plan.directory / name)}
    there = {name for name in names if (plan.path / name).exists()}
    lost = sorted(payload - here - there)
    if lost:
        return f"{lost[0]} lies neither in the directory nor in the trash"
    if not there:
        return None
    state = state_file(plan.directory, rollout.rollout_id)
    newer = sorted((here - names | payload & here & there) - {state.name})
    if newer:
        return f"a newer {newer[0]} lies there"
    return "a newer attempt lies there" if os.path.lexists(state) and not is_retired(state) else None


def put_state_back(plan: TrashPlan, rollout: TrashedRollout) -> None:
    """The original state in the tombstone's place; where there was none, the tombstone goes."""
    here = state_file(plan.directory, rollout.rollout_id)
    if rollout.state is not None:
        # the rename takes the tombstone's place at once
        move(plan.path / rollout.state.name, here)
    elif rollout.tombstone and is_retired(here):
        discard(here)
