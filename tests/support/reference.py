"""NeMo Gym's answers, and what the named deviations change in them (the table at the end of `gym/README.md` as code).

Computed from the records themselves, in plain Python, so that nothing is believed because the library says it too.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Record = Mapping[str, Any]
RECOVERED = "parent_call_id_missing_recovered"
MISSING = "parent_call_id_missing"
MISMATCH = "parent_digest_mismatch"
CONFLICT = "duplicate_call_id_conflict"
_OF_THE_CHAINS = ("prompt_token_ids", "generation_token_ids", "parent_call_id", "parent_resolution", "created_at")


@dataclass(frozen=True)
class Answer:
    """What is said of the calls of one rollout; lists of ids are sorted, chains are `(name, calls)` in their order."""

    method: str
    terminal: str | None
    reason: str
    status: str
    chains: tuple[tuple[str, tuple[str, ...]], ...]
    roots: int
    quarantined: tuple[str, ...]
    retries: tuple[str, ...]
    unresolved: tuple[str, ...]
    failures: Mapping[str, int]
    empty: tuple[str, ...]
    captured: int
    delivered: int

    @property
    def fraction(self) -> float:
        return round(self.delivered / self.captured, 4) if self.captured else 0.0

    @property
    def main(self) -> tuple[str, ...]:
        return next((calls for name, calls in self.chains if name == "main"), ())


class Records:
    """The records of one rollout: distinct calls, full prompts, and the links that the ids prove.

    `open`: some call id has two contents that make different chains, and which of them stands is not fixed.
    """

    def __init__(self, entries: Iterable[Record]) -> None:
        self.first: dict[str, Record] = {}
        self.conflicts: set[str] = set()
        self.open = False
        for entry in entries:
            first = self.first.setdefault(entry["model_call_id"], entry)
            if first != entry:
                self.conflicts.add(entry["model_call_id"])
                self.open = self.open or any(first.get(key) != entry.get(key) for key in _OF_THE_CHAINS)
        self._prompts: dict[str, list[int] | None] = {}
        self.unusable = {call for call in self.first if self.prompt(call) is None}
        self.empty = {call for call in self.first if not self.generation(call)} - self.unusable
        self.placed = sorted(
            self.first.keys() - self.unusable - self.empty, key=lambda call: (len(self.prompt(call) or ()), call)
        )

    def prompt(self, call: str) -> list[int] | None:
        """The full prompt, None for a delta that nothing can be made of."""
        todo: list[str] = []
        here: str | None = call
        while here in self.first and here not in self._prompts:
            self._prompts[here] = None  # what a circle comes back to
            todo.append(here)
            here = self.first[here]["parent_call_id"] if self.first[here].get("prompt_is_delta") else None
        for each in reversed(todo):
            self._prompts[each] = self._full_prompt(self.first[each])
        return self._prompts[call]

    def generation(self, call: str) -> list[int]:
        return list(self.first[call]["generation_token_ids"])

    def full(self, call: str) -> list[int]:
        return [*(self.prompt(call) or ()), *self.generation(call)]

    def has_own_digest(self, call: str) -> bool:
        """True if what is recorded about the ids of a call is what its ids say."""
        entry, full = self.first[call], self.full(call)
        return entry.get("cum_len") in (None, len(full)) and entry.get("digest") in (None, "", digest(full))

    def named_parent(self, call: str) -> str | None:
        entry = self.first[call]
        return None if entry.get("parent_resolution") == "unresolved" else entry.get("parent_call_id") or None

    def link(self, call: str) -> tuple[str | None, str | None]:
        """The parent that a call extends, or the failure: verified by ids, through parents that generated nothing."""
        entry, named = self.first[call], self.named_parent(call)
        if entry.get("parent_resolution") == "unresolved":
            return None, "parent_unresolved"
        if named is None:
            return None, None if entry.get("parent_resolution") == "root" else "missing_resolution"
        if named not in self.first or named in self.unusable:
            return None, MISSING
        if (self.prompt(call) or [])[: len(self.full(named))] != self.full(named):
            return None, MISSING if self._in_a_circle(call) else MISMATCH
        return self.link(named) if named in self.empty else (named, None)

    def deviating(self, call: str) -> bool:
        """True for a call that a deviation lets be linked otherwise than the reference links it."""
        named = self.named_parent(call)
        if named is None:
            return False
        # parent_never_guessed: no usable record; empty_parent_joined: it generated nothing
        if named not in self.first or named in self.unusable or named in self.empty:
            return True
        # own_digest: ids and digest of the parent differ
        if not self.has_own_digest(named):
            return True
        # parent_never_guessed: it is there and does not fit, whatever its length (the reference: longer is missing)
        return self.link(call)[1] == MISMATCH and not self._stands_before(named, call)

    def _stands_before(self, one: str, other: str) -> bool:
        return self.placed.index(one) < self.placed.index(other)

    def _in_a_circle(self, call: str) -> bool:
        seen: set[str] = set()
        here = self.named_parent(call)
        while here in self.first and here not in seen:
            seen.add(here)
            here = self.named_parent(here)
        return call in seen

    def _full_prompt(self, entry: Record) -> list[int] | None:
        stored = list(entry["prompt_token_ids"])
        if not entry.get("prompt_is_delta"):
            return stored
        parent = entry["parent_call_id"]
        before = self._prompts.get(parent)
        if before is None:
            return None
        prompt = [*before, *self.generation(parent), *stored]
        full = [*prompt, *entry["generation_token_ids"]]
        return prompt if entry.get("digest") in (None, "", digest(full)) else None


def digest(ids: list[int]) -> str:
    """The digest of a sequence of ids (`bugs/README.md`)."""
    head = b"nemo-gym-tokens" + (b"\x01" + struct.pack(">Q", len(ids)) if ids else b"")
    return hashlib.sha256(head + struct.pack(f">{len(ids)}Q", *ids)).hexdigest()


def corrected(said: Answer, records: Records) -> Answer:
    """The reference's answer with what the named deviations change in it, and nothing else.

    Raises AssertionError where the records do not explain why the reference should be wrong.
    """
    if not said.chains:
        # no chain, no metrics of links (capture-files.md 6.1)
        return replace(said, failures={}, unresolved=tuple(sorted(set(said.unresolved))))
    links = {call: records.link(call) for call in records.placed}
    broken = {call for call, (_, failure) in links.items() if failure is not None}
    failures = Counter(failure for _, failure in links.values() if failure is not None)
    failures[CONFLICT] = len(records.conflicts)
    failures["delta_chain_unreconstructable"] = len(records.unusable)
    wanted = replace(
        said,
        unresolved=tuple(sorted([*records.conflicts, *records.unusable, *broken])),
        failures={str(name): count for name, count in sorted(failures.items()) if count},
    )
    if (wanted.unresolved, wanted.failures) == (said.unresolved, said.failures):
        return said
    changed = (broken ^ set(said.unresolved)) - records.conflicts - records.unusable
    unexplained = [call for call in changed if not records.deviating(call)]
    assert not unexplained, f"the reference links {unexplained} otherwise and no deviation tells why"
    return replace(wanted, **_structure(said, records, links, broken)) if changed else wanted


def comparable(answer: Answer, records: Records) -> Answer:
    """The answer without what is not fixed where a call id has two contents (`conflicting_duplicate`)."""
    if not records.open:
        return answer
    return replace(
        answer,
        status="",
        chains=(),
        roots=0,
        quarantined=(),
        retries=(),
        unresolved=tuple(sorted(records.conflicts.intersection(answer.unresolved))),
        failures={CONFLICT: answer.failures.get(CONFLICT, 0)},
        empty=(),
        captured=0,
        delivered=0,
    )


def _structure(
    said: Answer, records: Records, links: Mapping[str, tuple[str | None, str | None]], broken: set[str]
) -> dict[str, Any]:
    """Chains and what is counted over them, where links are others than the reference's."""
    paths: dict[str, tuple[str, ...]] = {}
    for call in records.placed:
        above = links[call][0]
        paths[call] = (*(paths[above] if above is not None else ()), call)
    inner = {parent for parent, _ in links.values()}
    leaves = [path for call, path in paths.items() if call not in inner and not set(path) & set(said.quarantined)]
    scored = paths.get(said.terminal or "", ())
    delivered = bool(scored) and not set(scored) & (broken | set(said.quarantined))
    if delivered:
        leaves = [scored, *(path for path in leaves if said.terminal not in path)]
    first = [] if delivered else leaves
    start = min(first, key=lambda path: (records.first[path[0]]["created_at"], path[0]), default=scored)
    rest = [path for path in leaves if path is not start]
    names = {path: f"branch-{number}" for number, path in enumerate(rest)} | {start: "main"}
    status = said.status if not scored else "delivered" if delivered else "broken"
    return {
        "chains": tuple((names[path], path) for path in leaves),
        "roots": sum(parent is None for parent, _ in links.values()),
        "delivered": sum(len(records.generation(call)) for call in start),
        "status": status,
    }
