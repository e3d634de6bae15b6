"""The rollouts of a directory, a line each."""

from collections.abc import Iterable

import msgspec

from ng_capture.natural_order import natural_key
from ng_capture.outputs.explain.rollout import ShownRollout
from ng_capture.outputs.show.sorting import SortBy
from ng_capture.verdicts.judge import Verdict

LIST_SCHEMA = "ng-capture.show-list/1"


class RolloutLine(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout: `tokens` were generated, `trained` of them carry loss; `reward` as its finished row has it."""

    rollout_id: str
    verdict: Verdict
    reasons: tuple[str, ...]
    calls: int
    chains: int
    tokens: int
    trained: int
    reward: float | None
    models: tuple[str, ...]
    raw_only: bool


class RolloutList(msgspec.Struct, frozen=True, kw_only=True):
    """`show PATH --json`."""

    schema: str = LIST_SCHEMA
    rollouts: tuple[RolloutLine, ...]


def line_of(rollout: ShownRollout) -> RolloutLine:
    """The line of a rollout."""
    judgement, analysis = rollout.judgement, rollout.judgement.analysis
    return RolloutLine(
        rollout_id=judgement.rollout_id,
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        calls=len(analysis.calls),
        chains=len(analysis.chains),
        tokens=judgement.accounting.captured,
        trained=judgement.accounting.trained,
        reward=rollout.row.reward if rollout.row is not None else None,
        models=tuple(sorted({call.fields.model for call in analysis.calls.values() if call.fields.model})),
        raw_only=rollout.raw_only,
    )


def in_order(lines: Iterable[RolloutLine], by: SortBy) -> list[RolloutLine]:
    """The lines sorted; equals by their ids, what is unknown last."""
    named = sorted(lines, key=lambda line: natural_key(line.rollout_id))
    if by is SortBy.ID:
        return named
    if by is SortBy.REASON:
        return sorted(named, key=lambda line: (not line.reasons, line.reasons))
    return sorted(named, key=lambda line: _down(getattr(line, by.value)))


def _down(value: float | None) -> tuple[bool, float]:
    return value is None, -(value or 0)
