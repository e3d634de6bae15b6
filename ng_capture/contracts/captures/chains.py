"""Calls that go on with one another as chains; calls that make no step: failed, or made again (3.5, 2 and 5)."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

import msgspec

from ng_capture.contracts.captures.exchange import Exchange
from ng_capture.contracts.captures.parents import Link


class Chain(msgspec.Struct, frozen=True):
    """Calls by their place in the list, each going on with the one before it.

    `fork` is the call with which the first one goes on although another chain does so, None for a first call.
    """

    calls: tuple[int, ...]
    fork: int | None = None


class Forest(msgspec.Struct, frozen=True):
    """All calls of a rollout, each in one chain or left out; the main chain is the first, then by their first calls."""

    chains: tuple[Chain, ...]
    links: tuple[Link, ...]
    failed: tuple[int, ...]
    repeated: tuple[int, ...]


def forest_of(exchanges: Sequence[Exchange], links: Sequence[Link]) -> Forest:
    """The chains of the calls; the list is in the order in which they ended."""
    continued = {link.parent for link in links}
    failed = [at for at, each in enumerate(exchanges) if not each.answered and at not in continued]
    kept = [at for at in range(len(exchanges)) if at not in set(failed)]
    repeated = set(_repeated(kept, exchanges, links))
    stay = [at for at in kept if at not in repeated]
    return Forest(tuple(_chains(stay, links)), tuple(links), tuple(failed), tuple(sorted(repeated)))


def _repeated(calls: Iterable[int], exchanges: Sequence[Exchange], links: Sequence[Link]) -> Iterable[int]:
    """Answers to a request that was made again: of those that nothing goes on with the last, or none, is kept."""
    calls = list(calls)
    continued = {links[at].parent for at in calls}
    same: dict[Hashable, list[int]] = defaultdict(list)
    for at in calls:
        same[links[at].parent, _request(at, exchanges[at])].append(at)
    for answers in same.values():
        left = [at for at in answers if at not in continued]
        yield from left if len(left) < len(answers) else left[:-1]


def _request(at: int, exchange: Exchange) -> Hashable:
    """What was asked: in words, else in ids, else nobody knows and it is like no other."""
    if exchange.turns is not None:
        return exchange.heard.whole, exchange.heard.results[-1], exchange.agent, exchange.previous
    if exchange.record is not None and exchange.record.prompt is not None:
        return exchange.record.prompt.digest()
    return at


def _chains(calls: Sequence[int], links: Sequence[Link]) -> list[Chain]:
    """A chain goes on with the call that most calls come after, of equals the first; the others fork."""
    there = set(calls)
    following: dict[int | None, list[int]] = defaultdict(list)
    for at in calls:
        parent = links[at].parent
        following[parent if parent in there else None].append(at)
    after = _numbers_after(following)
    starts: list[tuple[int, int | None]] = [(at, None) for at in following[None]]
    chains = list[Chain]()
    while starts:
        first, fork = starts.pop()
        made = [first]
        while following[made[-1]]:
            here = made[-1]
            made.append(max(following[here], key=lambda at: (after[at], -at)))
            starts += ((at, here) for at in following[here] if at != made[-1])
        chains.append(Chain(tuple(made), fork))
    main = next((chain for chain in chains if chain.calls[0] == following[None][0]), None) if chains else None
    return sorted(chains, key=lambda chain: (chain is not main, chain.calls[0]))


def _numbers_after(following: dict[int | None, list[int]]) -> dict[int, int]:
    """How many calls come after each, itself counted."""
    order, stack = list[int](), list(following[None])
    while stack:
        order.append(stack.pop())
        stack += following.get(order[-1], ())
    numbers = dict[int, int]()
    for at in reversed(order):
        numbers[at] = 1 + sum(numbers[child] for child in following.get(at, ()))
    return numbers
