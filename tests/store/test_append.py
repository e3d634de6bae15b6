"""The writer of Gym's token store (capture-files.md 1.3 to 1.6, cases S01 to S37)."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ng_capture.errors import (
    ConflictingRecord,
    InvalidRecord,
    RolloutDamaged,
    RolloutFrozen,
    RolloutRetired,
    SurroundingsError,
)
from ng_capture.files.listing import list_rollouts
from ng_capture.files.locking import Busy
from ng_capture.records.token_record import TokenRecord, decode_record
from ng_capture.sink import TokenSink
from ng_capture.store import append as append_module
from ng_capture.store.append import RolloutWriter, add_raw_lines, append_raw_line
from ng_capture.store.seal import Sealed, seal
from tests.support.append_driver import chain, records
from tests.support.command import run
from tests.support.fixtures import ROOT
from tests.support.forge import Forge, canonical
from tests.support.gym_writer import GymWriter
from tests.support.judging import judged
from tests.support.retention import Disk


@pytest.fixture
def forge() -> Forge:
    return chain("c", 3)


@pytest.fixture
def writer(tmp_path: Path) -> RolloutWriter:
    return RolloutWriter(tmp_path, "r-1")


def data(writer: RolloutWriter, ending: str = "jsonl") -> bytes:
    return (writer.directory / f"r-1.tokens.{ending}").read_bytes()


def put(writer: RolloutWriter, ending: str, content: bytes) -> None:
    (writer.directory / f"r-1.tokens.{ending}").write_bytes(content)


def state(writer: RolloutWriter) -> dict[str, Any]:
    return dict(json.loads(data(writer, "state.json")))


def everything(writer: RolloutWriter) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in writer.directory.iterdir() if not path.name.endswith(".lock")}


def altered(record: TokenRecord) -> TokenRecord:
    return msgspec.structs.replace(record, created_at=9.0)


def sealed(writer: RolloutWriter) -> Sealed:
    done = seal(list_rollouts([str(writer.directory)]).get("r-1"))
    assert isinstance(done, Sealed), done
    return done


# What is written


def test_records_intents_and_state_are_those_of_gym_byte_for_byte(forge: Forge, writer: RolloutWriter) -> None:
    for call, record in zip(forge.calls, records(forge), strict=True):
        writer.begin_call(call.id)
        writer.append(record)
    assert everything(writer) == forge.files()


def test_many_records_at_once_are_written_as_one_by_one(forge: Forge, writer: RolloutWriter) -> None:
    writer.begin_call(*(call.id for call in forge.calls))
    writer.append(*records(forge))
    assert everything(writer) == forge.files()


def test_what_is_written_is_read_back_without_a_finding(forge: Forge, writer: RolloutWriter) -> None:
    writer.begin_call(*(call.id for call in forge.calls))
    writer.append(*records(forge))
    judgement = judged(writer.directory)
    assert (judgement.verdict, judgement.findings) == ("trainable", ())
    assert sealed(writer).version == 4


def test_the_same_record_again_touches_no_file(forge: Forge, writer: RolloutWriter) -> None:
    writer.begin_call("c-0")
    writer.append(*records(forge))
    before = changed(writer.directory)
    writer.begin_call("c-0")
    writer.append(*records(forge))
    assert changed(writer.directory) == before


def changed(directory: Path) -> dict[str, tuple[int, int]]:
    """Which file has each name, and when it was written last; reading it may tell another time of access."""
    return {path.name: ((status := path.stat()).st_ino, status.st_mtime_ns) for path in directory.iterdir()}


def test_a_call_with_another_content_is_refused_and_the_rollout_incomplete(forge: Forge, writer: RolloutWriter) -> None:
    first, second, third = records(forge)
    writer.append(first)
    before = data(writer)
    with pytest.raises(ConflictingRecord, match="call c-0 has another content already"):
        writer.append(second, altered(first), third)
    assert data(writer) == before
    assert state(writer) == forge.state() | {
        "incomplete": True,
        "version": 2,
        "entry_digests": {"c-0": forge.state()["entry_digests"]["c-0"]},
        "indexed_size": len(before),
    }


def test_two_contents_in_one_go_conflict_too(forge: Forge, writer: RolloutWriter) -> None:
    first = records(forge)[0]
    with pytest.raises(ConflictingRecord):
        writer.append(first, altered(first))
    assert state(writer)["incomplete"] and not (writer.directory / "r-1.tokens.jsonl").exists()


def test_a_record_of_another_rollout_is_refused(forge: Forge, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecord, match="rollout_id_mismatch"):
        RolloutWriter(tmp_path, "r-2").append(*records(forge))
    assert list(tmp_path.iterdir()) == []


def test_digests_tell_what_lies_there(forge: Forge, writer: RolloutWriter) -> None:
    assert writer.digests() == {}
    forge.write(writer.directory, state=False)
    assert writer.digests() == forge.state()["entry_digests"]
    assert not (writer.directory / "r-1.tokens.state.json").exists()


# A life that is over


def test_a_frozen_rollout_takes_marks_and_no_calls(forge: Forge, writer: RolloutWriter) -> None:
    writer.append(*records(forge))
    version = sealed(writer).version
    with pytest.raises(RolloutFrozen, match="r-1 is already frozen"):
        writer.append(*records(forge))
    with pytest.raises(RolloutFrozen):
        writer.begin_call("late")
    writer.mark_incomplete("late")
    assert (state(writer)["version"], data(writer, "incomplete")) == (version + 1, b"late\n")


def test_a_retired_rollout_takes_nothing(writer: RolloutWriter) -> None:
    put(writer, "state.json", canonical({"retired": True, "frozen": True}))
    before = everything(writer)
    late: list[Callable[[], object]] = [
        lambda: writer.begin_call("x"),
        lambda: writer.append(*records(chain("c", 1))),
        writer.mark_incomplete,
    ]
    for write in late:
        with pytest.raises(RolloutRetired, match="r-1 is retired"):
            write()
    assert everything(writer) == before


# What others left


@pytest.mark.parametrize("cut", [1, 40, -1])
def test_a_record_that_its_writer_did_not_finish_is_finished(forge: Forge, writer: RolloutWriter, cut: int) -> None:
    first, second, third = records(forge)
    writer.append(first)
    put(writer, "jsonl", data(writer) + forge.lines()[1][:cut])
    writer.append(first)
    assert data(writer).endswith(forge.lines()[1][:cut])
    writer.append(second, third)
    assert everything(writer) == forge.files(intents=False)


@pytest.mark.parametrize("behind", [b"", b"\n", b"\n\n  \n"])
def test_a_torn_record_that_does_not_come_again_is_cut_off_and_masks(
    forge: Forge, writer: RolloutWriter, behind: bytes
) -> None:
    first, second, _ = records(forge)
    writer.append(first)
    whole = data(writer)
    put(writer, "jsonl", whole + b'{"torn' + behind)
    writer.append(second)
    assert data(writer) == whole + forge.lines()[1] + b"\n"
    assert (state(writer)["incomplete"], state(writer)["version"]) == (True, 3)


@pytest.mark.parametrize("indexed", [True, False])
def test_an_open_last_line_is_ended_before_the_next_one(forge: Forge, writer: RolloutWriter, indexed: bool) -> None:
    line = forge.lines()[0]
    put(writer, "jsonl", line)
    digests = {"c-0": forge.state()["entry_digests"]["c-0"]}
    lagging = forge.state(version=1, entry_digests=digests, indexed_size=len(line))
    put(writer, "state.json", canonical(lagging if indexed else forge.state(**_EMPTY)))
    writer.append(*records(forge))
    assert everything(writer) == forge.files(intents=False)


def test_an_open_last_line_is_ended_when_it_comes_again(writer: RolloutWriter) -> None:
    forge = chain("c", 1)
    put(writer, "jsonl", forge.lines()[0])
    writer.append(*records(forge))
    assert everything(writer) == forge.files(intents=False)


_EMPTY: dict[str, Any] = {"version": 0, "entry_digests": {}, "indexed_size": 0}


@pytest.mark.parametrize(
    ("lying", "version"),
    [
        pytest.param(None, 3, id="no state"),
        pytest.param({"version": 7}, 8, id="older layout: what is recovered does not count"),
        pytest.param({**_EMPTY, "mine": "kept"}, 3, id="a state that lags behind"),
    ],
)
def test_what_the_index_lacks_is_recovered(
    forge: Forge, writer: RolloutWriter, lying: dict[str, Any] | None, version: int
) -> None:
    put(writer, "jsonl", b"".join(line + b"\n" for line in forge.lines()[:2]))
    if lying is not None:
        put(writer, "state.json", canonical(lying))
    writer.append(records(forge)[2])
    kept = {"mine": "kept"} if lying and "mine" in lying else {}
    assert state(writer) == forge.state(version=version) | kept


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda whole: b"{\n" + whole, "byte 0: damaged_line"),
        (lambda whole: whole + b"{}\n", "invalid_record"),
        (lambda whole: whole + whole.replace(b"[1,2]", b"[-1]"), "bad_token_id"),
        (lambda whole: whole.replace(b"-0.25", b"null"), "byte 0: logprob_missing"),
    ],
)
def test_behind_what_is_no_record_nothing_is_written(
    forge: Forge, writer: RolloutWriter, spoil: Callable[[bytes], bytes], why: str
) -> None:
    put(writer, "jsonl", spoil(forge.lines()[0] + b"\n"))
    before = everything(writer)
    with pytest.raises(RolloutDamaged, match=why):
        writer.append(*records(forge))
    assert everything(writer) == before


def test_a_file_shorter_than_its_index_is_damaged(forge: Forge, writer: RolloutWriter) -> None:
    writer.append(*records(forge)[:2])
    put(writer, "jsonl", data(writer)[:-9])
    with pytest.raises(RolloutDamaged, match="its index covers"):
        writer.append(records(forge)[2])


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"frozen": "no"}'])
def test_a_state_that_cannot_be_read_is_never_rebuilt(forge: Forge, writer: RolloutWriter, content: bytes) -> None:
    put(writer, "state.json", content)
    with pytest.raises(RolloutDamaged, match="its state cannot be read"):
        writer.append(*records(forge))
    assert everything(writer) == {"r-1.tokens.state.json": content}


def test_two_contents_behind_the_index_mark_the_rollout_once(forge: Forge, writer: RolloutWriter) -> None:
    line = forge.lines()[0]
    put(writer, "jsonl", line + b"\n" + line.replace(b"[3]", b"[4]", 1) + b"\n")
    for _ in range(2):
        with pytest.raises(ConflictingRecord, match="call c-0 has two contents"):
            writer.append(records(forge)[1])
    assert (state(writer)["incomplete"], state(writer)["version"]) == (True, 1)


def test_what_a_killed_writer_left_is_synced_before_it_is_told_of(
    forge: Forge, writer: RolloutWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(writer, "jsonl", b"".join(line + b"\n" for line in forge.lines()))
    put(writer, "intents", b"c-0\n")
    synced: list[int] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    for write, ending in [
        (lambda: writer.append(*records(forge)), "jsonl"),
        (lambda: writer.begin_call("c-0"), "intents"),
    ]:
        synced.clear()
        write()
        assert synced[0] == (writer.directory / f"r-1.tokens.{ending}").stat().st_ino
        assert writer.directory.stat().st_ino in synced


# Intents and marks


def test_an_announcement_that_its_writer_did_not_finish_is_finished(writer: RolloutWriter) -> None:
    put(writer, "intents", b"aa\nbb-t")
    writer.begin_call("aa", "bb-then", "cc", "cc")
    assert data(writer, "intents") == b"aa\nbb-then\ncc\n"


def test_an_announcement_of_another_call_that_was_cut_stays_dangling(writer: RolloutWriter) -> None:
    put(writer, "intents", b"aa\nbb")
    writer.begin_call("cc")
    assert data(writer, "intents") == b"aa\nbb\ncc\n"


def test_an_announced_call_without_a_record_masks(forge: Forge, writer: RolloutWriter) -> None:
    writer.begin_call("c-0", "lost")
    writer.append(records(forge)[0])
    assert [finding.reason for finding in judged(writer.directory).findings] == ["capture_incomplete"]


@pytest.mark.parametrize("call_id", ["", " a", "a\nb", "a\rb", "\ud800"])
def test_an_id_that_fits_on_no_line_is_refused(writer: RolloutWriter, call_id: str) -> None:
    record = msgspec.structs.replace(records(chain("c", 1))[0], model_call_id=call_id)
    with pytest.raises(InvalidRecord, match="is no call id"):
        writer.begin_call(call_id)
    with pytest.raises(InvalidRecord):
        writer.append(record)
    assert everything(writer) == {}


def test_a_mark_is_made_once(writer: RolloutWriter) -> None:
    for call_id in ("a", "a", "", ""):
        writer.mark_incomplete(call_id)
    assert data(writer, "incomplete") == b"a\n\n"
    assert (state(writer)["incomplete"], state(writer)["version"]) == (True, 2)


# Together with others


def test_a_held_lock_is_waited_for_and_then_told(
    forge: Forge, writer: RolloutWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_module, "PATIENCE", 0.1)
    with open(writer.directory / "r-1.tokens.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Busy):
            writer.append(*records(forge))
    assert everything(writer) == {}


def test_what_cannot_be_read_is_told(writer: RolloutWriter) -> None:
    (writer.directory / "r-1.tokens.jsonl").mkdir()
    with pytest.raises(SurroundingsError, match=r"r-1\.tokens\.jsonl: cannot be read"):
        writer.append(*records(chain("c", 1)))
    (writer.directory / "r-1.tokens.state.json").mkdir()
    with pytest.raises(SurroundingsError, match=r"state\.json: cannot be read"):
        writer.begin_call("a")


def test_gyms_writer_and_ours_take_turns(forge: Forge, writer: RolloutWriter) -> None:
    theirs = GymWriter(writer.directory, "r-1")
    for number, (call, record) in enumerate(zip(forge.calls, records(forge), strict=True)):
        if number % 2:
            theirs.begin_call(call.id)
            theirs.append(call.id, call.line())
        else:
            writer.begin_call(call.id)
            writer.append(record)
    assert data(writer) == forge.files()["r-1.tokens.jsonl"]
    assert state(writer) == forge.state()


def test_four_processes_lose_nothing_and_the_index_fits(writer: RolloutWriter) -> None:
    words = [sys.executable, "-m", "tests.support.append_driver", str(writer.directory)]
    processes = [
        subprocess.Popen([*words, prefix, "20"], cwd=ROOT.parent, stdout=subprocess.PIPE, text=True)
        for prefix in "abcd"
    ]
    told = {name for process in processes for name in process.communicate(timeout=120)[0].split()}
    assert [process.returncode for process in processes] == [0] * 4
    lines = data(writer).splitlines()
    assert len(told) == len(lines) == 80
    assert {decode_record(line).model_call_id for line in lines} == told
    assert state(writer)["entry_digests"] == writer.digests()
    assert (state(writer)["indexed_size"], state(writer)["version"]) == (len(data(writer)), 80)
    assert judged(writer.directory).snapshot.defects == ()


def test_beside_gc_nothing_acknowledged_is_lost_and_what_went_is_refused(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    acknowledged: set[tuple[str, str]] = set()
    refused: set[str] = set()
    done = threading.Event()

    def write(prefix: str) -> None:
        for number in range(10_000):
            if done.is_set():
                return
            rollout_id = f"r-{number // 40}"
            sink = TokenSink(disk.capture, rollout_id)
            record = msgspec.structs.replace(
                records(chain(f"{prefix}{number}", 1))[0], rollout_id=rollout_id, created_at=1.0
            )
            try:
                sink.begin_call(record.model_call_id)
                sink.append(record)
                acknowledged.add((rollout_id, record.model_call_id))
            except RolloutRetired:
                refused.add(rollout_id)

    writers = [threading.Thread(target=write, args=(prefix,)) for prefix in "ab"]
    for each in writers:
        each.start()
    words = ("gc", disk.capture, "--older-than", "0s", "--without-receipt", "--include-masked", "--wait", "30")
    ends = []
    while not (refused and len(ends) > 2) and len(ends) < 100:
        ends.append(run(*words))
    done.set()
    for each in writers:
        each.join()
    assert [end.err for end in ends if end.code != 0] == []
    places = [disk.capture.glob("*.tokens.jsonl"), (disk.capture / ".trash").glob("*/*.tokens.jsonl")]
    lying = {
        (path.name.removesuffix(".tokens.jsonl"), decode_record(line).model_call_id)
        for place in places
        for path in place
        for line in path.read_bytes().splitlines()
    }
    assert acknowledged and acknowledged <= lying
    states = {path.name.removesuffix(".tokens.state.json"): path for path in disk.capture.glob("*.tokens.state.json")}
    retired = {name for name, path in states.items() if json.loads(path.read_bytes())["retired"]}
    assert refused <= retired and retired
    for name in retired:
        with pytest.raises(RolloutRetired):
            TokenSink(disk.capture, name).begin_call("late")


# Raw lines


def test_raw_lines_of_many_writers_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "r-1.capture.jsonl"
    lines = [b'{"model_call_id":"%d-%b"}' % (number, b"x" * 20_000) for number in range(24)]
    threads = [threading.Thread(target=append_raw_line, args=(path, line)) for line in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.read_bytes().splitlines()) == sorted(lines)


def test_a_raw_line_that_was_cut_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "r-1.capture.jsonl"
    path.write_bytes(b'{"torn')
    append_raw_line(path, b"{}")
    assert path.read_bytes() == b'{"torn\n{}\n'


ONE, OTHER = b'{"model_call_id":"a"}', b'{"model_call_id":"b"}'


def test_raw_lines_are_added_once_whoever_brings_them(tmp_path: Path) -> None:
    path = tmp_path / "r-1.capture.jsonl"
    threads = [threading.Thread(target=add_raw_lines, args=(path, [ONE, OTHER, ONE])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() == ONE + b"\n" + OTHER + b"\n"
    before = changed(tmp_path)
    add_raw_lines(path, [OTHER, ONE])
    assert changed(tmp_path) == before


@pytest.mark.parametrize("cut", range(len(ONE + OTHER) + 3))
def test_a_raw_line_that_was_begun_is_finished(cut: int, tmp_path: Path) -> None:
    path, whole = tmp_path / "r-1.capture.jsonl", ONE + b"\n" + OTHER + b"\n"
    path.write_bytes(whole[:cut])
    add_raw_lines(path, [ONE, OTHER])
    assert path.read_bytes() == whole


def test_a_raw_line_that_nobody_brings_again_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "r-1.capture.jsonl"
    path.write_bytes(ONE + b'\n{"torn')
    add_raw_lines(path, [ONE])
    assert path.read_bytes() == ONE + b'\n{"torn'
    add_raw_lines(path, [ONE, OTHER])
    assert path.read_bytes() == ONE + b'\n{"torn\n' + OTHER + b"\n"


def test_a_raw_file_that_is_held_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append_module, "PATIENCE", 0.1)
    path = tmp_path / "r-1.capture.jsonl"
    with open(path, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Busy):
            append_raw_line(path, b"{}")
    assert path.read_bytes() == b""
