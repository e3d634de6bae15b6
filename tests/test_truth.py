"""Promise 5: no delivered token that was not captured; no trained token under another prefix than its own.

The forge knows what truly happened, whatever the files have become; every training row is held against that.
"""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.verdicts.policies import Policy
from tests.support.capture import Capture
from tests.support.faults import CALL_FAULTS, END_FAULTS, WHOLE_FAULTS
from tests.support.forge import Forge, Row
from tests.support.judging import delivered, generated, trained
from tests.support.strategies import HEALTHY, REWRITTEN, captures, forges

policies = st.sampled_from(list(Policy))


@settings(max_examples=120, deadline=None)
@given(capture=captures("call end"), policy=policies)
def test_every_row_is_the_true_sequence_of_its_last_call(capture: Capture, policy: Policy) -> None:
    for row in delivered(capture, policy)[1]:
        assert row["tokens"] == capture.call[row["calls"][-1]].full
        assert len(row["tokens"]) == len(row["loss_mask"]) == len(row["logprobs"])


def check_prefixes(capture: Capture, rows: list[Row]) -> None:
    """Each token with loss was sampled by its call, with that log probability, under what stands before it."""
    for row in rows:
        owner = {token.at: token for token in generated(row)}
        with_loss = [at for at, mask in enumerate(row["loss_mask"]) if mask]
        assert with_loss and with_loss[0] > 0
        for at in with_loss:
            call, offset = capture.call[owner[at].call], owner[at].offset
            assert row["tokens"][:at] == [*call.prompt, *call.generation[:offset]]
            assert row["tokens"][at] == call.generation[offset]
            assert row["logprobs"][at] == call.log_probs[offset]
        assert not any(value for value, mask in zip(row["logprobs"], row["loss_mask"], strict=True) if not mask)


@settings(max_examples=150, deadline=None)
@given(capture=captures("call"), policy=policies)
def test_a_trained_token_was_generated_under_the_prefix_before_it(capture: Capture, policy: Policy) -> None:
    check_prefixes(capture, delivered(capture, policy)[1])


@settings(max_examples=150, deadline=None)
@given(forge=forges(kinds=HEALTHY + REWRITTEN), policy=policies)
def test_links_that_are_inferred_train_no_token_under_another_prefix(forge: Forge, policy: Policy) -> None:
    for call in forge.calls:
        call.fields.update(parent_call_id=None, parent_resolution=None, prompt_is_delta=False)
    capture = Capture(forge, lines=[(call.id, call.line()) for call in forge.calls])
    rows = delivered(capture, policy, infer_links=True)[1]
    check_prefixes(capture, rows)
    assert set(Counter(trained(rows)).values()) <= {1}


@pytest.mark.parametrize("fault", CALL_FAULTS)
@settings(max_examples=15, deadline=None)
@given(data=st.data(), policy=policies)
def test_a_call_with_a_faulty_record_is_not_trained_and_one_with_doubtful_ids_is_in_no_row(
    fault: str, data: st.DataObject, policy: Policy
) -> None:
    capture = data.draw(captures("call", always=(fault,), max_faults=1))
    rows = delivered(capture, policy)[1]
    assert capture.nowhere.isdisjoint(call for row in rows for call in row["calls"])
    assert capture.silent.isdisjoint(call for call, _ in trained(rows))


@settings(max_examples=120, deadline=None)
@given(capture=captures("call end"), policy=policies)
def test_a_generated_token_is_trained_once_at_most(capture: Capture, policy: Policy) -> None:
    times = Counter(trained(delivered(capture, policy)[1]))
    assert set(times.values()) <= {1}


@pytest.mark.parametrize("fault", [*WHOLE_FAULTS, *END_FAULTS])
@settings(max_examples=15, deadline=None)
@given(data=st.data(), policy=policies)
def test_whatever_may_mean_a_lost_call_leaves_no_row_under_any_policy(
    fault: str, data: st.DataObject, policy: Policy
) -> None:
    capture = data.draw(captures("call end", always=(fault,), max_faults=1))
    judgement, rows = delivered(capture, policy)
    assert bool(rows) == (judgement.verdict == "trainable")
    assert bool(judgement.reasons) == (judgement.verdict == "masked")
    if capture.whole:
        assert rows == []


@settings(max_examples=120, deadline=None)
@given(capture=captures("call end", named=True))
def test_under_terminal_the_one_row_ends_in_the_scored_call(capture: Capture) -> None:
    rows = delivered(capture, Policy.TERMINAL)[1]
    assert [row["calls"][-1] for row in rows] in ([], [capture.scored.id if capture.scored else None])


@settings(max_examples=120, deadline=None)
@given(capture=captures("call end"), policy=policies)
def test_the_accounting_sums_to_what_was_captured(capture: Capture, policy: Policy) -> None:
    judgement, rows = delivered(capture, policy)
    account = judgement.accounting
    assert account.captured == sum(call.generated for call in judgement.analysis.calls.values())
    assert account.captured == account.trained + account.context + sum(account.lost.values())
    assert account.trained == sum(sum(row["loss_mask"]) for row in rows)
    shown = {(token.call, token.offset) for row in rows for token in generated(row)}
    assert account.trained + account.context == len(shown)
    assert all(count > 0 for count in account.lost.values())


@settings(max_examples=120, deadline=None)
@given(capture=captures("call", max_faults=2), policy=policies)
def test_the_rows_of_a_rollout_share_its_weight_by_their_trained_tokens(capture: Capture, policy: Policy) -> None:
    rows = delivered(capture, policy)[1]
    total = sum(sum(row["loss_mask"]) for row in rows)
    for index, row in enumerate(rows):
        assert (row["trajectory_index"], row["n_trajectories"]) == (index, len(rows))
        assert row["rollout_trainable_tokens"] == total
        assert row["row_weight"] == sum(row["loss_mask"]) / total
