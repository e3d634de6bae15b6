"""Every fault of capture lines at once (contracts.md 5.1)."""

from collections.abc import Iterator

from ng_capture.contracts.captures.episodes import once_each
from ng_capture.contracts.captures.gathering import gather
from ng_capture.contracts.captures.rules import fault
from ng_capture.contracts.captures.token_records import read_records
from ng_capture.contracts.interface import Refused
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source


def validate(source: Source) -> Iterator[Fault]:
    """The faults of a capture directory, of the files of a rollout, or of lines; raises SurroundingsError."""
    for gathered in gather(source):
        yield from gathered.faults
        if isinstance(gathered, Refused):
            continue
        yield from read_records(gathered.entries).faults
        yield from once_each(gathered.exchanges)[1]
        if not gathered.exchanges and not gathered.entries:
            yield fault("capture.empty_capture", "no call that can be read", file=gathered.rollout_id)
