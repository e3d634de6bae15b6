"""`ng-capture verify` as a user runs it."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from ng_capture.outputs.shapes import SHAPES
from tests.support.command import COMMAND, run
from tests.support.forge import Forge, write_rows
from tests.support.runs import healthy


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """One healthy rollout and one whose last line is torn."""
    directory = tmp_path / "store"
    healthy("10-0").write(directory)
    torn = healthy("2-0").files(state=False, intents=False)
    name = "2-0.tokens.jsonl"
    (directory / name).write_bytes(torn[name][:-30])
    return directory


def test_a_finding_is_one_line_with_its_place_and_the_summary_is_apart(store: Path) -> None:
    done = run("verify", store)
    assert done.code == 1
    assert done.out.splitlines() == [
        "2-0.tokens.jsonl:2: torn_tail: the last line is cut: the writer died in an append, that call is lost"
    ]
    assert "2 rollouts, 3 calls: 1 trainable, 1 masked." in done.err
    assert "hint: ng-capture reason torn_tail" in done.err


def test_a_store_without_a_fault_prints_nothing_and_leaves_with_0(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path)
    done = run("verify", tmp_path, "-q")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_reports_come_in_natural_order_of_the_ids(store: Path) -> None:
    assert [report["rollout_id"] for report in run("verify", store, "-f", "jsonl").rows] == ["2-0", "10-0"]


@pytest.mark.parametrize("option", [["-f", "json"], ["--json"]])
def test_the_json_document_has_the_published_shape(store: Path, option: list[str]) -> None:
    document = SHAPES["verify-document"].model_validate_json(run("verify", store, *option).out)
    assert document.model_dump()["summary"]["masked"] == 1


def test_every_line_has_the_published_shape(store: Path) -> None:
    for line in run("verify", store, "-f", "jsonl").out.splitlines():
        SHAPES["verdict"].model_validate_json(line)


def test_an_output_file_holds_what_would_have_been_printed(store: Path, tmp_path: Path) -> None:
    printed = run("verify", store, "-f", "jsonl").out
    assert run("verify", store, "-f", "jsonl", "-o", tmp_path / "out.jsonl").out == ""
    assert (tmp_path / "out.jsonl").read_text() == printed


def test_two_processes_change_no_byte(store: Path) -> None:
    for number in range(20):
        healthy(f"1-{number}").write(store)
    one, two = (run("verify", store, "-f", "jsonl", "-j", jobs) for jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_a_compressed_rollout_is_judged_like_a_plain_one(tmp_path: Path, compression: str) -> None:
    healthy("0-0").write(tmp_path / "packed" / "run", compression=compression)
    healthy("0-0").write(tmp_path / "plain" / "run")
    packed, plain = (run("verify", "run", "-f", "jsonl", cwd=tmp_path / name).rows[0] for name in ("packed", "plain"))
    assert packed == plain


@pytest.mark.parametrize("compression", [".gz", ".zst"])
def test_a_cut_compressed_file_keeps_its_good_lines_and_masks(tmp_path: Path, compression: str) -> None:
    forge = Forge("0-0")
    call = forge.root(list(range(500)), [3], id="c0")
    for number in range(1, 40):
        call = call.then([number * 7919 % 50021] * 3, [number * 104729 % 50021], id=f"c{number}")
    forge.write(tmp_path, compression=compression, state=False, intents=False)
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:-20])
    report = run("verify", tmp_path, "-f", "jsonl").rows[0]
    assert "file_truncated" in report["reasons"]


def test_a_file_stands_for_its_whole_rollout(store: Path) -> None:
    (store / "10-0.tokens.intents").write_bytes(b"a\nb\nlost\n")
    report = run("verify", store / "10-0.tokens.jsonl", "-f", "jsonl").rows[0]
    assert report["lost_calls"] == ["lost"]


def test_ids_are_chosen_by_pattern(store: Path) -> None:
    assert [r["rollout_id"] for r in run("verify", store, "-f", "jsonl", "--include", "1*").rows] == ["10-0"]
    assert [r["rollout_id"] for r in run("verify", store, "-f", "jsonl", "--exclude", "1*").rows] == ["2-0"]


def test_paths_can_stand_in_a_file(store: Path, tmp_path: Path) -> None:
    listed = tmp_path / "paths.txt"
    listed.write_text(f"{store}\n\n")
    assert run("verify", "--files-from", listed).code == 1


def test_an_option_can_come_from_the_environment(store: Path) -> None:
    assert run("verify", store, NG_CAPTURE_VERIFY_FORMAT="jsonl").rows[0]["rollout_id"] == "2-0"


def test_notes_are_printed_when_asked_for(tmp_path: Path) -> None:
    forge = healthy("0-0")
    (tmp_path / "0-0.tokens.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\n".join(forge.lines()) + b"\n")
    assert run("verify", tmp_path).out == ""
    assert "0-0.tokens.jsonl:1: bom:" in run("verify", tmp_path, "-v").out


def test_color_marks_the_reason_when_asked_for(store: Path) -> None:
    assert "\x1b[1;31mtorn_tail\x1b[0m" in run("verify", store, "--color", "always").out
    assert "\x1b" not in run("verify", store).out


def test_text_from_a_capture_cannot_move_the_cursor(tmp_path: Path) -> None:
    forge = Forge("0-0")
    forge.root([1], [2], id="\x1b[2J\u202eevil")
    forge.write(tmp_path)
    forge.calls[0].fields["digest"] = "0" * 64
    forge.write(tmp_path)
    printed = run("verify", tmp_path).out
    assert "\x1b" not in printed and "\u202e" not in printed
    assert "\\u001b[2J\\u202eevil" in printed


def test_rows_say_what_was_scored_and_what_is_missing_is_told(store: Path, tmp_path: Path) -> None:
    forge = healthy("10-0")
    other = Forge("9-9")
    other.root([1], [2], id="x")
    rows = tmp_path / "rollouts.jsonl"
    write_rows(rows, [forge.row(forge.calls[0]), other.row(other.calls[0])])
    done = run("verify", store, "--rollouts", rows, "-f", "jsonl")
    by_id = {report["rollout_id"]: report for report in done.rows}
    assert by_id["10-0"]["delivered_calls"] == ["a"]
    assert by_id["9-9"]["reasons"] == ["empty_capture"]
    assert "1 capture without a row: 2-0" in done.err
    assert "1 row without a capture: 9-9" in done.err


def test_a_broken_line_of_the_rows_file_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path / "store")
    rows = tmp_path / "rollouts.jsonl"
    rows.write_text('{"_ng_rollout_id":"0-0"}\n{"broken\n{"reward":1}\n{"_ng_rollout_id":"0-0"}\n')
    done = run("verify", tmp_path / "store", "--rollouts", rows)
    assert done.code == 1
    assert f"{rows}:2: no JSON object" in done.err
    assert f"{rows}:3: no capture key" in done.err
    assert f"{rows}:4: second row of rollout 0-0, the first is on line 1" in done.err
    assert "1 trainable" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such file or directory"),
        (["README.md"], "README.md: no capture file"),
        ([], "no path given"),
        (["store", "--rollouts", "nowhere.jsonl"], "nowhere.jsonl: no such rows file"),
        (["store", "--files-from", "nowhere.txt"], "nowhere.txt: cannot be read"),
        (["store", "other"], "rollout 2-0 is in two paths: store and other"),
    ],
)
def test_wrong_use_is_one_clear_line_and_code_2(
    store: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "README.md").write_text("no capture")
    healthy("2-0").write(tmp_path / "other")
    done = run("verify", *arguments, cwd=tmp_path)
    assert done.code == 2
    assert message in done.err.splitlines()[0]
    assert done.out == "" and "Traceback" not in done.err


def test_a_directory_without_a_capture_is_told(tmp_path: Path) -> None:
    done = run("verify", tmp_path)
    assert (done.code, done.err) == (1, "no rollout found\n")


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_judged(store: Path) -> None:
    (store / "3-0.tokens.jsonl").mkdir()
    os.mkfifo(store / "4-0.tokens.jsonl")
    done = run("verify", store)
    assert done.code == 3
    assert "3-0.tokens.jsonl: cannot be read" in done.err
    assert "4-0.tokens.jsonl: cannot be read: not a regular file" in done.err
    assert "2 rollouts" in done.err


def test_the_reader_of_a_pipe_may_leave_early(tmp_path: Path) -> None:
    for number in range(300):
        healthy(f"1-{number}").write(tmp_path, state=False, intents=False)
    first = subprocess.run(
        f"{COMMAND} verify {tmp_path} -f jsonl -q | head -n 1", shell=True, capture_output=True, check=False
    )
    assert json.loads(first.stdout)["rollout_id"] == "1-0"
    assert first.stderr == b""


@pytest.mark.parametrize("command", ["{} reason | true", "{} verify {store} -v | head -c 1"])
def test_a_reader_that_leaves_is_no_finding(tmp_path: Path, command: str) -> None:
    healthy("0-0").write(tmp_path)
    line = command.format(COMMAND, store=tmp_path) + "; echo ${PIPESTATUS[0]}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1].endswith("0") and "Traceback" not in done.stderr


def test_closed_streams_are_told_or_passed_over(store: Path) -> None:
    closed = subprocess.run(f"{COMMAND} verify {store} >&-", shell=True, capture_output=True, text=True, check=False)
    assert (closed.returncode, closed.stderr.splitlines()[0]) == (3, "ng-capture: standard output is closed")
    silent = subprocess.run(f"{COMMAND} verify {store} 2>&-", shell=True, capture_output=True, text=True, check=False)
    assert silent.returncode == 1 and len(silent.stdout.splitlines()) == 1


def test_no_variable_of_the_environment_turns_a_gate_into_a_version(store: Path) -> None:
    assert run("verify", store, NG_CAPTURE_VERSION="1").code == 1


def test_the_good_lines_before_the_cut_of_a_gzip_are_read(tmp_path: Path) -> None:
    members = [gzip.compress(line + b"\n") for line in healthy("0-0").lines()]
    (tmp_path / "0-0.tokens.jsonl.gz").write_bytes(members[0] + members[1][:-12])
    (report,) = run("verify", tmp_path, "-f", "jsonl").rows
    assert report["calls_read"] == 1
    assert [(f["reason"], f["line"]) for f in report["findings"]] == [("file_truncated", 2)]


def test_an_id_that_is_a_path_leads_nowhere(store: Path) -> None:
    healthy("0-0").write(store.parent / "other")
    assert run("verify", store, "--include", "../other/0-0").err == "no rollout found\n"
