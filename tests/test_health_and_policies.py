"""What is sound is delivered, and how much of it: healthy rollouts, faults aside, the policies against one another.

design.md "Judging", policies-and-exports.md 4.1.
"""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ng_capture.verdicts.policies import Policy
from tests.support.capture import Capture
from tests.support.forge import MODEL, Call, Forge
from tests.support.judging import delivered, trained
from tests.support.strategies import captures, chains, forges

Tokens = set[tuple[str, int]]


def trainable(calls: list[Call]) -> Tokens:
    """The generated tokens of some calls, but for one at position 0: nothing predicts it."""
    return {(call.id, at) for call in calls for at in range(len(call.generation)) if call.prompt or at}


def joined(call: Call | None) -> Call | None:
    """The nearest ancestor that generated something."""
    here = call.parent if call else None
    while here is not None and not here.generation:
        here = here.parent
    return here


def to_root(call: Call) -> list[Call]:
    """A call and what it extends, without those that generated nothing."""
    path: list[Call] = []
    here: Call | None = call
    while here is not None:
        path.append(here)
        here = joined(here)
    return path


def owed_by_all(forge: Forge, scored: Call | None) -> Tokens:
    """What policy `all` must train of a healthy rollout, told as the rule is: chains that nothing speaks against."""
    calls = [call for call in forge.calls if call.generation]
    path = to_root(scored) if scored else []
    extended = {joined(call) for call in calls}
    barred = set()
    for call in calls:
        answers = [other for other in calls if joined(other) is joined(call) and other.prompt == call.prompt]
        kept = [other for other in answers if other in path or other in extended]
        if len(answers) > 1 and call not in kept:
            barred.add(call)
    standing = [call for call in calls if scored is None or call is scored or scored not in to_root(call)]
    leaves = [call for call in standing if not any(joined(other) is call for other in standing)]
    chains = [chain for leaf in leaves if barred.isdisjoint(chain := to_root(leaf))]
    return trainable([call for chain in chains for call in chain])


@settings(max_examples=120, deadline=None)
@given(capture=captures("", named=True))
def test_a_healthy_rollout_whose_scored_call_is_named_is_delivered_whole(capture: Capture) -> None:
    assert capture.scored is not None
    owed = trainable(to_root(capture.scored))
    assume(owed)
    judgement, rows = delivered(capture, Policy.TERMINAL)
    assert judgement.verdict == "trainable" and judgement.reasons == ()
    assert set(trained(rows)) == owed
    assert judgement.deviation is None or judgement.deviation in ("empty_parent_joined", "settled_first_retry")


@settings(max_examples=120, deadline=None)
@given(capture=chains(), policy=st.sampled_from(list(Policy)))
def test_one_healthy_chain_is_delivered_under_every_policy_with_a_row_or_without(
    capture: Capture, policy: Policy
) -> None:
    judgement, rows = delivered(capture, policy)
    assert (judgement.verdict, judgement.reasons) == ("trainable", ())
    assert len(rows) == 1 and set(trained(rows)) == trainable(to_root(capture.forge.calls[-1]))


@settings(max_examples=150, deadline=None)
@given(capture=captures(""))
def test_all_trains_each_token_of_a_healthy_rollout_once_but_what_was_cut_or_abandoned(capture: Capture) -> None:
    tokens = trained(delivered(capture, Policy.ALL)[1])
    assert len(tokens) == len(set(tokens))
    assert set(tokens) == owed_by_all(capture.forge, capture.scored)


@settings(max_examples=150, deadline=None)
@given(forge=forges(), data=st.data())
def test_another_models_calls_are_context_on_the_path_and_count_for_nothing_beside_it(
    forge: Forge, data: st.DataObject
) -> None:
    foreign = data.draw(st.sets(st.sampled_from(forge.calls)))
    for call in foreign:
        call.fields["model"] = "judge"
    scored = data.draw(st.sampled_from(forge.calls))
    owed = trainable([call for call in to_root(scored) if call not in foreign])
    assume(scored.generation and owed)
    capture = Capture(forge, scored, forge.row(scored), lines=[(call.id, call.line()) for call in forge.calls])
    judgement, rows = delivered(capture, Policy.TERMINAL, policy_model=MODEL)
    assert (judgement.verdict, set(trained(rows))) == ("trainable", owed)
    tokens = trained(delivered(capture, Policy.ALL, policy_model=MODEL)[1])
    assert owed <= set(tokens) and {call.id for call in foreign}.isdisjoint(call for call, _ in tokens)


@settings(max_examples=150, deadline=None)
@given(capture=captures("call", named=True))
def test_a_fault_off_the_path_of_the_scored_call_changes_nothing_of_its_row(capture: Capture) -> None:
    assert capture.scored is not None
    assume(not capture.whole and capture.touched.isdisjoint(capture.path()))
    owed = trainable(to_root(capture.scored))
    assume(owed)
    judgement, rows = delivered(capture, Policy.TERMINAL)
    assert judgement.reasons == ()
    assert [row["tokens"] for row in rows] == [capture.scored.full]
    assert set(trained(rows)) == owed


@settings(max_examples=150, deadline=None)
@given(capture=captures("call whole end"))
def test_all_never_gives_less_than_terminal_and_terminal_never_less_than_strict(capture: Capture) -> None:
    tokens = {policy: set(trained(delivered(capture, policy)[1])) for policy in Policy}
    assert tokens[Policy.TERMINAL] <= tokens[Policy.ALL]
    if capture.scored is None:
        assert tokens[Policy.STRICT] == tokens[Policy.TERMINAL]


@settings(max_examples=120, deadline=None)
@given(capture=captures("call"))
def test_strict_gives_one_root_and_one_chain_or_nothing(capture: Capture) -> None:
    rows = delivered(capture, Policy.STRICT)[1]
    assert len(rows) <= 1
    recorded = {name for name, _ in capture.lines}
    assert not rows or recorded.isdisjoint(capture.nowhere | capture.silent)
