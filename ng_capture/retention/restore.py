"""Bring rollouts back from the trash, byte for byte, times included; or empty it."""

from pathlib import Path

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.locking import exclusive_if_there
from ng_capture.files.names import LOCK_NAME, FileKind
from ng_capture.files.writing import discard, move, sync_directory
from ng_capture.records.lifecycle import StoreState, decode_state
from ng_capture.retention.trash import TrashedRollout, TrashPlan


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
            _restore_state(plan, rollout)
            sync_directory(directory)
            sync_directory(plan.path)
            plan.announce(msgspec.structs.replace(rollout, restored=True))
    except SurroundingsError as error:
        return Restored(rollout.rollout_id, plan.name, error.message)
    return Restored(rollout.rollout_id, plan.name, None)


def purge(plan: TrashPlan) -> int:
    """Delete a plan for good; returns the bytes freed. The manifest goes last: it tells what is still there."""
    freed = 0
    for path in sorted(plan.path.iterdir()):
        if path != plan.manifest:
            freed += path.lstat().st_size
            discard(path)
    discard(plan.manifest)
    plan.path.rmdir()
    sync_directory(plan.path.parent)
    return freed


def _obstacle(plan: TrashPlan, rollout: TrashedRollout) -> str | None:
    """What stands in the way, None where nothing does: a new attempt under the same id is never touched."""
    for file in rollout.files:
        if (plan.directory / file.name).exists() and (plan.path / file.name).exists():
            return f"a newer {file.name} lies there"
    state = _state(_state_file(plan.directory, rollout))
    if rollout.tombstone and state is not None and not state.retired and (plan.path / _state_name(rollout)).exists():
        return "a newer attempt lies there"
    return None


def _restore_state(plan: TrashPlan, rollout: TrashedRollout) -> None:
    here = _state_file(plan.directory, rollout)
    if rollout.state is not None:
        # the rename takes the tombstone's place at once
        move(plan.path / rollout.state.name, here)
    elif rollout.tombstone:
        discard(here)


def _state_name(rollout: TrashedRollout) -> str:
    return f"{rollout.rollout_id}.{FileKind.STATE}"


def _state_file(directory: Path, rollout: TrashedRollout) -> Path:
    return directory / _state_name(rollout)


def _state(path: Path) -> StoreState | None:
    try:
        return decode_state(path.read_bytes())
    except (OSError, ValueError):
        return None
