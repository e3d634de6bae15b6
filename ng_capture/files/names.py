"""What the files of one rollout are called (capture-files.md 1 and 1.8)."""

import re
from enum import StrEnum
from itertools import product
from typing import NamedTuple

ROLLOUT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class FileKind(StrEnum):
    """Kind of a rollout's file; the value is what follows `<rollout id>.` in its name."""

    TOKENS = "tokens.jsonl"
    STATE = "tokens.state.json"
    INTENTS = "tokens.intents"
    INCOMPLETE = "tokens.incomplete"
    CAPTURE = "capture.jsonl"
    CAPTURE_INCOMPLETE = "capture.incomplete"


class Compression(StrEnum):
    """How a file is compressed; the value is the end of its name."""

    NONE = ""
    GZIP = ".gz"
    ZSTD = ".zst"


LOCK_NAME = "tokens.lock"
LONGEST_ID = 255 - len(f".{FileKind.CAPTURE_INCOMPLETE}")
"""Characters of a rollout id that leave room for every ending in a file name."""

_COMPRESSED_KINDS = (FileKind.TOKENS, FileKind.CAPTURE)
ENDINGS = tuple(
    (kind, compression)
    for kind, compression in product(FileKind, Compression)
    if compression is Compression.NONE or kind in _COMPRESSED_KINDS
)
_TEXTS = tuple((f".{kind}{compression}", kind, compression) for kind, compression in ENDINGS)
_LAST_PARTS = tuple({text.rsplit(".", 1)[1] for text, _, _ in _TEXTS})


class CaptureName(NamedTuple):
    """A file name taken apart: rollout id, kind, compression."""

    rollout_id: str
    kind: FileKind
    compression: Compression

    def __str__(self) -> str:
        return f"{self.rollout_id}.{self.kind}{self.compression}"

    @property
    def shown(self) -> str:
        """The name as text: bytes of it that are no UTF-8 are spelled out."""
        return shown(str(self))


def parse_name(name: str) -> CaptureName | None:
    """The parts of a capture file's name, or None for any other name."""
    if not name.endswith(_LAST_PARTS):
        return None
    for text, kind, compression in _TEXTS:
        if name.endswith(text):
            return CaptureName(name[: -len(text)], kind, compression)
    return None


def compression_of(path: str) -> Compression:
    """How a file is compressed, by the end of its name."""
    return next((each for each in Compression if each and path.endswith(each)), Compression.NONE)


def names_of(rollout_id: str) -> list[CaptureName]:
    """Every name that a file of this rollout can have."""
    return [CaptureName(rollout_id, kind, compression) for kind, compression in ENDINGS]


def shown(name: str) -> str:
    """A file name as text: bytes of it that are no UTF-8 are spelled out."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def is_rollout_id(text: str) -> bool:
    """True if the text may become a file name (capture-files.md 1.8, the correlation rule)."""
    return ROLLOUT_ID.fullmatch(text) is not None
