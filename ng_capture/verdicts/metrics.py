"""What NeMo Gym reports of a rollout, under its names and with its strings (capture-files.md 6.1)."""

from collections import Counter

import msgspec

from ng_capture.chains.analysis import Analysis
from ng_capture.records.snapshot import Snapshot
from ng_capture.records.usage import Count

_UNPLACED_AS = "delta_chain_unreconstructable"


class TerminalAttribution(msgspec.Struct, frozen=True):
    """Who was scored, by which witness, with Gym's notes and the status of the chain."""

    method: str
    call_id: str | None
    reason: str
    chain: str


class Metrics(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Gym's metrics; a rollout without a chain has only the first two."""

    n_calls: Count
    terminal_attribution: TerminalAttribution | None = None
    chains: Count | None = None
    roots: Count | None = None
    quarantined_calls: Count | None = None
    quarantined_fraction: float | None = None
    delivered_fraction: float | None = None
    generated_tokens_captured: Count | None = None
    generated_tokens_delivered: Count | None = None
    parent_link_failures: dict[str, Count] | None = None
    unresolved_parent_calls: Count | None = None
    empty_generation_calls: Count | None = None
    capture_incomplete: bool = False


def unresolved_parent_calls(analysis: Analysis) -> tuple[str, ...]:
    """Calls that are not joined to what came before them, in Gym's order: conflicts, lost deltas, broken links."""
    conflicts = [call.id for call in analysis.calls.values() if call.conflict is not None]
    unplaced = [call.id for call in analysis.calls.values() if call.full is None]
    broken = [call for call in analysis.forest.order if analysis.links[call].fault is not None]
    return (*conflicts, *unplaced, *broken)


def metrics_of(snapshot: Snapshot, analysis: Analysis, *, incomplete: bool) -> Metrics:
    """The metrics of a rollout."""
    calls, forest = analysis.calls, analysis.forest
    n_calls = len(snapshot.entries)
    if not analysis.chains:
        terminal = _terminal(analysis, "error") if snapshot.entries else None
        return Metrics(n_calls=n_calls, terminal_attribution=terminal, capture_incomplete=incomplete)
    captured = sum(calls[call].generated for call in forest.order)
    main = next(chain for chain in analysis.chains if chain.chain_id == "main")
    delivered = sum(calls[call].generated for call in main.calls)
    failures = Counter(link.failure for call in forest.order if (link := analysis.links[call]).failure is not None)
    failures["duplicate_call_id_conflict"] = sum(call.conflict is not None for call in calls.values())
    failures[_UNPLACED_AS] = sum(call.full is None for call in calls.values())
    quarantined = len(analysis.settled.quarantined)
    return Metrics(
        n_calls=n_calls,
        terminal_attribution=_terminal(analysis, _chain_status(analysis)),
        chains=len(analysis.chains),
        roots=len(forest.roots),
        quarantined_calls=quarantined,
        quarantined_fraction=round(quarantined / n_calls, 4),
        delivered_fraction=round(delivered / captured, 4) if captured else 0.0,
        generated_tokens_captured=captured,
        generated_tokens_delivered=delivered,
        parent_link_failures={str(name): count for name, count in sorted(failures.items()) if count},
        unresolved_parent_calls=len(unresolved_parent_calls(analysis)),
        empty_generation_calls=len(empty_generation_calls(analysis)),
        capture_incomplete=incomplete,
    )


def empty_generation_calls(analysis: Analysis) -> tuple[str, ...]:
    """Calls that generated nothing; a delta that cannot be rebuilt is not known to be one."""
    return tuple(call.id for call in analysis.calls.values() if not call.generated and call.full is not None)


def _chain_status(analysis: Analysis) -> str:
    if analysis.attribution.call is None:
        return ""
    if not analysis.path:
        return "not_captured"
    broken = any(analysis.links[c].fault is not None or c in analysis.settled.quarantined for c in analysis.path)
    return "broken" if broken else "delivered"


def _terminal(analysis: Analysis, chain: str) -> TerminalAttribution:
    found = analysis.attribution
    status = "not_captured" if chain == "error" and found.call is not None else chain
    return TerminalAttribution(found.method or "none", found.call, found.reason, status)
