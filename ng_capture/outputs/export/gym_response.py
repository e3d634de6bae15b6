"""`gym-response`: a finished row per chain with contiguous, token-bearing items, as NeMo RL's converter reads them."""

from ng_capture.outputs.chunks import Chunk, object_of
from ng_capture.outputs.delivery import members_of, response_in
from ng_capture.outputs.export.fitting import fitting
from ng_capture.outputs.export.rewards import rewarded
from ng_capture.outputs.projection import NoProjection, project
from ng_capture.outputs.rebuilding import Rebuild
from ng_capture.records.json_text import encode_json
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.judge import Judgement


def gym_responses(judgement: Judgement, row: RolloutRow | None, data: bytes | None, how: Rebuild) -> list[list[Chunk]]:
    """The finished row (`data` as it is spelled) once for each chain that may be trained, with the chain's reward."""
    if not judgement.rows:
        return []
    projected = project(judgement)
    assert not isinstance(projected, NoProjection)
    kept, _ = fitting(judgement, row, how)
    lines: list[list[Chunk]] = []
    for projection, flat in zip(projected, rewarded(kept, how.export, None), strict=True):
        head, members = flat.head, members_of(judgement, data)
        told = {
            "_ng_rollout_id": judgement.rollout_id,
            "trajectory_index": head.trajectory_index,
            "n_trajectories": head.n_trajectories,
            "reward": head.reward,
            "mask_sample": False,
        }
        members |= {name: [encode_json(value)] for name, value in told.items()}
        members["response"] = response_in(members, judgement.rollout_id, projection, row, model=head.spans[-1].model)
        lines.append(object_of(members))
    return lines
