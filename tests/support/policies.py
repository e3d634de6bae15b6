"""The cases of `policies/`: tiny sets of calls as a snapshot, and what a case expects of one policy."""

from typing import Any

from ng_capture.records.rollout_row import Evidence
from ng_capture.records.snapshot import Snapshot
from ng_capture.verdicts.judge import Judgement, judge
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.gym import snapshot_of

ROLLOUT = "r"
_AS_IN_A_RECORD = frozenset(
    {"prompt_token_ids", "generation_token_ids", "generation_log_probs", "parent_call_id", "parent_resolution"}
    | {"prompt_is_delta", "model", "weight_version", "routed_experts"}
)
_TOLD_OTHERWISE = frozenset({"id", "created_at", "digest_is_wrong", "finish_reason"})
_OF_A_CASE = frozenset(
    {"id", "title", "calls", "terminal_call_id", "incomplete", "infer_links", "policy_model", "expected"}
)
NOTED = frozenset({"new_root", "excluded", "no_predecessor", "identical_parents"})
# no number: what JSON can say of one is a number that no float holds
_NAN = 10**400


def judged_case(case: dict[str, Any], policy: Policy) -> Judgement:
    """The case under a policy; raises AssertionError for a key that is not understood."""
    unknown = case.keys() - _OF_A_CASE
    assert not unknown, f"the case says {sorted(unknown)}, which nothing reads"
    judging = Judging(policy, case.get("policy_model"), case.get("infer_links", False))
    return judge(_snapshot(case), Evidence(explicit=case["terminal_call_id"]), judging)


def notes_of(judgement: Judgement) -> set[str]:
    """Notes as the cases spell them: `reason:call` or `reason:call:because`."""
    found = (finding for finding in judgement.findings if finding.reason in NOTED)
    return {":".join(filter(None, (finding.reason, finding.call, finding.detail))) for finding in found}


def _snapshot(case: dict[str, Any]) -> Snapshot:
    # made in the order in which they are told, but where the case says otherwise
    order = {call_id: number for number, call_id in enumerate(dict.fromkeys(call["id"] for call in case["calls"]))}
    entries = [_entry(call, float(call.get("created_at", order[call["id"]]))) for call in case["calls"]]
    return snapshot_of(ROLLOUT, entries, incomplete=case["incomplete"])


def _entry(call: dict[str, Any], created_at: float) -> dict[str, Any]:
    unknown = call.keys() - _AS_IN_A_RECORD - _TOLD_OTHERWISE
    assert not unknown, f"call {call['id']} says {sorted(unknown)}, which nothing reads"
    entry = {key: value for key, value in call.items() if key in _AS_IN_A_RECORD}
    entry["generation_log_probs"] = [_NAN if value == "NaN" else value for value in call["generation_log_probs"]]
    entry |= {"rollout_id": ROLLOUT, "model_call_id": call["id"], "created_at": created_at}
    return entry | ({"digest": "0" * 64} if call.get("digest_is_wrong") else {})
