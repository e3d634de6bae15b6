"""Rows that are too long, stopped at their limit, or hardly trained (policies-and-exports.md 4.1, T41 and T43)."""

from collections.abc import Iterator

import msgspec

from ng_capture.outputs.export.choices import Export, OnOverflow
from ng_capture.outputs.export.flat import FlatRow
from ng_capture.outputs.training_rows import Span


class TooLong(ValueError):
    """A row is longer than it may be, and nothing may be dropped; holds its length."""


class LeftOut(msgspec.Struct, frozen=True):
    """A row that is not exported; `reason` is a name of the registry."""

    reason: str
    detail: str


def fitted(row: FlatRow, export: Export) -> FlatRow | LeftOut:
    """The row as it may be exported; raises TooLong."""
    if export.mask_truncated and row.head.truncated:
        row = _masked_last(row)
    if export.max_length is not None and len(row.tokens) > export.max_length:
        if export.on_overflow is OnOverflow.FAIL:
            raise TooLong(f"{len(row.tokens):,} tokens, at most {export.max_length:,}")
        if export.on_overflow is OnOverflow.DROP:
            return LeftOut("over_max_length", f"{len(row.tokens):,} tokens, at most {export.max_length:,}")
        row = _cut(row, _end(row, export.max_length, export.on_overflow))
    if not row.trained:
        return LeftOut("no_trainable_tokens", "no token carries loss")
    if row.trained < export.min_trainable:
        return LeftOut("below_min_trainable", f"{row.trained:,} trained tokens, at least {export.min_trainable:,}")
    return row


def _masked_last(row: FlatRow) -> FlatRow:
    """The generation that stopped at its limit carries no loss; it is the last one."""
    start = row.head.spans[-1].start
    mask = [*row.loss_mask[:start], *[0] * (len(row.loss_mask) - start)]
    return _with_arrays(row, row.tokens, mask)


def _end(row: FlatRow, limit: int, how: OnOverflow) -> int:
    """Where a row is cut: at its limit, or where the last call that fits has ended."""
    if how is OnOverflow.CUT:
        return limit
    return max((span.end for span in row.head.spans if span.kind == "gen" and span.end <= limit), default=0)


def _cut(row: FlatRow, end: int) -> FlatRow:
    spans = tuple(_spans_until(row.head.spans, end))
    calls = tuple(dict.fromkeys(span.call_id for span in spans))
    whole = end == (spans[-1].end if spans else 0) and len(calls) == len({*calls})
    head = msgspec.structs.replace(
        row.head,
        spans=spans,
        calls=calls,
        finish_reasons=row.head.finish_reasons[: len(calls)],
        truncated=row.head.truncated if whole and calls == row.head.calls else None,
    )
    cut = msgspec.structs.replace(row, head=head, experts=None if row.experts is None else row.experts[:end])
    return _with_arrays(cut, row.tokens[:end], row.loss_mask[:end])


def _spans_until(spans: tuple[Span, ...], end: int) -> Iterator[Span]:
    for span in spans:
        if span.start < end:
            yield span if span.end <= end else msgspec.structs.replace(span, end=end)


def _with_arrays(row: FlatRow, tokens: list[int], mask: list[int]) -> FlatRow:
    """The row with these tokens and this mask; what carries no loss has log probability 0.0."""
    pairs = zip(row.log_probs, mask, strict=False)
    log_probs = [log_prob if trained else 0.0 for log_prob, trained in pairs]
    return msgspec.structs.replace(row, tokens=tokens, loss_mask=mask, log_probs=log_probs)
