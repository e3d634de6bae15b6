"""Which call each call extends: the recorded link, verified by ids; never a guess in place of a link that fails.

capture-files.md 4 step 5, design.md "Judging", Parents.
"""

from collections.abc import Mapping

import msgspec

from ng_capture.chains.calls import Call, Calls
from ng_capture.chains.cycles import calls_in_cycles
from ng_capture.chains.inference import infer_parents
from ng_capture.records.defects import Defect


class Link(msgspec.Struct, frozen=True, eq=False):
    """How one call is joined to what came before it.

    `parent` is the call it extends, None for a root and where `fault` tells why the link does not hold.
    `failure` is Gym's note for that fault. `through` are the calls without a generation in between; `notes` are
    remarks about an inferred link.
    """

    parent: str | None = None
    fault: Defect | None = None
    failure: str | None = None
    through: tuple[str, ...] = ()
    notes: tuple[Defect, ...] = ()


Links = Mapping[str, Link]


def verify_links(calls: Calls, *, infer: bool = False) -> dict[str, Link]:
    """A link for every call that stands in a chain.

    With `infer`, and only where no record of the rollout carries link information, parents are found by their ids.
    """
    if infer and not any(_says_something(call) for call in calls.values()):
        direct = infer_links(calls)
    else:
        direct = _recorded_links(calls)
    return {call_id: _through_empty(call_id, direct, calls) for call_id, call in calls.items() if call.placed}


def mended_links(calls: Calls, parents: Mapping[str, str]) -> dict[str, Link]:
    """The links that these calls would have if each extended the parent named here, be it one without a generation."""
    direct = _recorded_links(calls) | {call_id: Link(parent=parent) for call_id, parent in parents.items()}
    return {call_id: _through_empty(call_id, direct, calls) for call_id in parents}


def infer_links(calls: Calls) -> dict[str, Link]:
    """Links by the longest exact prefix; ambiguity is a fault."""
    links = {}
    for call_id, found in infer_parents(calls).items():
        call = calls[call_id]
        if found.ambiguous:
            fault = call.entry.locate(Defect(reason="ambiguous_parent", calls=found.candidates))
            links[call_id] = Link(fault=fault, failure="missing_resolution")
            continue
        notes: tuple[Defect, ...] = ()
        if len(found.candidates) > 1:
            notes = (call.entry.locate(Defect(reason="identical_parents", calls=found.candidates)),)
        links[call_id] = Link(parent=found.candidates[0] if found.candidates else None, notes=notes)
    return links


def _says_something(call: Call) -> bool:
    return call.fields.parent_resolution is not None or bool(call.fields.parent_call_id)


def _recorded_links(calls: Calls) -> dict[str, Link]:
    circular = calls_in_cycles({call_id: call.fields.parent_call_id for call_id, call in calls.items()})
    return {call_id: _verified(call, calls, circular) for call_id, call in calls.items() if call.full is not None}


def _verified(call: Call, calls: Calls, circular: frozenset[str]) -> Link:
    """The link as the record gives it, held against the ids."""
    fields = call.fields
    if fields.parent_resolution == "unresolved":
        detail = fields.parent_resolution_reason or None
        return _broken(call, Defect(reason="parent_unresolved", detail=detail), "parent_unresolved")
    if not fields.parent_call_id:
        if fields.parent_resolution == "root":
            return Link()
        return _broken(call, Defect(reason="link_missing"), "missing_resolution")
    named = fields.parent_call_id
    parent = calls.get(named)
    assert call.prompt is not None
    if parent is not None and parent.full is not None and call.prompt.starts_with(parent.full):
        return Link(parent=named)
    if call.id in circular:
        return _broken(call, Defect(reason="parent_cycle", parent=named), "parent_call_id_missing")
    if parent is None or parent.full is None:
        detail = None if parent is None else "its record cannot be put together"
        return _broken(call, Defect(reason="parent_missing", parent=named, detail=detail), "parent_call_id_missing")
    return _broken(call, _mismatch(call, parent), "parent_digest_mismatch")


def _mismatch(call: Call, parent: Call) -> Defect:
    assert call.prompt is not None and parent.full is not None
    if not len(call.prompt):
        return Defect(reason="empty_prompt", parent=parent.id)
    if parent.conflict is not None:
        return Defect(reason="conflicting_records", parent=parent.id, detail="the parent has two contents")
    if "digest_mismatch" in parent.reasons:
        return Defect(reason="digest_mismatch", parent=parent.id, detail="the parent's ids are not its digest's")
    place = call.prompt.common_prefix(parent.full)
    found = call.prompt[place] if place < len(call.prompt) else None
    return Defect(
        reason="prefix_mismatch",
        parent=parent.id,
        first_difference=place,
        expected=parent.full[place],
        found=found,
        tokens=len(parent.full),
    )


def _broken(call: Call, fault: Defect, failure: str) -> Link:
    return Link(fault=call.entry.locate(fault), failure=failure)


def _through_empty(call_id: str, direct: Links, calls: Calls) -> Link:
    """Follow parents that generated nothing: their own links were verified like any other."""
    link = direct[call_id]
    through: list[str] = []
    while link.parent is not None and not calls[link.parent].generated:
        if link.parent in through:
            fault = calls[call_id].entry.locate(Defect(reason="parent_cycle", parent=link.parent))
            return Link(fault=fault, failure="parent_call_id_missing", through=tuple(through))
        through.append(link.parent)
        link = direct[link.parent]
    if not through:
        return link
    return msgspec.structs.replace(link, through=tuple(through), notes=direct[call_id].notes)
