"""One gc at a time in a directory, and the next one learns who holds it."""

import os
import resource
import socket
from pathlib import Path

import pytest

from ng_capture.errors import SurroundingsError
from ng_capture.files.locking import Busy
from ng_capture.retention.holder import only_one
from ng_capture.retention.trash import TRASH, plans_of
from tests.support.retention import held


def test_a_second_one_is_told_who_is_at_work(tmp_path: Path) -> None:
    with only_one(str(tmp_path), 0.0):
        with pytest.raises(Busy) as told, only_one(str(tmp_path), 0.0):
            raise AssertionError("two at once")
        assert f"another gc is at work: process {os.getpid()} on {socket.gethostname()}, since 2" in told.value.message
        assert str(tmp_path) in told.value.message and told.value.hint is not None


def test_the_next_one_comes_in_when_the_first_has_left(tmp_path: Path) -> None:
    for _ in range(2):
        with only_one(str(tmp_path), 0.0):
            pass


def test_it_is_left_when_the_work_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), only_one(str(tmp_path), 0.0):
        raise ZeroDivisionError
    with only_one(str(tmp_path), 0.0):
        pass


def test_a_holder_that_does_not_say_who_it_is_is_unknown(tmp_path: Path) -> None:
    (tmp_path / TRASH).mkdir()
    with held(tmp_path / TRASH / "gc.lock"), pytest.raises(Busy, match="process unknown"), only_one(str(tmp_path), 0.0):
        raise AssertionError("two at once")


def test_a_longer_name_of_an_earlier_holder_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / TRASH).mkdir()
    lock = tmp_path / TRASH / "gc.lock"
    lock.write_bytes(b"x" * 4000)
    before = lock.stat().st_ino
    with only_one(str(tmp_path), 0.0):
        assert b"x" not in lock.read_bytes().splitlines()[0].replace(socket.gethostname().encode(), b"")
        assert len(lock.read_bytes().splitlines()) == 1
    assert lock.stat().st_ino == before


def test_busy_inside_the_work_is_not_taken_for_another_gc(tmp_path: Path) -> None:
    with pytest.raises(Busy, match="a rollout"), only_one(str(tmp_path), 0.0):
        raise Busy("a rollout")


def test_its_lock_is_no_plan(tmp_path: Path) -> None:
    with only_one(str(tmp_path), 0.0):
        assert list(plans_of(str(tmp_path))) == []


def test_a_trash_that_is_a_link_is_refused(tmp_path: Path) -> None:
    capture, elsewhere = tmp_path / "capture", tmp_path / "elsewhere"
    capture.mkdir()
    elsewhere.mkdir()
    (capture / TRASH).symlink_to(elsewhere)
    with pytest.raises(SurroundingsError, match="is a link"), only_one(str(capture), 0.0):
        raise AssertionError("followed")
    assert list(elsewhere.iterdir()) == []


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / TRASH).mkdir()
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / TRASH / "gc.lock").symlink_to(tmp_path / "mine")
    with pytest.raises(SurroundingsError), only_one(str(tmp_path), 0.0):
        raise AssertionError("followed")
    assert (tmp_path / "mine").read_bytes() == b"mine"


def test_on_a_full_disk_the_work_that_frees_it_goes_on(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with only_one(str(tmp_path), 0.0):
            assert (tmp_path / TRASH / "gc.lock").read_bytes() == b""
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
