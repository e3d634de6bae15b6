"""All records of one rollout as read at one moment, with what was wrong with them."""

import msgspec

from ng_capture.records.defects import Defect
from ng_capture.records.lifecycle import NamedLine, StoreState
from ng_capture.records.raw_call import RawCall
from ng_capture.records.token_entry import TokenEntry


class InputFile(msgspec.Struct, frozen=True):
    """A file as it was read: name, size on disk, and the digest of its bytes where it was asked for."""

    name: str
    size: int
    sha256: str | None = None


class Snapshot(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What lay on disk for one rollout.

    `state` is None where there is no readable state file; `intents` is None without such a file; `raw_calls` is None
    without a `.capture.jsonl`, `unidentified_lines` of it name no call. `index_fits`: what the state's index covers
    ends where a line ends. `defects` name lines and files, never calls that could be read.
    """

    rollout_id: str
    entries: tuple[TokenEntry, ...] = ()
    raw_calls: tuple[RawCall, ...] | None = None
    state: StoreState | None = None
    intents: tuple[NamedLine, ...] | None = None
    intents_file: str = ""
    marks: tuple[NamedLine, ...] | None = None
    marks_file: str = ""
    capture_files: tuple[str, ...] = ()
    defects: tuple[Defect, ...] = ()
    files: tuple[InputFile, ...] = ()
    unidentified_lines: int = 0
    tokens_size: int | None = None
    index_fits: bool = True

    @property
    def capture_file(self) -> str:
        """The file of raw calls, or the first of several."""
        return next(iter(self.capture_files), "")
