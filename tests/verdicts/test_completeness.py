"""Every sign that a call has no record."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.verdicts.judge import Judgement
from tests.support.forge import Forge, canonical
from tests.support.judging import judged


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    made = Forge()
    made.root([1], [2], id="a").then([3], [4], id="b")
    made.write(tmp_path)
    return made


def with_raw(directory: Path, *lines: dict[str, Any], **how: Any) -> Judgement:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (directory / "r-1.capture.jsonl").write_text(text)
    return judged(directory, **how)


ANSWERED = {"model_call_id": "x", "dialect": "chat", "status_code": 200, "response": {"model": "policy-8b"}}


def test_an_answered_call_without_tokens_masks(forge: Forge, tmp_path: Path) -> None:
    judgement = with_raw(tmp_path, ANSWERED, ANSWERED)
    assert (judgement.reasons, judgement.completeness.lost_calls) == (("call_without_tokens",), ("x",))
    assert judgement.deviation == "raw_call_contradiction"


def test_one_of_another_model_than_the_policys_is_not_missed(forge: Forge, tmp_path: Path) -> None:
    judge = {**ANSWERED, "response": {"model": "judge"}}
    assert with_raw(tmp_path, judge, policy_model="policy-8b").verdict == "trainable"


def test_an_answered_call_whose_ids_lie_only_in_its_raw_call_is_lost(forge: Forge, tmp_path: Path) -> None:
    message = {"prompt_token_ids": [1], "generation_token_ids": [2]}
    judgement = with_raw(tmp_path, {**ANSWERED, "response": {"choices": [{"message": message}]}})
    assert judgement.reasons == ("capture_incomplete",)


@pytest.mark.parametrize(
    "failure",
    [
        {"status_code": 503},
        {"error_category": "timeout"},
    ],
)
def test_a_call_that_was_not_answered_is_not_missed(forge: Forge, tmp_path: Path, failure: dict[str, Any]) -> None:
    judgement = with_raw(tmp_path, {"model_call_id": "x", **failure})
    assert (judgement.verdict, judgement.completeness.failed_calls) == ("trainable", ("x",))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"dialect": "chat", "response_raw": 'data: {"choices": []}\n\n'}, "stream_truncated"),
        ({"status_code": 200, "error_category": "stream_truncated"}, "stream_truncated"),
        ({"status_code": 200, "error_category": "capture_parse_error"}, "response_missing"),
    ],
)
def test_an_answer_of_which_only_a_part_was_captured_may_be_a_lost_call(
    forge: Forge, tmp_path: Path, answer: dict[str, Any], reason: str
) -> None:
    judgement = with_raw(tmp_path, {"model_call_id": "x", **answer})
    assert (judgement.reasons, judgement.completeness.lost_calls) == ((reason,), ("x",))


@pytest.mark.parametrize(
    ("dialect", "events"),
    [
        ("chat", [{"model": "m", "choices": [{"finish_reason": "length"}]}, {"usage": {"completion_tokens": 9}}]),
        (
            "responses",
            [
                {
                    "type": "response.incomplete",
                    "response": {
                        "usage": {"output_tokens": 9},
                        "incomplete_details": {"reason": "max_output_tokens"},
                    },
                }
            ],
        ),
        (
            "messages",
            [
                {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 3}}},
                {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
                {"type": "message_stop"},
            ],
        ),
    ],
)
def test_what_a_streamed_answer_says_of_itself_is_read(
    forge: Forge, tmp_path: Path, dialect: str, events: list[dict[str, Any]]
) -> None:
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    if dialect == "chat":
        stream += "data: [DONE]\n\n"
    judgement = with_raw(tmp_path, {"model_call_id": "b", "dialect": dialect, "response_raw": stream})
    assert [(f.usage, f.ids) for f in judgement.findings if f.reason == "token_count_mismatch"] == [(9, 1)]
    assert [f.calls for f in judgement.findings if f.reason == "length_stopped"] == [("b",)]


def test_how_a_call_ended_is_unknown_where_its_lines_disagree(forge: Forge, tmp_path: Path) -> None:
    ends = [{"model_call_id": "b", "response": {"stop_reason": reason}} for reason in ("stop", "length")]
    assert [f.reason for f in with_raw(tmp_path, *ends).findings] == []


def test_a_call_that_failed_and_was_answered_on_another_line_is_missed(forge: Forge, tmp_path: Path) -> None:
    judgement = with_raw(tmp_path, {"model_call_id": "x", "status_code": 500}, ANSWERED)
    assert (judgement.completeness.lost_calls, judgement.completeness.failed_calls) == (("x",), ())


@pytest.mark.parametrize(
    ("dialect", "stream", "whole"),
    [
        ("chat", 'data: {"choices": []}\n\ndata: [DONE]\n\n', True),
        ("chat", 'data: {"error": {"code": 1}}\n\n', True),
        ("chat", 'data: {"choices": []}\n\ndata: {"cho', False),
        ("messages", 'event: message_stop\ndata: {"type": "message_stop"}\n\n', True),
        ("messages", 'data: {"type": "content_block_delta"}\n\n', False),
        ("responses", 'data: {"type": "response.completed"}\n\n', True),
        ("responses", 'data: {"type": "response.output_text.delta"}\n\n', False),
        ("responses", '{"id": "no stream"}', True),
        ("other", "data: {}\n\n", True),
    ],
)
def test_a_stream_without_its_end_is_an_error_of_its_call(
    forge: Forge, tmp_path: Path, dialect: str, stream: str, whole: bool
) -> None:
    call = {"model_call_id": "b", "dialect": dialect, "response_raw": stream}
    assert with_raw(tmp_path, call, call).reasons == (() if whole else ("stream_truncated",))


def test_a_raw_call_without_an_id_says_nothing(forge: Forge, tmp_path: Path) -> None:
    assert with_raw(tmp_path, {"status_code": 200}).verdict == "trainable"


def test_usage_that_contradicts_the_ids_masks_once(forge: Forge, tmp_path: Path) -> None:
    call = {"model_call_id": "b", "response": {"usage": {"output_tokens": 9}}}
    judgement = with_raw(tmp_path, call, call)
    assert [(f.usage, f.ids, f.line) for f in judgement.findings] == [(9, 1, 1)]


def test_a_refusal_settles_an_intent(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "r-1.tokens.intents").write_bytes(b"a\nb\nx\n")
    assert judged(tmp_path).reasons == ("capture_incomplete",)
    refused = [{"model_call_id": "x", "code": "context_length_exceeded", "created_at": 1.0, "more": 1}]
    (tmp_path / "r-1.tokens.state.json").write_bytes(canonical(forge.state(refusals=refused)))
    assert judged(tmp_path).verdict == "trainable"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("tokens.incomplete", b"", "an empty mark"),
        ("tokens.incomplete", b"\n\n", "2 marks without a call id"),
        ("tokens.incomplete", b"b\n", "call b was marked incomplete"),
        ("tokens.intents", b"a\nb\nb\xff", "call b\ufffd was announced but has no record"),
    ],
)
def test_every_mark_masks_and_says_what_it_is(forge: Forge, tmp_path: Path, name: str, data: bytes, text: str) -> None:
    (tmp_path / f"r-1.{name}").write_bytes(data)
    judgement = judged(tmp_path)
    assert judgement.reasons == ("capture_incomplete",)
    assert text in judgement.findings[0].message


@pytest.mark.parametrize(
    ("state", "text"),
    [
        ({"incomplete": True}, "the state says so"),
        ({"indexed_size": 10**6}, "the state covers 1000000 bytes"),
        ({"entry_digests": {"a": "0", "b": "0", "z": "0"}}, "call z is in the state's index but has no record"),
    ],
)
def test_a_state_that_knows_more_than_the_records_masks(
    forge: Forge, tmp_path: Path, state: dict[str, Any], text: str
) -> None:
    (tmp_path / "r-1.tokens.state.json").write_bytes(canonical(forge.state(**state)))
    judgement = judged(tmp_path)
    assert judgement.reasons == ("capture_incomplete",)
    assert text in judgement.findings[0].message


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"frozen": 1}', b'{"indexed_size": -1, "entry_digests": {}}'])
def test_an_unreadable_state_masks(forge: Forge, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "r-1.tokens.state.json").write_bytes(data)
    assert judged(tmp_path).reasons == ("state_unreadable",)


def test_an_older_state_without_an_index_is_no_fault(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "r-1.tokens.state.json").write_bytes(b'{"frozen": false, "entry_digests": 7}')
    assert judged(tmp_path).verdict == "trainable"


def test_a_retired_capture_holds_nothing_to_judge(forge: Forge, tmp_path: Path) -> None:
    state = forge.state(retired=True, frozen=True, entry_digests={}, indexed_size=0)
    (tmp_path / "r-1.tokens.state.json").write_bytes(canonical(state))
    (tmp_path / "r-1.tokens.jsonl").unlink()
    judgement = judged(tmp_path)
    assert (judgement.reasons, judgement.retired) == (("retired",), True)
