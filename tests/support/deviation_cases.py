"""Our own cases of the named deviations: files of one rollout, what its row says, and the verdict that differs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from ng_capture.verdicts.judging import Judging
from tests.support.entries import lines, record, says

A = record("a", [1, 2], [3], created_at=1.0)
B = record("b", [1, 2, 3, 4], [5], parent="a", created_at=2.0)
SIDE = record("s", [50, 51], [52], created_at=3.0)
"""A call with a root of its own, such as a sub-agent's."""

TOKENS = "0-0.tokens.jsonl"


@dataclass(frozen=True)
class DeviationCase:
    """One rollout on which NeMo Gym 0.7.0 gives the other verdict; `reason` is one of ours where it is masked."""

    claim: str
    deviation: str
    files: Mapping[str, bytes]
    reason: str | None = None
    row: Mapping[str, Any] = field(default_factory=dict)
    judging: Judging = field(default_factory=Judging)

    @property
    def verdict(self) -> str:
        return "trainable" if self.reason is None else "masked"


def _tokens(*records: dict[str, Any]) -> dict[str, bytes]:
    return {TOKENS: lines(records)}


def _indexed(*records: dict[str, Any]) -> dict[str, bytes]:
    """Records that the state's index covers: the reference does not read them again."""
    data = lines(records)
    state = {"entry_digests": {}, "frozen": True, "incomplete": False, "indexed_size": len(data), "retired": False}
    return {TOKENS: data, "0-0.tokens.state.json": orjson.dumps(state | {"snapshot_id": "5" * 32, "version": 2})}


def _raw(call: str, **fields: Any) -> bytes:
    response = {"id": f"resp-{call}", "model": "policy", "usage": {"output_tokens": 1}}
    exchange = {"model_call_id": call, "dialect": "responses", "status_code": 200, "response": response}
    return orjson.dumps(exchange | fields) + b"\n"


def _scored(call: str) -> dict[str, Any]:
    return {"_ng_terminal_model_call_id": call}


CASES = [
    DeviationCase(
        "ids_that_are_not_their_records_digest_are_not_trained",
        "own_digest",
        _tokens(A | {"generation_token_ids": [33]}),
        "digest_mismatch",
    ),
    DeviationCase(
        "a_length_that_is_not_that_of_the_ids_is_not_believed",
        "own_digest",
        _tokens(A | {"cum_len": 4}),
        "digest_mismatch",
    ),
    DeviationCase(
        "one_call_id_with_two_answers_in_text_masks",
        "conflicting_duplicate",
        _indexed(A, A | {"output_items": [says("something else")]}),
        "conflicting_records",
    ),
    DeviationCase(
        "a_named_call_without_record_masks_although_the_response_id_fits",
        "terminal_evidence",
        _tokens(A, B),
        "terminal_not_captured",
        row={"_ng_terminal_model_call_id": "gone", "response": {"id": "resp-b"}},
    ),
    DeviationCase(
        "witnesses_that_name_different_calls_mask",
        "terminal_evidence",
        _tokens(A, B),
        "witness_disagreement",
        row={"_ng_terminal_model_call_id": "b", "response": {"id": "resp-a"}},
    ),
    DeviationCase(
        "item_ids_name_the_scored_call_where_all_else_is_silent",
        "terminal_evidence",
        _tokens(A | {"output_items": [says("x", id="msg-a")]}, B | {"output_items": [says("y", id="msg-b")]}, SIDE),
        row={"response": {"output": [says("rewritten by the harness", id="msg-b")]}},
    ),
    DeviationCase(
        "a_torn_last_line_may_be_a_lost_call",
        "unfinished_capture",
        {TOKENS: lines([A]) + lines([B])[:40]},
        "torn_tail",
    ),
    DeviationCase(
        "a_last_record_without_line_break_masks",
        "unfinished_capture",
        {TOKENS: lines([A])[:-1]},
        "missing_newline",
    ),
    DeviationCase(
        "the_incomplete_marker_alone_masks",
        "unfinished_capture",
        _tokens(A) | {"0-0.tokens.incomplete": b"\n"},
        "capture_incomplete",
    ),
    DeviationCase(
        "a_log_probability_above_zero_is_not_trained",
        "untrainable_values",
        _tokens(A | {"generation_log_probs": [0.5]}),
        "logprob_positive",
    ),
    DeviationCase(
        "a_sentinel_is_no_log_probability",
        "untrainable_values",
        _tokens(A | {"generation_log_probs": [-9999.0]}),
        "logprob_sentinel",
    ),
    DeviationCase(
        "a_record_of_another_rollout_is_not_trained",
        "untrainable_values",
        _tokens(A | {"rollout_id": "0-1"}),
        "rollout_id_mismatch",
    ),
    DeviationCase(
        "another_models_calls_count_for_nothing",
        "untrainable_values",
        _tokens(A, B, SIDE | {"model": "judge"}),
        judging=Judging(policy_model="policy"),
    ),
    DeviationCase(
        "an_answered_raw_call_without_tokens_masks",
        "raw_call_contradiction",
        _tokens(A) | {"0-0.capture.jsonl": _raw("a") + _raw("unseen")},
        "call_without_tokens",
    ),
    DeviationCase(
        "another_number_of_tokens_in_the_usage_masks",
        "raw_call_contradiction",
        _tokens(A) | {"0-0.capture.jsonl": _raw("a", response={"usage": {"output_tokens": 7}})},
        "token_count_mismatch",
    ),
    DeviationCase(
        "a_truncated_stream_masks",
        "raw_call_contradiction",
        _tokens(A) | {"0-0.capture.jsonl": _raw("a", error_category="stream_truncated")},
        "stream_truncated",
    ),
    DeviationCase(
        "an_absent_parent_is_not_replaced_by_the_longest_prefix",
        "parent_never_guessed",
        _tokens(A, B | {"parent_call_id": "gone"}),
        "parent_missing",
    ),
    DeviationCase(
        "a_call_whose_parent_generated_nothing_and_is_a_root_is_a_root",
        "empty_parent_joined",
        _tokens(record("e", [1], []), B | {"parent_call_id": "e"}),
    ),
    DeviationCase(
        "a_first_call_that_was_asked_again_is_no_second_root",
        "settled_first_retry",
        _tokens(A, record("again", [1, 2], [9]), B),
    ),
    DeviationCase(
        "a_byte_order_mark_at_the_start_masks_nothing",
        "harmless_bytes",
        {TOKENS: b"\xef\xbb\xbf" + lines([A])},
    ),
    DeviationCase(
        "a_lone_surrogate_in_text_masks_nothing",
        "harmless_bytes",
        {TOKENS: lines([A]).replace(b"this is a", rb"this is \ud83d")},
    ),
    DeviationCase(
        "values_that_the_reference_refuses_off_the_scored_path_mask_nothing",
        "off_path_fault",
        _tokens(A, B, SIDE | {"generation_log_probs": [None]}),
        row=_scored("b"),
    ),
    DeviationCase(
        "a_conflicting_duplicate_off_the_scored_path_masks_nothing",
        "off_path_fault",
        _tokens(A, B, SIDE, SIDE | {"created_at": 4.0}),
        row=_scored("b"),
    ),
]
