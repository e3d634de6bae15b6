"""What a cleaning run is asked for."""

import msgspec

DAY = 86_400.0


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """What may go, ages in seconds. Nothing goes without a receipt, but for what is allowed here by name.

    `ids` None: all rollouts, those that are older than `older_than`; else only these, whatever their age where none is
    given. `masked_older_than` is the age of masked rollouts. `tombstone_age` None: tombstones stay. `temporary_age`:
    left-over temporary files of writers.
    """

    older_than: float | None = None
    ids: frozenset[str] | None = None
    without_receipt: bool = False
    include_masked: bool = False
    masked_older_than: float | None = None
    tombstone_age: float | None = None
    temporary_age: float = DAY
    max_bytes: int | None = None
