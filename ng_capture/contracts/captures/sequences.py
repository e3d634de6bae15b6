"""Which call a prompt goes on with by its ids, found in one pass over it."""

import hashlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ng_capture.contracts.episode import Tokens


class Sequences:
    """The whole sequences of calls, prompt and generation, each as a digest."""

    def __init__(self, calls: Mapping[str, Tokens]) -> None:
        self._holding: dict[int, dict[bytes, list[str]]] = {}
        for call_id, tokens in calls.items():
            whole = [*(tokens.prompt_ids or ()), *(tokens.completion_ids or ())]
            for length, digest in _digests(whole, (len(whole),)):
                self._holding.setdefault(length, {}).setdefault(digest, []).append(call_id)
        self._lengths = sorted(self._holding)

    def beginning(self, prompt: Sequence[int]) -> list[str]:
        """The calls whose sequence is the longest that the prompt begins with: several have the identical one."""
        fit = list[str]()
        for length, digest in _digests(prompt, self._lengths):
            fit = self._holding[length].get(digest, fit)
        return fit


def rest_behind(prompt: Sequence[int], parent: Tokens) -> tuple[int, ...] | None:
    """The ids of a prompt behind the whole sequence of a call, None where it does not begin with that."""
    before, generated = tuple(parent.prompt_ids or ()), tuple(parent.completion_ids or ())
    middle, end = len(before), len(before) + len(generated)
    if tuple(prompt[:middle]) != before or tuple(prompt[middle:end]) != generated:
        return None
    return tuple(prompt[end:])


def _digests(ids: Sequence[int], lengths: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    """The digest of the first ids, for each of the ascending lengths that there are; ids out of range have none."""
    try:
        numbers = array("q", ids)
    except OverflowError:
        return
    state, at = hashlib.sha256(), 0
    for length in lengths:
        if length > len(numbers):
            return
        state.update(numbers[at:length])
        at = length
        yield length, state.copy().digest()
