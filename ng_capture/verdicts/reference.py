"""What NeMo Gym 0.7.0 says of a rollout: would it mask it? (capture-files.md 1.4, 4 and 6.2)

Kept beside our own verdict so that every difference has a name (`deviations`). Computed only where the two may differ.
"""

from collections.abc import Mapping

import msgspec

from ng_capture.chains.analysis import Analysis
from ng_capture.chains.calls import Call
from ng_capture.chains.forest import Forest, grow, leaf_paths, settle_retries
from ng_capture.chains.terminal import Attribution
from ng_capture.records.ids import IdSequence
from ng_capture.records.snapshot import Snapshot

_REFUSED_BY_ITS_MODEL = frozenset(
    {"bad_token_id", "invalid_record", "logprob_length_mismatch", "logprob_missing", "lone_surrogate"}
    | {"logprob_not_finite", "logprob_not_number"}
)
_LINE_DAMAGE = frozenset({"damaged_line", "nul_bytes", "torn_tail"})
_UNREADABLE = frozenset({"bom", "invalid_record", "not_one_object_per_line", "schema_too_new", "state_unreadable"})


class _Graph(msgspec.Struct, frozen=True, eq=False):
    forest: Forest
    boundaries: frozenset[str]


def reference_masks(snapshot: Snapshot, analysis: Analysis) -> bool:
    """True if the reference masks the rollout or fails on it."""
    state = snapshot.state
    if not snapshot.entries or (state is not None and (state.retired or state.incomplete)):
        return True
    if reference_cannot_read(snapshot, analysis) or _dangling(snapshot):
        return True
    calls = analysis.calls
    graph = _graph(calls)
    if not graph.forest.order:
        return True
    found = analysis.attribution if analysis.attribution.method != "item_ids" else Attribution()
    path = graph.forest.path_to(found.call)
    retries = settle_retries(graph.forest, calls, path)
    paths = leaf_paths(graph.forest, retries.quarantined)
    if found.call is not None:
        broken = not graph.boundaries.isdisjoint(path) or not retries.quarantined.isdisjoint(path)
        return not path or broken or _fails_to_project(calls, path)
    if found.declared or retries.unsettled or graph.boundaries or _unplaced_or_conflicting(calls):
        return True
    return len(graph.forest.roots) != 1 or len(paths) != 1 or _fails_to_project(calls, paths[0])


def reference_cannot_read(snapshot: Snapshot, analysis: Analysis) -> bool:
    """True if the reference refuses the whole rollout because of one line, value or file."""
    if any(defect.reason in _UNREADABLE for defect in snapshot.defects if ".capture." not in (defect.file or "")):
        return True
    last = max((entry.line for entry in snapshot.entries), default=0)
    damaged = [d for d in snapshot.defects if d.reason in _LINE_DAMAGE and ".capture." not in (d.file or "")]
    # only the last line is cut off, and only if it is no JSON at all (cases S15, S16, S22)
    if len(damaged) > 1 or any((d.line or 0) < last or d.detail is not None for d in damaged):
        return True
    faults = (fault for call in analysis.calls.values() for fault in call.entry.faults)
    if any(fault.reason in _REFUSED_BY_ITS_MODEL for fault in faults):
        return True
    covered = (snapshot.state.indexed_size if snapshot.state is not None else None) or 0
    # inside the indexed region neither a cut line nor a second content is repaired or noticed (cases S17, S27)
    if (
        not snapshot.index_fits
        or covered > (snapshot.tokens_size or 0)
        or any((defect.byte or 0) < covered for defect in damaged)
    ):
        return True
    conflicts = (call.conflict for call in analysis.calls.values() if call.conflict is not None)
    return any((conflict.byte or 0) >= covered for conflict in conflicts)


def _dangling(snapshot: Snapshot) -> bool:
    recorded = {entry.call_id for entry in snapshot.entries}
    return any(intent.call_id and intent.call_id not in recorded for intent in snapshot.intents or ())


def _unplaced_or_conflicting(calls: Mapping[str, Call]) -> bool:
    return any(call.full is None or _arrays_conflict(call) for call in calls.values())


def _arrays_conflict(call: Call) -> bool:
    return call.conflict is not None and call.conflict.detail == "token ids"


def _fails_to_project(calls: Mapping[str, Call], path: tuple[str, ...]) -> bool:
    """What its record shows: the reference does not know what is noted of the raw call."""
    return any(fault.reason == "multiple_token_items" for call in path for fault in calls[call].entry.faults)


def _graph(calls: Mapping[str, Call]) -> _Graph:
    """The reference's links: a parent is believed by its recorded digest, an absent one is guessed by prefix."""
    placed = {call.id: call for call in calls.values() if call.placed}
    guesses = any(call.fields.parent_call_id and call.fields.parent_call_id not in placed for call in placed.values())
    order = sorted(placed.values(), key=lambda call: (len(call.prompt or ()), call.id))
    parents: dict[str, str | None] = {}
    boundaries = set()
    for call in order:
        named = call.fields.parent_call_id
        parent = None
        if call.fields.parent_resolution == "unresolved" or (not named and call.fields.parent_resolution is None):
            boundaries.add(call.id)
        elif named and call.fields.parent_resolution != "root":
            if named in parents:
                parent = named if _believed(call, placed[named]) else None
            elif guesses:
                parent = _longest_prefix(call, [placed[other] for other in parents])
            if parent is None:
                boundaries.add(call.id)
        parents[call.id] = parent
    return _Graph(grow(calls, parents), frozenset(boundaries))


def _believed(call: Call, parent: Call) -> bool:
    prompt, full = call.prompt, parent.full
    assert prompt is not None and full is not None
    length = parent.fields.cum_len if parent.fields.cum_len is not None else len(full)
    return 0 <= length <= len(prompt) and prompt.digest(length) == (parent.fields.digest or full.digest())


def _longest_prefix(call: Call, placed: list[Call]) -> str | None:
    fitting = [other for other in placed if _is_prefix(other.full, call.prompt)]
    longest = max((len(other.full or ()) for other in fitting), default=0)
    best = [other.id for other in fitting if len(other.full or ()) == longest]
    return best[0] if len(best) == 1 else None


def _is_prefix(part: IdSequence | None, whole: IdSequence | None) -> bool:
    return part is not None and whole is not None and whole.starts_with(part)
