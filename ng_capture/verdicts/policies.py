"""Which chains become training rows: `strict`, `terminal`, `all` (design.md "Judging", policies-and-exports.md 4.1)."""

from collections.abc import Iterable

import msgspec

from ng_capture.chains.analysis import Analysis
from ng_capture.chains.forest import leaf_paths
from ng_capture.records.defects import Defect
from ng_capture.verdicts.evidence import evidence_faults
from ng_capture.verdicts.judging import Policy
from ng_capture.verdicts.reasons import severity_of


class PlannedRow(msgspec.Struct, frozen=True):
    """One training row: the calls of its chain, and those of them whose generation carries loss in it."""

    calls: tuple[str, ...]
    trained: tuple[str, ...]


class Outcome(msgspec.Struct, frozen=True):
    """What a policy makes of a rollout: its rows, or the faults that leave none; notes mask nothing."""

    rows: tuple[PlannedRow, ...]
    faults: tuple[Defect, ...] = ()
    notes: tuple[Defect, ...] = ()


def apply_policy(policy: Policy, analysis: Analysis, whole: Iterable[Defect], *, complete: bool) -> Outcome:
    """The rows of a rollout; `whole` are the errors that mask it under every policy.

    `complete`: the intents prove that no call is missing.
    """
    strict = _strict(analysis)
    if policy is Policy.STRICT:
        outcome = strict
    else:
        ends = [path[-1] for path in leaf_paths(analysis.forest, analysis.settled.quarantined)]
        # where nothing was captured that is the reason, not that the scored call was not either
        confirmed = complete and bool(strict.rows)
        evidence = evidence_faults(analysis, ends, confirmed_otherwise=confirmed) if analysis.calls else []
        notes = tuple(fault for fault in evidence if severity_of(fault.reason) != "error")
        evidence = [fault for fault in evidence if severity_of(fault.reason) == "error"]
        outcome = _all(analysis, evidence) if policy is Policy.ALL else _terminal(analysis, evidence, strict)
        outcome = msgspec.structs.replace(outcome, notes=(*outcome.notes, *notes))
    masking = tuple(whole)
    if masking:
        return Outcome((), (*masking, *outcome.faults), ())
    return outcome


def errors(defects: Iterable[Defect]) -> list[Defect]:
    """Those that mask."""
    return [defect for defect in defects if severity_of(defect.reason) == "error"]


def trained_tokens(analysis: Analysis, call_id: str) -> int:
    """Generated tokens of a call that can carry loss: position 0 of a sequence has no predecessor."""
    call = analysis.calls[call_id]
    return call.generated - (call.prompt is not None and not len(call.prompt))


def _strict(analysis: Analysis) -> Outcome:
    """One root, one leaf, every boundary verified, no record at fault anywhere; the terminal only settles retries."""
    forest, retries = analysis.forest, analysis.kept_beside
    faults = [fault for call in forest.order for fault in errors(_all_faults(analysis, call))]
    aside = [call.id for call in analysis.calls.values() if not call.foreign and call.id not in forest.parents]
    faults += [fault for call in aside for fault in errors(analysis.errors_of(call))]
    faults += [_unsettled(analysis, group) for group in retries.unsettled]
    roots = [call for call in forest.roots if analysis.links[call].fault is None and call not in retries.quarantined]
    paths = leaf_paths(forest, retries.quarantined)
    if len(roots) > 1:
        faults.append(_between(analysis, "multiple_roots", roots))
    elif len(ends := [path[-1] for path in paths if path[0] in roots]) > 1:
        faults.append(_between(analysis, "multiple_ends", ends))
    if faults or not paths:
        return Outcome((), tuple(dict.fromkeys(faults)))
    return _planned(analysis, paths)


def _terminal(analysis: Analysis, evidence: list[Defect], strict: Outcome) -> Outcome:
    """The chain that ends in the scored call; `strict` where nothing names one."""
    if analysis.attribution.call is None:
        return Outcome((), (*evidence, *strict.faults)) if evidence else strict
    if evidence:
        return Outcome((), tuple(evidence))
    faults = [fault for call in analysis.path for fault in errors(analysis.faults_through(call))]
    if faults:
        scored = analysis.calls[analysis.path[-1]].entry
        broken = scored.locate(Defect(reason="terminal_chain_broken"))
        return Outcome((), (broken, *dict.fromkeys(faults)))
    return _planned(analysis, [analysis.path])


def _all(analysis: Analysis, evidence: list[Defect]) -> Outcome:
    """Every proven chain, each generated token trained once; an error takes out what runs through it."""
    scored = analysis.attribution.call
    if scored is not None and not evidence:
        call = analysis.calls[scored]
        evidence = errors(analysis.errors_of(scored)) if call.in_doubt or call.conflict is not None else []
    if evidence:
        return Outcome((), tuple(evidence))
    forest = analysis.forest
    # links that run in a circle name what the scored call itself extends as its descendant
    later = forest.below(scored) | descendants(analysis, {scored}) if scored is not None else frozenset()
    cut = later.difference(analysis.path)
    doubted = {call for call in forest.order if _left_out(analysis, call)}
    standing = [call for call in forest.order if call not in cut and call not in doubted]
    unsettled = {call for group in analysis.kept_beside.unsettled for call in group}
    barred = unsettled | analysis.kept_beside.quarantined | of_two_contents(analysis)
    parents = {call: _standing_parent(analysis, call, doubted) for call in standing}
    extended = {parent for parent in parents.values() if parent is not None}
    paths = [_path(call, parents) for call in standing if call not in extended]
    paths = [path for path in paths if barred.isdisjoint(path)]
    paths.sort(key=lambda path: (path[-1] != scored, _made(analysis, path[-1])))
    outcome = _planned(analysis, paths)
    notes = [*outcome.notes, *_excluded(analysis), *_new_roots(analysis, outcome.rows)]
    if outcome.rows:
        return Outcome(outcome.rows, notes=tuple(notes))
    faults = [fault for call in analysis.calls for fault in errors(analysis.errors_of(call))]
    faults += [fault for call in forest.order for fault in errors(_link_faults(analysis, call))]
    faults += [_unsettled(analysis, group) for group in analysis.kept_beside.unsettled]
    return Outcome((), tuple(dict.fromkeys(faults)) or outcome.faults)


def _planned(analysis: Analysis, paths: Iterable[tuple[str, ...]]) -> Outcome:
    """Rows of some paths: the first that holds a call trains it; a row that trains nothing is none."""
    owned: set[str] = set()
    rows, notes = [], []
    for path in paths:
        trained = [call for call in path if call not in owned and analysis.calls[call].trainable]
        if not any(trained_tokens(analysis, call) for call in trained):
            continue
        owned.update(trained)
        rows.append(PlannedRow(path, tuple(trained)))
        notes += [
            analysis.calls[call].entry.locate(Defect(reason="no_predecessor"))
            for call in trained
            if trained_tokens(analysis, call) < analysis.calls[call].generated
        ]
    if rows:
        return Outcome(tuple(rows), notes=tuple(notes))
    nothing = Defect(reason="no_generated_tokens", count=len(analysis.calls))
    return Outcome((), (nothing,) if analysis.calls else ())


def _left_out(analysis: Analysis, call_id: str) -> bool:
    """True for a call whose ids are in doubt; one with two contents bars its chains instead."""
    call = analysis.calls[call_id]
    return call.in_doubt and call.conflict is None


def _standing_parent(analysis: Analysis, call: str, doubted: set[str]) -> str | None:
    link = analysis.links[call]
    if link.parent in doubted or any(analysis.calls[empty].in_doubt for empty in link.through):
        return None
    return link.parent


def _path(call: str, parents: dict[str, str | None]) -> tuple[str, ...]:
    path = []
    here: str | None = call
    while here is not None:
        path.append(here)
        here = parents[here]
    return tuple(reversed(path))


def of_two_contents(analysis: Analysis) -> frozenset[str]:
    """Calls with two contents, and all that name one of them as an ancestor, whether the link holds or not."""
    found = {call.id for call in analysis.calls.values() if call.conflict is not None}
    return descendants(analysis, found) | found


def descendants(analysis: Analysis, ancestors: set[str]) -> frozenset[str]:
    """All calls that name one of these as an ancestor, whether the links hold or not."""
    if not ancestors:
        return frozenset()
    children: dict[str, list[str]] = {}
    for call in analysis.calls.values():
        children.setdefault(call.fields.parent_call_id or "", []).append(call.id)
    found: set[str] = set()
    todo = list(ancestors)
    while todo:
        new = [child for child in children.get(todo.pop(), ()) if child not in found]
        found.update(new)
        todo += new
    return frozenset(found - ancestors)


def _unsettled(analysis: Analysis, group: Iterable[str]) -> Defect:
    """The fault of answers to one prompt: those of one call are its choices (ingest.md 4, N63)."""
    calls = tuple(group)
    of_calls = {analysis.calls[call].entry.choice_of for call in calls}
    found = _between(analysis, "ambiguous_retry", calls)
    if len(of_calls) > 1 or None in of_calls:
        return found
    return found.at(reason="ambiguous_choices", call=of_calls.pop(), choices=len(calls))


def _between(analysis: Analysis, reason: str, calls: Iterable[str]) -> Defect:
    """A fault between calls, in the order in which they were made, placed at the last of them."""
    made = sorted(calls, key=lambda call: _made(analysis, call))
    last = analysis.calls[made[-1]].entry
    return Defect(reason=reason, file=last.file, line=last.line, byte=last.byte, calls=tuple(made))


def _all_faults(analysis: Analysis, call: str) -> list[Defect]:
    return [*analysis.errors_of(call), *_link_faults(analysis, call)]


def _link_faults(analysis: Analysis, call: str) -> list[Defect]:
    fault = analysis.links[call].fault
    return [fault] if fault is not None else []


def _excluded(analysis: Analysis) -> list[Defect]:
    """Calls that are left out of loss, or out of the rows."""
    return [
        call.entry.locate(Defect(reason="excluded", detail=errors(call.faults)[0].reason))
        for call in analysis.calls.values()
        if call.generated and errors(call.faults)
    ]


def _new_roots(analysis: Analysis, rows: Iterable[PlannedRow]) -> list[Defect]:
    """Calls that begin a row because the link to their parent does not hold."""
    notes = []
    for first in dict.fromkeys(row.calls[0] for row in rows):
        link = analysis.links[first]
        through = (link.parent, *link.through) if link.parent is not None else link.through
        reasons = [fault.reason for fault in _link_faults(analysis, first)]
        reasons += [fault.reason for call in through for fault in errors(analysis.errors_of(call))]
        if reasons:
            entry = analysis.calls[first].entry
            notes.append(entry.locate(Defect(reason="new_root", detail=reasons[0])))
    return notes


def _made(analysis: Analysis, call: str) -> tuple[float, str]:
    return analysis.calls[call].fields.created_at, call
