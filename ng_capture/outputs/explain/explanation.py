"""The explanation of one rollout, and the breaks of many by cause, turn and model."""

from collections import Counter

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.outputs.explain.breaks import Break, Unlinked, find_breaks, find_unlinked
from ng_capture.outputs.explain.rollout import ShownRollout, read_rollout
from ng_capture.outputs.verify import Unread, VerifyTask
from ng_capture.tokenizer import Tokenizer
from ng_capture.verdicts.findings import Finding
from ng_capture.verdicts.judge import Verdict

EXPLANATION_SCHEMA = "ng-capture.explain/1"


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a rollout has its verdict. `raw_only`: its records were made of raw calls, which are not ingested yet."""

    schema: str = EXPLANATION_SCHEMA
    rollout_id: str
    verdict: Verdict
    reasons: tuple[str, ...]
    calls: int
    chains: int
    raw_only: bool
    findings: tuple[Finding, ...]
    breaks: tuple[Break, ...]
    unlinked: tuple[Unlinked, ...]


class CauseCount(msgspec.Struct, frozen=True, kw_only=True):
    """The breaks of one cause: how many, in how many rollouts, what they cost by policy, the first of them.

    For `likely` of the breaks the evidence speaks for the cause; for the others it leaves it open.
    """

    cause: str
    group: str
    breaks: int
    likely: int
    rollouts: int
    tokens_lost: dict[str, int]
    example: str
    example_call: str
    remedy: str


class BreakSummary(msgspec.Struct, frozen=True, kw_only=True):
    """All breaks of a directory. `by_turn` counts from 0, the first call of a rollout."""

    rollouts: int
    masked: int
    breaks: int
    by_cause: tuple[CauseCount, ...]
    by_turn: dict[int, int]
    by_model: dict[str, int]


def explain_task(task: VerifyTask, tokenizer: Tokenizer | None) -> Explanation | Unread:
    """The explanation of a rollout; one that cannot be read never stops the rest."""
    try:
        return explain(read_rollout(task), tokenizer)
    except SurroundingsError as error:
        return Unread(task.rollout_id, error.message)


def explain(rollout: ShownRollout, tokenizer: Tokenizer | None) -> Explanation:
    """Why a rollout has its verdict."""
    judgement = rollout.judgement
    breaks = find_breaks(rollout, tokenizer)
    return Explanation(
        rollout_id=judgement.rollout_id,
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        calls=len(judgement.analysis.calls),
        chains=len(judgement.analysis.chains),
        raw_only=rollout.raw_only,
        findings=judgement.findings,
        breaks=breaks,
        unlinked=find_unlinked(rollout, breaks),
    )


class Summariser:
    """Adds up explanations as they go by; holds counts and the first break of each cause."""

    def __init__(self) -> None:
        self._rollouts: Counter[str] = Counter()
        self._breaks: Counter[str] = Counter()
        self._likely: Counter[str] = Counter()
        self._with_cause: Counter[str] = Counter()
        self._lost: dict[str, Counter[str]] = {}
        self._first: dict[str, Break] = {}
        self._turns: Counter[int] = Counter()
        self._models: Counter[str] = Counter()

    def add(self, explanation: Explanation) -> None:
        self._rollouts[explanation.verdict] += 1
        self._with_cause.update({each.cause for each in explanation.breaks})
        for each in explanation.breaks:
            self._breaks[each.cause] += 1
            self._likely[each.cause] += each.confidence == "likely"
            self._lost.setdefault(each.cause, Counter()).update(each.tokens_lost)
            self._first.setdefault(each.cause, each)
            self._turns[each.turn] += 1
            self._models[each.model] += 1

    def summary(self) -> BreakSummary:
        """Breaks by cause, turn and model, the most frequent first."""
        causes = sorted(self._breaks, key=lambda cause: (-self._breaks[cause], cause))
        return BreakSummary(
            rollouts=self._rollouts.total(),
            masked=self._rollouts["masked"],
            breaks=self._breaks.total(),
            by_cause=tuple(map(self._count, causes)),
            by_turn=dict(sorted(self._turns.items())),
            by_model=dict(sorted(self._models.items(), key=lambda item: (-item[1], item[0]))),
        )

    def _count(self, cause: str) -> CauseCount:
        first = self._first[cause]
        return CauseCount(
            cause=cause,
            group=first.group,
            breaks=self._breaks[cause],
            likely=self._likely[cause],
            rollouts=self._with_cause[cause],
            tokens_lost=dict(self._lost[cause]),
            example=first.rollout_id,
            example_call=first.call,
            remedy=first.remedy,
        )
