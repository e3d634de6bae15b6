"""The health of a finished row as NeMo Gym leaves it: `_ng_token_capture` and `mask_sample` (capture-files.md 6.1)."""

import math
import re
from collections.abc import Iterator

import msgspec

from ng_capture.records.json_text import printable
from ng_capture.records.rollout_row import RolloutRow
from ng_capture.verdicts.health.measures import place_of
from ng_capture.verdicts.health.rollout import RolloutHealth
from ng_capture.verdicts.metrics import Metrics
from ng_capture.verdicts.reasons import REASONS, in_order

METRICS_KEY = "_ng_token_capture"
MASK_KEY = "mask_sample"

# reasons.md, NeMo Gym's own strings
_OF_FAILURES = {
    "parent_unresolved": "parent_unresolved",
    "missing_resolution": "link_missing",
    "parent_digest_mismatch": "prefix_mismatch",
    "parent_call_id_missing": "parent_missing",
    "parent_call_id_missing_recovered": "parent_missing",
    "duplicate_call_id_conflict": "conflicting_records",
    "delta_chain_unreconstructable": "delta_unresolvable",
}
_OF_ERRORS = {
    "capture contains no token records": "empty_capture",
    "nothing recorded": "empty_capture",
    "capture produced no trainable generated tokens": "no_generated_tokens",
}
# in whatever error it stands (capture-files.md 1.5); an id may say retired, too
_RETIRED = re.compile(r"\b(is|was|already) retired\b")
_OF_WITNESSES = {
    "explicit_terminal_not_captured": "terminal_not_captured",
    "declared_terminal_not_captured": "terminal_not_captured",
    "declared_ambiguous": "terminal_ambiguous",
    "witness_disagreement": "witness_disagreement",
}


class _RowMetrics(Metrics, frozen=True, kw_only=True, omit_defaults=True):
    error: str | None = None


def health_of_row(rollout_id: str, row: RolloutRow) -> RolloutHealth:
    """What a row tells of its rollout: Gym's metrics, and why it is masked as far as they say it.

    A row with tokens and without metrics was never rebuilt: its agent had the tokens already (6.3). Whatever the flag
    says, which profiling strips (6.7), a row without tokens is masked, as is one that tells of a fault (6.2).
    """
    told = _metrics(row)
    faulty = told is not None and (told.error is not None or told.capture_incomplete)
    masked = bool(row.values.get(MASK_KEY)) or faulty or not row.carries_tokens
    reasons = in_order(frozenset(_reasons(told))) if masked and told is not None else ()
    return RolloutHealth(
        rollout_id=rollout_id,
        verdict="masked" if masked else "trainable",
        reasons=reasons or None if masked else (),
        metrics=told,
        place=place_of(rollout_id, row),
    )


def _metrics(row: RolloutRow) -> _RowMetrics | None:
    try:
        metrics = msgspec.convert(_printable(row.values.get(METRICS_KEY)), _RowMetrics)
    except msgspec.ValidationError:
        return None
    fraction = metrics.delivered_fraction
    # a number without end is no fraction: unknown
    known = fraction is not None and math.isfinite(fraction)
    return metrics if known else msgspec.structs.replace(metrics, delivered_fraction=None)


def _printable(value: object, depth: int = 2) -> object:
    """The value with its texts as UTF-8 can hold them, as deep as metrics go."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict) and depth:
        return {printable(key): _printable(member, depth - 1) for key, member in value.items()}
    return value


def _reasons(metrics: _RowMetrics) -> Iterator[str]:
    """Gym's mask rule, read backwards (6.2)."""
    if metrics.error is not None:
        yield from _of_error(metrics.error)
    if metrics.capture_incomplete:
        yield "capture_incomplete"
    terminal = metrics.terminal_attribution
    status = terminal.chain if terminal is not None else ""
    if status == "delivered":
        return
    if terminal is not None:
        yield from (reason for text, reason in _OF_WITNESSES.items() if text in terminal.reason)
    if status == "not_captured":
        yield "terminal_not_captured"
    if status == "broken":
        yield "terminal_chain_broken"
    if metrics.chains is None:
        return
    failures = [name for name in metrics.parent_link_failures or () if name in _OF_FAILURES]
    yield from (_OF_FAILURES[name] for name in failures)
    if failures or status == "broken":
        # each of them begins a root and a chain of its own
        return
    if (metrics.roots or 0) > 1:
        yield "multiple_roots"
    elif metrics.chains > 1:
        yield "multiple_ends"


def _of_error(error: str) -> Iterator[str]:
    if _RETIRED.search(error):
        yield "retired"
    elif error in _OF_ERRORS:
        yield _OF_ERRORS[error]
    elif (name := error.partition(":")[0]) in REASONS:
        # our own rows begin with the reason
        yield name
