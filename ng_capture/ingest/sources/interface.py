"""What a reader is: it knows its format by what stands in a file, and turns files into exchanges."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.records.defects import Defect
from ng_capture.records.token_entry import TokenEntry


class TokenLine(msgspec.Struct, frozen=True, eq=False):
    """A token record as it stands in a `.tokens.jsonl`: no exchange, it was made of one before.

    Its entry has not been placed: a `Placer` makes prompts of the stored texts.
    """

    entry: TokenEntry
    claims: tuple[RolloutClaim, ...]
    terminated: bool = True


Reading = RawExchange | TokenLine | Defect
"""What a reader yields: a call, a record, or what was wrong with the bytes between them."""


class LogFormat(msgspec.Struct, frozen=True):
    """A log format: its name for `--from`, how it is known, how it is read.

    `read` takes all files of this format at once, since some are joined; it holds one line or entry at a time, and
    raises nothing but SurroundingsError.
    """

    name: str
    recognises: Callable[[Head], bool]
    read: Callable[[Sequence[SourceFile]], Iterator[Reading]]


def one_by_one(read: Callable[[SourceFile], Iterator[Reading]]) -> Callable[[Sequence[SourceFile]], Iterator[Reading]]:
    """The reading of several files that have nothing to do with each other."""

    def read_all(files: Sequence[SourceFile]) -> Iterator[Reading]:
        for file in files:
            yield from read(file)

    return read_all
