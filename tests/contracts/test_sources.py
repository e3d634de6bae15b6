"""A file, standard input or a folder; plain or compressed, whole or line by line."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from ng_capture.contracts.sources import Source, entries_of, read_beside
from ng_capture.errors import SurroundingsError, UsageError

LINES = b'{"a":1}\n\n  \n[2]\n{"cut"'
PROGRAM = """
from ng_capture.contracts.sources import Source
source = Source("-")
print(source.name, source.file_name, source.is_folder, source.beside("x"))
print([(line.number, line.value, line.terminated) for line in source.lines("x")], source.read())
"""


def test_a_folder_tells_the_names_in_it_and_a_file_none(tmp_path: Path) -> None:
    for name in ("b.json", "a.json", ".hidden"):
        (tmp_path / name).write_bytes(b"{}")
    folder = Source(str(tmp_path))
    assert folder.is_folder and folder.names() == [".hidden", "a.json", "b.json"]
    assert Source(str(tmp_path / "a.json")).names() == [] and not Source(str(tmp_path / "a.json")).is_folder


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_listed_is_a_failure_of_the_machine(tmp_path: Path) -> None:
    source = Source(str(tmp_path))
    tmp_path.chmod(0)
    try:
        with pytest.raises(SurroundingsError, match="cannot be listed"):
            source.names()
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("ending", ["", ".gz", ".zst"])
def test_lines_keep_their_numbers_however_the_file_is_compressed(tmp_path: Path, ending: str) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[ending]
    path = tmp_path / f"x.jsonl{ending}"
    path.write_bytes(pack(LINES))
    source = Source(str(path))
    told = [(line.number, line.value, line.terminated) for line in source.lines("x")]
    assert told == [(1, {"a": 1}, True), (4, [2], True), (5, None, False)]
    assert source.file_name == "x.jsonl" and source.read() == LINES


def test_a_cut_compressed_file_gives_what_stands_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(b"[1]\n" * 50_000)[:-20])
    values = [line.value for line in Source(str(path)).lines("x")]
    assert values and all(value == [1] for value in values[:-1])


def test_standard_input_is_read_like_a_file() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=LINES, capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == [
        "standard input - False None",
        f"[(1, {{'a': 1}}, True), (4, [2], True), (5, None, False)] {LINES!r}",
    ]


def test_a_path_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or directory"):
        Source(str(tmp_path / "none"))


def test_what_a_document_names_is_found_beside_it_and_nothing_else(tmp_path: Path) -> None:
    document = tmp_path / "a.json"
    for path in (document, tmp_path / "b.json"):
        path.write_bytes(b"{}")
    source = Source(str(document))
    beside = source.beside("b.json")
    assert beside == tmp_path / "b.json" and read_beside(beside) == b"{}"
    for name in ("none.json", "https://example.org/b.json", ".", "x\0y", "n" * 5000):
        assert source.beside(name) is None
    with pytest.raises(SurroundingsError, match="cannot be read"):
        read_beside(tmp_path)


def test_what_lies_in_a_folder_comes_in_natural_order_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("t10.json", "t2.json", ".hidden", "in/t1.json", ".trash/t3.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / "broken").symlink_to(tmp_path / "none")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    assert entries_of(Source(str(tmp_path))) == [str(tmp_path / name) for name in ("in", "t2.json", "t10.json")]
