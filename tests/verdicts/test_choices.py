"""Several answers of one raw call: as a retry, but said to be what they are (ingest.md 4, N63)."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.verdicts.judging import Policy
from tests.support.forge import Call, Forge
from tests.support.judging import judged, rows_of


def note(index: int, choices: Any = 2) -> dict[str, Any]:
    return {"ng_capture": {"choices": choices, "choice": index}}


def with_choices(count: int = 2) -> tuple[Forge, list[Call]]:
    """A first call, and several answers to the second."""
    forge = Forge()
    first = forge.root([1], [2], id="a")
    made = [first.then([3], [4 + number], id=f"b#{number}", **note(number, count)) for number in range(count)]
    for call in made[1:]:
        call.request = made[0].request
    return forge, made


@pytest.mark.parametrize("policy", [Policy.STRICT, Policy.TERMINAL, Policy.ALL])
@pytest.mark.parametrize("count", [2, 3])
def test_choices_that_nothing_settles_mask_under_a_reason_of_their_own(
    policy: Policy, count: int, tmp_path: Path
) -> None:
    with_choices(count)[0].write(tmp_path)
    judgement = judged(tmp_path, policy=policy)
    assert "ambiguous_choices" in judgement.reasons and "ambiguous_retry" not in judgement.reasons
    (finding,) = [each for each in judgement.findings if each.reason == "ambiguous_choices"]
    assert (finding.call, finding.choices, len(finding.calls or ())) == ("b", count, count)
    assert finding.message == f"call b has {count} choices and nothing extends or names one of them"
    assert all(not set(row["calls"]) & {f"b#{n}" for n in range(count)} for row in rows_of(judgement))


def test_a_later_call_settles_which_was_used(tmp_path: Path) -> None:
    forge, made = with_choices()
    made[1].then([6], [7], id="c")
    forge.write(tmp_path)
    judgement = judged(tmp_path)
    assert (judgement.verdict, [row.calls for row in judgement.rows]) == ("trainable", [("a", "b#1", "c")])


def test_the_scored_call_settles_which_was_used(tmp_path: Path) -> None:
    forge, made = with_choices()
    forge.write(tmp_path)
    judgement = judged(tmp_path, forge.row(made[0]))
    assert [row.calls for row in judgement.rows] == [("a", "b#0")]


@pytest.mark.parametrize("other", [{}, {"ng_capture": {"choices": "2"}}, {"ng_capture": {"choices": True}}])
def test_a_retry_of_choices_is_a_retry(other: dict[str, Any], tmp_path: Path) -> None:
    forge, made = with_choices()
    again = made[0].retry([9], id="again", **({"ng_capture": None} | other))
    assert again.parent is made[0].parent
    forge.write(tmp_path)
    assert "ambiguous_retry" in judged(tmp_path).reasons


def test_choices_of_two_calls_are_a_retry(tmp_path: Path) -> None:
    forge, made = with_choices()
    made[0].retry([9], id="x#0")
    made[0].retry([8], id="x#1")
    forge.write(tmp_path)
    assert "ambiguous_retry" in judged(tmp_path).reasons


def test_a_raw_call_with_several_answers_is_told_by_them(tmp_path: Path) -> None:
    """Its id is that of no record, and it is not missed."""
    forge, made = with_choices()
    made[1].then([6], [7], id="c")
    forge.write(tmp_path)
    message = {"prompt_token_ids": [1], "generation_token_ids": [2]}
    raw = {"model_call_id": "b", "status_code": 200, "response": {"choices": [{"message": message}]}}
    (tmp_path / "r-1.capture.jsonl").write_text(json.dumps(raw) + "\n")
    assert judged(tmp_path).verdict == "trainable"
    (tmp_path / "r-1.capture.jsonl").write_text(json.dumps({**raw, "model_call_id": "x"}) + "\n")
    judgement = judged(tmp_path)
    assert (judgement.reasons, judgement.completeness.lost_calls) == (("capture_incomplete",), ("x",))
