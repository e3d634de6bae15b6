"""Exported files in all their forms, as the libraries of their readers see them; and written again with a change."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.forms import LINES_OR_TABLE, Form

Rows = list[dict[str, Any]]
TABLES = (Form.PARQUET, Form.ARROW)
FORMS = {"rows": LINES_OR_TABLE, **{name: known.forms for name, known in FORMATS.items()}}
"""What a file of each format of training rows can be."""
WRITTEN = [(name, form) for name, forms in FORMS.items() for form in forms]
"""Every format in each of its forms."""
TABLES_WRITTEN = [(name, form) for name, form in WRITTEN if form in TABLES]


def named(directory: Path, form: Form) -> Path:
    """The name of an output of this form."""
    return directory / ("out" if form is Form.DIRECTORY else f"out.{form}")


def data_of(path: Path) -> Path:
    """The file that holds the rows of an output."""
    if not path.is_dir():
        return path
    (data,) = path.glob("data-*.arrow")
    return data


def read_rows(path: Path) -> Rows:
    """The rows of an output."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return list(table_of(path).to_pylist())


def schema_of(path: Path) -> dict[str, str]:
    """The types of the columns of a table."""
    return {field.name: str(field.type) for field in table_of(path).schema}


def table_of(path: Path | str) -> pa.Table:
    """A table as pyarrow reads it."""
    path = Path(path)
    if path.suffix == ".parquet":
        return pq.read_table(path)
    with pa.OSFile(str(data_of(path))) as source, pa.ipc.open_stream(source) as stream:
        return stream.read_all()


def change(path: Path, how: Callable[[Rows], None]) -> None:
    """Write the rows again with something changed, under the same names and types."""
    rows = read_rows(path)
    how(rows)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return
    table = pa.Table.from_pylist(rows, table_of(path).schema)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    with pa.OSFile(str(data_of(path)), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def pieces_of(path: Path) -> Iterator[Path]:
    """Every file of an output."""
    yield from sorted(path.iterdir()) if path.is_dir() else [path]
