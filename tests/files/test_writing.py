"""Bytes put behind what a file holds: whole and durable, or not at all. Real files, and a real limit of their size."""

import os
import resource
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.errors import SurroundingsError
from ng_capture.files.reading import open_line
from ng_capture.files.writing import append_bytes, append_line
from ng_capture.store.append import add_raw_lines, append_raw_line


def with_little_room(work: Callable[[], object], room: int) -> str:
    """What the work raises in a process whose files can grow to this size; "" where it raises nothing."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        try:
            work()
        except SurroundingsError as error:
            os.write(write, error.message.encode())
        os._exit(0)
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(read) as said:
        return said.read()


@pytest.mark.parametrize("room", [20, 21, 25, 49])
def test_what_finds_no_room_leaves_no_half_line(room: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a line of twenty....")
    said = with_little_room(lambda: append_bytes(path, b"x" * 29 + b"\n"), room)
    assert said == f"{path}: cannot be written: File too large"
    assert path.read_bytes() == b"a line of twenty...."


def test_what_finds_just_enough_room_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a line of twenty....")
    assert with_little_room(lambda: append_bytes(path, b"x" * 30), 50) == ""
    assert path.stat().st_size == 50


def test_what_the_system_takes_in_pieces_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(3_000_000)
    append_bytes(tmp_path / "file", data)
    append_bytes(tmp_path / "file", b"")
    append_bytes(tmp_path / "file", data[:10])
    assert (tmp_path / "file").read_bytes() == data + data[:10]


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SurroundingsError, match="nowhere/file: cannot be written: No such file or directory"):
        append_bytes(tmp_path / "nowhere" / "file", b"x")


def test_a_line_behind_a_cut_one_stands_alone(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"cut")
    append_line(tmp_path / "file", b"whole")
    append_line(tmp_path / "file", b"next")
    assert (tmp_path / "file").read_bytes() == b"cut\nwhole\nnext\n"


@settings(deadline=None)
@given(st.lists(st.binary(max_size=9000), max_size=4), st.integers(0, 2))
def test_the_open_line_is_what_stands_behind_the_last_line_break(pieces: list[bytes], breaks: int) -> None:
    data = b"\n".join(pieces) + b"\n" * breaks
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        assert open_line(file.name) == data.rpartition(b"\n")[2]


def test_a_file_that_cannot_be_read_has_no_open_line(tmp_path: Path) -> None:
    with pytest.raises(SurroundingsError, match="nowhere"):
        open_line(str(tmp_path / "nowhere"))


@pytest.mark.parametrize("kept", [0, 1, 10, 11, 12, 20])
def test_raw_lines_that_a_killed_writer_began_are_finished(kept: int, tmp_path: Path) -> None:
    path, lines = tmp_path / "r-1.capture.jsonl", (b'{"a":"one"}', b'{"b":"two"}')
    whole = b"".join(line + b"\n" for line in lines)
    path.write_bytes(b"before\n" + whole[:kept])
    add_raw_lines(path, lines)
    assert path.read_bytes() == b"before\n" + whole


def test_a_raw_line_that_another_writer_began_is_ended_first(tmp_path: Path) -> None:
    path = tmp_path / "r-1.capture.jsonl"
    path.write_bytes(b'{"a":"o')
    append_raw_line(path, b'{"b":"two"}')
    assert path.read_bytes() == b'{"a":"o\n{"b":"two"}\n'
