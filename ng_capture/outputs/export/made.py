"""The rows of one rollout in a trainer's format, and those that are left out."""

from array import array
from collections import Counter
from collections.abc import Mapping

import msgspec

from ng_capture.outputs.chunks import Chunk
from ng_capture.outputs.export.choices import AdvantageOf
from ng_capture.outputs.export.cutting import LENGTH_STOPPED, LeftOut, left_out, untrained_of
from ng_capture.outputs.export.fitting import fitting
from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import Record
from ng_capture.outputs.export.gym_response import gym_responses
from ng_capture.outputs.export.rewards import rewarded
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.training_rows import TableRow
from ng_capture.records.json_text import encode_json
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.judge import Judgement


class Made(msgspec.Struct, frozen=True, eq=False):
    """What is exported of a rollout: lines of JSON, or rows of a table; and what is not.

    `trained` counts the tokens that carry loss in it, None where they are those of the verdict; `untrained`, by reason,
    those of the verdict that carry none. `partner` is the rollout that shares a row with this one. `ungrouped` counts
    rows that name no group where their trainer compares by groups, or the user named the field.
    """

    lines: list[list[Chunk]] = []
    table: list[TableRow] = []
    records: list[Record] = []
    left_out: tuple[LeftOut, ...] = ()
    trained: int | None = None
    untrained: Mapping[str, int] = {}
    partner: str | None = None
    ungrouped: int = 0


def make(
    judgement: Judgement, row: RolloutRow | None, data: bytes | None, how: Rebuild, advantage: float | None
) -> Made:
    """Everything of one rollout that goes into the output (`data` is its row as it is spelled); raises TooLong."""
    if how.shape is Shape.GYM_RESPONSE:
        return Made(lines=gym_responses(judgement, row, data, how))
    kept, left = fitting(judgement, row, how)
    if advantage is None and _wants_advantage(how):
        # an imitated row among reinforced ones would be trained as if it were the best of its group
        left = (*left, *(left_out(each, *_why_no_advantage(each)) for each in kept))
        kept = []
    untrained = untrained_of(kept, left)
    rows = [_accounted(each, untrained) for each in rewarded(kept, how.export, advantage)]
    made = Made(
        left_out=left,
        trained=sum(each.trained for each in rows),
        untrained=untrained,
        ungrouped=sum(each.head.group_id is None for each in rows) if _wants_group(how) else 0,
    )
    if how.shape is Shape.ROWS and how.table:
        return msgspec.structs.replace(made, table=[_table_row(each) for each in rows])
    layout = _record if how.shape is Shape.ROWS else FORMATS[how.shape.value].row
    records = [layout(each) for each in rows]
    if how.table:
        return msgspec.structs.replace(made, records=records)
    return msgspec.structs.replace(made, lines=[[encode_json(each)] for each in records])


def _why_no_advantage(row: FlatRow) -> tuple[str, str]:
    if row.head.group_id is None:
        return "group_missing", "its finished row names no group"
    if row.head.reward is None:
        return "reward_missing", "an advantage needs one"
    return "advantage_missing", f"alone in group {row.head.group_id}"


def _accounted(row: FlatRow, untrained: Mapping[str, int]) -> FlatRow:
    """The row with what became of its rollout's tokens since the verdict."""
    if not untrained:
        return row
    account, shown = row.head.accounting, untrained.get(LENGTH_STOPPED, 0)
    lost = Counter(account.lost) + Counter(untrained) - Counter({LENGTH_STOPPED: shown})
    told = msgspec.structs.replace(
        account,
        trained=account.trained - sum(untrained.values()),
        context=account.context + shown,
        lost=dict(sorted(lost.items())),
    )
    return msgspec.structs.replace(row, head=msgspec.structs.replace(row.head, accounting=told))


def _wants_advantage(how: Rebuild) -> bool:
    known = FORMATS.get(how.shape.value)
    return known is not None and known.takes_advantages and how.export.advantage is not AdvantageOf.NONE


def _wants_group(how: Rebuild) -> bool:
    known = FORMATS.get(how.shape.value)
    compares = known is not None and known.needs_reward and "group" in known.tells
    return compares or how.export.group_by is not None


def _record(row: FlatRow) -> Record:
    arrays = {"tokens": row.tokens, "loss_mask": row.loss_mask, "logprobs": row.log_probs}
    head: dict[str, object] = msgspec.to_builtins(row.head)
    return {**head, **arrays, "routed_experts": row.experts}


def _table_row(row: FlatRow) -> TableRow:
    return TableRow(row.head, array("Q", row.tokens), bytes(row.loss_mask), array("f", row.log_probs), row.experts)
