"""The finished rows that a harness left: found by rollout id, read again when their turn comes."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import compression_of
from ng_capture.files.reading import CaptureFile
from ng_capture.records.json_text import BOM
from ng_capture.records.rollout_row import BadRow, RolloutRow, decode_row


class RowFault(msgspec.Struct, frozen=True):
    """A line of the rows file that belongs to no rollout: broken, without an id, or a rollout's second row."""

    line: int
    message: str
    broken: bool


class RowLine(msgspec.Struct, frozen=True):
    """One row: its line, its bytes, the rollout it belongs to (None with a fault)."""

    line: int
    data: bytes
    rollout_id: str | None
    fault: RowFault | None = None


class RowsFile:
    """A JSONL file of finished rows, plain or compressed.

    Holds the place of every row, not the row; a compressed file's rows are held, since they cannot be sought.
    Raises UsageError if the file does not exist.
    """

    def __init__(self, path: str) -> None:
        if not Path(path).is_file():
            raise UsageError(f"{path}: no such rows file")
        self.path = path
        self._compression = compression_of(path)
        self._places: dict[str, tuple[int, int, int]] = {}
        self._held: dict[str, bytes] = {}
        self.faults = [row.fault for row in self.rows() if row.fault is not None]

    def __contains__(self, rollout_id: object) -> bool:
        return rollout_id in self._places

    @property
    def rollout_ids(self) -> Iterator[str]:
        return iter(self._places)

    def find(self, rollout_id: str) -> bytes | None:
        """The bytes of a rollout's row, or None without one."""
        place = self._places.get(rollout_id)
        if place is None:
            return None
        if rollout_id in self._held:
            return self._held[rollout_id]
        try:
            with open(self.path, "rb") as file:
                file.seek(place[1])
                data = file.read(place[2])
        except OSError as error:
            raise SurroundingsError(f"{self.path}: cannot be read: {error.strerror}") from error
        if self._row(place[0], place[1], data).rollout_id != rollout_id:
            raise SurroundingsError(f"{self.path}:{place[0]}: changed while it was read")
        return data

    def rows(self) -> Iterator[RowLine]:
        """Every row in the order of the file."""
        with CaptureFile(self.path, self._compression) as file:
            for line in file.lines():
                skip = len(BOM) if line.number == 1 and line.data.startswith(BOM) else 0
                data = line.data[skip:].rstrip(b"\r\n")
                if data.strip():
                    yield self._row(line.number, line.offset + skip, data)
            if file.fault is not None:
                message = "the compressed file is cut or damaged"
                yield RowLine(file.fault.number, b"", None, RowFault(file.fault.number, message, True))

    def _row(self, number: int, offset: int, data: bytes) -> RowLine:
        try:
            rollout_id = decode_row(data).rollout_id
        except BadRow as error:
            return RowLine(number, data, None, RowFault(number, str(error), False))
        except ValueError:
            return RowLine(number, data, None, RowFault(number, "no JSON object", True))
        if rollout_id is None:
            return RowLine(number, data, None, RowFault(number, "no capture key", False))
        first = self._places.setdefault(rollout_id, (number, offset, len(data)))
        if first[0] != number:
            message = f"second row of rollout {rollout_id}, the first is on line {first[0]}"
            return RowLine(number, data, None, RowFault(number, message, False))
        if self._compression:
            self._held[rollout_id] = data
        return RowLine(number, data, rollout_id)


def decoded(row: bytes | None) -> RolloutRow | None:
    """The row, or None where there is none."""
    return None if row is None else decode_row(row)
