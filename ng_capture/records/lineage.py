"""The call that a request continues, by the conversation that it resends, as NeMo Gym finds it (capture-files.md 3).

Tokens are not looked at here: whether they fit is for who reads the record.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import msgspec

from ng_capture.records.fingerprint import (
    FINGERPRINT_VERSION,
    Unfingerprintable,
    assistant_fingerprint,
    conversation_digest,
)
from ng_capture.records.token_record import TokenRecord


class Parent(msgspec.Struct, frozen=True):
    """The link of a record: `parent_call_id` where it is resolved, `reason` where it is not."""

    resolution: Literal["root", "resolved", "unresolved"]
    parent_call_id: str | None = None
    reason: Literal["", "no_match", "ambiguous", "lookup_error"] = ""


class _Known(msgspec.Struct, frozen=True):
    call_id: str
    context_len: int
    context_digest: str
    digest: str | None
    cum_len: int | None

    def answers(self, items: Sequence[object]) -> bool:
        """True if the items begin with what this call was asked."""
        if not self.context_digest or len(items) < self.context_len:
            return False
        return conversation_digest(items[: self.context_len]) == self.context_digest


class Lineage:
    """The calls of one rollout by what they asked and answered; a record without fingerprints is never found."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, _Known]] = defaultdict(dict)

    def add(self, record: TokenRecord) -> None:
        """Take a stamped record; the same call again changes nothing."""
        if record.continuation_fingerprint and record.fingerprint_version in (None, FINGERPRINT_VERSION):
            known = _Known(
                record.model_call_id,
                record.continuation_context_len,
                record.continuation_context_digest,
                record.digest,
                record.cum_len,
            )
            self._known[record.continuation_fingerprint][known.call_id] = known

    def parent_of(self, request_items: Sequence[object]) -> Parent:
        """The link of a request with these items (`fingerprint.request_items`)."""
        try:
            fingerprint = assistant_fingerprint(request_items)
            if not fingerprint:
                return Parent("root")
            found = [known for known in self._known.get(fingerprint, {}).values() if known.answers(request_items)]
        except Unfingerprintable:
            return Parent("unresolved", reason="lookup_error")
        if not found:
            return Parent("unresolved", reason="no_match")
        # retries that came out token for token alike are one call
        if len(found) > 1 and (not found[0].digest or len({(each.digest, each.cum_len) for each in found}) > 1):
            return Parent("unresolved", reason="ambiguous")
        return Parent("resolved", min(each.call_id for each in found))
