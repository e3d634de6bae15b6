"""A directory that `datasets.load_from_disk` loads, whatever its version (policies-and-exports.md 2.3).

    data-DIGEST.arrow    the rows, as an Arrow stream
    dataset_info.json    the types of its columns
    state.json           which file holds the rows; it is replaced last: until then the directory is the old dataset

A split one holds two of them, `train` and `validation`, and `dataset_dict.json`.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.writing import AtomicFile, discard, discard_directory, make_directory
from ng_capture.outputs.export.formats.interface import Kind
from ng_capture.outputs.parts import Half

_INFO = "dataset_info.json"
_STATE = "state.json"
_DICT = "dataset_dict.json"
_HALVES: Mapping[Half, str] = {"train": "train", "val": "validation"}
_DATA = re.compile(r"data-[0-9a-f]{16}\.arrow")
_LEFT_BY_A_KILL = re.compile(rf"{_DATA.pattern}|{_INFO}|\.ng-capture\..*\.tmp|(train|validation)(\.receipt\.json)?")
_LISTS = {"ids": "int32", "mask": "int8"}


def half_of(directory: str, half: Half) -> str:
    """Where a half of a split dataset lies."""
    return str(Path(directory) / _HALVES[half])


def halves_of(directory: str) -> list[str]:
    """The halves of a split dataset; none of one that is whole."""
    return [half_of(directory, half) for half in _HALVES] if (Path(directory) / _DICT).is_file() else []


def data_files(directory: str) -> list[str]:
    """The files that `load_from_disk` reads, in its order; raises UsageError for a directory that is no dataset."""
    place = Path(directory)
    if halves := halves_of(directory):
        raise UsageError(f"{directory}: a split dataset", hint=f"{' or '.join(halves)}")
    try:
        told = json.loads((place / _STATE).read_bytes())
        files = [str(place / each["filename"]) for each in told["_data_files"]]
    except OSError as error:
        raise UsageError(f"{directory}: no dataset: {_STATE}: {error.strerror}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{directory}: no dataset: {_STATE}: {error!r}") from error
    if not files:
        raise UsageError(f"{directory}: no dataset: {_STATE}: names no data file")
    return files


def faults_of(
    directory: str, half: Half | None, columns: Mapping[str, Kind], data_name: str, sha256: str
) -> Iterator[str]:
    """What beside the rows is not as it is written for the data file of this name and digest."""
    place = Path(directory)
    wanted = {place / _INFO: _info(columns), place / _STATE: _state(data_name, sha256)}
    if half is not None:
        wanted[place.parent / _DICT] = _splits()
    for path, data in wanted.items():
        if not path.is_file() or path.read_bytes() != data:
            yield f"{path} is not what rebuild writes"


class DatasetDirectory:
    """Takes the bytes of an Arrow stream; the directory is the old dataset or the whole new one.

    `sha256` and `size` are those of the data file, `data_name` is its name once all is written. Raises what AtomicFile
    raises, and UsageError for a directory that holds something else.
    """

    def __init__(self, directory: Path, columns: Mapping[str, Kind]) -> None:
        self._directory = directory
        self._columns = columns
        self._data, self._info, self._state = (AtomicFile(directory / name) for name in ("data.arrow", _INFO, _STATE))
        self._finished = False
        self._stack = contextlib.ExitStack()

    @property
    def size(self) -> int:
        return self._data.size

    @property
    def sha256(self) -> str:
        return self._data.sha256

    @property
    def data_name(self) -> str:
        # other rows have another name: whoever has the old ones open keeps them
        return f"data-{self.sha256[:16]}.arrow"

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            opening.enter_context(_directory(self._directory, _STATE))
            opening.push(self._discard_old_data)
            # left in the opposite order
            for file in (self._state, self._info, self._data):
                opening.enter_context(file)
            self._stack = opening.pop_all()
        return self

    def write(self, *chunks: bytes | bytearray | memoryview) -> None:
        self._data.write(*chunks)

    def finish(self) -> None:
        """Settle what was written: it only waits for its names."""
        if not self._finished:
            self._finished = True
            self._data.path = self._directory / self.data_name
            self._info.write(_info(self._columns))
            self._state.write(_state(self.data_name, self.sha256))
        for file in (self._data, self._info, self._state):
            file.finish()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._stack.__exit__(kind, error, trace)
            return
        with self._stack:
            self.finish()

    def _discard_old_data(self, kind: type[BaseException] | None, *_: object) -> bool:
        if kind is None:
            for name in _names(self._directory):
                if _DATA.fullmatch(name) and name != self.data_name:
                    discard(self._directory / name)
        return False


@contextlib.contextmanager
def split_directory(directory: Path) -> Iterator[None]:
    """Around the writing of both halves; raises what DatasetDirectory raises."""
    with _directory(directory, _DICT), AtomicFile(directory / _DICT) as file:
        file.write(_splits())
        yield


@contextlib.contextmanager
def _directory(directory: Path, document: str) -> Iterator[None]:
    """The directory of a dataset that this document makes one; one that was made for nothing goes again."""
    if not directory.parent.is_dir():
        raise UsageError(f"{directory.parent}: no such directory", hint=f"mkdir -p {directory.parent}")
    there = directory.exists()
    if there:
        _check(directory, document)
    make_directory(directory)
    try:
        yield
    except BaseException:
        if not there:
            with contextlib.suppress(SurroundingsError):
                discard_directory(directory)
        raise


def _check(directory: Path, document: str) -> None:
    """Raises UsageError for what is no place for a dataset: a file, another kind of dataset, anybody's directory."""
    hint = "-o with the name of a new directory"
    if not directory.is_dir():
        raise UsageError(f"{directory}: is a file; a directory is written", hint=hint)
    names = _names(directory)
    other = _DICT if document == _STATE else _STATE
    if other in names:
        kind = "split" if document == _STATE else "undivided"
        raise UsageError(f"{directory}: holds a dataset that is {kind}", hint=hint)
    if document not in names and not all(map(_LEFT_BY_A_KILL.fullmatch, names)):
        raise UsageError(f"{directory}: is no dataset, and would be mixed with one", hint=hint)


def _names(directory: Path) -> list[str]:
    try:
        return [path.name for path in directory.iterdir()]
    except OSError as error:
        raise SurroundingsError(f"{directory}: cannot be read: {error.strerror or error}") from error


def _splits() -> bytes:
    return _encoded({"splits": list(_HALVES.values())})


def _info(columns: Mapping[str, Kind]) -> bytes:
    features = {name: _feature(kind) for name, kind in columns.items()}
    return _encoded({"citation": "", "description": "", "features": features, "homepage": "", "license": ""})


def _feature(kind: Kind) -> dict[str, Any]:
    """A column as `datasets` tells it: newer versions read a Sequence as their List, which older ones do not know."""
    if isinstance(kind, list):
        return {"feature": {"dtype": "string", "_type": "Value"}, "_type": "Sequence"}
    return {"feature": {"dtype": _LISTS[str(kind)], "_type": "Value"}, "_type": "Sequence"}


def _state(data_name: str, sha256: str) -> bytes:
    return _encoded(
        {
            "_data_files": [{"filename": data_name}],
            # what is computed of the rows is cached under it: other rows must have another one
            "_fingerprint": sha256[:16],
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": None,
        }
    )


def _encoded(document: object) -> bytes:
    return json.dumps(document, indent=2).encode() + b"\n"
