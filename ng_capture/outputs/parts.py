"""Which file a rollout goes into where a rebuild is divided: training or validation, and shards of so many rows."""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from ng_capture.errors import UsageError

Half = Literal["train", "val"]
_DIGITS = 5
_SHARDS = 100_000
_BITS = 64


class Division(msgspec.Struct, frozen=True):
    """How an output is divided: `val` is the share of groups in the validation half, `shard_size` rows go in a file.

    Neither: it is one file.
    """

    val: float | None = None
    shard_size: int | None = None

    def half(self, unit: str) -> Half | None:
        """The half of a group: told by its name alone, so that no other group moves it (design.md, promise 4)."""
        if self.val is None:
            return None
        place = int.from_bytes(hashlib.sha256(unit.encode()).digest()[: _BITS // 8], "big") / 2**_BITS
        return "val" if place < self.val else "train"

    @property
    def halves(self) -> tuple[Half | None, ...]:
        """All of them."""
        return (None,) if self.val is None else ("train", "val")


class Part(msgspec.Struct, frozen=True):
    """One of the files of a divided output; `shard` counts from 0."""

    division: Division
    half: Half | None
    shard: int | None

    def name(self, output: str) -> str:
        """The name of the file: `out.train.jsonl`, `out-00000.jsonl`, `out.train-00000.jsonl`."""
        path = Path(output)
        half = "" if self.half is None else f".{self.half}"
        shard = "" if self.shard is None else f"-{self.shard:0{_DIGITS}}"
        return str(path.with_name(f"{path.stem}{half}{shard}{path.suffix}"))

    @property
    def is_last(self) -> bool:
        """True for the last one that there is a name for."""
        return self.shard == _SHARDS - 1

    def following(self) -> "Part":
        """The next shard; raises UsageError behind the last one that there is a name for."""
        assert self.shard is not None
        if self.is_last:
            raise UsageError(f"more than {_SHARDS:,} files", hint="a larger --shard-size")
        return msgspec.structs.replace(self, shard=self.shard + 1)


def first_part(division: Division, half: Half | None) -> Part:
    """Where a half begins."""
    return Part(division, half, None if division.shard_size is None else 0)
