"""Scopes in scopes, where what a file says cannot be: circles, and depths that nothing runs at."""

from collections.abc import Mapping

DEEPEST = 100
"""So deep scopes stand in scopes: each level may be a document in a document, and JSON is read to 254 levels."""


def circles(parents: Mapping[str, str | None]) -> set[str]:
    """The smallest uuid of each circle, wherever one enters it."""
    found, settled = set[str](), set[str]()
    for uuid in parents:
        path, at = dict[str, None](), uuid
        while at in parents and at not in settled and at not in path:
            path[at] = None
            at = parents[at] or ""
        if at in path:
            around = list(path)
            found.add(min(around[around.index(at) :]))
        settled.update(path)
    return found


def too_deep(parents: Mapping[str, str | None]) -> set[str]:
    """The scopes at which a chain of parents is cut so that none is deeper than the deepest; there are no circles."""
    found, depths = set[str](), dict[str, int]()
    for uuid in parents:
        path, at = list[str](), uuid
        while at in parents and at not in depths:
            path.append(at)
            at = parents[at] or ""
        depth = depths.get(at, 0)
        for each in reversed(path):
            depth += 1
            if depth > DEEPEST:
                found.add(each)
                depth = 1
            depths[each] = depth
    return found
