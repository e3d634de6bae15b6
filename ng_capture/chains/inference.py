"""Parents found by ids, for rollouts whose records carry no link information at all (`--infer-links`)."""

import msgspec

from ng_capture.chains.calls import Call, Calls
from ng_capture.records.ids import IdSequence


class Inferred(msgspec.Struct, frozen=True):
    """The calls whose whole sequence is the longest prefix of a prompt, smallest id first."""

    candidates: tuple[str, ...] = ()
    ambiguous: bool = False


def infer_parents(calls: Calls) -> dict[str, Inferred]:
    """The longest exact prefix for every call with a sequence.

    Calls with the identical prompt and generation are told apart by nothing: the smallest id stands for them. Calls
    that hold the same ids cut otherwise into prompt and generation are ambiguous.
    """
    longest_first = sorted((call for call in calls.values() if call.placed), key=lambda call: -_length(call.full))
    found = {}
    for call in calls.values():
        if call.prompt is not None:
            found[call.id] = _parent_of(call.id, call.prompt, longest_first)
    return found


def _parent_of(call_id: str, prompt: IdSequence, longest_first: list[Call]) -> Inferred:
    fitting: list[Call] = []
    for candidate in longest_first:
        if fitting and _length(candidate.full) < _length(fitting[0].full):
            break
        if candidate.id != call_id and candidate.full is not None and prompt.starts_with(candidate.full):
            fitting.append(candidate)
    cuts = {_length(candidate.prompt) for candidate in fitting}
    return Inferred(tuple(sorted(candidate.id for candidate in fitting)), ambiguous=len(cuts) > 1)


def _length(sequence: IdSequence | None) -> int:
    return 0 if sequence is None else len(sequence)
