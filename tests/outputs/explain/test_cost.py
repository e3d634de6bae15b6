"""What one broken edge costs: what each policy would train with it mended, and does not."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ng_capture.outputs.explain.cost import tokens_lost
from ng_capture.outputs.explain.rollout import ShownRollout
from ng_capture.verdicts.judging import Policy
from tests.support.forge import Call, Forge
from tests.support.looking import shown_files, shown_forge
from tests.support.strategies import ids, some_ids

Lost = dict[str, dict[str, int]]


def lost(rollout: ShownRollout, **parents: str) -> Lost:
    return tokens_lost(rollout.judgement, parents)


def trained(forge: Forge, policy: Policy) -> int:
    return shown_forge(forge, policy=policy).judgement.accounting.trained


def chain(*, breaks: tuple[int, ...], calls: int = 4) -> Forge:
    """Calls of two generated tokens each; those at `breaks` do not extend the call before them."""
    forge = Forge()
    call = forge.root([1], [2, 3], id="c0")
    for number in range(1, calls):
        if number in breaks:
            call = call.broken([1, 90 + number, *call.full], [2, 3], id=f"c{number}")
        else:
            call = call.then([5], [2, 3], id=f"c{number}")
    return forge


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_single_break_costs_what_mending_it_gains(at: int) -> None:
    """Against the same rollout, made without the break."""
    forge = chain(breaks=(at,))
    (cost,) = lost(shown_forge(forge), **{f"c{at}": f"c{at - 1}"}).values()
    whole = chain(breaks=())
    assert cost == {policy.value: trained(whole, policy) - trained(forge, policy) for policy in Policy}
    assert cost["strict"] == cost["terminal"] == 8 and cost["all"] == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_of_any_chain_a_break_costs_what_mending_it_gains(data: st.DataObject) -> None:
    """One break at a random place of a random chain; its twin has the same generations and holds everywhere."""
    sizes = data.draw(st.lists(st.tuples(ids, some_ids), min_size=2, max_size=5))
    at = data.draw(st.integers(1, len(sizes) - 1))
    broken, whole = Forge(), Forge()
    call: Call | None = None
    twin: Call | None = None
    for number, (added, generation) in enumerate(sizes):
        name = f"c{number}"
        if call is None or twin is None:
            call, twin = (forge.root([1, *added], generation, id=name) for forge in (broken, whole))
            continue
        twin = twin.then(added, generation, id=name)
        if number == at:
            call = call.broken([0, *call.full, *added], generation, id=name)
        else:
            call = call.then(added, generation, id=name)
    cost = lost(shown_forge(broken), **{f"c{at}": f"c{at - 1}"})
    assert cost == {f"c{at}": {each.value: trained(whole, each) - trained(broken, each) for each in Policy}}


def test_of_two_breaks_each_costs_what_it_alone_would() -> None:
    forge = chain(breaks=(1, 3))
    cost = lost(shown_forge(forge), c1="c0", c3="c2")
    alone = {at: lost(shown_forge(chain(breaks=(at,))), **{f"c{at}": f"c{at - 1}"}) for at in (1, 3)}
    assert cost == {**alone[1], **alone[3]}


def test_a_rollout_that_is_masked_for_another_reason_loses_nothing_by_a_break() -> None:
    forge = chain(breaks=(2,))
    files = forge.files()
    files["r-1.tokens.intents"] += b"never recorded\n"
    rollout = shown_files(files)
    assert "capture_incomplete" in rollout.judgement.reasons
    assert lost(rollout, c2="c1") == {"c2": {"strict": 0, "terminal": 0, "all": 0}}


def test_a_break_on_a_branch_that_was_not_scored_costs_the_terminal_policy_nothing() -> None:
    forge = chain(breaks=())
    forge.calls[0].broken([1, 90], [7, 8], id="side")
    rollout = shown_forge(forge, forge.row(forge.calls[3]))
    assert rollout.judgement.verdict == "trainable"
    assert lost(rollout, side="c0")["side"] == {"strict": 0, "terminal": 0, "all": 0}


def test_log_probabilities_that_cannot_be_used_cost_nothing_by_a_break() -> None:
    forge = chain(breaks=(2,))
    forge.calls[1].fields["generation_log_probs"] = [None, None]
    cost = lost(shown_forge(forge), c2="c1")["c2"]
    assert cost == {"strict": 0, "terminal": 0, "all": 0}


def test_the_empty_generation_on_the_way_is_passed_through() -> None:
    forge = Forge()
    forge.root([1], [2, 3], id="c0").then([4], [], id="empty").broken([1, 9], [2, 3], id="c2")
    cost = lost(shown_forge(forge), c2="c0")["c2"]
    assert cost == {"strict": 4, "terminal": 4, "all": 0}


def test_a_break_at_a_call_that_generated_nothing_costs_what_it_would_at_the_call_before() -> None:
    forge = Forge()
    forge.root([1], [2, 3], id="c0").then([4], [], id="empty").broken([1, 9], [2, 3], id="c2")
    rollout = shown_forge(forge)
    assert lost(rollout, c2="empty") == lost(rollout, c2="c0")


def test_behind_a_call_that_generated_nothing_and_lost_its_own_parent_a_break_costs_nothing() -> None:
    forge = Forge()
    forge.root([1], [2, 3], id="c0")
    forge.unresolved([7, 8], [], id="empty").broken([7, 9], [2, 3], id="c2")
    assert lost(shown_forge(forge), c2="empty")["c2"] == {"strict": 0, "terminal": 0, "all": 0}


def test_without_a_break_nothing_is_lost() -> None:
    assert lost(shown_forge(chain(breaks=()))) == {}
