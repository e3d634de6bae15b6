"""Exported files in Python: typed rows, `datasets.Dataset`, torch tensors; neither library is needed to load this."""

import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import msgspec

from ng_capture.errors import UsageError
from ng_capture.files.names import Compression
from ng_capture.files.reading import CaptureFile
from ng_capture.outputs.documents import text_lines
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import Kind, Record
from ng_capture.outputs.export.reading import UNREADABLE, arrays_of, shape_of
from ng_capture.outputs.forms import Form, form_of
from ng_capture.outputs.rebuilding import Shape
from ng_capture.records.json_text import decode_json

_AS_THEY_LIE: Mapping[Shape, tuple[str, str, str | None]] = {
    Shape.ROWS: ("tokens", "loss_mask", "logprobs"),
    Shape.SKYRL_SFT: ("input_ids", "loss_mask", None),
}
"""Formats whose columns are the arrays themselves: of a table they are not copied."""


class LoadedRow(msgspec.Struct, frozen=True, eq=False):
    """A training row: ids (int32), loss mask (int8) and log probabilities (float32), of equal length, unshifted.

    `logprobs` is None where the format has none. `fields` is the whole row by the format's own names.
    """

    tokens: "memoryview[int]"
    loss_mask: "memoryview[int]"
    logprobs: "memoryview[float] | None"
    fields: Mapping[str, Any]


class Loaded:
    """An exported file, or directory, read anew each time it is gone through.

    `shape` is its format; None where it has no row.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._form = form_of(path)
        self.shape = self._found_shape()

    def __iter__(self) -> Iterator[LoadedRow]:
        """Every row but those of masked rollouts; raises UsageError for one that has not the format of the file."""
        for index, record in enumerate(self._records()):
            if record.get("mask_sample"):
                continue
            try:
                yield self._row(record)
            except (*UNREADABLE, OverflowError) as error:
                raise UsageError(f"{self.path}: row {index:,} is no row of {self.shape}: {error!r}") from error

    def dataset(self) -> Any:
        """The rows as a `datasets.Dataset` by the columns of the format, each of one type whatever the values are.

        Raises UsageError where `datasets` is not installed, and for rows that hold a whole response.
        """
        try:
            import datasets
        except ModuleNotFoundError as error:
            raise UsageError("datasets is not installed", hint="pip install datasets") from error
        if self._form is not Form.JSONL:
            from_table = {
                Form.PARQUET: datasets.Dataset.from_parquet,
                Form.ARROW: datasets.Dataset.from_file,
                Form.DIRECTORY: datasets.load_from_disk,
            }
            return from_table[self._form](self.path)
        first = next(self._records(), None)
        if first is None or self.shape is None or self.shape is Shape.GYM_RESPONSE:
            raise UsageError(f"{self.path}: no columns of fixed types", hint="ng-capture rebuild ... --to rows")
        schema, in_columns = _columns_of(self.shape, first)

        def rows(path: str, **_: object) -> Iterator[Record]:
            return map(in_columns, Loaded(path)._records())

        # what is cached is found again by these arguments: a file that has changed must have others
        place, state = str(Path(self.path).resolve()), Path(self.path).stat()
        stamp = {"path": place, "size": state.st_size, "time": state.st_mtime_ns}
        features = datasets.Features.from_arrow_schema(schema)
        return datasets.Dataset.from_generator(rows, features=features, gen_kwargs=stamp)

    def tensors(self) -> Iterator[dict[str, Any]]:
        """For each row `tokens`, `loss_mask` and, where the format has them, `logprobs` as torch tensors.

        They share the row's memory, which for a table is not to be written to. Raises UsageError where torch is not
        installed.
        """
        try:
            import torch
        except ModuleNotFoundError as error:
            raise UsageError("torch is not installed", hint="pip install torch") from error
        types = {"tokens": torch.int32, "loss_mask": torch.int8, "logprobs": torch.float32}

        def of(row: LoadedRow) -> dict[str, Any]:
            views = {"tokens": row.tokens, "loss_mask": row.loss_mask, "logprobs": row.logprobs}
            there = {name: view for name, view in views.items() if view is not None}
            with warnings.catch_warnings():
                # torch says of a table's memory what is said above
                warnings.filterwarnings("ignore", message=".*not writable.*")
                return {name: torch.frombuffer(view, dtype=types[name]) for name, view in there.items()}

        return map(of, self)

    def _found_shape(self) -> Shape | None:
        if self._form is not Form.JSONL:
            from ng_capture.outputs.tables.reading import columns_of

            columns: Iterable[str] | None = columns_of(self.path)
        else:
            columns = next(self._records(), None)
        if columns is None:
            return None
        found = shape_of(columns)
        if found is None:
            hint = "ng-capture formats"
            raise UsageError(f"{self.path}: no format has the columns {', '.join(columns)}", hint=hint)
        return found

    def _records(self) -> Iterator[Record]:
        if self._form is not Form.JSONL:
            from ng_capture.outputs.tables.reading import read_views

            yield from read_views(self.path)
            return
        with CaptureFile(self.path, _compression(self.path)) as file:
            for line in text_lines(file.lines()):
                try:
                    value = decode_json(line.data).value
                except ValueError as error:
                    raise UsageError(f"{self.path}:{line.number}: no JSON: {error}") from error
                if not isinstance(value, dict):
                    raise UsageError(f"{self.path}:{line.number}: no JSON object")
                yield value
            if file.fault is not None:
                raise UsageError(f"{self.path}:{file.fault.number}: the compressed file is damaged or cut")

    def _row(self, record: Record) -> LoadedRow:
        assert self.shape is not None
        places = _AS_THEY_LIE.get(self.shape) if self._form is not Form.JSONL else None
        row = _copied(self.shape, record) if places is None else _viewed(self.shape, record, places)
        if len({len(row.tokens), len(row.loss_mask), len(row.tokens if row.logprobs is None else row.logprobs)}) > 1:
            raise ValueError("arrays of different lengths")
        return row


def _copied(shape: Shape, record: Record) -> LoadedRow:
    found = arrays_of(shape, record)
    return LoadedRow(
        memoryview(array("i", found.tokens)),
        memoryview(array("b", found.loss_mask)),
        None if found.log_probs is None else memoryview(array("f", found.log_probs)),
        record,
    )


def _viewed(shape: Shape, record: Record, places: tuple[str, str, str | None]) -> LoadedRow:
    if shape is Shape.ROWS:
        from ng_capture.outputs.tables.columns import out_of_columns

        record = out_of_columns(record)
    views = [record[name] for name in places if name is not None]
    types = [view.format for view in views]
    if types != ["i", "b", "f"][: len(types)]:
        raise TypeError(f"columns of other types: {', '.join(types)}")
    return LoadedRow(views[0], views[1], views[2] if len(views) > 2 else None, record)


def load(path: str | PathLike[str]) -> Loaded:
    """What rebuild exported, in any form; raises UsageError for what no format of `ng-capture formats` has."""
    return Loaded(fspath(path))


def _columns_of(shape: Shape, first: Record) -> tuple[Any, Callable[[Record], Record]]:
    """The columns of a format as an Arrow schema, and what makes a row fit them."""
    from ng_capture.outputs.tables.columns import SCHEMA, in_columns, schema_of

    if shape is Shape.ROWS:
        return SCHEMA, in_columns
    kinds = {name: _narrowed(kind, first[name]) for name, kind in FORMATS[shape.value].columns.items()}
    return schema_of(kinds), lambda row: {name: _as_kind(kind, row[name]) for name, kind in kinds.items()}


def _narrowed(kind: Kind, value: object) -> Kind:
    """The kind without members that the file has not: a datum of SFT has weights, one of RL advantages."""
    if not isinstance(kind, Mapping) or not isinstance(value, Mapping):
        return kind
    return {name: _narrowed(each, value[name]) for name, each in kind.items() if name in value}


def _as_kind(kind: Kind, value: Any) -> Any:
    """The value; texts are texts whatever they are in the file."""
    if isinstance(kind, Mapping) and isinstance(value, Mapping):
        return {name: _as_kind(each, value.get(name)) for name, each in kind.items()}
    if isinstance(kind, list) and not isinstance(kind[0], str):
        return [_as_kind(kind[0], each) for each in value]
    return str(value) if kind == "text" and value is not None else value


def _compression(path: str) -> Compression:
    return next((each for each in Compression if each.value and path.endswith(each.value)), Compression.NONE)
