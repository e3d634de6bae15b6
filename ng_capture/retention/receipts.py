"""Which rollouts a receipt covers, with which bytes; a receipt whose output is gone or changed covers nothing."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from ng_capture.errors import UsageError
from ng_capture.outputs.documents import ReceiptFile
from ng_capture.verdicts.judge import Verdict


class CoveredFile(msgspec.Struct, frozen=True):
    """A file as the receipt knows it."""

    name: str
    size: int
    sha256: str | None


class CoveredRollout(msgspec.Struct, frozen=True):
    """One rollout of a receipt; `snapshot_id` and `version` are set where it was sealed."""

    rollout_id: str
    files: tuple[CoveredFile, ...]
    verdict: Verdict
    covered: bool
    snapshot_id: str | None
    version: int | None


class Coverage(msgspec.Struct, frozen=True):
    """What some receipts cover, by rollout id, and which rollouts they know as masked.

    `notes` say which receipts cover nothing, and why.
    """

    rollouts: Mapping[str, tuple[CoveredRollout, ...]]
    masked: frozenset[str]
    notes: tuple[str, ...]


def read_coverage(paths: Iterable[str]) -> Coverage:
    """The rollouts that the receipts cover; raises UsageError for a file that is no receipt.

    Wherever they lay when the receipt was written: their digests say whether these are the bytes.
    """
    rollouts: dict[str, tuple[CoveredRollout, ...]] = {}
    masked: set[str] = set()
    notes = []
    for path in paths:
        if not Path(path).is_file():
            raise UsageError(f"{path}: no such receipt")
        receipt = ReceiptFile(path)
        output = Path(path).parent / receipt.output.name
        if not receipt.describes(output):
            notes.append(f"{path}: covers nothing: {output} is gone or changed")
            continue
        for entry in receipt.rollouts(CoveredRollout):
            if entry.verdict == "masked":
                masked.add(entry.rollout_id)
            elif entry.covered:
                rollouts[entry.rollout_id] = (*rollouts.get(entry.rollout_id, ()), entry)
    return Coverage(rollouts, frozenset(masked), tuple(notes))
