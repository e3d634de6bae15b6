"""The calls of a rollout as trees, retries settled, and the chains from root to leaf (capture-files.md 4, 4 to 9)."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ng_capture.chains.calls import Calls


class Forest(msgspec.Struct, frozen=True, eq=False):
    """Calls in Gym's processing order (prompt length, id) with the parent that each was joined to."""

    order: tuple[str, ...]
    parents: Mapping[str, str | None]
    children: Mapping[str, tuple[str, ...]]

    @property
    def roots(self) -> list[str]:
        return [call for call in self.order if self.parents[call] is None]

    def path_to(self, call: str | None) -> tuple[str, ...]:
        """The calls from the root to this one; none for a call that does not stand here."""
        path: list[str] = []
        here = call if call in self.parents else None
        while here is not None:
            path.append(here)
            here = self.parents[here]
        return tuple(reversed(path))

    def below(self, call: str) -> frozenset[str]:
        """Every call that extends this one, at any distance."""
        found: set[str] = set()
        todo = list(self.children[call])
        while todo:
            here = todo.pop()
            found.add(here)
            todo.extend(self.children[here])
        return frozenset(found)


def grow(calls: Calls, parents: Mapping[str, str | None]) -> Forest:
    """The forest of the calls that have an entry in `parents`."""
    order = tuple(sorted(parents, key=lambda call: (len(calls[call].prompt or ()), call)))
    children: dict[str, list[str]] = {call: [] for call in order}
    for call in order:
        parent = parents[call]
        if parent is not None:
            children[parent].append(call)
    return Forest(order, parents, {call: tuple(below) for call, below in children.items()})


class Retries(msgspec.Struct, frozen=True):
    """`quarantined`: answers that were asked again and not kept; `unsettled`: groups of which none is known to be."""

    quarantined: frozenset[str]
    unsettled: tuple[tuple[str, ...], ...]


def settle_retries(forest: Forest, calls: Calls, kept: Iterable[str], *, keep_extended: bool = False) -> Retries:
    """Decide which of several answers to one prompt stays (step 7).

    `kept` are the calls on the path of the scored call. With `keep_extended`, an answer that a later call extends stays
    beside them (design.md, policies `strict` and `all`). Groups nearer the root are judged first, so a child's own
    quarantine is not known when its parent's group is judged (case B29).
    """
    on_path = frozenset(kept)
    quarantined: set[str] = set()
    unsettled = []
    for group in _groups(forest, calls):
        extended = {call for call in group if any(child not in quarantined for child in forest.children[call])}
        staying = on_path.intersection(group)
        if not staying or keep_extended:
            staying = staying | extended
        if not staying:
            unsettled.append(tuple(sorted(group)))
            staying = frozenset({min(group)})
        quarantined.update(call for call in group if call not in staying)
    return Retries(frozenset(quarantined), tuple(unsettled))


def leaf_paths(forest: Forest, quarantined: frozenset[str]) -> list[tuple[str, ...]]:
    """One path per call without children, in processing order, without those through a quarantined call (step 8)."""
    paths = (forest.path_to(call) for call in forest.order if not forest.children[call])
    return [path for path in paths if quarantined.isdisjoint(path)]


def _groups(forest: Forest, calls: Calls) -> list[list[str]]:
    """Answers to one prompt: siblings (all roots are siblings) with the identical full prompt, two or more."""
    siblings: dict[str | None, list[str]] = {}
    for call in forest.order:
        siblings.setdefault(forest.parents[call], []).append(call)
    groups = []
    for family in siblings.values():
        groups.extend(_same_prompt(family, calls))
    position = {call: index for index, call in enumerate(forest.order)}
    return sorted(groups, key=lambda group: position[group[0]])


def _same_prompt(family: Sequence[str], calls: Calls) -> list[list[str]]:
    by_length: dict[int, list[str]] = {}
    for call in family:
        by_length.setdefault(len(calls[call].prompt or ()), []).append(call)
    by_prompt: dict[str, list[str]] = {}
    for alike in by_length.values():
        for call in alike if len(alike) > 1 else ():
            prompt = calls[call].prompt
            assert prompt is not None
            by_prompt.setdefault(prompt.digest(), []).append(call)
    return [group for group in by_prompt.values() if len(group) > 1]
