"""Records made of raw calls: what `show` and `explain` look at where nothing was ingested."""

from typing import Any

import pytest

from ng_capture.outputs.explain.rollout import ShownRollout
from ng_capture.verdicts.judging import Policy
from tests.support.forge import Forge, Row
from tests.support.looking import shown, shown_forge
from tests.support.raw_calls import chat_call, says, system, talk, user, write_capture


def with_tokens(rows: list[Row], *tokens: tuple[list[int], list[int]]) -> list[Row]:
    """The calls with these prompts and generations."""
    for row, (prompt, generation) in zip(rows, tokens, strict=True):
        row["response"]["choices"][0]["message"] |= {
            "prompt_token_ids": prompt,
            "generation_token_ids": generation,
            "generation_log_probs": [-0.5] * len(generation),
        }
    return rows


def look(tmp_path: Any, rows: list[Row], **how: Any) -> ShownRollout:
    write_capture(tmp_path, "r-1", rows)
    return shown(tmp_path, **how)


TWO = ([1, 2], [3]), ([1, 2, 3, 4], [5, 6])


def test_raw_calls_with_tokens_are_judged_like_records(tmp_path: Any) -> None:
    rollout = look(tmp_path, with_tokens(talk(says("one"), says("two")), *TWO))
    assert rollout.raw_only
    assert [(row.calls, row.trained) for row in rollout.judgement.rows] == [(("a", "b"), ("a", "b"))]
    call = rollout.judgement.analysis.calls["b"]
    assert call.full is not None and call.full.values().tolist() == [1, 2, 3, 4, 5, 6]
    assert (call.fields.model, call.fields.response_id, call.entry.line) == ("policy-8b", "resp-b", 2)
    assert call.entry.file == "r-1.capture.jsonl"


def test_where_there_are_records_raw_calls_make_none() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a")
    other = chat_call("z", [user("x")], says("y"), prompt=[7], generation=[8])
    rollout = shown_forge(forge, raw=[other])
    assert not rollout.raw_only
    assert list(rollout.judgement.analysis.calls) == ["a"] and list(rollout.exchanges) == ["z"]


def test_raw_calls_without_any_token_make_no_record(tmp_path: Any) -> None:
    rollout = look(tmp_path, talk(says("one"), says("two")))
    assert not rollout.raw_only and rollout.judgement.analysis.calls == {}
    assert rollout.judgement.verdict == "masked"


def test_what_continues_a_call_without_tokens_is_no_root(tmp_path: Any) -> None:
    rows = talk(says("one"), says("two"), says("three"))
    with_tokens([rows[0], rows[2]], ([1], [2]), ([1, 2, 3], [4]))
    links = look(tmp_path, rows).judgement.analysis.links
    fault = links["c"].fault
    assert list(links) == ["a", "c"]
    assert fault is not None and (fault.reason, fault.parent) == ("parent_missing", "b")


@pytest.mark.parametrize(
    "broken",
    [
        {"prompt_token_ids": None},
        {"prompt_token_ids": "x"},
        {"generation_log_probs": None},
        {"generation_token_ids": None},
    ],
    ids=repr,
)
def test_a_call_whose_tokens_are_partial_has_no_record_and_the_others_have_theirs(
    tmp_path: Any, broken: dict[str, Any]
) -> None:
    rows = with_tokens(talk(says("one"), says("two")), *TWO)
    rows[0]["response"]["choices"][0]["message"] |= broken
    rollout = look(tmp_path, rows)
    assert list(rollout.judgement.analysis.calls) == ["b"]
    assert rollout.judgement.verdict == "masked"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("prompt_token_ids", [1, "x"], "bad_token_id"),
        ("generation_token_ids", [-1], "bad_token_id"),
        ("generation_log_probs", [None], "logprob_missing"),
        ("generation_log_probs", [], "logprob_length_mismatch"),
    ],
)
def test_a_call_whose_tokens_are_wrong_is_at_fault(tmp_path: Any, field: str, value: object, reason: str) -> None:
    rows = with_tokens(talk(says("one")), ([1], [2]))
    rows[0]["response"]["choices"][0]["message"][field] = value
    assert reason in {finding.reason for finding in look(tmp_path, rows).judgement.findings}


def test_a_retry_and_a_side_call_are_seen_as_such(tmp_path: Any) -> None:
    asked = [system("s"), user("go")]
    rows = [
        chat_call("a", asked, says("dropped"), prompt=[1], generation=[2], at=1.0),
        chat_call("b", asked, says("kept"), prompt=[1], generation=[3], at=2.0),
        chat_call("t", [user("title?")], says("Querns"), prompt=[9], generation=[8], at=2.5),
        chat_call("c", [*asked, says("kept"), user("on")], says("end"), prompt=[1, 3, 4], generation=[5], at=3.0),
    ]
    analysis = look(tmp_path, rows, policy=Policy.ALL).judgement.analysis
    assert analysis.settled.quarantined == {"a"}
    assert sorted(chain.calls for chain in analysis.chains) == [("b", "c"), ("t",)]


def test_prompt_ids_of_any_shape_never_stop_the_rest(tmp_path: Any) -> None:
    nested: object = 1
    for _ in range(900):
        nested = [nested]
    rows = with_tokens(talk(says("one"), says("two")), *TWO)
    rows[0]["response"]["choices"][0]["message"]["prompt_token_ids"] = [nested]
    assert "b" in look(tmp_path, rows).judgement.analysis.calls
