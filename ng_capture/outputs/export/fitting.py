"""Which rows of a rollout fit what was chosen, with its reward and group in them."""

import msgspec

from ng_capture.outputs.export.cutting import LeftOut, fitted
from ng_capture.outputs.export.flat import FlatRow, flat_row
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.rewards import Scored, group_of, reward_of
from ng_capture.outputs.rebuilding import Rebuild
from ng_capture.outputs.training_rows import training_rows
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.judge import Judgement


def scored(judgement: Judgement, row: RolloutRow | None, how: Rebuild) -> Scored | None:
    """The vote of a rollout in its group; None for one of which nothing is exported."""
    kept, _ = fitting(judgement, row, how)
    if not kept:
        return None
    head = kept[0].head
    return Scored(judgement.rollout_id, head.group_id, head.reward)


def fitting(judgement: Judgement, row: RolloutRow | None, how: Rebuild) -> tuple[list[FlatRow], tuple[LeftOut, ...]]:
    """The rows that may be exported, with reward and group, and those that may not; raises TooLong."""
    reward = None if row is None else reward_of(row, how.export)
    group_id = None if row is None else group_of(row, how.export)
    known = FORMATS.get(how.shape.value)
    if known is not None and known.needs_reward and reward is None and judgement.rows:
        reason = "reward_missing"
        return [], (LeftOut(reason, f"{how.shape.value} needs one", {reason: judgement.accounting.trained}),)
    kept, left = [], []
    for made in training_rows(judgement, row):
        flat = flat_row(made)
        head = msgspec.structs.replace(flat.head, reward=reward, group_id=group_id)
        found = fitted(msgspec.structs.replace(flat, head=head), how.export)
        if isinstance(found, LeftOut):
            left.append(found)
        else:
            kept.append(found)
    return kept, tuple(left)
