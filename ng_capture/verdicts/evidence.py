"""Does the evidence about the scored call fit the records? (design.md `terminal_evidence`)"""

from collections.abc import Iterable

from ng_capture.chains.analysis import Analysis
from ng_capture.records.defects import Defect

EVIDENCE_REASONS = frozenset({"terminal_not_captured", "terminal_ambiguous", "witness_disagreement"})


def evidence_faults(analysis: Analysis, ends: Iterable[str], *, confirmed_otherwise: bool) -> list[Defect]:
    """What in the evidence does not fit.

    `ends` are the last calls of the chains: a response that several calls explain is settled where a chain ends in one
    of them. `confirmed_otherwise`: the rollout is one chain and no call is missing, so that a response which fits
    nothing is only told (`terminal_unconfirmed`).
    """
    found = analysis.attribution
    if found.missing is not None:
        return [Defect(reason="terminal_not_captured", call=found.missing)]
    if found.missing_response is not None:
        detail = f"no record has the declared response id {found.missing_response}"
        return [Defect(reason="terminal_not_captured", detail=detail)]
    if found.declared_ambiguous:
        return [Defect(reason="terminal_ambiguous", calls=found.possible)]
    if found.disagreeing:
        return [Defect(reason="witness_disagreement", calls=found.disagreeing, detail=found.notes[-1])]
    if found.call is not None:
        return _unusable(analysis, found.call)
    if found.possible and not set(found.possible).intersection(ends):
        return [Defect(reason="terminal_ambiguous", calls=found.possible)]
    if found.unexplained:
        reason = "terminal_unconfirmed" if confirmed_otherwise else "terminal_not_captured"
        return [Defect(reason=reason, detail=f"no record explains the response ({found.reason})")]
    return []


def _unusable(analysis: Analysis, scored: str) -> list[Defect]:
    if scored in analysis.forest.parents:
        return []
    call = analysis.calls[scored]
    detail = "it generated nothing" if not call.generated else "its tokens cannot be put together"
    return [call.entry.locate(Defect(reason="terminal_not_captured", detail=detail)), *analysis.errors_of(scored)]
