"""The report on one rollout, as `verify -f jsonl` prints it, and the summary over many."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from ng_capture.chains.analysis import Chain
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.accounting import Accounting
from ng_capture.verdicts.findings import Finding
from ng_capture.verdicts.health.measures import Measures
from ng_capture.verdicts.health.rollout import measures_of
from ng_capture.verdicts.judge import (
    Judgement,
    Verdict,
    chains_verify,
    parents_of,
    truncated_calls,
    weight_versions,
)
from ng_capture.verdicts.metrics import (
    Metrics,
    TerminalAttribution,
    empty_generation_calls,
    unresolved_parent_calls,
)
from ng_capture.verdicts.reasons import in_order

REPORT_SCHEMA = "ng-capture.verify/1"


class RolloutReport(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one rollout and everything it rests on; unknown is null.

    `metrics` and the strings of `terminal` are NeMo Gym's; `deviation` names why the verdict is not its verdict.
    """

    rollout_id: str
    directory: str | None
    verdict: Verdict
    reasons: tuple[str, ...]
    deviation: str | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    metrics: Metrics
    terminal: TerminalAttribution | None
    chains: tuple[Chain, ...]
    parents: dict[str, str | None]
    chain_verifies: bool
    quarantined: tuple[str, ...]
    unresolved_parent_calls: tuple[str, ...]
    empty_generation_calls: tuple[str, ...]
    failed_calls: tuple[str, ...]
    lost_calls: tuple[str, ...]
    unidentified_marks: int
    delivered_calls: tuple[str, ...]
    left_out_calls: tuple[str, ...]
    truncated_calls: tuple[str, ...] | None
    weight_versions: tuple[int | str, ...]
    calls_read: int
    repeated_lines: int
    accounting: Accounting
    measures: Measures


def report_on(judgement: Judgement, row: RolloutRow | None, directory: str | None) -> RolloutReport:
    """The report of a judgement; its finished row and the directory of its files, where there are any."""
    analysis = judgement.analysis
    shown = {call for row in judgement.rows for call in row.calls}
    delivered = [call for call in analysis.forest.order if call in shown]
    metrics = judgement.metrics
    return RolloutReport(
        rollout_id=judgement.rollout_id,
        directory=directory,
        verdict=judgement.verdict,
        reasons=judgement.reasons,
        deviation=judgement.deviation,
        findings=judgement.findings,
        notes=in_order(frozenset(f.reason for f in judgement.findings if f.severity != "error")),
        metrics=metrics,
        terminal=metrics.terminal_attribution,
        chains=analysis.chains,
        parents=dict(parents_of(analysis)),
        chain_verifies=chains_verify(analysis),
        quarantined=tuple(sorted(analysis.settled.quarantined)),
        unresolved_parent_calls=unresolved_parent_calls(analysis),
        empty_generation_calls=empty_generation_calls(analysis),
        failed_calls=judgement.completeness.failed_calls,
        lost_calls=judgement.completeness.lost_calls,
        unidentified_marks=judgement.completeness.unidentified_marks,
        delivered_calls=tuple(delivered),
        left_out_calls=tuple(call for call in analysis.calls if call not in shown),
        truncated_calls=None if judgement.snapshot.raw_calls is None else truncated_calls(judgement.snapshot, analysis),
        weight_versions=weight_versions(analysis),
        calls_read=len(analysis.calls),
        repeated_lines=sum(len(call.repeats) for call in analysis.calls.values()),
        accounting=judgement.accounting,
        measures=measures_of(judgement, row),
    )


class Summary(msgspec.Struct, frozen=True):
    """Counts over rollouts; a retired one is neither trainable nor masked."""

    rollouts: int
    calls: int
    trainable: int
    masked: int
    retired: int
    reasons: dict[str, int]


class Tally:
    """Adds up reports as they go by."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()

    def watch(self, reports: Iterable[RolloutReport]) -> Iterator[RolloutReport]:
        """The same reports, counted."""
        for report in reports:
            self.add(report.verdict, report.reasons, report.calls_read)
            yield report

    def add(self, verdict: Verdict, reasons: tuple[str, ...], calls: int) -> None:
        status = "retired" if reasons == ("retired",) else verdict
        self._counts.update({"rollouts": 1, "calls": calls, status: 1})
        if status == "masked":
            self._reasons.update(reasons)

    def summary(self) -> Summary:
        counts = self._counts
        reasons = dict(sorted(self._reasons.items(), key=lambda item: (-item[1], item[0])))
        return Summary(
            counts["rollouts"], counts["calls"], counts["trainable"], counts["masked"], counts["retired"], reasons
        )
