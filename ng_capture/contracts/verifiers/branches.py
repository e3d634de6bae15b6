"""The branches of a trace: the last is the main one, the earlier ones are what its links say (contracts.md 6)."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from ng_capture.contracts.verifiers.nodes import Tree


class Kind(StrEnum):
    """What a branch is: what the rollout ended with, what came before its history was made shorter, another agent's."""

    MAIN = "main"
    SEGMENT = "segment"
    SUBAGENT = "subagent"
    REWRITTEN = "rewritten"


class Branch(msgspec.Struct, frozen=True):
    """A way from a root to a leaf.

    `own` are the nodes that no later branch holds: what was made there counts here. `caller` is the node that began it,
    `resumed` the node that went on from it, where a link tells.
    """

    number: int
    path: Sequence[int]
    own: frozenset[int]
    kind: Kind
    caller: int | None = None
    resumed: int | None = None


def branches_of(tree: Tree) -> list[Branch]:
    """The branches in the order of their leaves."""
    paths = [tree.path(leaf) for leaf in tree.leaves]
    found, taken = list[Branch](), frozenset[int]()
    for number in reversed(range(len(paths))):
        own = frozenset(paths[number]) - taken
        taken |= own
        branch = Branch(number, paths[number], own, Kind.MAIN)
        found.append(branch if number == len(paths) - 1 else _related(branch, tree, paths[-1]))
    return found[::-1]


def _related(branch: Branch, tree: Tree, main: Sequence[int]) -> Branch:
    """An earlier branch as what the links between it and the others say; without one its beginning tells."""
    links = {kind: (source, target) for source, target, kind in _links(branch, tree)}
    if "subagent_call" in links:
        return msgspec.structs.replace(branch, kind=Kind.SUBAGENT, caller=links["subagent_call"][0])
    if "subagent_return" in links:
        return msgspec.structs.replace(branch, kind=Kind.SUBAGENT, resumed=links["subagent_return"][1])
    if "compaction" in links:
        return msgspec.structs.replace(branch, kind=Kind.SEGMENT, resumed=links["compaction"][1])
    shares = branch.path[0] == main[0]
    return msgspec.structs.replace(branch, kind=Kind.REWRITTEN if shares else Kind.SUBAGENT)


def _links(branch: Branch, tree: Tree) -> Iterator[tuple[int, int, str]]:
    """The links that say what a branch is: what began it, and what went on from it."""
    for target, node in enumerate(tree.nodes):
        for link in node.links:
            begins = link.kind == "subagent_call" and target in branch.own and link.node not in branch.own
            ends = link.kind in ("subagent_return", "compaction") and link.node in branch.own
            if begins or (ends and target not in branch.own):
                yield link.node, target, link.kind
