"""What Gym's own export writes beside the steps of a trajectory, under `extra.nemo_gym` (contracts.md 3.2)."""

from collections.abc import Sequence

from ng_capture import __version__
from ng_capture.contracts.episode import Json, Turn
from ng_capture.contracts.gym.trajectory import Trajectory, without_nulls


def gym_extra(row: Json, trajectory: Trajectory, turns: Sequence[Turn], complete: bool) -> Json:
    """Where the trajectory is from, and the calls of the model that made none of its turns.

    `complete` tells that Gym would have exported it, too.
    """
    root = trajectory.root
    source = {
        "format": "ng_trajectory",
        "schema_version": trajectory.raw.get("schema_version"),
        "task_id": trajectory.raw.get("task_id"),
        "rollout_id": trajectory.raw.get("rollout_id"),
        "task_index": row.get("_ng_task_index"),
        "rollout_index": row.get("_ng_rollout_index"),
        "invocation_id": root.invocation_id if root is not None else None,
        "invocation_status": root.raw.get("status") if root is not None else None,
        "invocation_duration_ms": root.raw.get("duration_ms") if root is not None else None,
    }
    used = {turn.call.call_id for turn in turns if turn.call is not None}
    surplus = [without_nulls(each.raw) for each in trajectory.calls if each.call.call_id not in used]
    extra: dict[str, object] = {
        "exporter": {"name": "ng-capture", "version": __version__},
        "source": {key: value for key, value in source.items() if value is not None},
    }
    if complete:
        extra["conversion"] = {"profile": "ng-trajectory-to-atif-v1", "status": "complete"}
    return {**extra, "surplus_model_calls": surplus} if surplus else extra
