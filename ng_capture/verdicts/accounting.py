"""Where the generated tokens of a rollout went: trained, context, lost by reason; they sum to what was captured."""

from collections.abc import Sequence

import msgspec

from ng_capture.chains.analysis import Analysis
from ng_capture.records.defects import Defect
from ng_capture.records.usage import Count
from ng_capture.verdicts.judging import Policy
from ng_capture.verdicts.policies import PlannedRow, errors, of_two_contents, trained_tokens
from ng_capture.verdicts.reasons import in_order


class Accounting(msgspec.Struct, frozen=True):
    """Generated tokens of a rollout; `context` stands in a row without loss, `lost` in no row."""

    captured: Count
    trained: Count
    context: Count
    lost: dict[str, Count]


def account(analysis: Analysis, policy: Policy, rows: Sequence[PlannedRow], faults: Sequence[Defect]) -> Accounting:
    """Count each call's tokens once: in the row that trains it, in a row that shows it, or under what lost it."""
    trained = {call: trained_tokens(analysis, call) for row in rows for call in row.trained}
    shown = {call for row in rows for call in row.calls}
    lost: dict[str, int] = {}
    context = 0
    reasons = left_out(analysis, policy, rows, faults)
    for call in analysis.calls.values():
        if call.id in shown:
            context += call.generated - trained.get(call.id, 0)
        elif call.generated:
            lost[reasons[call.id]] = lost.get(reasons[call.id], 0) + call.generated
    return Accounting(analysis.captured, sum(trained.values()), context, dict(sorted(lost.items())))


def left_out(
    analysis: Analysis, policy: Policy, rows: Sequence[PlannedRow], faults: Sequence[Defect]
) -> dict[str, str]:
    """For every call that generated something and stands in no row, the reason."""
    shown = {call for row in rows for call in row.calls}
    scored = analysis.path[-1] if analysis.path and rows else None
    later = analysis.forest.below(scored) if scored is not None else frozenset()
    unsettled = {call for group in analysis.kept_beside.unsettled for call in group}
    barred = of_two_contents(analysis) if policy is Policy.ALL else frozenset()
    before = {call for end in unsettled for call in analysis.forest.path_to(end)} if policy is Policy.ALL else unsettled
    # in the order of the registry, not of the lines
    whole = next(iter(in_order(frozenset(fault.reason for fault in faults))), "")
    reasons = {}
    for call in analysis.calls.values():
        if call.id in shown or not call.generated:
            continue
        own = errors(analysis.errors_of(call.id))
        if own:
            reasons[call.id] = own[0].reason
        elif call.foreign:
            reasons[call.id] = "foreign_model"
        elif not rows:
            reasons[call.id] = whole
        elif call.id in analysis.settled.quarantined and call.id not in unsettled:
            reasons[call.id] = "abandoned_retry"
        elif call.id in later:
            reasons[call.id] = "after_terminal"
        elif call.id in barred:
            reasons[call.id] = "conflicting_records"
        else:
            reasons[call.id] = "ambiguous_retry" if call.id in before else "off_path"
    return reasons
