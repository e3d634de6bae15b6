"""Every token of a rollout by what becomes of it, against the training rows that `rebuild` writes."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ng_capture.outputs.show.spans import TokenSpan, token_spans
from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.judging import Policy
from tests.support.capture import Capture
from tests.support.forge import Forge
from tests.support.judging import delivered
from tests.support.looking import shown_forge
from tests.support.strategies import captures

of_captures = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def by_row(judgement: Judgement) -> list[list[TokenSpan]]:
    rows: dict[int, list[TokenSpan]] = {}
    for span in token_spans(judgement):
        rows.setdefault(span.row, []).append(span)
    return [rows[number] for number in sorted(rows)]


def told(forge: Forge, row: Any = None, **how: Any) -> list[tuple[int, str, str, int, list[int]]]:
    spans = token_spans(shown_forge(forge, row, **how).judgement)
    return [(span.row, span.call, span.kind, span.start, list(span.ids)) for span in spans]


@of_captures
@given(capture=captures("call whole end"), policy=st.sampled_from(Policy))
def test_the_spans_of_a_row_are_its_tokens_and_their_kinds_its_loss_mask(capture: Capture, policy: Policy) -> None:
    judgement, rows = delivered(capture, policy)
    spans = by_row(judgement) if rows else []
    assert len(spans) == len(rows)
    for made, row in zip(spans, rows, strict=True):
        assert [each for span in made for each in span.ids] == row["tokens"]
        assert [int(span.kind == "trained") for span in made for _ in span.ids] == row["loss_mask"]
        assert list(dict.fromkeys(span.call for span in made)) == row["calls"]


@of_captures
@given(capture=captures("call whole end"), policy=st.sampled_from(Policy))
def test_each_span_stands_where_the_one_before_it_ends(capture: Capture, policy: Policy) -> None:
    judgement, _ = delivered(capture, policy)
    for spans in by_row(judgement):
        place = 0
        for span in spans:
            assert span.start == place
            place += len(span.ids)
        assert spans[0].kind == "prompt" and all(span.kind != "prompt" for span in spans[1:])


@of_captures
@given(capture=captures("call whole end"))
def test_of_a_masked_rollout_the_main_chain_is_shown_and_nothing_of_it_is_trained(capture: Capture) -> None:
    judgement, rows = delivered(capture, Policy.TERMINAL)
    if rows:
        return
    spans = list(token_spans(judgement))
    assert all(span.kind != "trained" for span in spans)
    assert tuple(dict.fromkeys(span.call for span in spans)) == judgement.main_chain
    last = judgement.analysis.calls[judgement.main_chain[-1]].full if judgement.main_chain else None
    assert [each for span in spans for each in span.ids] == (list(last.values()) if last is not None else [])


def test_prompt_generation_and_what_was_added_between_are_told_apart() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").then([4], [5, 6], id="b")
    assert told(forge) == [
        (0, "a", "prompt", 0, [1, 2]),
        (0, "a", "trained", 2, [3]),
        (0, "b", "interstitial", 3, [4]),
        (0, "b", "trained", 4, [5, 6]),
    ]


def test_the_first_token_of_a_sequence_has_nothing_that_predicts_it() -> None:
    forge = Forge()
    forge.root([], [3, 4], id="a")
    assert told(forge) == [
        (0, "a", "prompt", 0, []),
        (0, "a", "context", 0, [3]),
        (0, "a", "trained", 1, [4]),
    ]


def test_each_chain_is_a_row_and_a_shared_call_is_trained_in_the_first() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5], id="b")
    first.then([6], [7], id="c")
    kinds = [
        (row, call, kind) for row, call, kind, _, _ in told(forge, policy=Policy.ALL) if kind in ("trained", "context")
    ]
    assert kinds == [(0, "a", "trained"), (0, "b", "trained"), (1, "a", "context"), (1, "c", "trained")]


def test_a_rollout_without_a_call_has_no_tokens() -> None:
    assert told(Forge()) == []
