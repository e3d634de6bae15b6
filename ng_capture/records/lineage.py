"""The call that a request continues, by the conversation that it resends, as NeMo Gym finds it (capture-files.md 3).

Tokens are not looked at here: whether they fit is for who reads the record.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import msgspec

from ng_capture.records.fingerprint import (
    FINGERPRINT_VERSION,
    Beginnings,
    Unfingerprintable,
)
from ng_capture.records.token_record import TokenRecord


class Parent(msgspec.Struct, frozen=True):
    """The link of a record: `parent_call_id` where it is resolved, `reason` where it is not."""

    resolution: Literal["root", "resolved", "unresolved"]
    parent_call_id: str | None = None
    reason: Literal["", "no_match", "ambiguous", "lookup_error"] = ""


class Asked(msgspec.Struct, frozen=True):
    """What a request shows of the conversation before it.

    `fingerprint` is that of all that the model wrote in it, "" where it wrote nothing, None where that cannot be told;
    `begins` are the digests of its first items, as far as they can be told; `count` is the number of its items.
    """

    fingerprint: str | None
    begins: tuple[str, ...]
    count: int

    @classmethod
    def of(cls, items: Sequence[object], beginnings: Beginnings | None = None) -> "Asked":
        """Of the items of a request (`fingerprint.request_items`); `beginnings` are those of its rollout."""
        told = (beginnings or Beginnings()).digests(items)
        return cls(told.fingerprint, told.begins, len(items))


NOTHING_TOLD = Asked(None, (), 0)
"""A request that is not known, or has no items that can be told."""


class Known(msgspec.Struct, frozen=True):
    """A call by what it was asked and what it answered."""

    call_id: str
    context_len: int
    context_digest: str
    digest: str | None
    cum_len: int | None

    def answers(self, asked: Asked) -> bool:
        """True if the request begins with what this call was asked; raises Unfingerprintable."""
        if not self.context_digest or asked.count < self.context_len:
            return False
        if self.context_len >= len(asked.begins):
            raise Unfingerprintable("a part of the request")
        return asked.begins[self.context_len] == self.context_digest


class Lineage:
    """The calls of one rollout by what they asked and answered; a record without fingerprints is never found."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Known]] = defaultdict(dict)

    def add(self, record: TokenRecord) -> None:
        """Take a stamped record; the same call again changes nothing."""
        if record.continuation_fingerprint and record.fingerprint_version in (None, FINGERPRINT_VERSION):
            known = Known(
                record.model_call_id,
                record.continuation_context_len,
                record.continuation_context_digest,
                record.digest,
                record.cum_len,
            )
            self._known[record.continuation_fingerprint][known.call_id] = known

    def answered(self, asked: Asked) -> list[Known]:
        """The calls whose answer a request goes on with; raises Unfingerprintable where that cannot be told."""
        if asked.fingerprint is None:
            raise Unfingerprintable("the request")
        if not asked.fingerprint:
            return []
        return [known for known in self._known.get(asked.fingerprint, {}).values() if known.answers(asked)]

    def parent_of(self, request_items: Sequence[object]) -> Parent:
        """The link of a request with these items (`fingerprint.request_items`)."""
        asked = Asked.of(request_items)
        try:
            found = self.answered(asked)
        except Unfingerprintable:
            return Parent("unresolved", reason="lookup_error")
        if not found:
            return Parent("unresolved", reason="no_match") if asked.fingerprint else Parent("root")
        # retries that came out token for token alike are one call
        if len(found) > 1 and (not found[0].digest or len({(each.digest, each.cum_len) for each in found}) > 1):
            return Parent("unresolved", reason="ambiguous")
        return Parent("resolved", min(each.call_id for each in found))
