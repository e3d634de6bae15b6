"""Routed experts of a whole chain, one entry a token (policies-and-exports.md I28, case T40)."""

from ng_capture.chains.calls import Call, has_experts
from ng_capture.records.routed_experts import decode_routed_experts

ExpertsPerToken = list[list[list[int]] | None]


def merged_experts(calls: list[Call]) -> ExpertsPerToken | None:
    """The rows of every token of a chain, None at tokens that were not forwarded; None where no call has any.

    The last token of a call was sampled, not forwarded: its row comes from the next call's prompt, and that of the last
    call is missing. Where some calls have rows and others none, all are missing.
    """
    if not any(call.fields.routed_experts is not None for call in calls):
        return None
    merged: ExpertsPerToken = []
    for call in calls:
        rows = usable_experts(call)
        assert call.full is not None
        if rows is None:
            last = calls[-1].full
            assert last is not None
            return [None] * len(last)
        merged[len(merged) :] = rows[len(merged) : len(call.full) - 1]
    return [*merged, None]


def usable_experts(call: Call) -> list[list[list[int]]] | None:
    """A call's rows where they fit its tokens, one for each or one fewer."""
    decoded = decode_routed_experts(call.fields.routed_experts) if has_experts(call) else None
    return decoded.rows if decoded is not None else None
