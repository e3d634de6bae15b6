"""Where the corpus is (`NG_CAPTURE_CORPUS`) and what is in it; what is not there is skipped, in CI it is a failure."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def corpus_root() -> Path:
    """The folder that holds `gym/`, `bugs/`, ...; it need not exist."""
    return Path(os.environ.get("NG_CAPTURE_CORPUS") or REPOSITORY.parent / "shared" / "corpus").absolute()


def corpus_folder(name: str) -> Path:
    """One folder of the corpus, for a module that is about it: without the folder the module is skipped."""
    folder = corpus_root() / name
    if not folder.is_dir():
        pytest.skip(why_absent(folder), allow_module_level=True)
    return folder


def corpus_file(path: Path) -> Path:
    """A file that a test needs: without it the test is skipped."""
    if not path.exists():
        pytest.skip(why_absent(path))
    return path


def ids_in(path: Path, ids: Iterable[str]) -> list[Any]:
    """The ids as parameters of a test; a single skipped one where the file that names them is not there."""
    if not path.exists():
        return [pytest.param("", id=path.name, marks=pytest.mark.skip(reason=why_absent(path)))]
    return [pytest.param(each, id=each) for each in ids]


def why_absent(path: Path) -> str:
    """The reason to skip what needs this path; fails where nothing may be missing (`CI=true`)."""
    reason = f"{path} is not there (set NG_CAPTURE_CORPUS)"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    return reason


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file; none where it is not there."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def readable_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a damaged JSONL file that are objects."""
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
