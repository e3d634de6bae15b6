"""`ng-capture convert` of captures and into them, as a user runs it."""

import gzip
import json
from pathlib import Path

import pytest

from tests.support.captured import put
from tests.support.command import COMMAND, run
from tests.support.corpus import json_lines
from tests.support.forge import Forge, Row
from tests.support.logs import write_log
from tests.support.raw_calls import chat_call, says, user
from tests.support.runs import healthy


def logged(call_id: str, rollout_id: str | None) -> Row:
    response = {"id": "resp", "choices": [{"index": 0, "finish_reason": None, "message": says("SECRET")}]}
    row = {"id": call_id, "call_type": "acompletion", "model": "m", "status": "success", "messages": [user("hi")]}
    times = {"startTime": 1.0, "endTime": 2.0}
    return {**row, **times, "response": response, **({"metadata": {"rollout_id": rollout_id}} if rollout_id else {})}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "proxy.jsonl"
    write_log(path, [logged("a", "r-1"), logged("b", "r-2")])
    return path


def test_a_log_becomes_a_capture_for_each_rollout(log: Path, tmp_path: Path) -> None:
    done = run("convert", log, "--from", "litellm", "--to", "capture", "-o", f"{tmp_path / 'out'}/")
    assert (done.code, done.out) == (0, "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["r-1.capture.jsonl", "r-2.capture.jsonl"]
    assert "call_without_tokens 2" in done.err
    (row,) = json_lines(tmp_path / "out" / "r-1.capture.jsonl")
    assert row["model_call_id"] == "a"
    assert run("steps", tmp_path / "out").code == 0


def test_some_rollouts_of_a_log_are_taken_by_their_ids(log: Path) -> None:
    done = run("convert", log, "--from", "litellm", "--to", "capture", "--include", "r-2", "-q")
    assert (done.code, done.err) == (0, "")
    assert [row["model_call_id"] for row in done.rows] == ["b"]


def test_two_rollouts_are_not_put_into_one_capture(log: Path, tmp_path: Path) -> None:
    for name in ("all.jsonl", "r-1.capture.jsonl"):
        done = run("convert", log, "--from", "litellm", "--to", "capture", "-o", tmp_path / name)
        assert done.code == 2
        assert "hint: -o" in done.err
        assert not (tmp_path / name).exists()


def test_calls_that_name_no_rollout_are_of_the_one_that_the_output_is_named_after(tmp_path: Path) -> None:
    path = tmp_path / "proxy.jsonl"
    write_log(path, [logged("a", None)])
    refused = run("convert", path, "--from", "litellm", "--to", "capture")
    assert refused.code == 1
    assert "bad_rollout_id" in refused.err
    done = run("convert", path, "--from", "litellm", "--to", "capture", "-o", tmp_path / "r-9.capture.jsonl")
    assert done.code == 0
    assert len(json_lines(tmp_path / "r-9.capture.jsonl")) == 1


def test_a_capture_that_is_there_is_never_replaced(log: Path, tmp_path: Path) -> None:
    put(tmp_path / "out", [chat_call("z", [user("hi")], says("x"))], "r-1")
    before = (tmp_path / "out" / "r-1.capture.jsonl").read_bytes()
    done = run("convert", log, "--from", "litellm", "--to", "capture", "-o", f"{tmp_path / 'out'}/")
    assert done.code == 2
    assert (tmp_path / "out" / "r-1.capture.jsonl").read_bytes() == before


def test_a_torn_log_is_converted_and_told(log: Path, tmp_path: Path) -> None:
    log.write_bytes(log.read_bytes() + b'{"id": "c", "call')
    done = run("convert", log, "--from", "litellm", "--to", "capture", "-o", f"{tmp_path / 'out'}/")
    assert done.code == 1
    assert f"{log}:3: torn_tail: " in done.err
    assert len(list((tmp_path / "out").iterdir())) == 2


def test_a_compressed_directory_is_read_as_a_plain_one(tmp_path: Path) -> None:
    for name, compression in (("plain", ""), ("zipped", ".gz"), ("zstd", ".zst")):
        healthy("r-1").write(tmp_path / name, compression=compression)
    told = [run("convert", tmp_path / name, "--to", "atif", "-q") for name in ("plain", "zipped", "zstd")]
    assert [done.code for done in told] == [0, 0, 0]
    assert told[0].out == told[1].out == told[2].out


def test_a_trajectory_with_ids_becomes_a_directory_that_is_trusted(tmp_path: Path) -> None:
    healthy("r-1").write(tmp_path / "store")
    assert run("convert", tmp_path / "store", "--to", "atif", "-o", f"{tmp_path / 'atif'}/").code == 0
    trajectory = json.loads((tmp_path / "atif" / "r-1.atif.json").read_text())
    # what another program wrote knows nothing of records
    for step in trajectory["steps"]:
        step.pop("extra", None)
    (tmp_path / "t.json").write_text(json.dumps(trajectory))
    done = run("convert", tmp_path / "t.json", "--to", "tokens", "-o", f"{tmp_path / 'again'}/")
    assert done.code == 0, done.err
    assert run("verify", tmp_path / "again").code == 0
    rebuilt = run("rebuild", tmp_path / "again", "--to", "rows", "-o", "-")
    assert rebuilt.code == 0
    (row,) = rebuilt.rows
    assert row["tokens"] == [1, 2, 3, 4, 5]
    assert row["loss_mask"] == [0, 0, 1, 0, 1]


def test_a_rollout_that_is_not_whole_does_not_become_one_that_is_trusted(tmp_path: Path) -> None:
    forge = Forge("r-1")
    forge.root([1, 2], [3])
    forge.write(tmp_path / "store")
    path = tmp_path / "store" / "r-1.tokens.jsonl"
    path.write_bytes(path.read_bytes() + b'{"torn')
    done = run("convert", tmp_path / "store", "--to", "tokens", "-o", f"{tmp_path / 'again'}/")
    assert done.code == 1
    verified = run("verify", tmp_path / "again")
    assert verified.code == 1
    assert "capture_incomplete" in verified.out


def test_calls_come_through_a_pipe(tmp_path: Path) -> None:
    import subprocess

    line = json.dumps(chat_call("a", [user("hi")], says("x"), rollout_id="r-7")).encode()
    for text, name in ((line + b"\n", "r-7"), (b"\xef\xbb\xbf" + line, "r-7")):
        done = subprocess.run(
            [COMMAND, "convert", "-", "--to", "eval", "-q"], input=text, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rollout_id"] == name


def test_every_fault_of_a_directory_is_told_with_its_file(tmp_path: Path) -> None:
    put(tmp_path, [chat_call("a", [user("hi")], says("x"), latency_ms="slow"), b"{torn"], "r-1")
    (tmp_path / "r-2.capture.jsonl.gz").write_bytes(gzip.compress(b"no json\n"))
    done = run("validate", tmp_path)
    assert done.code == 1
    lines = done.out.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        [f"error {tmp_path}/r-1.capture.jsonl:1", "capture.field.type"],
        [f"error {tmp_path}/r-1.capture.jsonl:2", "capture.damaged_line"],
        [f"error {tmp_path}/r-2.capture.jsonl.gz:1", "capture.damaged_line"],
        [f"error {tmp_path}/r-2", "capture.empty_capture"],
    ]
