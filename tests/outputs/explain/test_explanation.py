"""The explanation of one rollout, and the breaks of many by cause, turn and model."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.explain.causes import CAUSES
from ng_capture.outputs.explain.explanation import Explanation, Summariser, explain, explain_task
from ng_capture.outputs.shapes import SHAPES
from ng_capture.outputs.verify import Unread, VerifyTask
from ng_capture.verdicts.judging import Judging
from tests.support.forge import Forge
from tests.support.looking import shown, shown_forge
from tests.support.raw_calls import chat_call, exchange, says, user, write_capture
from tests.support.runs import broken, healthy


def explained(forge: Forge, **how: Any) -> Explanation:
    return explain(shown_forge(forge, **how), None)


def summed(*explanations: Explanation) -> Any:
    summariser = Summariser()
    for each in explanations:
        summariser.add(each)
    return summariser.summary()


def test_an_explanation_says_verdict_reasons_findings_and_breaks() -> None:
    told = explained(broken("r-1"))
    assert (told.rollout_id, told.verdict, told.reasons) == ("r-1", "masked", ("prefix_mismatch",))
    assert (told.calls, told.chains, told.raw_only) == (2, 2, False)
    (finding,) = [each for each in told.findings if each.reason == "prefix_mismatch"]
    (found,) = told.breaks
    assert (finding.call, finding.first_difference) == (found.call, found.common_len)


def test_what_is_healthy_has_no_break() -> None:
    told = explained(healthy("r-1"))
    assert (told.verdict, told.findings, told.breaks) == ("trainable", (), ())


def test_an_explanation_has_the_published_shape() -> None:
    SHAPES["explained-rollout"].model_validate_json(msgspec.json.encode(explained(broken("r-1"))))


def two_causes() -> list[Explanation]:
    """Two rollouts that end inside what was held, one whose answer was edited twice; another model did the latter."""
    back, again = Forge("2-0"), Forge("10-0")
    for forge in (back, again):
        forge.root([1, 2], [3, 4], id="a").broken([1, 2, 3], [5], id="b")
    edited = Forge("3-0")
    first = edited.root([1, 2], [3, 4], id="a", model="judge")
    for name in ("b", "c"):
        first.broken([1, 2, 7, 8], [ord(name)], id=name, model="judge")
    return [explained(back), explained(edited), explained(again), explained(healthy("4-0"))]


def test_breaks_are_added_up_by_cause_turn_and_model() -> None:
    told = summed(*two_causes())
    assert (told.rollouts, told.masked, told.breaks) == (4, 3, 4)
    assert [(each.cause, each.breaks, each.rollouts) for each in told.by_cause] == [
        ("assistant_text_edited", 2, 1),
        ("rollback", 2, 2),
    ]
    assert told.by_turn == {1: 3, 2: 1}
    assert told.by_model == {"judge": 2, "policy-8b": 2}


def test_each_cause_has_its_first_example_its_remedy_and_its_price() -> None:
    explanations = two_causes()
    told = {each.cause: each for each in summed(*explanations).by_cause}
    rollback = told["rollback"]
    assert (rollback.example, rollback.example_call) == ("2-0", "b")
    assert (rollback.group, rollback.remedy) == ("history", CAUSES["rollback"].remedy)
    lost = [each.tokens_lost for explanation in explanations for each in explanation.breaks if each.cause == "rollback"]
    assert rollback.tokens_lost == {policy: sum(each[policy] for each in lost) for policy in lost[0]}
    assert rollback.tokens_lost["strict"] == 6


def test_the_most_frequent_cause_stands_first() -> None:
    back, edited, again, _ = two_causes()
    assert [each.cause for each in summed(back, again, edited, back).by_cause] == ["rollback", "assistant_text_edited"]


def test_of_no_breaks_there_is_an_empty_summary() -> None:
    told = summed(explained(healthy("4-0")))
    assert (told.rollouts, told.masked, told.breaks) == (1, 0, 0)
    assert (told.by_cause, told.by_turn, told.by_model) == ((), {}, {})


def test_a_rollout_that_cannot_be_read_is_named_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "r-1.tokens.jsonl").mkdir()
    told = explain_task(VerifyTask("r-1", list_rollouts([str(tmp_path)]).get("r-1"), None, Judging()), None)
    assert isinstance(told, Unread) and "r-1.tokens.jsonl" in told.message
    healthy("r-2").write(tmp_path)
    told = explain_task(VerifyTask("r-2", list_rollouts([str(tmp_path)]).get("r-2"), None, Judging()), None)
    assert isinstance(told, Explanation)


# What is read of a rollout


def test_raw_calls_that_cannot_be_read_hide_no_others(tmp_path: Path) -> None:
    rows = [chat_call("a", [user("go")], says("yes"), prompt=[1], generation=[2])]
    write_capture(tmp_path, "r-1", rows)
    path = tmp_path / "r-1.capture.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b'\n{"torn\n{"no": "call"}\n')
    assert list(shown(tmp_path).exchanges) == ["a"]


def test_a_rollout_that_has_only_a_row_is_shown(tmp_path: Path) -> None:
    rollout = shown(tmp_path, "9-9", {"_ng_rollout_id": "9-9", "reward": 0.5})
    assert rollout.row is not None and rollout.row.reward == 0.5
    assert rollout.judgement.reasons == ("empty_capture",) and rollout.exchanges == {}


def test_raw_calls_are_read_where_they_are_wanted_or_nothing_else_is_there(tmp_path: Path) -> None:
    healthy("r-1").write(tmp_path, raw=True)
    assert list(shown(tmp_path, raw_calls=True).exchanges) == ["a", "b"]
    assert list(shown(tmp_path, raw_calls=False).exchanges) == []
    write_capture(tmp_path, "r-2", [chat_call("a", [user("go")], says("yes"), prompt=[1], generation=[2])])
    assert list(shown(tmp_path, "r-2", raw_calls=False).exchanges) == ["a"]


@pytest.mark.parametrize("raw", [True, False])
def test_an_answer_is_known_by_the_raw_call_or_by_the_record(raw: bool) -> None:
    forge = healthy("r-1")
    rollout = shown_forge(forge, raw=raw)
    (answer,) = {rollout.answer(rollout.judgement.analysis.calls["a"])}
    assert answer is not None and answer.text == "answer a"


def test_where_the_raw_call_has_no_answer_the_record_is_asked_and_without_items_none_is_known() -> None:
    forge = Forge()
    forge.root([1], [2], id="a")
    unanswered = chat_call("a", [user("go")], None)
    assert exchange(unanswered).answer is None
    rollout = shown_forge(forge, raw=[unanswered])
    answer = rollout.answer(rollout.judgement.analysis.calls["a"])
    assert answer is not None and answer.text == "answer a"
    forge.calls[0].fields |= {"output_items": [], "token_item_index": None}
    rollout = shown_forge(forge)
    assert rollout.answer(rollout.judgement.analysis.calls["a"]) is None
