"""Readings kept beside memory, by rollout."""

import errno
import os
import resource
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.errors import SurroundingsError
from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.sources.interface import TokenLine
from ng_capture.ingest.spool import Spool
from ng_capture.records.token_entry import decode_entry
from tests.support.raw_exchanges import asked
from tests.support.runs import healthy


def lines_of(rollout_id: str, spool: Spool) -> list[int]:
    return [reading.line for reading in spool.of(rollout_id) if isinstance(reading, RawExchange)]


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=20))
def test_each_rollout_gets_its_own_readings_in_the_order_in_which_they_came(rollouts: list[str]) -> None:
    spool = Spool()
    for line, rollout_id in enumerate(rollouts):
        spool.add(rollout_id, asked({}, {}, line=line))
    for rollout_id in ("a", "b", "c"):
        assert lines_of(rollout_id, spool) == [line for line, each in enumerate(rollouts) if each == rollout_id]


def test_readings_can_be_read_again_and_more_can_come_between() -> None:
    spool = Spool()
    spool.add("a", asked({}, {}, line=1))
    reading = spool.of("a")
    assert next(reading).line == 1  # type: ignore[union-attr]
    spool.add("a", asked({}, {}, line=2))
    assert lines_of("a", spool) == lines_of("a", spool) == [1, 2]


def test_a_reading_comes_back_as_it_was() -> None:
    values = {"text": "half \ud800 of a pair", "big": 2**80, "none": None, "nan": float("inf"), "deep": [[[{}]]]}
    exchange = asked(values, {"x": 1}, claims=(RolloutClaim("path", "r-1"),), events=[{"a": 1}], started_at=0.1)
    spool = Spool()
    spool.add("a", exchange)
    (back,) = spool.of("a")
    assert isinstance(back, RawExchange)
    assert all(getattr(back, name) == getattr(exchange, name) for name in exchange.__struct_fields__)


def test_a_record_comes_back_as_it_was() -> None:
    entry = decode_entry(healthy("r-1").lines()[1], file="x", line=2, byte=7)
    spool = Spool()
    spool.add("a", TokenLine(entry, (), terminated=False))
    (back,) = spool.of("a")
    assert isinstance(back, TokenLine) and not back.terminated
    assert (back.entry.fields, back.entry.stored.text, back.entry.generation.text, back.entry.line) == (
        entry.fields,
        entry.stored.text,
        entry.generation.text,
        2,
    )
    assert back.entry.log_probs == entry.log_probs


def test_what_is_nested_too_deeply_is_refused_and_the_rest_stays() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    spool = Spool()
    spool.add("a", asked({}, {}, line=1))
    with pytest.raises(RecursionError):
        spool.add("a", asked({"deep": deep}, {}, line=2))
    spool.add("a", asked({}, {}, line=3))
    assert lines_of("a", spool) == [1, 3]
    # taken apart from the outside: the interpreter must not do it by recursion
    while isinstance(deep, list):
        deep = deep.pop()


def test_nothing_is_left_under_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spool = Spool()
    spool.add("a", asked({}, {}))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_takes_no_temporary_file_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(SurroundingsError, match="nowhere: cannot be written: No such file or directory"):
        Spool()


def test_a_full_disk_is_said_with_its_place() -> None:
    spool, limits = Spool(), resource.getrlimit(resource.RLIMIT_FSIZE)
    reading = asked({"text": "x" * 100_000}, {})
    read, write = os.pipe()
    child = os.fork()
    if not child:
        # a limit for this process alone
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            spool.add("a", reading)
        except SurroundingsError as error:
            os.write(write, error.message.encode())
        os._exit(0)
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(read) as said:
        assert said.read() == f"{tempfile.gettempdir()}: cannot be written: {os.strerror(errno.EFBIG)}"
