"""Rows that are too long, stopped at their limit, or hardly trained (policies-and-exports.md 4.1, T41 and T43)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from ng_capture.outputs.export.choices import Export, OnOverflow
from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.training_rows import Span
from ng_capture.records.raw_call import LENGTH_STOPS

_TOO_LONG = "over_max_length"
LENGTH_STOPPED = "length_stopped"
_LENGTH = "length"


class TooLong(ValueError):
    """A row is longer than it may be, and nothing may be dropped; holds its length."""


class LeftOut(msgspec.Struct, frozen=True):
    """A row that is not exported; `reason` is a name of the registry.

    `untrained` counts by reason the tokens that would have been trained in it.
    """

    reason: str
    detail: str
    untrained: Mapping[str, int] = {}


def left_out(row: FlatRow, reason: str, detail: str) -> LeftOut:
    """Why a row is not exported, and what its tokens are lost to."""
    return LeftOut(reason, detail, Counter(row.untrained) + Counter({reason: row.trained}))


def untrained_of(rows: Iterable[FlatRow], left_out: Iterable[LeftOut]) -> Counter[str]:
    """How many tokens of a rollout carry no loss in what is exported although the policy trains them, by reason."""
    total: Counter[str] = Counter()
    for counts in (*(row.untrained for row in rows), *(each.untrained for each in left_out)):
        total.update(counts)
    return total


def fitted(row: FlatRow, export: Export) -> FlatRow | LeftOut:
    """The row as it may be exported; raises TooLong."""
    if export.max_length is not None and len(row.tokens) > export.max_length:
        detail = f"{len(row.tokens):,} tokens, at most {export.max_length:,}"
        if export.on_overflow is OnOverflow.FAIL:
            raise TooLong(detail)
        if export.on_overflow is OnOverflow.DROP:
            return left_out(row, _TOO_LONG, detail)
        row = _cut(row, _end(row, export.max_length, export.on_overflow))
    if export.mask_truncated:
        row = _masked_last(row)
    if not row.trained:
        return left_out(row, "no_trainable_tokens", "no token carries loss")
    if row.trained < export.min_trainable:
        detail = f"{row.trained:,} trained tokens, at least {export.min_trainable:,}"
        return left_out(row, "below_min_trainable", detail)
    return row


def _masked_last(row: FlatRow) -> FlatRow:
    """A generation that ends the row and stopped at a limit carries no loss."""
    last = row.head.spans[-1] if row.head.spans else None
    if last is None or last.kind != "gen" or row.head.finish_reasons[-1] not in LENGTH_STOPS:
        return row
    mask = [*row.loss_mask[: last.start], *[0] * (len(row.loss_mask) - last.start)]
    return _with_mask(row, mask, LENGTH_STOPPED)


def _end(row: FlatRow, limit: int, how: OnOverflow) -> int:
    """Where a row is cut: at its limit, or where the last call that fits has ended."""
    if how is OnOverflow.CUT:
        return limit
    return max((span.end for span in row.head.spans if span.kind == "gen" and span.end <= limit), default=0)


def _cut(row: FlatRow, end: int) -> FlatRow:
    """The first tokens of a row. What a call generated behind them it did not in this row: it stopped at the limit."""
    head, ends = row.head, {span.call_id: span.end for span in row.head.spans}
    spans = tuple(_spans_until(head.spans, end))
    calls = tuple(dict.fromkeys(span.call_id for span in spans))
    reasons = dict(zip(head.calls, head.finish_reasons, strict=True))
    shorter = msgspec.structs.replace(
        head,
        spans=spans,
        calls=calls,
        finish_reasons=tuple(reasons[call] if ends[call] <= end else _LENGTH for call in calls),
        truncated=True,
    )
    cut = msgspec.structs.replace(
        row,
        head=shorter,
        tokens=row.tokens[:end],
        experts=None if row.experts is None else row.experts[:end],
    )
    return _with_mask(cut, row.loss_mask[:end], _TOO_LONG)


def _spans_until(spans: tuple[Span, ...], end: int) -> Iterator[Span]:
    for span in spans:
        if span.start < end:
            yield span if span.end <= end else msgspec.structs.replace(span, end=end)


def _with_mask(row: FlatRow, mask: list[int], reason: str) -> FlatRow:
    """The row with this mask; what carries no loss has log probability 0.0."""
    pairs = zip(row.log_probs, mask, strict=False)
    log_probs = [log_prob if trained else 0.0 for log_prob, trained in pairs]
    untrained = Counter(row.untrained) + Counter({reason: row.trained - sum(mask)})
    return msgspec.structs.replace(row, loss_mask=mask, log_probs=log_probs, untrained=untrained)
