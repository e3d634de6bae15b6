"""What each call continues, for calls whose source does not say it (capture-files.md 3, design.md "Judging").

By the conversation that it sends again, then by its exact tokens, else it stays unresolved. Every link is held against
the tokens when it is judged: a conversation that fits and tokens that do not are a broken edge, never another parent.
"""

import hashlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from ng_capture.chains.cycles import calls_in_cycles
from ng_capture.ingest.candidate import Candidate, sequence_of
from ng_capture.ingest.held import HeldCall
from ng_capture.ingest.parents import Conversation, presumed_parents
from ng_capture.records.fingerprint import Unfingerprintable
from ng_capture.records.lineage import Known, Lineage, Parent

How = Literal["recorded", "conversation", "presumed", "prefix"]
"""The source says it; the request sends the answer again; history was edited on the way; the tokens alone."""

_WEAK: frozenset[How] = frozenset({"presumed", "prefix"})


class Link(msgspec.Struct, frozen=True):
    """The link of a call, and how it was found; None for a call without a parent."""

    parent: Parent
    how: How | None = None


def find_links(
    candidates: Sequence[Candidate], held: Mapping[str, HeldCall], spoken: Iterable[Conversation] = ()
) -> dict[str, Link]:
    """The link of every call among these and those that the store holds, whatever the order they come in.

    `spoken` are the conversations of the calls that the store holds.
    """
    finder = _Finder(candidates, held, spoken)
    found = {candidate.call_id: finder.link_of(candidate) for candidate in candidates}
    parents = {call.call_id: call.record.parent_call_id for call in held.values()}
    circular = calls_in_cycles(parents | {name: link.parent.parent_call_id for name, link in found.items()})
    for candidate in candidates:
        # nothing continues what continues it: the weaker evidence of the circle is wrong
        if candidate.call_id in circular and found[candidate.call_id].how in _WEAK:
            found[candidate.call_id] = Link(_without_parent(candidate))
    return found


class _Finder:
    def __init__(
        self, candidates: Sequence[Candidate], held: Mapping[str, HeldCall], turns: Iterable[Conversation]
    ) -> None:
        self._lineage = Lineage()
        self._sequences = _Sequences()
        for call in held.values():
            self._lineage.add(call.record)
            if call.full is not None and call.generated:
                self._sequences.add(call.call_id, call.full)
        for candidate in candidates:
            record = candidate.record
            if record is not None and candidate.call_id not in held:
                self._lineage.add(record)
                if len(record.generation_token_ids) and not record.prompt_is_delta:
                    self._sequences.add(candidate.call_id, sequence_of(record))
        here = {each.call_id: each for each in turns} | {
            each.call_id: each for each in candidates if each.asked and not each.refused
        }
        self._presumed = presumed_parents(list(here.values()))
        self._responses = _by_response(candidates, held)

    def link_of(self, candidate: Candidate) -> Link:
        record = candidate.record
        if candidate.from_record and record is not None:
            named = record.parent_call_id
            told = Parent(record.parent_resolution or ("resolved" if named else "unresolved"), named)
            return Link(told, "recorded" if named else None)
        if candidate.named_parent is not None:
            return Link(Parent("resolved", candidate.named_parent), "recorded")
        if candidate.previous_response is not None:
            return self._of_response(candidate, candidate.previous_response)
        try:
            found = [known for known in self._lineage.answered(candidate.seen) if _is_earlier(known, candidate)]
        except Unfingerprintable:
            found = []
        if found:
            return self._of_several(candidate, found)
        presumed = self._presumed.get(candidate.call_id)
        if presumed is not None:
            return Link(Parent("resolved", presumed), "presumed")
        longest = None if record is None else self._sequences.longest_in(_prompt(candidate), candidate.call_id)
        if longest is not None:
            return Link(Parent("resolved", longest), "prefix")
        return Link(_without_parent(candidate))

    def _of_response(self, candidate: Candidate, response_id: str) -> Link:
        """The server holds the conversation: the request shows nothing of it but the response that it goes on with."""
        calls = self._responses.get(response_id, set()) - {candidate.call_id}
        if len(calls) == 1:
            return Link(Parent("resolved", min(calls)), "recorded")
        return Link(Parent("unresolved", reason="ambiguous" if calls else "no_match"))

    def _of_several(self, candidate: Candidate, found: Sequence[Known]) -> Link:
        """The one that was answered like this; of several the one with the longest sequence that the prompt holds.

        An answer that says nothing is fingerprinted like none: the call before it fits, too.
        """
        if len({(known.digest, known.cum_len) for known in found}) > 1 or not found[0].digest:
            prompt = _prompt(candidate) if candidate.record is not None else array("i")
            proven = [known for known in found if self._sequences.begins(known.call_id, prompt)]
            longest = max((known.cum_len or 0 for known in proven), default=0)
            if not proven and len(found) > 1:
                return Link(Parent("unresolved", reason="ambiguous"))
            found = [known for known in proven if known.cum_len == longest] or found
        return Link(Parent("resolved", min(known.call_id for known in found)), "conversation")


class _Sequences:
    """Whole sequences of calls by their digests; each prompt is read once to find the longest that it begins with."""

    def __init__(self) -> None:
        self._calls: dict[bytes, str] = {}
        self._lengths: set[int] = set()
        self._of: dict[str, array[int]] = {}

    def add(self, call_id: str, ids: "array[int]") -> None:
        digest = hashlib.sha256(ids).digest()
        # calls with the identical sequence are told apart by nothing: the smallest id stands for them
        self._calls[digest] = min(call_id, self._calls.get(digest, call_id))
        self._lengths.add(len(ids))
        self._of[call_id] = ids

    def begins(self, call_id: str, prompt: "array[int]") -> bool:
        own = self._of.get(call_id)
        return own is not None and prompt[: len(own)] == own

    def longest_in(self, prompt: "array[int]", besides: str) -> str | None:
        """The call with the longest sequence that the prompt begins with, if not all of both are one."""
        sha256, done, found = hashlib.sha256(), 0, None
        for length in sorted(length for length in self._lengths if length <= len(prompt)):
            sha256.update(prompt[done:length])
            done = length
            call = self._calls.get(sha256.copy().digest())
            found = call if call is not None and call != besides else found
        return found


def _by_response(candidates: Iterable[Candidate], held: Mapping[str, HeldCall]) -> Mapping[str, set[str]]:
    """The calls that gave each response."""
    found: dict[str, set[str]] = {}
    records = [each.record for each in candidates if each.record is not None]
    for record in (*records, *(call.record for call in held.values())):
        if record.response_id is not None:
            found.setdefault(record.response_id, set()).add(record.model_call_id)
    return found


def _is_earlier(known: Known, candidate: Candidate) -> bool:
    """An answer stands between what a call was asked and what goes on with it."""
    return known.call_id != candidate.call_id and known.context_len < candidate.seen.count


def _without_parent(candidate: Candidate) -> Parent:
    if candidate.seen.fingerprint == "" or not candidate.asked:
        # nothing that the model wrote stands in the request, or there is no conversation at all
        return Parent("root")
    return Parent("unresolved", reason="lookup_error" if candidate.seen.fingerprint is None else "no_match")


def _prompt(candidate: Candidate) -> "array[int]":
    assert candidate.record is not None
    return array("i", candidate.record.prompt_token_ids)
