"""The forms of an exported file: the ending of its name tells which, and a directory is one too."""

from enum import StrEnum
from pathlib import Path


class Form(StrEnum):
    """JSON Lines, the two columnar files, and a directory that `datasets.load_from_disk` loads.

    `arrow` is a stream of record batches, uncompressed: what `datasets.Dataset.from_file` maps into memory.
    """

    JSONL = "jsonl"
    PARQUET = "parquet"
    ARROW = "arrow"
    DIRECTORY = "directory"


LINES = (Form.JSONL,)
LINES_OR_TABLE = (Form.JSONL, Form.PARQUET, Form.ARROW)


def form_to_write(name: str, forms: tuple[Form, ...]) -> Form:
    """The form that a name asks for; where a format is directories only, it is one whatever the name."""
    return Form.DIRECTORY if forms == (Form.DIRECTORY,) else _told_by(name)


def form_of(path: str) -> Form:
    """The form of what is there."""
    return Form.DIRECTORY if Path(path).is_dir() else _told_by(path)


def _told_by(name: str) -> Form:
    return next((form for form in (Form.PARQUET, Form.ARROW) if name.endswith(f".{form}")), Form.JSONL)
