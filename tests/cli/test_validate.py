"""`ng-capture validate` as a user runs it."""

import os
from pathlib import Path

import pytest

from ng_capture.outputs.shapes import SHAPES
from tests.support.command import run, strict_json
from tests.support.contracts import atif, chat, row, write
from tests.support.raw_calls import chat_call, says, user, write_capture
from tests.support.terminal_text import ALL_HOSTILE, acting


def test_a_document_without_a_fault_prints_nothing_and_is_counted(tmp_path: Path) -> None:
    done = run("validate", write(tmp_path / "a.json", atif()))
    assert (done.code, done.out) == (0, "")
    assert done.err == "1 document (1 atif): 0 errors in 0, 0 warnings.\n"
    assert run("validate", tmp_path / "a.json", "-q").err == ""


def test_all_faults_are_told_at_once_each_with_place_rule_and_severity(tmp_path: Path) -> None:
    document = atif("hi", "ok", "again")
    document["steps"][1]["step_id"] = 7
    document["steps"][2]["metrics"] = {"prompt_tokens": 1}
    done = run("validate", write(tmp_path / "a.json", document))
    assert done.code == 1
    lines = done.out.splitlines()
    assert len(lines) >= 2 and all(line.startswith(f"error {tmp_path}/a.json: step ") for line in lines)
    assert any("atif.step_id.sequence: " in line and line.endswith("(/steps/1/step_id)") for line in lines)
    assert any("atif.step.agent_only: " in line for line in lines)


def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    document = atif(continued_trajectory_ref="gone.json")
    done = run("validate", write(tmp_path / "a.json", document))
    assert done.code == 0 and done.out.startswith("warning ")


def test_a_fault_of_a_capture_names_its_file_and_line(tmp_path: Path) -> None:
    write_capture(tmp_path / "store", "r-1", [chat_call("1111aaaa", [user("hi")], says("ok"))])
    with (tmp_path / "store" / "r-1.capture.jsonl").open("ab") as file:
        file.write(b'{"torn": ')
    for source in (tmp_path / "store", tmp_path / "store" / "r-1.capture.jsonl"):
        done = run("validate", source)
        assert done.code == 1
        assert f"error {tmp_path}/store/r-1.capture.jsonl:2: capture.torn_tail: " in done.out


def test_a_call_that_was_lost_names_the_file_that_announced_it(tmp_path: Path) -> None:
    write_capture(tmp_path, "r-1", [chat_call("1111aaaa", [user("hi")], says("ok"))])
    (tmp_path / "r-1.tokens.intents").write_bytes(b"2222aaaa\n")
    done = run("validate", tmp_path)
    assert f"warning {tmp_path}/r-1.tokens.intents:1: tokens.capture_incomplete: call 2222aaaa, " in done.out


def test_data_has_the_published_shape_and_says_the_same(tmp_path: Path) -> None:
    sources = [write(tmp_path / "a.json", atif(steps=[])), write(tmp_path / "r.jsonl", row())]
    whole, short, lines = (run("validate", *sources, *words) for words in (["-f", "json"], ["--json"], ["-f", "jsonl"]))
    assert whole.out == short.out and whole.code == lines.code == 1
    SHAPES["validation-document"].model_validate_json(whole.out)
    told = strict_json(whole.out)["documents"]
    assert told == lines.rows and [each["valid"] for each in told] == [False, False]
    done = run("validate", *sources, "--json", "-o", tmp_path / "v.json")
    assert (done.code, done.out) == (1, "") and (tmp_path / "v.json").read_text() == whole.out


@pytest.mark.parametrize("text", ["", "null", '{"a": 1', '{"a": 1}', "[1]"])
def test_what_nobody_knows_is_an_error_with_a_hint(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    done = run("validate", path)
    assert done.code == 1 and done.out.startswith(f"error {path}")
    assert "hint: --as NAME says what it is" in done.err
    named = run("validate", path, "--as", "atif")
    assert named.code == 1 and ": atif." in named.out and "hint" not in named.err


def test_foreign_trajectories_are_named_and_refused(tmp_path: Path) -> None:
    foreign = {"trajectory_format": "mini-swe-agent-1", "messages": [{"role": "user", "content": "hi"}], "info": {}}
    done = run("validate", write(tmp_path / "x.json", foreign))
    assert done.code == 1 and "mini-swe-agent" in done.out


def test_a_folder_is_checked_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path / "a.json", atif())
    write(tmp_path / "c.json", chat())
    (tmp_path / "cut.json").write_text('{"schema_version": "ATIF-v1.7"')
    write(tmp_path / "notes.txt", "x")
    done = run("validate", tmp_path)
    assert done.code == 1
    assert [line.split(": ")[1] for line in done.out.splitlines()] == ["chat.unchecked", "unknown.json.syntax"]
    assert "3 documents (1 atif, 1 chat, 1 unknown): 1 error in 1, 1 warning.\n" in done.err
    assert f"1 file that nothing is known of: {tmp_path}/notes.txt" in done.err


def test_nothing_that_a_document_holds_can_act_on_a_terminal(tmp_path: Path) -> None:
    document = atif(**{ALL_HOSTILE: 1})
    document["agent"] = {"name": 1, ALL_HOSTILE: ALL_HOSTILE}
    path = write(tmp_path / "a\x1b[1m.json", document)
    for words in ([], ["-v"]):
        done = run("validate", path, *words)
        assert done.code == 1 and not acting(done.out) and not acting(done.err)


def test_colors_come_only_where_they_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", atif(steps=[]))
    assert "\x1b[" in run("validate", path, "--color", "always").out and "\x1b[" not in run("validate", path).out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to check"),
        (["nowhere.json"], "nowhere.json: no such file or directory"),
        (["a.json", "--as", "html"], "html: no contract that is read"),
        (["a.json", "--as", "chat"], "has no rules here"),
        (["a.json", "-f", "xml"], "xml"),
    ],
)
def test_wrong_use_is_2(words: list[str], message: str, tmp_path: Path) -> None:
    write(tmp_path / "a.json", atif())
    done = run("validate", *words, cwd=tmp_path)
    assert (done.code, done.out) == (2, "") and message in done.err


def test_what_must_not_be_read_is_3(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", atif())
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("nothing is forbidden to this user")
    done = run("validate", path)
    assert done.code == 3 and "hint" in done.err and "Traceback" not in done.err
