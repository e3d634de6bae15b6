"""The readings of all sources by rollout, so that memory follows one rollout and not the run (promise 10)."""

import pickle
import tempfile
import weakref
from collections.abc import Iterator
from typing import NamedTuple

from ng_capture.errors import SurroundingsError
from ng_capture.ingest.sources.interface import Reading


class _Place(NamedTuple):
    start: int
    size: int


class Spool:
    """Readings in a file without a name: whatever ends the run, nothing of it is left.

    Raises SurroundingsError where the disk for temporary files takes no more.
    """

    def __init__(self) -> None:
        try:
            self._file = tempfile.TemporaryFile(prefix="ng-capture-")  # noqa: SIM115 (lives as long as this object)
        except OSError as error:
            raise SurroundingsError(f"no temporary file can be made: {error.strerror}") from error
        weakref.finalize(self, self._file.close)
        self._places: dict[str, list[_Place]] = {}
        self._end = 0

    @property
    def rollout_ids(self) -> list[str]:
        return list(self._places)

    def add(self, rollout_id: str, reading: Reading) -> None:
        """Take the next reading of a rollout; raises RecursionError for one that is nested deeper than can be kept."""
        data = pickle.dumps(reading, pickle.HIGHEST_PROTOCOL)
        try:
            self._file.seek(self._end)
            self._file.write(data)
        except OSError as error:
            raise SurroundingsError(f"{tempfile.gettempdir()}: cannot be written: {error.strerror}") from error
        self._places.setdefault(rollout_id, []).append(_Place(self._end, len(data)))
        self._end += len(data)

    def of(self, rollout_id: str) -> Iterator[Reading]:
        """The readings of a rollout, as they came."""
        for place in self._places.get(rollout_id, ()):
            self._file.seek(place.start)
            # our own bytes, in a file that has no name for anybody else
            yield pickle.loads(self._file.read(place.size))
