"""The tokens of a rollout as a trainer gets them: prompts, what was added between, generations with loss or without."""

from array import array
from collections.abc import Iterator
from typing import Literal

import msgspec

from ng_capture.chains.analysis import Analysis
from ng_capture.verdicts.judge import Judgement

SpanKind = Literal["prompt", "interstitial", "trained", "context"]


class TokenSpan(msgspec.Struct, frozen=True, eq=False):
    """Ids of one call that are of one kind; they stand from `start` on in their row."""

    row: int
    call: str
    kind: SpanKind
    start: int
    ids: "array[int]"


def token_spans(judgement: Judgement) -> Iterator[TokenSpan]:
    """The rows of a rollout, span by span; of a masked rollout its main chain, where nothing is trained."""
    analysis = judgement.analysis
    rows = [(row.calls, frozenset(row.trained)) for row in judgement.rows] or [(judgement.main_chain, frozenset())]
    for number, (calls, trained) in enumerate(rows):
        yield from _row(analysis, number, calls, trained)


def _row(analysis: Analysis, number: int, calls: tuple[str, ...], trained: frozenset[str]) -> Iterator[TokenSpan]:
    place = 0
    for index, call_id in enumerate(calls):
        call = analysis.calls[call_id]
        # what stands in a chain can be put together
        assert call.prompt is not None and call.full is not None
        added = call.prompt.values()[place:]
        yield TokenSpan(number, call_id, "interstitial" if index else "prompt", place, added)
        place = len(call.prompt)
        generated = call.full.values()[place:]
        if call_id in trained and place == 0:
            # nothing predicts the first token of a sequence (policies-and-exports.md 4.1)
            yield TokenSpan(number, call_id, "context", 0, generated[:1])
            generated = generated[1:]
        kind: SpanKind = "trained" if call_id in trained else "context"
        yield TokenSpan(number, call_id, kind, len(call.full) - len(generated), generated)
        place = len(call.full)
