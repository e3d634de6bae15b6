"""The nodes of a trace: a tree of messages, each with the tokens that it adds to those before it (contracts.md 6)."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ng_capture.contracts.episode import Json, Tokens
from ng_capture.contracts.rules import Fault, has_errors
from ng_capture.contracts.verifiers.numbers import ids_in, log_probs_in, moment
from ng_capture.contracts.verifiers.rules import fault
from ng_capture.records.json_text import object_in, objects_in


class Link(msgspec.Struct, frozen=True):
    """A turn that caused another or fed it, which is no ancestry: the node that did, and how."""

    node: int
    kind: str


class Node(msgspec.Struct, frozen=True):
    """A message, and what the record says beside it.

    `parent` is the index of the message before it, None at a root. `token_ids` are what it adds to the sequence;
    `mask` tells for each whether the model sampled it, and each that it did has one of `log_probs`. `fits` is false
    where the three do not fit each other.
    """

    parent: int | None
    message: Json
    sampled: bool
    timestamp: float | None
    token_ids: Sequence[int]
    mask: Sequence[bool]
    log_probs: Sequence[float]
    fits: bool
    links: tuple[Link, ...]
    tools: Sequence[Json] | None


class Tree(msgspec.Struct, frozen=True):
    """All nodes of a trace, or none where their parents are no tree; the faults of either."""

    nodes: tuple[Node, ...]
    faults: tuple[Fault, ...]

    def path(self, leaf: int) -> list[int]:
        """The nodes from a root to this one."""
        path, at = list[int](), leaf
        while True:
            path.append(at)
            above = self.nodes[at].parent
            if above is None:
                return path[::-1]
            at = above

    @property
    def leaves(self) -> list[int]:
        """The nodes that no other continues, one for each branch, the last being the main one."""
        continued = {node.parent for node in self.nodes}
        return [at for at in range(len(self.nodes)) if at not in continued]


def read_tree(trace: Json, place: str) -> Tree:
    """The nodes of a trace; `place` is the pointer to it."""
    values = trace.get("nodes")
    if not isinstance(values, list):
        return Tree((), (fault("verifiers.field.type", "nodes is a list", f"{place}/nodes"),))
    told = [object_in(value) for value in values]
    faults = [each for at, node in enumerate(told) for each in _faults(node, at, len(told), f"{place}/nodes/{at}")]
    nodes = () if has_errors(faults) else tuple(_node(node, len(told)) for node in told)
    return Tree(nodes, tuple(faults))


def tokens_of(nodes: Sequence[Node]) -> Tokens | None:
    """The exact ids of the call that made the last of these nodes, the others being the whole way to it.

    The prompt is all before the first sampled token; None where a node's arrays do not fit, where nothing was sampled,
    and where the sampled tokens are not one run: then nobody knows what the model saw.
    """
    made = nodes[-1]
    sampled = [at for at, generated in enumerate(made.mask) if generated]
    if not sampled or not all(node.fits for node in nodes):
        return None
    first, last = sampled[0], sampled[-1]
    if len(sampled) != last - first + 1:
        return None
    prompt = [token for node in nodes[:-1] for token in node.token_ids]
    prompt += made.token_ids[:first]
    return Tokens(prompt, list(made.token_ids[first : last + 1]), list(made.log_probs) or None)


def _faults(node: Json, at: int, count: int, place: str) -> Iterator[Fault]:
    if not isinstance(node.get("message"), dict):
        yield fault("verifiers.node.message", f"node {at} holds no message", place)
    parent = node.get("parent")
    # a node is made after the one that it continues, so that there are no circles
    if parent is not None and not (type(parent) is int and 0 <= parent < at):
        yield fault("verifiers.node.parent", f"node {at} cannot continue {parent!r:.40}", f"{place}/parent")
    links = list(objects_in(node.get("semantic_parents")))
    if len(list(_links(node, count))) < len(links):
        yield fault("verifiers.node.link", "a semantic parent is no node", f"{place}/semantic_parents")
    if not _fits(node):
        yield fault("verifiers.node.tokens", "token_ids, mask and logprobs do not fit", f"{place}/token_ids")


def _node(node: Json, count: int) -> Node:
    fits = _fits(node)
    return Node(
        parent=parent if type(parent := node.get("parent")) is int else None,
        message=object_in(node.get("message")),
        sampled=node.get("sampled") is True,
        timestamp=moment(node.get("timestamp")),
        token_ids=_list(node, "token_ids") if fits else (),
        mask=_list(node, "mask") if fits else (),
        log_probs=_list(node, "logprobs") if fits else (),
        fits=fits,
        links=tuple(_links(node, count)),
        tools=tuple(objects_in(node.get("tools"))) if isinstance(node.get("tools"), list) else None,
    )


def _links(node: Json, count: int) -> Iterator[Link]:
    for link in objects_in(node.get("semantic_parents")):
        source = link.get("node")
        if type(source) is int and 0 <= source < count:
            yield Link(source, str(link.get("type")))


def _fits(node: Json) -> bool:
    """True where there is a flag for each id and a log probability for each sampled one, or none at all."""
    mask, ids = _list(node, "mask"), ids_in(_list(node, "token_ids"))
    log_probs = log_probs_in(_list(node, "logprobs"))
    if ids is None or log_probs is None or not all(type(flag) is bool for flag in mask):
        return False
    return len(ids) == len(mask) and len(log_probs) in (0, sum(mask))


def _list(node: Json, key: str) -> list[Any]:
    value = node.get(key)
    return value if isinstance(value, list) else []
