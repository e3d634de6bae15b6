"""For people who capture themselves: record the calls of one rollout as NeMo Gym does, durably and checked.

    sink, lineage = TokenSink("runs/42/capture", "4-0"), TokenLineage("runs/42/capture", "4-0")
    items = request_items(request)
    link = lineage.resolve(items).link             # what the request continues
    sink.begin_call(call_id)                       # before the request goes out
    sink.append(stamped(TokenRecord(..., parent_call_id=link.parent_call_id, ...), items))
    sink.mark_incomplete(call_id)                  # where a call was lost
    sink.seal()                                    # no further calls

`TokenSource` freezes a rollout, reads it and drops what it read. Errors are those of `ng_capture.errors`; every refusal
is a WriteRefused, and no record was added then.
"""

from pathlib import Path

from ng_capture.errors import UsageError
from ng_capture.files.listing import Selection, list_rollouts
from ng_capture.files.names import is_rollout_id
from ng_capture.files.writing import make_directory
from ng_capture.records.fingerprint import request_items
from ng_capture.records.lineage import Parent
from ng_capture.records.token_record import TokenRecord, as_delta, stamped
from ng_capture.store.append import RolloutWriter, append_raw_line
from ng_capture.store.lineage import FoundParent, TokenLineage
from ng_capture.store.seal import NotSealed, Sealed, seal
from ng_capture.store.source import FrozenRollout, TokenSource

__all__ = [
    "FoundParent",
    "FrozenRollout",
    "NotSealed",
    "Parent",
    "Sealed",
    "TokenLineage",
    "TokenRecord",
    "TokenSink",
    "TokenSource",
    "append_raw_line",
    "as_delta",
    "request_items",
    "stamped",
]


class TokenSink(RolloutWriter):
    """The records of one rollout in a capture directory, which is made where it is not there.

    Raises UsageError for an id that must not become a file name.
    """

    def __init__(self, directory: str | Path, rollout_id: str) -> None:
        if not is_rollout_id(rollout_id):
            raise UsageError(f"{rollout_id!r} is no rollout id", hint="[A-Za-z0-9][A-Za-z0-9._-]*")
        super().__init__(Path(directory), rollout_id)
        make_directory(self.directory)

    def seal(self) -> Sealed | NotSealed:
        """Freeze the rollout: what lies there is complete; a second time gives the same snapshot."""
        listing = list_rollouts([str(self.directory)], Selection(include=(self.rollout_id,)))
        if self.rollout_id not in listing:
            return NotSealed("it has no token records")
        return seal(listing.get(self.rollout_id))
