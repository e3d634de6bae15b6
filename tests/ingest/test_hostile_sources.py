"""The real command on sources that are no logs, or logs beyond all measure: named, never a traceback, never a hang."""

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ng_capture.records.token_record import decode_record
from tests.support.command import COMMAND, Run
from tests.support.hostile import encoded, held, numbers_in, survive
from tests.support.hostile import ingest as ingest_here
from tests.support.ingest_logs import conversation, ingested, trainable
from tests.support.logs import ONE_CALL
from tests.support.raw_calls import write_capture
from tests.support.struck import ROOT_ONLY, struck

MEGABYTE = 1 << 20


def ingest(*sources: object, to: Path, **more: Any) -> Run:
    words = [COMMAND, "ingest", *map(str, sources), "--to", str(to)]
    done = subprocess.run(words, capture_output=True, timeout=30, check=False, stdin=subprocess.DEVNULL, **more)
    ended = Run(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert ended.code in (0, 1, 2, 3) and "Traceback" not in ended.err, ended
    return ended


def raw_with(text: str, path: tuple[Any, ...]) -> bytes:
    """A raw call that has this text for a JSON value in one place."""
    row = conversation("r-1", 1)[0]
    value: Any = row
    for key in path[:-1]:
        value = value[key]
    value[path[-1]] = "<>"
    return encoded(row).replace(b'"<>"', text.encode()) + b"\n"


MESSAGE = ("response", "choices", 0, "message")
PLACES: dict[str, tuple[Any, ...]] = {
    "an id of the prompt": (*MESSAGE, "prompt_token_ids", 0),
    "all ids of the prompt": (*MESSAGE, "prompt_token_ids"),
    "a generated id": (*MESSAGE, "generation_token_ids", 0),
    "a log probability": (*MESSAGE, "generation_log_probs", 0),
    "all log probabilities": (*MESSAGE, "generation_log_probs"),
    "the message": MESSAGE,
    "the choices": ("response", "choices"),
    "the finish reason": ("response", "choices", 0, "finish_reason"),
    "the response": ("response",),
    "the request": ("request",),
    "a turn": ("request", "messages", 0),
    "a text": ("request", "messages", 0, "content"),
    "an answer's text": (*MESSAGE, "content"),
    "the id": ("model_call_id",),
    "the status": ("status_code",),
    "a time": ("completed_at",),
    "the dialect": ("dialect",),
}
TEXTS = {
    "300 lists": "[" * 300 + "]" * 300,
    "1,500 lists": "[" * 1500 + "]" * 1500,
    "300 objects": '{"a":' * 300 + "1" + "}" * 300,
    "1,500 objects": '{"content":' * 1500 + "1" + "}" * 1500,
    "100,000 open lists": "[" * 100_000,
    "500 digits": "9" * 500,
    "5,000 digits": "9" * 5000,
    "65 bits": str(2**64),
    "a great exponent": "1e400",
    "NaN": "NaN",
    "minus infinity": "-Infinity",
    "half a pair": '"\\ud800"',
    "half a pair as a key": '{"\\ud800":1}',
    "a control character": '"\\u0000"',
    "line ends": '"\\r\\n\\u2028"',
}


@pytest.mark.parametrize("text", TEXTS)
def test_any_place_of_a_call_may_hold_any_text(text: str) -> None:
    for place, path in PLACES.items():
        data = raw_with(TEXTS[text], path)
        assert held(survive({"r-1.capture.jsonl": data}), numbers_in(data)), place
        survive({"x.jsonl": data}, "jsonl", rollout_id="r-1")


@pytest.mark.parametrize("name", ONE_CALL)
@pytest.mark.parametrize("depth", [260, 1100, 50_000])
def test_any_log_may_be_nested_deeper_than_can_be_read(name: str, depth: int) -> None:
    file, text = ONE_CALL[name]
    for mark, end in ((b"[", b"]"), (b'{"a":', b"}")):
        deep = mark * depth + b"1" + end * depth
        place = text.rindex(b"}", 0, text.rindex(b"}")) if name in ("har", "harbor") else text.rindex(b"}")
        survive({file: text[:place] + b',"deep":' + deep + text[place:]}, name)
        survive({file: text[:place] + b',"deep":' + deep}, name)
        survive({file: deep + b"\n" + text}, name)


@pytest.mark.parametrize("place", ["a text", "all ids of the prompt", "the finish reason", "the id", "the dialect"])
def test_a_value_of_ten_megabytes_is_read_as_any_other(place: str, tmp_path: Path) -> None:
    number, text = "[" + ",".join(["7"] * (5 * MEGABYTE)) + "]", '"' + "x" * (10 * MEGABYTE) + '"'
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "r-1.capture.jsonl").write_bytes(raw_with(number if "ids" in place else text, PLACES[place]))
    assert ingest(logs, to=tmp_path / "store").code in (0, 1)


@pytest.mark.parametrize(
    "unit", [b'\\"a', b"\\\\", b'"', b"[", b'{"a":', b'"a" ', b" ", b"9", b"\\ud800", b"data: {}\\n"]
)
def test_a_first_line_that_never_ends_is_looked_at_once(unit: bytes, tmp_path: Path) -> None:
    """A string that is cut, as a killed writer leaves one: no work that grows with its square."""
    log = tmp_path / "r-1.capture.jsonl"
    log.write_bytes(b'{"model_call_id":"a","response_raw":"' + unit * (2 * MEGABYTE // len(unit)))
    begin = time.monotonic()
    assert ingest(log, to=tmp_path / "store").code == 1
    assert time.monotonic() - begin < 20


def test_empty_files_hold_no_call(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("r-1.capture.jsonl", "r-2.tokens.jsonl", "r-3.capture.jsonl.gz", "x.jsonl", "y.har"):
        (logs / name).touch()
    done = ingest(logs, to=tmp_path / "store")
    assert done.code == 1 and "nothing was written" in done.err
    assert not (tmp_path / "store").exists()
    assert ingest(logs / "x.jsonl", to=tmp_path / "store").code == 1
    assert ingest("-", to=tmp_path / "store").code == 1
    assert ingest(tmp_path / "nowhere", to=tmp_path / "store").code == 2


def test_folders_and_pipes_with_the_names_of_captures_are_passed_over_in_a_folder(tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    write_capture(logs, "r-1", conversation("r-1", 2))
    (logs / "r-2.capture.jsonl").mkdir()
    os.mkfifo(logs / "r-3.capture.jsonl")
    (logs / "gone.capture.jsonl").symlink_to(tmp_path / "nowhere")
    (logs / "self.capture.jsonl").symlink_to(logs / "self.capture.jsonl")
    (logs / "round").symlink_to(logs)
    assert ingest(logs, to=store).code == 0
    assert trainable(store) == {"r-1"}
    assert {path.name for path in store.glob("*.jsonl")} == {"r-1.capture.jsonl", "r-1.tokens.jsonl"}


def test_a_pipe_that_is_named_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "r-1.capture.jsonl"
    os.mkfifo(pipe)
    data = b"".join(encoded(row) + b"\n" for row in conversation("r-1", 2))
    writer = threading.Thread(target=lambda: pipe.write_bytes(data))
    writer.start()
    assert ingest(pipe, to=tmp_path / "store").code == 0
    writer.join(timeout=10)
    assert trainable(tmp_path / "store") == {"r-1"}


@pytest.mark.parametrize("name", ["self", "round/self"])
def test_a_link_that_leads_to_itself_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "round").symlink_to(".")
    done = ingest(tmp_path / name, to=tmp_path / "store")
    assert done.code == 3 and "self" in done.err


@pytest.mark.skipif(ROOT_ONLY, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_capture(logs, "r-1", conversation("r-1", 1))
    write_capture(logs, "r-2", conversation("r-2", 1))
    (logs / "r-2.capture.jsonl").chmod(0)
    done = struck("ingest", logs, "--to", tmp_path / "store")
    assert done.code == 3 and "r-2.capture.jsonl" in done.err and "Traceback" not in done.err
    assert not (tmp_path / "store").exists()


@pytest.mark.skipif(ROOT_ONLY, reason="root may write everywhere")
def test_a_store_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    write_capture(tmp_path / "logs", "r-1", conversation("r-1", 1))
    store.chmod(0o555)
    done = struck("ingest", tmp_path / "logs", "--to", store)
    assert done.code == 3 and str(store) in done.err and "Traceback" not in done.err
    assert list(store.iterdir()) == []


STORED = [
    "r-1.tokens.jsonl",
    "r-1.tokens.state.json",
    "r-1.tokens.intents",
    "r-1.tokens.incomplete",
    "r-1.capture.jsonl",
]
CONTENTS = {
    "nothing": b"",
    "a line break": b"\n",
    "zero bytes": b"\0" * 100,
    "half an object": b'{"model_call_id":"r-1-call-0","gener',
    "an object": b"{}\n",
    "a list": b"[]\n",
    "bytes": bytes(range(256)),
    "deep": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("content", CONTENTS)
def test_whatever_lies_in_the_store_it_ends_in_a_finding(content: str, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    write_capture(logs, "r-1", conversation("r-1", 2))
    for number, name in enumerate(STORED):
        store = tmp_path / str(number)
        store.mkdir()
        (store / name).write_bytes(CONTENTS[content])
        for _ in range(2):
            ingest_here(logs, store)
        assert ingested(logs, store) in (0, 1), name


def test_a_call_id_of_any_shape_is_no_path_and_no_second_line(tmp_path: Path) -> None:
    names = ["../../x", "a\nb", "", " ", "a b", "\u2028", "x" * 100_000, "\ud800", "a\rb", "\0"]
    rows = [{**conversation("r-1", 1)[0], "model_call_id": name} for name in names]
    logs = tmp_path / "logs"
    write_capture(logs, "r-1", rows)
    done = ingest(logs, to=tmp_path / "store")
    assert done.code == 1
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "store"}


def test_a_call_that_cannot_be_named_takes_no_other_with_it(tmp_path: Path) -> None:
    rows = conversation("r-1", 3)
    logs, store = tmp_path / "logs", tmp_path / "store"
    write_capture(logs, "r-1", [*rows[:2], {**rows[2], "model_call_id": "a\nb"}])
    for _ in range(2):
        assert ingest(logs, to=store).code == 1
        lines = (store / "r-1.tokens.jsonl").read_bytes().splitlines()
        assert [decode_record(line).model_call_id for line in lines] == ["r-1-call-0", "r-1-call-1"]
        assert trainable(store) == set()
        assert (store / "r-1.tokens.incomplete").read_bytes() == b"\n"


@pytest.mark.parametrize("name", ["..", ".", "../x", "a/b", "", "a\nb", "-x", "x" * 300, "\ud800", "a b", "CON"])
def test_a_rollout_id_of_any_shape_is_no_path(name: str, tmp_path: Path) -> None:
    row = {**conversation("r-1", 1)[0], "rollout_id": name}
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "calls.jsonl").write_bytes(encoded(row) + b"\n")
    ingest(logs, to=tmp_path / "store")
    assert {path.name for path in tmp_path.iterdir()} <= {"logs", "store"}
