"""Which rollouts a receipt covers, with which bytes; a receipt whose output is gone or changed covers nothing."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from ng_capture.errors import UsageError
from ng_capture.files.names import FileKind
from ng_capture.outputs.documents import ReceiptFile
from ng_capture.verdicts.judge import Verdict


class _File(msgspec.Struct, frozen=True):
    """A file as the receipt knows it."""

    name: str
    size: int
    sha256: str | None


class _Entry(msgspec.Struct, frozen=True):
    """One rollout of a receipt; `snapshot_id` and `version` are set where it was sealed."""

    rollout_id: str
    files: tuple[_File, ...]
    verdict: Verdict
    covered: bool
    snapshot_id: str | None
    version: int | None


class FileDigest(Protocol):
    """What tells one file from another: its name, its size, the digest of its bytes."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str | None: ...


class Delivered(msgspec.Struct, frozen=True, gc=False):
    """A rollout as a receipt covers it: one digest over its files, and its snapshot where it was sealed."""

    files: bytes
    snapshot_id: str | None
    version: int | None


class Coverage(msgspec.Struct, frozen=True):
    """What some receipts cover, by rollout id, and which files they know as those of masked rollouts.

    `notes` say which receipts cover nothing, and why.
    """

    rollouts: Mapping[str, tuple[Delivered, ...]]
    masked: Mapping[str, frozenset[bytes]]
    notes: tuple[str, ...]

    def names(self, rollout_id: str) -> bool:
        """True if some receipt tells of the rollout."""
        return rollout_id in self.rollouts or rollout_id in self.masked


def read_coverage(paths: Iterable[str]) -> Coverage:
    """The rollouts that the receipts cover; raises UsageError for a file that is no receipt.

    Wherever they lay when the receipt was written: their digests say whether these are the bytes.
    """
    rollouts: dict[str, tuple[Delivered, ...]] = {}
    masked: dict[str, frozenset[bytes]] = {}
    notes = []
    for path in paths:
        if not Path(path).is_file():
            raise UsageError(f"{path}: no such receipt")
        receipt = ReceiptFile(path)
        output = Path(path).parent / receipt.output.name
        if not receipt.describes(output):
            notes.append(f"{path}: covers nothing: {output} is gone or changed")
            continue
        for entry in receipt.rollouts(_Entry):
            files = digest_of(entry.files)
            if files is None:
                continue
            if entry.verdict == "masked":
                masked[entry.rollout_id] = masked.get(entry.rollout_id, frozenset()) | {files}
            elif entry.covered:
                delivered = Delivered(files, entry.snapshot_id, entry.version)
                rollouts[entry.rollout_id] = (*rollouts.get(entry.rollout_id, ()), delivered)
    return Coverage(rollouts, masked, tuple(notes))


def digest_of(files: Iterable[FileDigest]) -> bytes | None:
    """One digest over the files of a rollout but its state, which may have been sealed since; None where one has none.

    A receipt of a million rollouts is held as these: what it says of their files is many times as long.
    """
    told = sorted((file.name, file.size, file.sha256) for file in files if not file.name.endswith(f".{FileKind.STATE}"))
    if any(sha256 is None for _, _, sha256 in told):
        return None
    return hashlib.sha256(msgspec.json.encode(told)).digest()
