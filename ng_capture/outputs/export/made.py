"""The rows of one rollout in a trainer's format, and those that are left out."""

from array import array

import msgspec

from ng_capture.outputs.chunks import Chunk, joined
from ng_capture.outputs.export.choices import AdvantageOf
from ng_capture.outputs.export.cutting import LeftOut, fitted
from ng_capture.outputs.export.flat import FlatRow, flat_row
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import Record
from ng_capture.outputs.export.rewards import Scored, group_of, reward_of, rewarded
from ng_capture.outputs.projection import NoProjection, project
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.training_rows import TableRow, training_rows
from ng_capture.records.json_text import encode_json
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.judge import Judgement


class Made(msgspec.Struct, frozen=True, eq=False):
    """What is exported of a rollout: lines of JSON, or rows of a table; and what is not.

    `trained` counts the tokens that carry loss in it, None where they are those of the verdict. `partner` is the
    rollout that shares a row with this one.
    """

    lines: list[list[Chunk]] = []
    table: list[TableRow] = []
    records: list[Record] = []
    left_out: tuple[LeftOut, ...] = ()
    trained: int | None = None
    partner: str | None = None


def make(judgement: Judgement, row: RolloutRow | None, how: Rebuild, advantage: float | None) -> Made:
    """Everything of one rollout that goes into the output; raises TooLong."""
    if how.shape is Shape.GYM_RESPONSE:
        return Made(lines=_gym_responses(judgement, row, how))
    kept, left_out = fitting(judgement, row, how)
    if kept and advantage is None and _wants_advantage(how):
        # an imitated row among reinforced ones would be trained as if it were the best of its group
        return Made(left_out=(*left_out, LeftOut("reward_missing", "no advantage: no group, or alone in it")))
    rows = rewarded(kept, how.export, advantage)
    trained = sum(each.trained for each in rows)
    if how.shape is Shape.ROWS and how.table:
        return Made(table=[_table_row(each) for each in rows], left_out=left_out, trained=trained)
    layout = _record if how.shape is Shape.ROWS else FORMATS[how.shape.value].row
    records = [layout(each) for each in rows]
    if how.table:
        return Made(records=records, left_out=left_out, trained=trained)
    return Made(lines=[[encode_json(each)] for each in records], left_out=left_out, trained=trained)


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
        return [], (LeftOut("reward_missing", f"{how.shape.value} needs one"),)
    kept, left_out = [], []
    for made in training_rows(judgement, row):
        flat = flat_row(made)
        head = msgspec.structs.replace(flat.head, reward=reward, group_id=group_id)
        found = fitted(msgspec.structs.replace(flat, head=head), how.export)
        if isinstance(found, LeftOut):
            left_out.append(found)
        else:
            kept.append(found)
    return kept, tuple(left_out)


def _wants_advantage(how: Rebuild) -> bool:
    known = FORMATS.get(how.shape.value)
    return known is not None and known.takes_advantages and how.export.advantage is not AdvantageOf.NONE


def _record(row: FlatRow) -> Record:
    arrays = {"tokens": row.tokens, "loss_mask": row.loss_mask, "logprobs": row.log_probs}
    head: dict[str, object] = msgspec.to_builtins(row.head)
    return {**head, **arrays, "routed_experts": row.experts}


def _table_row(row: FlatRow) -> TableRow:
    return TableRow(row.head, array("Q", row.tokens), bytes(row.loss_mask), array("f", row.log_probs), row.experts)


def _gym_responses(judgement: Judgement, row: RolloutRow | None, how: Rebuild) -> list[list[Chunk]]:
    """One finished row per chain: contiguous items of a response, its reward, and that it may be trained."""
    projected = project(judgement) if judgement.rows else []
    if isinstance(projected, NoProjection):
        return []
    heads = [
        flat.head for flat in rewarded([flat_row(each) for each in training_rows(judgement, row)], how.export, None)
    ]
    lines: list[list[Chunk]] = []
    for projection, head in zip(projected, heads, strict=True):
        told = {
            "_ng_rollout_id": judgement.rollout_id,
            "_ng_task_index": head.group_id,
            "trajectory_index": head.trajectory_index,
            "n_trajectories": head.n_trajectories,
            "reward": head.reward if row is None or how.export.reward_field is None else reward_of(row, how.export),
            "mask_sample": False,
        }
        model = head.spans[-1].model
        response = projection.response(judgement.rollout_id, model)
        lines.append([encode_json(told)[:-1], b',"response":', joined(response), b"}"])
    return lines
