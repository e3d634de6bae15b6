"""Every fault of an ATIF document at once (contracts.md 1.3 and 7.3)."""

from collections.abc import Iterator, Mapping

import msgspec

from ng_capture.contracts.atif.counts import check_counts
from ng_capture.contracts.atif.foreign import Foreign, foreign_format, foreign_lines
from ng_capture.contracts.atif.place import Place, kind_of
from ng_capture.contracts.atif.references import all_trajectories, check_references
from ng_capture.contracts.atif.schema import LAST_BY_SESSION
from ng_capture.contracts.atif.shape import check_trajectory
from ng_capture.contracts.atif.steps import check_steps
from ng_capture.contracts.rules import Fault, has_errors
from ng_capture.contracts.sources import Source

CONTRACT = "atif"


class Checked(msgspec.Struct, frozen=True):
    """A document with its faults; it is None where one of them is an error, since nothing can be made of it."""

    document: Mapping[str, object] | None
    faults: tuple[Fault, ...]


def check_source(source: Source) -> Checked:
    """The document of a file or of standard input; files that it names are looked for beside it."""
    careful = source.document(CONTRACT)
    if not careful.read:
        foreign = foreign_lines(source.read())
        return Checked(None, careful.faults if foreign is None else (_foreign(foreign),))
    faults = (*careful.faults, *check_document(careful.value, source))
    return Checked(None if has_errors(faults) else careful.value, faults)


def check_document(value: object, source: Source | None = None) -> Iterator[Fault]:
    """The faults of a decoded document, in the order of the rules' kinds."""
    place = Place()
    foreign = foreign_format(value)
    if foreign is not None:
        yield _foreign(foreign)
        return
    if not isinstance(value, dict):
        yield place.fault("atif.root.type", f"a document is an object, found {kind_of(value)}")
        return
    yield from check_trajectory(value, place)
    for trajectory, here in all_trajectories(value, place.trajectory(value)):
        yield from _check_session(trajectory, here)
        yield from check_steps(trajectory, here)
        yield from check_counts(trajectory, here)
    yield from check_references(value, source)


def _check_session(trajectory: Mapping[str, object], place: Place) -> Iterator[Fault]:
    if place.version <= LAST_BY_SESSION and trajectory.get("session_id") is None:
        message = "no session_id, which trajectories had to have to ATIF-v1.6"
        yield place.fault("atif.legacy.session_id_required", message)


def _foreign(foreign: Foreign) -> Fault:
    return Place().fault("atif.foreign", foreign.message)
