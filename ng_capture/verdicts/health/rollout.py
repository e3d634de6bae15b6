"""What health takes of one rollout, from whatever source tells it."""

from typing import Literal

import msgspec

from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.accounting import Accounting
from ng_capture.verdicts.findings import Finding
from ng_capture.verdicts.health.measures import Measures, Place, measure, place_of
from ng_capture.verdicts.judge import Judgement, Verdict
from ng_capture.verdicts.metrics import Metrics
from ng_capture.verdicts.reasons import REASONS


class RolloutHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout of a run; what its source does not tell is None.

    `verdict` is None where no tokens are wanted, `reasons` where it is masked and nothing says why. `findings` are
    errors and warnings. `place` stands here where there are no measures to hold it. `activity` of a rollout that ends
    in an open call: still written, or left; `watched` tells that this was looked for.
    """

    rollout_id: str
    directory: str | None = None
    verdict: Verdict | None
    reasons: tuple[str, ...] | None
    findings: tuple[Finding, ...] | None = None
    metrics: Metrics | None = None
    accounting: Accounting | None = None
    measures: Measures | None = None
    place: Place | None = None
    activity: Literal["running", "abandoned"] | None = None
    watched: bool = False

    @property
    def retired(self) -> bool:
        return self.reasons == ("retired",)

    @property
    def stands_at(self) -> Place:
        """Task, group and attempt: as its source tells, else as its id spells them."""
        if self.measures is not None:
            return self.measures.place
        return self.place if self.place is not None else place_of(self.rollout_id, None)

    @property
    def calls(self) -> int | None:
        """Distinct calls, or the records that Gym counted where nothing else is known."""
        if self.measures is not None:
            return self.measures.calls
        return self.metrics.n_calls if self.metrics is not None else None

    @property
    def with_calls(self) -> bool:
        """True where it has a call: what is trainable has one, whoever counted."""
        return bool(self.calls) or self.verdict == "trainable"

    @property
    def captured(self) -> bool:
        """True where something of its calls is there, or was handed off: a line that cannot be read is something."""
        errors = [each.reason for each in self.findings or () if each.severity == "error" and each.reason in REASONS]
        sections = {REASONS[reason].section for reason in errors}
        return self.with_calls or self.retired or not sections.isdisjoint({"Lines and files", "Records"})


def measures_of(judgement: Judgement, row: RolloutRow | None) -> Measures:
    """The measures of a judged rollout and its finished row."""
    return measure(judgement.snapshot, judgement.analysis, judgement.completeness.lost_calls, row)
