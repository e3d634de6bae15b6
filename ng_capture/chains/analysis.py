"""One rollout taken apart: its calls, their links, the scored call, the retries, the chains."""

from collections.abc import Iterable

import msgspec

from ng_capture.chains.calls import Call, distinct_calls
from ng_capture.chains.deltas import materialize
from ng_capture.chains.forest import Forest, Retries, grow, leaf_paths, settle_retries
from ng_capture.chains.links import Link, verify_links
from ng_capture.chains.terminal import Attribution, attribute
from ng_capture.records.defects import Defect
from ng_capture.records.rollout_row import Evidence
from ng_capture.records.snapshot import Snapshot


class Chain(msgspec.Struct, frozen=True):
    """Calls that extend one another token for token, root to leaf; `main` or `branch-n`."""

    chain_id: str
    calls: tuple[str, ...]


class Analysis(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the records of a rollout are to one another, before any policy.

    `links` has every call with a sequence and a generation; `forest` those of them that count (a branch of another
    model does not). `path` leads from the root to the scored call, empty where that is not known or not in the forest.
    `settled` is Gym's settlement of the retries, `kept_beside` the one of the policies `strict` and `all`.
    """

    calls: dict[str, Call]
    links: dict[str, Link]
    forest: Forest
    attribution: Attribution
    path: tuple[str, ...]
    settled: Retries
    kept_beside: Retries
    chains: tuple[Chain, ...]

    @property
    def captured(self) -> int:
        """Generated tokens of every distinct call."""
        return sum(call.generated for call in self.calls.values())

    def errors_of(self, call_id: str) -> list[Defect]:
        """What is wrong with the record of a call (not with its link)."""
        call = self.calls[call_id]
        return [*([call.conflict] if call.conflict is not None else []), *call.faults]

    def faults_through(self, call_id: str) -> list[Defect]:
        """What is wrong with a call, its link, the calls without a generation on the way, and a parent it broke on."""
        link = self.links[call_id]
        found = [*self.errors_of(call_id), *([link.fault] if link.fault is not None else [])]
        beside = [*link.through, *([link.fault.parent] if link.fault is not None and link.fault.parent else [])]
        for other in beside:
            if other in self.calls:
                found += self.errors_of(other)
        return found


def analyse(
    snapshot: Snapshot, evidence: Evidence, *, policy_model: str | None = None, infer_links: bool = False
) -> Analysis:
    """Calls, links, terminal, retries and chains of a snapshot; pure."""
    calls = materialize(
        distinct_calls(snapshot.entries, snapshot.rollout_id, snapshot.raw_calls, snapshot.capture_file, policy_model)
    )
    return arrange(calls, verify_links(calls, infer=infer_links), attribute(calls, evidence))


def arrange(calls: dict[str, Call], links: dict[str, Link], attribution: Attribution) -> Analysis:
    """Forest, retries and chains of calls whose links and scored call are known."""
    parents = {call: link.parent for call, link in links.items()}
    forest = grow(calls, _that_count(calls, parents, attribution.call))
    path = forest.path_to(attribution.call)
    settled = settle_retries(forest, calls, path)
    broken = any(links[call].fault is not None or call in settled.quarantined for call in path)
    return Analysis(
        calls=calls,
        links=links,
        forest=forest,
        attribution=attribution,
        path=path,
        settled=settled,
        kept_beside=settle_retries(forest, calls, path, keep_extended=True),
        chains=_named_chains(forest, calls, settled, () if broken else path),
    )


def _that_count(calls: dict[str, Call], parents: dict[str, str | None], terminal: str | None) -> dict[str, str | None]:
    """Calls of the policy model, the scored call, and what they extend: another model's branches count for nothing."""
    if not any(calls[call].foreign for call in parents):
        return parents
    kept: dict[str, str | None] = {}
    for call in parents:
        here = call if not calls[call].foreign or call == terminal else None
        while here is not None and here not in kept:
            kept[here] = parents[here]
            here = parents[here]
    return kept


def _named_chains(
    forest: Forest, calls: dict[str, Call], settled: Retries, delivered: tuple[str, ...]
) -> tuple[Chain, ...]:
    """Gym's chains (capture-files.md 4, steps 8 and 9): the delivered one first, else the earliest root's is `main`."""
    paths: list[tuple[str, ...]] = leaf_paths(forest, settled.quarantined)
    main = 0
    if delivered:
        paths = [delivered, *(path for path in paths if delivered[-1] not in path)]
    elif paths:
        main = min(range(len(paths)), key=lambda index: _start(calls[paths[index][0]]))
    names: Iterable[str] = (f"branch-{number}" for number in range(len(paths)))
    numbers = iter(names)
    return tuple(Chain("main" if index == main else next(numbers), path) for index, path in enumerate(paths))


def _start(root: Call) -> tuple[float, str]:
    return root.fields.created_at, root.id
