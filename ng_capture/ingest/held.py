"""What the store holds of a rollout already: what is brought again is compared with it, what is new builds on it."""

from array import array
from collections.abc import Mapping

import msgspec

from ng_capture.files.listing import RolloutFiles
from ng_capture.files.names import FileKind
from ng_capture.records.snapshot import Snapshot
from ng_capture.records.token_entry import TokenEntry
from ng_capture.records.token_record import TokenRecord
from ng_capture.store.snapshot import read_snapshot

_READ = frozenset({FileKind.TOKENS, FileKind.STATE, FileKind.INTENTS, FileKind.INCOMPLETE})


class HeldCall(msgspec.Struct, frozen=True, eq=False):
    """A call in the store: its record without its arrays, and its whole sequence; None where that cannot be told."""

    call_id: str
    record: TokenRecord
    full: "array[int] | None"
    generated: int
    evidence: "Evidence"


class Evidence(msgspec.Struct, frozen=True):
    """What was sampled: two tellings of one call must agree on it, whatever else they say."""

    digest: str | None
    generation: bytes
    log_probs: bytes

    def agrees(self, other: "Evidence") -> bool:
        """True where nothing of both differs; a digest that is not known differs from none."""
        known = self.digest is None or other.digest is None or self.digest == other.digest
        return known and (self.generation, self.log_probs) == (other.generation, other.log_probs)


class Held(msgspec.Struct, frozen=True, eq=False):
    """The calls of a rollout in the store, what was announced there, and whether its state knows all of them."""

    calls: Mapping[str, HeldCall] = {}
    announced: frozenset[str] = frozenset()
    indexed: bool = True


def read_held(files: RolloutFiles | None) -> Held:
    """What lies there; raises SurroundingsError for an unreadable file."""
    if files is None:
        return Held()
    snapshot = read_snapshot(files.only(_READ))
    return Held(
        {entry.call_id: _held(entry) for entry in snapshot.entries},
        frozenset(line.call_id for line in snapshot.intents or ()),
        _is_indexed(snapshot),
    )


def evidence_of_record(record: TokenRecord) -> Evidence:
    """The evidence of a record whose digest is its own."""
    generation, log_probs = array("i", record.generation_token_ids), array("d", record.generation_log_probs)
    return Evidence(record.digest, generation.tobytes(), log_probs.tobytes())


def _held(entry: TokenEntry) -> HeldCall:
    fields = {key: value for key, value in entry.rest.items() if key in TokenRecord.__struct_fields__}
    nothing: dict[str, object] = {"prompt_token_ids": [], "generation_token_ids": [], "generation_log_probs": []}
    full = None if entry.full is None else array("i", entry.full.values())
    generation = array("i", map(int, filter(None, entry.generation.text.split(b","))))
    digest = entry.fields.digest or (None if entry.full is None else entry.full.digest())
    return HeldCall(
        entry.call_id,
        msgspec.convert({**fields, **nothing}, TokenRecord),
        full,
        entry.generated,
        Evidence(digest, generation.tobytes(), b"" if entry.log_probs is None else entry.log_probs.tobytes()),
    )


def _is_indexed(snapshot: Snapshot) -> bool:
    """False where a writer was killed before the state told of its records; a frozen one takes none any more."""
    state = snapshot.state
    known = state.entry_digests if state is not None else None
    return (state is not None and state.frozen) or {each.call_id for each in snapshot.entries} <= (known or {}).keys()
