"""Put delta prompts together from their parents' sequences (capture-files.md 2.4 and 4, step 2)."""

import msgspec

from ng_capture.chains.calls import Call, Calls, digest_fault, experts_fault
from ng_capture.chains.cycles import calls_in_cycles
from ng_capture.records.defects import Defect


def materialize(calls: Calls) -> dict[str, Call]:
    """The calls with every delta's sequence, or with the fault that keeps it from having one.

    A delta whose sequence has another digest than the record says is left without one (case B40).
    """
    done = {call_id: call for call_id, call in calls.items() if not call.fields.prompt_is_delta}
    deltas = {call_id: call for call_id, call in calls.items() if call.fields.prompt_is_delta}
    circular = calls_in_cycles({call_id: call.fields.parent_call_id for call_id, call in deltas.items()})
    for call_id in deltas:
        path: dict[str, None] = {}
        here: str | None = call_id
        while here is not None and here in deltas and here not in done and here not in path:
            path[here] = None
            here = calls[here].fields.parent_call_id
        for delta in reversed(path):
            done[delta] = _materialized(calls[delta], done.get(calls[delta].fields.parent_call_id or ""), circular)
    return {call_id: done[call_id] for call_id in calls}


def _materialized(call: Call, parent: Call | None, circular: frozenset[str]) -> Call:
    named = call.fields.parent_call_id
    if call.id in circular:
        return call.with_fault(Defect(reason="parent_cycle", parent=named))
    if parent is None or parent.full is None:
        detail = "that has no record" if parent is None else "that cannot be put together itself"
        return call.with_fault(Defect(reason="delta_unresolvable", parent=named, detail=detail))
    if any(fault.reason == "bad_token_id" for fault in call.faults):
        return call
    prompt = parent.full.extended(call.entry.suffix)
    full = prompt.extended(call.entry.generation)
    wrong = digest_fault(call.fields, full)
    if wrong is not None and wrong.detail is None:
        return call.with_fault(wrong)
    whole = msgspec.structs.replace(call, prompt=prompt, full=full)
    for fault in filter(None, (wrong, experts_fault(call.fields, full))):
        whole = whole.with_fault(fault)
    return whole
