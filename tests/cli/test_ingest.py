"""`ng-capture ingest` as a user runs it: its sources, its options, what it prints, how it ends."""

import contextlib
import gzip
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard

from ng_capture.outputs.shapes import SHAPES
from ng_capture.records.token_record import decode_record
from tests.support import logs
from tests.support.command import COMMAND, Run, run
from tests.support.forge import Row, in_lines
from tests.support.ingesting import (
    dialogue,
    document,
    generations,
    in_files,
    ingest,
    reasons,
    stored,
    told_calls,
    trained,
    training_rows,
    verdict,
)
from tests.support.loading import loaded_by
from tests.support.logs import GYM_CAPTURE, ONE_CALL, PAIR, write_log
from tests.support.raw_calls import chat_call, says, user, write_capture
from tests.support.struck import AS_OTHERS_DO, ROOT_ONLY, tree
from tests.support.terminal_text import ALL_HOSTILE, acting

HEAVY = {"polars", "pyarrow", "transformers", "numpy", "tokenizers", "pydantic"}
ROLLOUTS = {
    "openai-batch": "q-1",
    "tinker": "run1.iter3.group0.traj1",
    "verifiers": "t1",
    "agent-lightning": "ro1.at1",
}
"""What the one call of a log is of, where that is not t1-0; an OpenAI Batch names nothing."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the store will be; it is not there yet."""
    return tmp_path / "store"


def pair(**fields: Any) -> Row:
    """A pair whose rollout nothing names but these fields."""
    bare = {key: value for key, value in PAIR.items() if key not in ("rollout_id", "url", "headers")}
    return {**bare, **fields}


def packed(data: bytes, compression: str) -> bytes:
    if compression == "gzip":
        return gzip.compress(data)
    return zstandard.ZstdCompressor().compress(data) if compression == "zstd" else data


def piped(data: bytes, *words: object) -> Run:
    """Run `ng-capture ingest -` with these bytes on its standard input."""
    line = [COMMAND, "ingest", "-", *map(str, words)]
    done = subprocess.run(line, input=data, capture_output=True, timeout=60, check=False)
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


# Sources


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("name", ONE_CALL)
def test_a_log_of_every_format_becomes_its_record(name: str, by_name: bool, tmp_path: Path, store: Path) -> None:
    file_name, data = ONE_CALL[name]
    (tmp_path / file_name).write_bytes(data)
    words = ["--from", name] if by_name else []
    done = ingest(store, tmp_path / file_name, "--rollout-id", "q-1", *words)
    assert (done.code, reasons(done)) == (0, {})
    (call,) = told_calls(done).values()
    (rollout,) = document(done)["rollouts"]
    assert rollout["rollout_id"] == ROLLOUTS.get(name, "t1-0")
    assert (call["action"], call["trainable"], call["parent_resolution"]) == ("added", True, "root")
    (line,) = (store / f"{rollout['rollout_id']}.tokens.jsonl").read_bytes().splitlines()
    record = decode_record(line)
    assert (record.prompt_token_ids, record.generation_token_ids) == (logs.PROMPT, logs.GENERATION)
    assert record.generation_log_probs == logs.LOG_PROBS
    assert trained(store) == logs.GENERATION


def test_a_named_format_wins_over_what_the_content_looks_like(tmp_path: Path, store: Path) -> None:
    write_log(tmp_path / "x.jsonl", [GYM_CAPTURE])
    assert list(told_calls(ingest(store, tmp_path, "--rollout-id", "r-1"))) == ["c1"]
    assert told_calls(ingest(tmp_path / "2", tmp_path / "x.jsonl", "--rollout-id", "r-1", "--from", "tinker")) == {}


@pytest.mark.parametrize("compression", ["", "gzip", "zstd"])
def test_standard_input_is_a_log(compression: str, store: Path) -> None:
    data = packed(in_lines(json.dumps(row).encode() for row in dialogue(2)), compression)
    done = piped(data, "--to", store, "--rollout-id", "r-1", "-f", "json")
    assert (done.code, list(told_calls(done))) == (0, ["c0", "c1"])
    assert {call["file"] for call in told_calls(done).values()} == {"-"}
    assert trained(store) == generations(dialogue(2))


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_a_packed_log_is_the_log(compression: str, tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path / "plain", "r-1", dialogue(3))
    data = (tmp_path / "plain" / "r-1.capture.jsonl").read_bytes()
    ending = {"gzip": "gz", "zstd": "zst"}[compression]
    (tmp_path / f"r-1.capture.jsonl.{ending}").write_bytes(packed(data, compression))
    assert ingest(store, tmp_path / f"r-1.capture.jsonl.{ending}").code == 0
    ingest(tmp_path / "other", tmp_path / "plain")
    assert in_files(store) == in_files(tmp_path / "other")


def test_a_pipe_between_processes_is_a_log(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "r-1", dialogue(2))
    line = f"{COMMAND} ingest <(cat {tmp_path}/r-1.capture.jsonl) --rollout-id r-1 --to {store} -q"
    assert subprocess.run(["bash", "-c", line], timeout=60, check=False).returncode == 0
    assert list(stored(store, "r-1")) == ["c0", "c1"]


def test_folders_are_read_through_and_what_no_reader_knows_is_named(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path / "logs" / "a" / "b", "r-1", dialogue(1))
    write_capture(tmp_path / "logs", "r-2", dialogue(1))
    write_capture(tmp_path / "logs" / ".trash" / "plan", "r-3", dialogue(1))
    write_capture(tmp_path / "logs" / ".hidden", "r-4", dialogue(1))
    (tmp_path / "logs" / "notes.txt").write_text("nothing of ours")
    (tmp_path / "logs" / "a" / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    done = run("ingest", "logs", "--to", "store", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "2 files passed over, no log that is known: logs/a/picture.png, logs/notes.txt",
        "2 rollouts, 2 calls: 2 added, 0 there already, 0 without a record.",
        "hint: ng-capture verify store",
    ]
    assert {path.name.partition(".")[0] for path in store.iterdir()} == {"r-1", "r-2"}


def test_of_many_files_passed_over_some_are_named(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path / "logs", "r-1", dialogue(1))
    for number in range(5):
        (tmp_path / "logs" / f"n{number}.txt").write_text("x")
    done = run("ingest", "logs", "--to", store, cwd=tmp_path)
    assert done.err.splitlines()[0] == (
        "5 files passed over, no log that is known: logs/n0.txt, logs/n1.txt, logs/n2.txt, ..."
    )


@pytest.mark.parametrize("kind", logs.TEXT_ONLY_LOGS)
def test_a_log_of_text_alone_is_refused_with_the_reason(kind: str, tmp_path: Path, store: Path) -> None:
    write_log(tmp_path / "logs" / "x.jsonl", [logs.TEXT_ONLY_LOGS[kind]])
    done = run("ingest", tmp_path / "logs" / "x.jsonl", "--to", store)
    assert done.code == 2 and f"{kind}" in done.err and "(text_only_source)" in done.err and "hint: " in done.err
    assert not store.exists()


def test_in_a_folder_a_log_of_text_alone_is_a_finding_and_the_rest_goes_on(tmp_path: Path, store: Path) -> None:
    write_log(tmp_path / "logs" / "x.jsonl", [logs.TEXT_ONLY_LOGS["Codex"]])
    write_capture(tmp_path / "logs", "r-1", dialogue(1))
    done = ingest(store, tmp_path / "logs")
    assert (done.code, reasons(done)) == (1, {"text_only_source": 1})
    assert document(done)["findings"][0]["file"] == f"{tmp_path}/logs/x.jsonl"
    assert list(stored(store, "r-1")) == ["c0"]


def test_a_folder_of_text_alone_has_nothing_to_write(tmp_path: Path, store: Path) -> None:
    write_log(tmp_path / "logs" / "x.jsonl", [logs.TEXT_ONLY_LOGS["Codex"]])
    done = run("ingest", tmp_path / "logs", "--to", store)
    assert (done.code, store.exists()) == (1, False)
    assert done.err.splitlines() == ["nothing was written"]


# Which rollout


ABOUT: dict[str, Row] = {
    "path": {"url": "http://h/ng-rollout/by-path/v1/chat/completions"},
    "field": {"rollout_id": "by-field"},
    "header": {"headers": {"X-Rollout-Id": "by-header"}},
}


@pytest.mark.parametrize(
    ("told", "rollout_id"),
    [
        (["path", "header"], "by-path"),
        (["field", "header"], "by-field"),
        (["header"], "by-header"),
        ([], "by-option"),
    ],
)
def test_the_strongest_name_of_a_rollout_counts(told: list[str], rollout_id: str, tmp_path: Path, store: Path) -> None:
    fields = {key: value for source in told for key, value in ABOUT[source].items()}
    log = write_log(tmp_path / "x.jsonl", [pair(**fields)])
    done = ingest(store, log, "--rollout-id", "by-option")
    assert (done.code, [each["rollout_id"] for each in document(done)["rollouts"]]) == (0, [rollout_id])


def test_the_name_of_a_capture_file_is_that_of_its_rollout(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "by-file", dialogue(1))
    done = ingest(store, tmp_path / "by-file.capture.jsonl", "--rollout-id", "by-option")
    assert [each["rollout_id"] for each in document(done)["rollouts"]] == ["by-file"]


def test_two_answers_for_one_call_are_refused(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "by-file", [{**dialogue(1)[0], "rollout_id": "by-field"}])
    done = ingest(store, tmp_path / "by-file.capture.jsonl")
    assert (done.code, reasons(done)) == (1, {"rollout_id_mismatch": 1})
    (finding,) = document(done)["findings"]
    assert (finding["expected"], finding["found"], finding["line"]) == ("by-file", "by-field", 1)
    assert not store.exists()


@pytest.mark.parametrize(("chosen", "code"), [("by-file", 0), ("by-field", 0), ("neither", 1)])
def test_the_command_settles_two_answers_by_naming_one(chosen: str, code: int, tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "by-file", [{**dialogue(1)[0], "rollout_id": "by-field"}])
    done = ingest(store, tmp_path / "by-file.capture.jsonl", "--rollout-id", chosen)
    assert (done.code, (store / f"{chosen}.tokens.jsonl").exists()) == (code, code == 0)


def test_a_field_that_the_user_names_says_the_rollout(tmp_path: Path, store: Path) -> None:
    rows = [pair(id="a", run={"names": ["r-1"]}), pair(id="b", run={"names": ["r-2"]}), pair(id="c")]
    done = ingest(store, write_log(tmp_path / "x.jsonl", rows), "--rollout-from", "run.names.0")
    assert (done.code, reasons(done)) == (1, {"bad_rollout_id": 1})
    assert document(done)["findings"][0]["call"] == "c"
    assert (list(stored(store, "r-1")), list(stored(store, "r-2"))) == (["a"], ["b"])


def test_the_field_that_the_user_names_wins_over_the_id_for_the_rest(tmp_path: Path, store: Path) -> None:
    rows = [pair(id="a", run="r-1"), pair(id="b")]
    words = ("--rollout-from", "run", "--rollout-id", "r-2")
    assert ingest(store, write_log(tmp_path / "x.jsonl", rows), *words).code == 0
    assert (list(stored(store, "r-1")), list(stored(store, "r-2"))) == (["a"], ["b"])


@pytest.mark.parametrize("name", ["../up", "a%2Fb", "", "x" * 300, ".hidden", "\u04351"])
def test_what_must_not_become_a_file_name_is_refused(name: str, tmp_path: Path, store: Path) -> None:
    log = write_log(tmp_path / "x.jsonl", [pair(rollout_id=name)])
    done = ingest(store, log)
    assert (done.code, reasons(done), store.exists()) == (1, {"bad_rollout_id": 1}, False)


def test_attempts_stay_apart(tmp_path: Path, store: Path) -> None:
    for name in ("t-0", "t-0-a1", "t-0-a2"):
        write_capture(tmp_path / "logs", name, dialogue(1))
    assert ingest(store, tmp_path / "logs").code == 0
    assert {name.partition(".")[0] for name in in_files(store)} == {"t-0", "t-0-a1", "t-0-a2"}


def test_the_attempts_of_spans_stay_apart(tmp_path: Path, store: Path) -> None:
    spans = [{**logs.SPAN, "attempt_id": attempt, "span_id": attempt} for attempt in ("at1", "at2")]
    done = ingest(store, write_log(tmp_path / "spans.jsonl", spans))
    assert [each["rollout_id"] for each in document(done)["rollouts"]] == ["ro1.at1", "ro1.at2"]


def test_of_ids_that_differ_in_case_alone_the_second_is_refused(tmp_path: Path, store: Path) -> None:
    rows = [pair(id="a", rollout_id="run-a"), pair(id="b", rollout_id="Run-A")]
    done = ingest(store, write_log(tmp_path / "x.jsonl", rows))
    assert (done.code, reasons(done)) == (1, {"case_collision": 1})
    (rollout,) = document(done)["rollouts"]
    (finding,) = document(done)["findings"]
    assert {finding["expected"], finding["found"]} == {"run-a", "Run-A"}
    assert rollout["rollout_id"] == finding["expected"]


def test_an_id_that_differs_in_case_from_one_of_the_store_is_refused(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path / "1", "run-a", dialogue(1))
    write_capture(tmp_path / "2", "RUN-A", dialogue(1))
    ingest(store, tmp_path / "1")
    before = in_files(store)
    done = ingest(store, tmp_path / "2")
    assert (done.code, reasons(done), in_files(store)) == (1, {"case_collision": 1}, before)


# Options


@pytest.mark.parametrize(
    ("flag", "asked", "kind"),
    [
        (None, {}, "unknown"),
        (None, {"temperature": 1.0}, "same"),
        ("raw", {}, "raw"),
        ("processed", {}, "processed"),
        ("same", {}, "same"),
        ("unknown", {}, "unknown"),
    ],
)
def test_log_probabilities_are_of_the_kind_that_the_operator_or_the_request_says(
    flag: str | None, asked: Row, kind: str, tmp_path: Path, store: Path
) -> None:
    (row,) = dialogue(1)
    write_capture(tmp_path, "r-1", [{**row, "request": {**row["request"], **asked}}])
    words = [] if flag is None else ["--log-probs", flag]
    done = ingest(store, tmp_path / "r-1.capture.jsonl", *words)
    assert told_calls(done)["c0"]["log_probs_kind"] == kind
    assert stored(store, "r-1")["c0"]["ng_capture"]["log_probs_kind"] == kind


def test_deltas_hold_of_a_prompt_only_what_is_new(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "r-1", dialogue(4))
    log = tmp_path / "r-1.capture.jsonl"
    done = ingest(store, log, "--delta")
    ingest(tmp_path / "whole", log)
    records = stored(store, "r-1")
    assert [len(row["prompt_token_ids"]) for row in records.values()] == [2, 2, 2, 2]
    assert [row["prompt_is_delta"] for row in records.values()] == [False, True, True, True]
    assert [call["prompt_tokens"] for call in told_calls(done).values()] == [2, 6, 10, 14]
    assert training_rows(store) == training_rows(tmp_path / "whole") != []
    assert verdict(store) == ("trainable", [])


@pytest.mark.parametrize("words", [True, False])
def test_deltas_go_on_from_deltas_that_the_store_holds(words: bool, tmp_path: Path, store: Path) -> None:
    rows = [row if words else {**row, "request": {}} for row in dialogue(4)]
    for number, part in enumerate((rows[:2], rows[2:3], rows[3:])):
        log = write_log(tmp_path / f"{number}.jsonl", part)
        assert ingest(store, log, "--delta", "--rollout-id", "r-1").code == 0
    assert [len(row["prompt_token_ids"]) for row in stored(store, "r-1").values()] == [2, 2, 2, 2]
    assert (verdict(store), trained(store)) == (("trainable", []), generations(rows))


def test_a_broken_edge_is_no_delta(tmp_path: Path, store: Path) -> None:
    first, second = dialogue(2)
    second["response"]["choices"][0]["message"]["prompt_token_ids"][1] = 7
    write_capture(tmp_path, "r-1", [first, second])
    ingest(store, tmp_path / "r-1.capture.jsonl", "--delta")
    assert stored(store, "r-1")["c1"]["prompt_is_delta"] is False
    assert verdict(store) == ("masked", ["prefix_mismatch"])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("TO", "other", []),
        ("FROM", "tinker", ["--from", "tinker"]),
        ("ROLLOUT_ID", "r-9", ["--rollout-id", "r-9"]),
        ("ROLLOUT_FROM", "client_session_id", ["--rollout-from", "client_session_id"]),
        ("ON_CONFLICT", "nonsense", ["--on-conflict", "nonsense"]),
        ("DELTA", "1", ["--delta"]),
        ("LOG_PROBS", "raw", ["--log-probs", "raw"]),
        ("FORMAT", "jsonl", ["--format", "jsonl"]),
        ("JSON", "1", ["--json"]),
        ("QUIET", "1", ["--quiet"]),
        ("VERBOSE", "1", ["--verbose"]),
        ("COLOR", "always", ["--color", "always"]),
    ],
)
def test_every_option_is_an_environment_variable(name: str, value: str, words: list[str], tmp_path: Path) -> None:
    log = tmp_path / "x.jsonl"
    log.write_bytes(b"\xef\xbb\xbf" + in_lines([json.dumps({**dialogue(2)[1], "client_session_id": "s"}).encode()]))
    if name == "TO":
        assert run("ingest", log, "--rollout-id", "r-1", cwd=tmp_path, NG_CAPTURE_INGEST_TO="other").code == 0
        assert (tmp_path / "other" / "r-1.tokens.jsonl").exists()
        return
    given = run("ingest", log, "--to", "given", *words, cwd=tmp_path)
    told = run("ingest", log, "--to", "told", cwd=tmp_path, **{f"NG_CAPTURE_INGEST_{name}": value})
    plain = run("ingest", log, "--to", "plain", cwd=tmp_path)
    seen = [done.err.replace(where, "DIR") for done, where in ((given, "given"), (told, "told"), (plain, "plain"))]
    assert (told.code, told.out) == (given.code, given.out)
    if name != "ON_CONFLICT":
        assert seen[1] == seen[0]
    files = [in_files(path) if (path := tmp_path / where).exists() else {} for where in ("given", "told")]
    assert files[0] == files[1]
    if name not in ("DELTA", "LOG_PROBS"):
        # it has an effect at all
        assert (plain.code, plain.out, seen[2]) != (given.code, given.out, seen[0])


# What is printed


def test_a_run_without_a_fault_prints_nothing_but_its_summary(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path / "logs", "r-1", dialogue(2))
    done = run("ingest", "logs", "--to", "store", cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "1 rollout, 2 calls: 2 added, 0 there already, 0 without a record.",
        "hint: ng-capture verify store",
    ]
    done = run("ingest", "logs", "--to", "store", "-q", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_fault_is_one_line_with_its_place(tmp_path: Path, store: Path) -> None:
    rows = dialogue(2)
    del rows[1]["response"]["choices"][0]["message"]["generation_log_probs"]
    write_capture(tmp_path / "logs", "r-1", rows)
    with (tmp_path / "logs" / "r-1.capture.jsonl").open("ab") as file:
        file.write(b"{broken}\n")
    done = run("ingest", "logs", "--to", "store", cwd=tmp_path)
    assert done.code == 1
    broken, partial = done.out.splitlines()
    assert broken.startswith("logs/r-1.capture.jsonl:3: damaged_line: ")
    assert partial.startswith("logs/r-1.capture.jsonl:2: partial_tokens: ") and "generation_log_probs" in partial
    assert done.err.splitlines() == [
        "1 rollout, 2 calls: 1 added, 0 there already, 1 without a record.",
        "found: damaged_line 1, partial_tokens 1",
        "hint: ng-capture verify store",
    ]


def test_what_is_only_noted_is_printed_where_that_is_asked_for(tmp_path: Path, store: Path) -> None:
    log = tmp_path / "r-1.capture.jsonl"
    log.write_bytes(b"\xef\xbb\xbf" + json.dumps(dialogue(1)[0]).encode() + b"\n")
    done = run("ingest", log, "--to", store)
    assert (done.code, done.out) == (0, "")
    assert run("ingest", log, "--to", store, "-v").out.startswith(f"{log}:1: bom: ")


def test_warnings_alone_are_no_failure(tmp_path: Path, store: Path) -> None:
    (row,) = dialogue(1)
    write_capture(tmp_path, "r-1", [row, row])
    done = ingest(store, tmp_path / "r-1.capture.jsonl")
    assert (done.code, reasons(done)) == (0, {"duplicate_record": 1})


def test_lines_and_document_have_the_published_shape_and_say_the_same(tmp_path: Path) -> None:
    rows = [*dialogue(2), {**dialogue(3)[2], "response": {}}]
    write_capture(tmp_path / "logs", "r-2", rows)
    write_capture(tmp_path / "logs", "r-10", dialogue(1))
    write_log(tmp_path / "logs" / "x.jsonl", [pair()])
    lines, whole, short = (
        run("ingest", tmp_path / "logs", "--to", tmp_path / f"{number}", *words)
        for number, words in enumerate((["-f", "jsonl"], ["-f", "json"], ["--json"]))
    )
    assert short == Run(whole.code, whole.out, whole.err.replace(f"{tmp_path}/1", f"{tmp_path}/2"))
    told = [SHAPES["ingested-rollout"].model_validate_json(line) for line in lines.out.splitlines()]
    made = document(whole)
    assert [each.model_dump()["rollout_id"] for each in told] == [None, "r-2", "r-10"]
    assert lines.rows[0]["findings"] == made["findings"] and lines.rows[1:] == made["rollouts"]
    assert made["summary"] == {
        "rollouts": 2,
        "calls": 4,
        "added": 3,
        "there": 0,
        "left_out": 1,
        "refused": 0,
        "reasons": {"bad_rollout_id": 1, "response_missing": 1},
    }


def test_without_a_fault_of_a_source_a_line_is_a_rollout(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "r-1", dialogue(1))
    assert len(run("ingest", tmp_path / "r-1.capture.jsonl", "--to", store, "-f", "jsonl").rows) == 1


def test_what_stands_in_a_log_cannot_act_on_the_terminal(tmp_path: Path, store: Path) -> None:
    name = ALL_HOSTILE.replace("\ud800", "").replace("/", "").replace("\x00", "")
    rows = [{**dialogue(1)[0], "model_call_id": ALL_HOSTILE, "response": {}}, pair(id=name, rollout_id=ALL_HOSTILE)]
    with contextlib.suppress(OSError):
        write_log(tmp_path / "logs" / f"{name[:40]}.txt", ["nothing"])  # type: ignore[list-item]
    (tmp_path / "logs" / "\x1b[2Jx.bin").write_bytes(b"nothing")
    write_log(tmp_path / "logs" / "a\x1b[1m.jsonl", rows[1:])
    write_capture(tmp_path / "logs", "r-1", rows[:1])
    for words in ([], ["-v"]):
        done = run("ingest", tmp_path / "logs", "--to", store, *words)
        assert done.code == 1
        assert not acting(done.err) and not acting(done.out)
    document(ingest(store, tmp_path / "logs"))


def test_colors_come_only_where_they_are_asked_for(tmp_path: Path, store: Path) -> None:
    log = write_log(tmp_path / "x.jsonl", [pair()])
    assert "\x1b[" in run("ingest", log, "--to", store, "--color", "always").out
    assert "\x1b[" not in run("ingest", log, "--to", store).out


def test_help_lists_every_option() -> None:
    done = run("ingest", "--help")
    assert done.code == 0
    for option in ("--to", "--from", "--rollout-id", "--rollout-from", "--on-conflict", "--delta", "--log-probs"):
        assert option in done.out


def test_nothing_slow_is_loaded(tmp_path: Path) -> None:
    write_capture(tmp_path, "r-1", dialogue(1))
    assert not loaded_by("ingest", tmp_path / "r-1.capture.jsonl", "--to", tmp_path / "store") & HEAVY


# How it ends


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no log given"),
        (["--to", "store"], "no log given"),
        (["logs"], "--to DIR is wanted"),
        (["nowhere", "--to", "store"], "nowhere: no such file or directory"),
        (["logs", "nowhere", "--to", "store"], "nowhere: no such file or directory"),
        (["logs/notes.txt", "--to", "store"], "logs/notes.txt: no log that is known"),
        (["empty", "--to", "store"], "empty: no log that can be read"),
        (["logs", "--to", "logs/notes.txt"], "logs/notes.txt: is no directory"),
        (["logs", "--to", "store", "--from", "morse"], "morse: no such log format"),
        (["logs", "--to", "store", "--rollout-id", "../x"], "is no rollout id"),
        (["logs", "--to", "store", "--rollout-id", ""], "is no rollout id"),
        (["logs", "--to", "store", "--on-conflict", "guess"], "guess"),
        (["logs", "--to", "store", "--log-probs", "cooked"], "cooked"),
        (["logs", "--to", "store", "-f", "xml"], "xml"),
        (["logs", "--to", "store", "--no-such-option"], "--no-such-option"),
    ],
)
def test_wrong_use_is_2_and_writes_nothing(words: list[str], message: str, tmp_path: Path) -> None:
    write_capture(tmp_path / "logs", "r-1", dialogue(1))
    (tmp_path / "logs" / "notes.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    before = tree(tmp_path)
    done = run("ingest", *words, cwd=tmp_path)
    assert (done.code, done.out, tree(tmp_path)) == (2, "", before)
    assert message in done.err


def test_a_directory_that_is_not_there_is_made(tmp_path: Path) -> None:
    write_capture(tmp_path, "r-1", dialogue(1))
    assert ingest(tmp_path / "a" / "b" / "store", tmp_path / "r-1.capture.jsonl").code == 0
    assert list(stored(tmp_path / "a" / "b" / "store", "r-1")) == ["c0"]


def as_others_do(*words: object) -> subprocess.CompletedProcess[str]:
    line = [*AS_OTHERS_DO, COMMAND, "ingest", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(ROOT_ONLY, reason="root obeys no permissions here")
def test_what_must_not_be_read_or_written_is_3(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "r-1", dialogue(1))
    log = tmp_path / "r-1.capture.jsonl"
    store.mkdir(mode=0o500)
    done = as_others_do(log, "--to", store)
    assert done.returncode == 3 and str(store) in done.stderr and list(store.iterdir()) == []
    log.chmod(0o000)
    done = as_others_do(log, "--to", tmp_path / "other")
    assert done.returncode == 3 and str(log) in done.stderr and not (tmp_path / "other").exists()
    log.chmod(0o600)


def test_no_room_for_temporary_files_is_3(tmp_path: Path, store: Path) -> None:
    write_capture(tmp_path, "r-1", dialogue(1))
    line = f"ulimit -f 0; trap '' XFSZ; {COMMAND} ingest {tmp_path}/r-1.capture.jsonl --to {tmp_path}/full -q"
    full = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=False)
    assert (full.returncode, full.stderr.startswith("ng-capture: ")) == (3, True)
    assert not (tmp_path / "full").exists()


def many(directory: Path, count: int) -> Path:
    for number in range(count):
        write_capture(directory, f"r-{number}", [{**dialogue(1)[0], "response": {}}, *dialogue(2)[1:]])
    return directory


@pytest.mark.parametrize("form", ["text", "jsonl", "json"])
def test_the_reader_of_a_pipe_may_leave_and_all_is_written_nevertheless(form: str, tmp_path: Path, store: Path) -> None:
    """Else a log that is looked at with `| head` would be half in the store, and nobody told."""
    logs_of = many(tmp_path / "logs", 30)
    line = f"{COMMAND} ingest {logs_of} --to {store} -q -f {form} | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert len(list(store.glob("*.tokens.jsonl"))) == 30


def test_an_output_that_finds_no_room_is_3_and_all_is_written(tmp_path: Path, store: Path) -> None:
    logs_of = many(tmp_path / "logs", 30)
    line = f"{COMMAND} ingest {logs_of} --to {store} -q -f json > /dev/full"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (3, "ng-capture: output: No space left on device\n")
    assert len(list(store.glob("*.tokens.jsonl"))) == 30


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing_that_a_second_run_does_not_complete(
    number: int, code: int, tmp_path: Path, store: Path
) -> None:
    logs_of = many(tmp_path / "logs", 40)
    line = [COMMAND, "ingest", str(logs_of), "--to", str(store), "-f", "jsonl"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        # the first rollout is written, many are not
        while not (store.exists() and any(store.glob("*.tokens.jsonl"))):
            assert process.poll() is None
        os.kill(process.pid, number)
        process.communicate(timeout=60)
    assert process.returncode == code
    ingest(store, logs_of)
    ingest(tmp_path / "at-once", logs_of)
    assert in_files(store) == in_files(tmp_path / "at-once")
    assert not [path for path in store.iterdir() if path.name.startswith(".")]


def test_a_call_that_says_nothing_is_left_out_and_its_raw_line_kept(tmp_path: Path, store: Path) -> None:
    row = chat_call("c0", [user("q")], says("a"))
    write_capture(tmp_path, "r-1", [row])
    done = ingest(store, tmp_path / "r-1.capture.jsonl")
    assert (done.code, reasons(done)) == (1, {"call_without_tokens": 1})
    assert told_calls(done)["c0"]["action"] == "left_out"
    assert json.loads((store / "r-1.capture.jsonl").read_bytes()) == row | {"model_call_id": "c0"} | {
        key: value for key, value in json.loads((store / "r-1.capture.jsonl").read_bytes()).items() if key not in row
    }
    assert verdict(store)[0] == "masked"
