"""One call in full."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from ng_capture.outputs.shapes import SHAPES
from ng_capture.outputs.show.call import CallView, view_of
from tests.support.capture import Capture
from tests.support.forge import FIRST_MOMENT, Forge
from tests.support.looking import shown_files, shown_forge
from tests.support.strategies import captures


def view(forge: Forge, call: str, **how: Any) -> CallView:
    return view_of(shown_forge(forge, **how), call)


def test_a_call_is_told_with_its_place_its_ids_and_what_it_said() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").then([4], [5, 6], id="b", weight_version="step-7")
    told = view(forge, "b", raw=True)
    assert (told.rollout_id, told.call, told.file, told.line) == ("r-1", "b", "r-1.tokens.jsonl", 2)
    assert (told.model, told.response_id, told.created_at) == ("policy-8b", "resp_b", FIRST_MOMENT + 1)
    assert (told.parent, told.parent_named, told.parent_resolution) == ("a", "a", "resolved")
    assert told.prompt_token_ids == (1, 2, 3, 4) and told.generation_token_ids == (5, 6)
    assert told.generation_log_probs == pytest.approx(forge.calls[1].log_probs)
    assert told.weight_version == "step-7"
    assert [turn.text for turn in told.asked or ()] == ["request 0", "answer a", "request 1"]
    assert told.answer is not None and told.answer.text == "answer b"
    assert told.findings == ()


def test_without_a_raw_call_what_was_asked_is_unknown() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a")
    told = view(forge, "a")
    assert (told.asked, told.stop, told.parent, told.parent_named) == (None, None, None, None)


def test_the_findings_of_the_call_and_those_that_name_it_among_others_are_told() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    first.broken([1, 9], [4], id="b")
    first.then([5], [6], id="x")
    first.then([5], [7], id="y")
    assert [finding.reason for finding in view(forge, "b").findings] == ["prefix_mismatch"]
    assert "ambiguous_retry" in {finding.reason for finding in view(forge, "x").findings}


def test_a_link_that_does_not_hold_leaves_the_name_of_the_parent() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").broken([1, 9], [4], id="b")
    told = view(forge, "b")
    assert (told.parent, told.parent_named) == (None, "a")


def test_a_call_whose_prompt_cannot_be_put_together_says_so() -> None:
    forge = Forge(delta=True)
    forge.root([1, 2], [3], id="a").then([4], [5], id="b", parent_call_id="nowhere")
    told = view(forge, "b")
    assert (told.prompt_token_ids, told.generation_token_ids, told.parent) == (None, None, None)


def test_log_probabilities_that_cannot_be_read_are_unknown() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a", generation_log_probs=["x"])
    assert view(forge, "a").generation_log_probs is None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(capture=captures("call whole end"))
def test_whatever_the_capture_every_call_can_be_told(capture: Capture) -> None:
    rollout = shown_files(capture.files(), row=capture.row)
    for call_id, call in rollout.judgement.analysis.calls.items():
        told = view_of(rollout, call_id)
        SHAPES["shown-call"].model_validate_json(msgspec.json.encode(told))
        if call.full is not None:
            assert (*(told.prompt_token_ids or ()), *(told.generation_token_ids or ())) == tuple(call.full.values())
