"""Promise 5: no delivered token that was not captured; no trained token under another prefix than its own.

The forge knows what truly happened, whatever the files have become; every training row is held against that.
"""

import tempfile
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.policies import Policy
from tests.support.capture import Capture
from tests.support.forge import Row, judged, rows_of, write_files
from tests.support.strategies import captures

policies = st.sampled_from(list(Policy))


def delivered(capture: Capture, policy: Policy) -> tuple[Judgement, list[Row]]:
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory), capture.files())
        judgement = judged(Path(directory), row=capture.row, policy=policy)
    return judgement, rows_of(judgement, capture.row)


def generated(row: Row) -> list[tuple[int, str, int]]:
    """Position in the row, call and offset in its generation of every token that the row calls generated."""
    spans = [span for span in row["spans"] if span["kind"] == "gen"]
    return [(at, span["call_id"], at - span["start"]) for span in spans for at in range(span["start"], span["end"])]


@settings(max_examples=300, deadline=None)
@given(capture=captures("call end"), policy=policies)
def test_every_row_is_the_true_sequence_of_its_last_call(capture: Capture, policy: Policy) -> None:
    for row in delivered(capture, policy)[1]:
        assert row["tokens"] == capture.call[row["calls"][-1]].full
        assert len(row["tokens"]) == len(row["loss_mask"]) == len(row["logprobs"])


@settings(max_examples=400, deadline=None)
@given(capture=captures("call"), policy=policies)
def test_a_trained_token_was_generated_under_the_prefix_before_it(capture: Capture, policy: Policy) -> None:
    for row in delivered(capture, policy)[1]:
        owner = {at: (capture.call[call], offset) for at, call, offset in generated(row)}
        trained = [at for at, mask in enumerate(row["loss_mask"]) if mask]
        assert trained and trained[0] > 0
        for at in trained:
            call, offset = owner[at]
            assert row["tokens"][:at] == [*call.prompt, *call.generation[:offset]]
            assert row["tokens"][at] == call.generation[offset]
            assert row["logprobs"][at] == call.log_probs[offset]
        assert not any(value for value, mask in zip(row["logprobs"], row["loss_mask"], strict=True) if not mask)


@settings(max_examples=400, deadline=None)
@given(capture=captures("call"), policy=policies)
def test_a_call_with_a_faulty_record_is_not_trained_and_one_with_doubtful_ids_is_in_no_row(
    capture: Capture, policy: Policy
) -> None:
    for row in delivered(capture, policy)[1]:
        assert capture.nowhere.isdisjoint(row["calls"])
        trained = {call for at, call, _ in generated(row) if row["loss_mask"][at]}
        assert trained.isdisjoint(capture.silent | capture.nowhere)


@settings(max_examples=300, deadline=None)
@given(capture=captures("call end"), policy=policies)
def test_a_generated_token_is_trained_once_at_most(capture: Capture, policy: Policy) -> None:
    rows = delivered(capture, policy)[1]
    times = Counter((call, offset) for row in rows for at, call, offset in generated(row) if row["loss_mask"][at])
    assert set(times.values()) <= {1}


@settings(max_examples=300, deadline=None)
@given(capture=captures("whole end call"), policy=policies)
def test_whatever_may_mean_a_lost_call_leaves_no_row_under_any_policy(capture: Capture, policy: Policy) -> None:
    judgement, rows = delivered(capture, policy)
    assert bool(rows) == (judgement.verdict == "trainable")
    assert bool(judgement.reasons) == (judgement.verdict == "masked")
    if capture.whole:
        assert rows == []


@settings(max_examples=300, deadline=None)
@given(capture=captures("call end", named=True))
def test_under_terminal_the_one_row_ends_in_the_scored_call(capture: Capture) -> None:
    rows = delivered(capture, Policy.TERMINAL)[1]
    assert [row["calls"][-1] for row in rows] in ([], [capture.scored.id if capture.scored else None])


@settings(max_examples=300, deadline=None)
@given(capture=captures("call end"), policy=policies)
def test_the_accounting_sums_to_what_was_captured(capture: Capture, policy: Policy) -> None:
    judgement, rows = delivered(capture, policy)
    account = judgement.accounting
    assert account.captured == sum(call.generated for call in judgement.analysis.calls.values())
    assert account.captured == account.trained + account.context + sum(account.lost.values())
    assert account.trained == sum(sum(row["loss_mask"]) for row in rows)
    shown = {(call, offset) for row in rows for _, call, offset in generated(row)}
    assert account.trained + account.context == len(shown)
    assert all(count > 0 for count in account.lost.values())


@settings(max_examples=200, deadline=None)
@given(capture=captures("call", max_faults=2), policy=policies)
def test_the_rows_of_a_rollout_share_its_weight_by_their_trained_tokens(capture: Capture, policy: Policy) -> None:
    rows = delivered(capture, policy)[1]
    total = sum(sum(row["loss_mask"]) for row in rows)
    for index, row in enumerate(rows):
        assert (row["trajectory_index"], row["n_trajectories"]) == (index, len(rows))
        assert row["rollout_trainable_tokens"] == total
        assert row["row_weight"] == sum(row["loss_mask"]) / total
