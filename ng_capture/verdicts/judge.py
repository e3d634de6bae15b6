"""The verdict on one rollout: trainable or masked, all reasons at once, each with its place and numbers."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

import msgspec

from ng_capture.chains.analysis import Analysis, analyse
from ng_capture.chains.calls import has_experts
from ng_capture.records.defects import Defect
from ng_capture.records.raw_call import LENGTH_STOPS
from ng_capture.records.rollout_row import NO_EVIDENCE, Evidence
from ng_capture.records.snapshot import Snapshot
from ng_capture.verdicts.accounting import Accounting, account, left_out
from ng_capture.verdicts.completeness import Completeness, check_completeness, intents_prove_all
from ng_capture.verdicts.deviations import delivered_by, masked_by
from ng_capture.verdicts.findings import Finding, find
from ng_capture.verdicts.judging import Judging, Policy
from ng_capture.verdicts.metrics import Metrics, empty_generation_calls, metrics_of
from ng_capture.verdicts.policies import Outcome, PlannedRow, apply_policy, errors
from ng_capture.verdicts.reasons import in_order, severity_of
from ng_capture.verdicts.reference import reference_masks

Verdict = Literal["trainable", "masked"]
_TOLD_BY_THE_PARENT = frozenset({"conflicting_records", "digest_mismatch"})
_NOT_OF_A_CALL = frozenset({"empty_capture", "no_generated_tokens", "retired"})


DEFAULT_JUDGING = Judging()


class Judgement(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One rollout judged. `rows` are the training rows of the policy, none where it is masked.

    `deviation` names why the verdict is not NeMo Gym's (policy `terminal` only), None where it is.
    """

    snapshot: Snapshot
    analysis: Analysis
    judging: Judging
    completeness: Completeness
    rows: tuple[PlannedRow, ...]
    reasons: tuple[str, ...]
    deviation: str | None
    findings: tuple[Finding, ...]
    metrics: Metrics
    accounting: Accounting

    @property
    def rollout_id(self) -> str:
        return self.snapshot.rollout_id

    @property
    def verdict(self) -> Verdict:
        return "trainable" if self.rows else "masked"

    @property
    def retired(self) -> bool:
        return self.reasons == ("retired",)

    @property
    def main_chain(self) -> tuple[str, ...]:
        """Gym's main chain, empty where there is none."""
        main = (chain.calls for chain in self.analysis.chains if chain.chain_id == "main")
        return next(main, ())


def judge(snapshot: Snapshot, evidence: Evidence = NO_EVIDENCE, judging: Judging = DEFAULT_JUDGING) -> Judgement:
    """The verdict on a snapshot and what a finished row says about its scored call; pure."""
    analysis = analyse(snapshot, evidence, policy_model=judging.policy_model, infer_links=judging.infer_links)
    completeness = check_completeness(snapshot, analysis.calls, judging.policy_model)
    retired = [defect for defect in completeness.defects if defect.reason == "retired"]
    whole = retired or errors([*snapshot.defects, *completeness.defects])
    outcome = _outcome(snapshot, analysis, completeness, judging.policy)
    if retired:
        outcome = Outcome((), tuple(retired))
    reasons = () if outcome.rows else in_order(frozenset(fault.reason for fault in outcome.faults))
    return Judgement(
        snapshot=snapshot,
        analysis=analysis,
        judging=judging,
        completeness=completeness,
        rows=outcome.rows,
        reasons=reasons,
        deviation=_deviation(snapshot, analysis, judging, outcome, whole),
        findings=_findings(snapshot, analysis, judging.policy, completeness, outcome, retired),
        metrics=metrics_of(snapshot, analysis, incomplete=completeness.incomplete),
        accounting=account(analysis, judging.policy, outcome.rows, outcome.faults),
    )


def planned_rows(
    snapshot: Snapshot, analysis: Analysis, completeness: Completeness, policy: Policy
) -> tuple[PlannedRow, ...]:
    """The rows of a policy, whatever policy the rollout was judged under."""
    return _outcome(snapshot, analysis, completeness, policy).rows


def _outcome(snapshot: Snapshot, analysis: Analysis, completeness: Completeness, policy: Policy) -> Outcome:
    whole = errors([*snapshot.defects, *completeness.defects])
    return apply_policy(policy, analysis, whole, complete=intents_prove_all(snapshot, analysis.calls))


def _deviation(
    snapshot: Snapshot, analysis: Analysis, judging: Judging, outcome: Outcome, whole: list[Defect]
) -> str | None:
    if judging.policy is not Policy.TERMINAL or (outcome.rows and _plain(snapshot, analysis)):
        return None
    if reference_masks(snapshot, analysis) == (not outcome.rows):
        return None
    if outcome.rows:
        return delivered_by(snapshot, analysis, outcome.rows[0].calls)
    return masked_by(whole, outcome.faults)


def _plain(snapshot: Snapshot, analysis: Analysis) -> bool:
    """True where nothing stands that the reference could see otherwise: no need to ask it."""
    return (
        not snapshot.defects
        and snapshot.index_fits
        and not analysis.settled.quarantined
        and analysis.attribution.method != "item_ids"
        and all(call.placed and not call.faults and not call.conflict for call in analysis.calls.values())
        and all(call in analysis.links and analysis.links[call].fault is None for call in analysis.forest.order)
        and len(analysis.forest.order) == len(analysis.calls)
        and any(call.fields.parent_resolution for call in analysis.calls.values())
    )


def _findings(
    snapshot: Snapshot,
    analysis: Analysis,
    policy: Policy,
    completeness: Completeness,
    outcome: Outcome,
    retired: list[Defect],
) -> tuple[Finding, ...]:
    if retired:
        return tuple(map(find, retired))
    defects = [*snapshot.defects, *completeness.defects]
    aside = set()
    for call in analysis.calls.values():
        defects += analysis.errors_of(call.id)
    for call_id in analysis.forest.order:
        link = analysis.links[call_id]
        defects += link.notes
        if link.fault is not None and link.fault.reason not in _TOLD_BY_THE_PARENT:
            defects.append(link.fault)
        if analysis.calls[call_id].fields.prefix_requested and link.parent is None:
            defects.append(analysis.calls[call_id].entry.locate(Defect(reason="prefix_supply_unproven")))
    if outcome.rows:
        aside = set(errors(defects))
    defects += [_with_chains(fault, analysis) for fault in outcome.faults if fault.reason not in _TOLD_BY_THE_PARENT]
    defects += [*outcome.notes, *_account_of(snapshot, analysis, policy, outcome)]
    unique = sorted(dict.fromkeys(defects), key=lambda defect: defect.key)
    return tuple(find(defect, aside=defect in aside) for defect in unique)


def _with_chains(fault: Defect, analysis: Analysis) -> Defect:
    """A fault between chains, with the chains it is about: their calls and when they were made."""
    if fault.reason not in ("multiple_roots", "multiple_ends"):
        return fault
    shown = []
    for chain in analysis.chains[:4]:
        first, last = (analysis.calls[call] for call in (chain.calls[0], chain.calls[-1]))
        calls = first.id if first is last else f"{first.id} to {last.id}"
        shown.append(f"{calls} ({moment(first.fields.created_at)} to {moment(last.fields.created_at)})")
    more = f"; {len(analysis.chains) - 4} more" if len(analysis.chains) > 4 else ""
    return fault.at(detail="; ".join(shown) + more)


def moment(seconds: float) -> str:
    """UTC, or the bare number where it is no time of this world."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def _account_of(snapshot: Snapshot, analysis: Analysis, policy: Policy, outcome: Outcome) -> Iterable[Defect]:
    """What was noted or left out, by reason."""
    calls = analysis.calls
    repeated = [call for call in calls.values() if call.repeats]
    if repeated:
        lines = tuple(sorted(line for call in repeated for line in call.repeats))
        yield Defect(
            reason="duplicate_record", calls=tuple(call.id for call in repeated), count=len(lines), lines=lines
        )
    empty = empty_generation_calls(analysis)
    if empty:
        yield Defect(reason="empty_generation", calls=empty)
    stopped = truncated_calls(snapshot, analysis)
    if stopped:
        yield Defect(reason="length_stopped", calls=stopped)
    versions = weight_versions(analysis)
    if len(versions) > 1:
        yield Defect(reason="mixed_weight_versions", detail=", ".join(map(str, versions)))
    for row in outcome.rows:
        without = tuple(call for call in row.calls if not has_experts(calls[call]))
        if without and len(without) < len(row.calls):
            yield Defect(reason="routed_experts_missing", calls=without)
    by_reason: dict[str, list[str]] = {}
    for call_id, reason in left_out(analysis, policy, outcome.rows, outcome.faults).items():
        if severity_of(reason) == "info" and reason not in _NOT_OF_A_CALL:
            by_reason.setdefault(reason, []).append(call_id)
    for reason, ids in by_reason.items():
        yield Defect(reason=reason, calls=tuple(ids))


def truncated_calls(snapshot: Snapshot, analysis: Analysis) -> tuple[str, ...]:
    """Calls whose raw call says that the generation stopped at its limit."""
    reasons = finish_reasons(snapshot)
    return tuple(call for call in analysis.calls if reasons.get(call) in LENGTH_STOPS)


def finish_reasons(snapshot: Snapshot) -> dict[str, str]:
    """How each call ended as its raw calls say, where they say one thing."""
    told: dict[str, set[str]] = {}
    for raw in snapshot.raw_calls or ():
        if raw.finish_reason is not None:
            told.setdefault(raw.call_id, set()).add(raw.finish_reason)
    return {call: reasons.pop() for call, reasons in told.items() if len(reasons) == 1}


def weight_versions(analysis: Analysis) -> tuple[int | str, ...]:
    """The versions that the calls were sampled from, sorted; empty where none is recorded."""
    found = {call.weight_version for call in analysis.calls.values()} - {None}
    return tuple(sorted((version for version in found if version is not None), key=lambda v: (str(type(v)), v)))


def parents_of(analysis: Analysis) -> Mapping[str, str | None]:
    """The verified parent of every call that stands in a chain."""
    return {call: link.parent for call, link in sorted(analysis.links.items())}


def chains_verify(analysis: Analysis) -> bool:
    """True if every record's ids are its own and every link holds."""
    links = all(analysis.links[call].fault is None for call in analysis.forest.order)
    return bool(analysis.chains) and links and not any(errors(analysis.errors_of(call)) for call in analysis.calls)
