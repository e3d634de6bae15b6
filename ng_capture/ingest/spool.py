"""The readings of all sources by rollout, so that memory follows one rollout and not the run (promise 10)."""

import contextlib
import pickle
import tempfile
import weakref
from array import array
from collections.abc import Iterator

from ng_capture.errors import SurroundingsError
from ng_capture.ingest.sources.interface import Reading


class Spool:
    """Readings in a file without a name: whatever ends the run, nothing of it is left.

    Raises SurroundingsError where the disk for temporary files takes no more.
    """

    def __init__(self) -> None:
        with _failures():
            self._file = tempfile.TemporaryFile(prefix="ng-capture-")  # noqa: SIM115 (lives as long as this object)
        weakref.finalize(self, self._file.close)
        # start and size of every reading, one behind the other
        self._places: dict[str, array[int]] = {}
        self._end = 0

    def add(self, rollout_id: str, reading: Reading) -> None:
        """Take the next reading of a rollout; raises RecursionError for one that is nested deeper than can be kept."""
        data = pickle.dumps(reading, pickle.HIGHEST_PROTOCOL)
        with _failures():
            self._file.seek(self._end)
            self._file.write(data)
        self._places.setdefault(rollout_id, array("Q")).extend((self._end, len(data)))
        self._end += len(data)

    def of(self, rollout_id: str) -> Iterator[Reading]:
        """The readings of a rollout, as they came."""
        places = self._places.get(rollout_id, array("Q"))
        for start, size in zip(places[::2], places[1::2], strict=True):
            with _failures():
                # what was written last is flushed by it
                self._file.seek(start)
                data = self._file.read(size)
            # our own bytes, in a file that has no name for anybody else
            yield pickle.loads(data)


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = tempfile.tempdir or "the directory for temporary files"
        raise SurroundingsError(f"{place}: cannot be written: {error.strerror or error}") from error
