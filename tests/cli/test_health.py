"""`ng-capture health` as a user runs it: the screen, the exit codes, which rollouts count, what is odd on disk."""

import fcntl
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.command import COMMAND, run
from tests.support.forge import Forge, in_lines, write_files, write_rows
from tests.support.runs import (
    broken,
    document,
    healthy,
    metrics,
    words_of,
    write_lost,
    write_many,
    write_retired,
)

CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`: two trainable rollouts, two masked, one handed off."""
    folder = tmp_path_factory.mktemp("health")
    healthy("2-0").write(folder / "run", raw=True)
    healthy("10-0").write(folder / "run")
    broken("10-1").write(folder / "run")
    write_lost(folder / "run", "3-1")
    write_retired(folder / "run", "4-0")
    return folder


# The screen


def test_the_screen_tells_what_reaches_the_trainer_and_why_the_rest_does_not(place: Path) -> None:
    shown = words_of(run("health", "run", cwd=place, COLUMNS="120").out)
    assert shown[:10] == [
        "run 5 rollouts 7 calls",
        "trainable 2 50.0 % ##################",
        "masked 2 50.0 % ################## 1 running",
        "retired 1",
        "generated tokens captured 7 delivered 6 delivered_fraction 0.857",
        "trained 4 context 0 lost 3 (prefix_mismatch 2, capture_incomplete 1)",
        "why masked rollouts for example",
        "capture_incomplete 1 3-1",
        "prefix_mismatch 1 10-1",
        "worth a look",
    ]
    assert shown[-8:] == [
        "calls of a rollout p50 2 p95 2 max 2, one call only 0.250",
        "tokens of a call prompt p50 2 p95 4 max 4, generation p50 1 p95 1 max 1",
        "chains 5, roots 5, unresolved parents 1",
        "scored call by none 4; chain none 4",
        "raw calls 2, tokens in 6, out 2",
        "latency in ms p50 500 p95 500 max 500",
        "models policy-8b 7",
        "sampling policy-8b: left open by every request",
    ]


def test_the_example_of_a_reason_is_its_first_rollout_in_natural_order(tmp_path: Path) -> None:
    for name in ("10-0", "9-0", "11-0"):
        broken(name).write(tmp_path)
    assert "prefix_mismatch 3 9-0" in words_of(run("health", tmp_path).out)


def test_an_unexpected_value_comes_with_its_usual_meaning_and_what_to_look_at(place: Path) -> None:
    printed = " ".join(words_of(run("health", "run", cwd=place).out))
    assert "reasons.prefix_mismatch 1: history is rendered otherwise than generated" in printed
    assert "look at the first example: ng-capture verify names call and token; then the chat template" in printed


def test_a_healthy_run_has_nothing_worth_a_look_and_no_gates(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path, raw=True)
    told = document(tmp_path)
    assert (told["notices"], told["failed_checks"], told["metrics"]["reasons"]) == ([], [], {})
    printed = run("health", tmp_path).out
    assert "worth a look" not in printed and "why masked" not in printed and "gates" not in printed


def test_a_notice_names_a_metric_that_has_a_value(tmp_path: Path) -> None:
    torn = healthy("0-0").files(state=False, intents=False)
    torn["0-0.tokens.jsonl"] = torn["0-0.tokens.jsonl"][:-30]
    write_files(tmp_path, torn)
    values = {notice["metric"]: notice["value"] for notice in document(tmp_path)["notices"]}
    assert values and all(values.values())


def test_requests_that_override_the_sampling_are_told_by_model(tmp_path: Path) -> None:
    forge = healthy("0-0")
    forge.write(tmp_path)
    requests = [{"model": "policy-8b", "temperature": 0.2, "top_p": 0.9}, {"model": "policy-8b", "temperature": 1.0}]
    calls = [call.raw(request=request) for call, request in zip(forge.calls, requests, strict=True)]
    write_raw(tmp_path, "0-0", calls)
    asked = metrics(tmp_path)["sampling"]["policy-8b"]
    assert (asked["temperature"], asked["top_p"]) == ({"0.2": 1, "1": 1}, {"0.9": 1, "unset": 1})
    printed = " ".join(words_of(run("health", tmp_path).out))
    assert "sampling policy-8b: temperature 0.2 1, 1 1; top_p " in printed
    assert "a harness overrides the policy's sampling" in printed


def test_rollouts_that_were_offered_tools_and_end_after_one_call_point_at_the_tool_parser(tmp_path: Path) -> None:
    rows = []
    for name in ("0-0", "0-1", "0-2"):
        forge = healthy(name) if name == "0-2" else Forge(name)
        call = forge.calls[-1] if forge.calls else forge.root([1], [2])
        forge.write(tmp_path / "run")
        rows.append(forge.row(call, responses_create_params={"tools": [{"name": "bash"}]}))
    write_rows(tmp_path / "rows.jsonl", rows)
    told = document(tmp_path / "run", "--rollouts", tmp_path / "rows.jsonl")
    assert (told["metrics"]["tool_rollouts"], told["metrics"]["single_call_rollouts"]) == (3, 2)
    assert told["metrics"]["tool_single_call_fraction"] == pytest.approx(2 / 3)
    (notice,) = told["notices"]
    assert notice["metric"] == "tool_single_call_fraction" and "no tool parser" in notice["means"]


def test_color_marks_a_failed_gate_when_asked_for(place: Path) -> None:
    gate = ("--max", "masked=0")
    assert "\x1b[1;31mFAIL\x1b[0m" in run("health", "run", *gate, "--color", "always", cwd=place).out
    assert "\x1b" not in run("health", "run", *gate, cwd=place).out


def test_a_thousand_rollouts_are_one_screen(tmp_path: Path) -> None:
    for number in range(1000):
        forge = healthy(f"{number}-0") if number % 10 else broken(f"{number}-0")
        forge.write(tmp_path, state=False, intents=False)
    done = run("health", tmp_path, "--by", "task", "--max-mask-fraction", "0.05")
    assert done.code == 1 and "masked 100 10.0 % ####" in words_of(done.out)
    assert len(done.out.splitlines()) <= 45
    assert "and 980 more with a lower mask_fraction: -f json" in done.out


# The exit codes


def test_masked_rollouts_alone_fail_nothing(place: Path) -> None:
    assert run("health", "run", cwd=place).code == 0


def test_an_empty_directory_is_never_healthy(tmp_path: Path) -> None:
    done = run("health", tmp_path, "--max-mask-fraction", "1")
    assert (done.code, done.err) == (1, "no rollout found\n")
    assert "FAIL no_calls_captured 0 of 0 rollouts have no captured call" in words_of(done.out)


def test_rollouts_without_a_captured_call_are_never_healthy(tmp_path: Path) -> None:
    write_files(tmp_path, {"0-0.tokens.jsonl": b"", "0-1.tokens.jsonl": b""})
    told = document(tmp_path)
    assert told["failed_checks"] == ["no_calls_captured"]
    assert (told["metrics"]["rollouts"], told["metrics"]["with_calls"]) == (2, 0)
    assert "the harness talks to the model server directly" in told["notices"][0]["means"]


def test_a_run_without_a_trainable_rollout_is_never_healthy(tmp_path: Path) -> None:
    broken("0-0").write(tmp_path)
    done = run("health", tmp_path, "--max-mask-fraction", "1")
    assert done.code == 1
    assert "FAIL no_trainable_rollouts 0 of 1 rollouts are trainable 0-0" in words_of(done.out)


def test_a_run_that_was_handed_off_whole_is_healthy(tmp_path: Path) -> None:
    for name in ("0-0", "0-1"):
        write_retired(tmp_path, name)
    told = document(tmp_path, "--max-mask-fraction", "0.1", "--max", "reasons.prefix_mismatch=0")
    assert told["failed_checks"] == []
    assert (told["metrics"]["retired"], told["metrics"]["masked"], told["metrics"]["mask_fraction"]) == (2, 0, None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such file or directory"),
        ([], "no path given"),
        (["run", "--rollouts", "nowhere.jsonl"], "nowhere.jsonl: no such rows file"),
        (["run", "--expect", "nowhere.jsonl"], "nowhere.jsonl: no such file of expected rollouts"),
        (["run", "--watch", "1", "-f", "json"], "--watch draws a screen and writes nothing"),
        (["run", "--watch", "1", "--csv", "x.csv"], "--watch draws a screen and writes nothing"),
        (["run", "--max-drop", "masked=1"], "--baseline and --max-drop go together"),
        (["run", "-o", "nowhere/x"], "nowhere: no such directory"),
        (["run", "--csv", "nowhere/x"], "nowhere: no such directory"),
        (["run", "-o", "run/2-0.tokens.jsonl"], "would replace a capture that is read"),
        (["run", "--parquet", "run/2-0.capture.jsonl"], "would replace a capture that is read"),
        (["run", "-o", "x", "--csv", "x"], "would replace what --csv writes"),
    ],
)
def test_wrong_use_is_one_clear_line_and_code_2(place: Path, arguments: list[str], message: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    done = run("health", *arguments, cwd=place)
    assert (done.code, done.out) == (2, "")
    assert message in done.err.splitlines()[0] and "Traceback" not in done.err
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_a_file_that_cannot_be_read_is_code_3_and_counted_apart(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path)
    (tmp_path / "3-0.tokens.jsonl").mkdir()
    os.mkfifo(tmp_path / "4-0.tokens.jsonl")
    done = run("health", tmp_path, "-f", "json", "--max", "rollouts=1")
    told = json.loads(done.out)
    assert done.code == 3
    assert "3-0.tokens.jsonl: cannot be read" in done.err and "4-0.tokens.jsonl: cannot be read" in done.err
    counted = ("rollouts", "unread", "trainable", "masked")
    assert [told["metrics"][name] for name in counted] == [3, 2, 1, 0]
    assert [example["rollout_id"] for example in told["examples"]["unread"]] == ["3-0", "4-0"]


def test_nothing_but_unreadable_files_is_the_machines_fault_alone(tmp_path: Path) -> None:
    (tmp_path / "3-0.tokens.jsonl").mkdir()
    done = run("health", tmp_path, "-f", "json")
    assert (done.code, json.loads(done.out)["failed_checks"]) == (3, [])


def test_a_broken_line_of_the_finished_rows_is_named_and_the_rest_counts(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path / "run")
    (tmp_path / "rows.jsonl").write_text('{"_ng_rollout_id":"0-0"}\n{"broken\n')
    done = run("health", "run", "--rollouts", "rows.jsonl", cwd=tmp_path)
    assert done.code == 1
    assert "rows.jsonl:2: no JSON object" in done.err
    assert f"trainable 1 100.0 % {37 * '#'}" in words_of(done.out)


def test_looking_writes_nothing_and_makes_no_lock_file(tmp_path: Path) -> None:
    write_many(tmp_path / "run", 1, 1)
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    (tmp_path / "run").chmod(0o555)
    run("health", tmp_path / "run", "--csv", tmp_path / "x.csv", "--by", "task")
    (tmp_path / "run").chmod(0o755)
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_the_reader_of_a_pipe_may_leave_early(place: Path) -> None:
    line = f"{COMMAND} health {place / 'run'} -f junit | head -c 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stdout == "<0\n" and "Traceback" not in done.stderr


# Which rollouts, and how they are looked at


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--include", "10-*"], [2, 1, 1, 0]),
        (["--exclude", "10-*"], [3, 1, 1, 1]),
        (["--include", "10-*", "--exclude", "10-1"], [1, 1, 0, 0]),
        (["--include", "2-0", "--include", "4-0"], [2, 1, 0, 1]),
    ],
)
def test_ids_are_chosen_by_pattern(place: Path, options: list[str], expected: list[int]) -> None:
    told = metrics("run", *options, cwd=place)
    assert [told[name] for name in ("rollouts", "trainable", "masked", "retired")] == expected


def test_several_paths_are_one_run(place: Path, tmp_path: Path) -> None:
    healthy("7-0").write(tmp_path)
    assert metrics(place / "run", tmp_path)["rollouts"] == 6
    assert f"{place / 'run'} and 1 more 6 rollouts 9 calls" in words_of(run("health", place / "run", tmp_path).out)


def test_paths_can_stand_in_a_file(place: Path, tmp_path: Path) -> None:
    (tmp_path / "paths.txt").write_text(f"{place / 'run'}\n\n")
    assert metrics("--files-from", tmp_path / "paths.txt") == metrics(place / "run")


@pytest.mark.parametrize("form", ["json", "junit"])
def test_two_processes_change_no_byte(tmp_path: Path, form: str) -> None:
    write_many(tmp_path, 12, 9)
    options = ("-f", form, "--by", "task", "--max-mask-fraction", "0.1", "--min-samples", "2")
    one, two = (run("health", tmp_path, *options, "--jobs", jobs) for jobs in (1, 2))
    assert one == two and one.code == 1


def test_the_order_of_lines_changes_no_byte(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path / "one" / "run", raw=True, state=False)
    files = healthy("0-0").files(raw=True, state=False)
    turned = {name: in_lines(reversed(data.splitlines())) for name, data in files.items()}
    write_files(tmp_path / "two" / "run", turned)
    one, two = (run("health", "run", "-f", "json", cwd=tmp_path / name) for name in ("one", "two"))
    assert one == two and one.code == 0


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("FORMAT", "json", 0),
        ("MAX_MASK_FRACTION", "0.2", 0),
        ("MIN", "trainable=3", 1),
        ("MAX", "masked=1", 1),
        ("INCLUDE", "10-1", 1),
    ],
)
def test_an_option_can_come_from_the_environment(place: Path, name: str, value: str, code: int) -> None:
    option = f"--{name.lower().replace('_', '-')}"
    given = run("health", "run", option, value, cwd=place)
    assert run("health", "run", cwd=place, **{f"NG_CAPTURE_HEALTH_{name}": value}) == given
    assert given.code == code


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("model", ["policy-8b", "policy-8b + judge", None]),
        ("task", ["2", "10", "17", None]),
        ("group", ["2", "10", "step3.17", None]),
        ("attempt", ["0", "1"]),
    ],
)
def test_a_breakdown_tells_the_same_metrics_of_each_part(tmp_path: Path, by: str, keys: list[str | None]) -> None:
    for name in ("10-0", "10-1-a1", "step3.17-0", "alone"):
        healthy(name).write(tmp_path)
    forge = broken("2-0")
    forge.calls[0].fields["model"] = "judge"
    forge.write(tmp_path)
    write_retired(tmp_path, "alone2")
    told = document(tmp_path, "--by", by)
    parts = told["breakdown"]["parts"]
    expected = ["judge + policy-8b" if key == "policy-8b + judge" else key for key in keys]
    assert sorted(map(str, (part["key"] for part in parts))) == sorted(map(str, expected))
    assert parts[-1]["key"] == keys[-1]
    for name in ("rollouts", "trainable", "masked", "retired", "n_calls", "chains", "generated_tokens_lost"):
        assert sum(part["metrics"][name] or 0 for part in parts) == told["metrics"][name]


def test_the_worst_part_stands_first_on_the_screen(tmp_path: Path) -> None:
    for name in ("1-0", "2-0", "2-1"):
        healthy(name).write(tmp_path)
    for name in ("2-2", "3-0"):
        broken(name).write(tmp_path)
    shown = words_of(run("health", tmp_path, "--by", "task").out)
    head = shown.index("by task rollouts trainable masked mask_fraction delivered_fraction")
    assert [line.split()[:5] for line in shown[head + 1 : head + 4]] == [
        ["3", "1", "0", "1", "1.000"],
        ["2", "3", "2", "1", "0.333"],
        ["1", "1", "1", "0", "0.000"],
    ]


def test_finished_rows_name_the_task_where_they_stand(tmp_path: Path) -> None:
    forge = healthy("any-name")
    forge.write(tmp_path / "run")
    write_rows(tmp_path / "rows.jsonl", [forge.row(forge.calls[-1], _ng_task_index=7)])
    options = ("--rollouts", tmp_path / "rows.jsonl", "--by", "task")
    assert [part["key"] for part in document(tmp_path / "run", *options)["breakdown"]["parts"]] == ["7"]


def test_an_open_call_runs_until_nobody_wrote_for_an_hour_and_nobody_holds_the_lock(tmp_path: Path) -> None:
    write_lost(tmp_path, "0-0")
    told = [metrics(tmp_path)]
    for seconds in (-7200, 7200):
        for path in tmp_path.iterdir():
            os.utime(path, (time.time() + seconds,) * 2)
        told.append(metrics(tmp_path))
        if seconds < 0:
            with open(tmp_path / "0-0.tokens.lock", "wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                told.append(metrics(tmp_path))
    # just written; left for two hours; left but held; written in the future, which is never old
    assert [(each["running"], each["abandoned"]) for each in told] == [(1, 0), (0, 1), (1, 0), (1, 0)]


# Raw calls


def write_raw(directory: Path, rollout_id: str, calls: list[dict[str, object]]) -> Path:
    path = directory / f"{rollout_id}.capture.jsonl"
    directory.mkdir(exist_ok=True)
    path.write_bytes(in_lines(json.dumps(call).encode() for call in calls))
    return path


def test_raw_calls_alone_are_counted_and_nothing_is_judged(place: Path) -> None:
    told = metrics("run", "--raw-only", cwd=place)
    known = {"rollouts": 5, "with_calls": 1, "calls": 2, "raw_calls": 2, "tokens_in": 6, "tokens_out": 2}
    assert {name: told[name] for name in known} == known
    unknown = ("trainable", "masked", "mask_fraction", "reasons", "n_calls", "generated_tokens_captured", "running")
    assert [told[name] for name in unknown] == [None] * len(unknown)
    shown = words_of(run("health", "run", "--raw-only", cwd=place).out)
    assert "raw calls 2, tokens in 6, out 2" in shown and not any("masked" in line for line in shown)


def test_a_run_without_raw_calls_is_not_healthy_where_only_they_count(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path)
    assert document(tmp_path, "--raw-only")["failed_checks"] == ["no_calls_captured"]
    assert document(tmp_path)["failed_checks"] == []


def test_what_no_raw_call_tells_is_unknown_and_never_0(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path / "tokens")
    forge = healthy("0-0")
    write_raw(tmp_path / "raw", "0-0", [call.raw(response={}, latency_ms=None) for call in forge.calls])
    raw, tokens = metrics(tmp_path / "raw", "--raw-only"), metrics(tmp_path / "tokens")
    never = ("tokens_in", "tokens_out", "tokens_reasoning", "tokens_total", "cached_tokens", "latency_total_ms")
    assert [raw[name] for name in never] == [None] * len(never)
    absent = (*never, "raw_calls", "damaged_lines", "error_categories", "length_stopped_calls", "sampling")
    assert [tokens[name] for name in absent] == [None] * len(absent)


def test_a_call_on_two_lines_is_counted_once(tmp_path: Path) -> None:
    calls = [call.raw() for call in healthy("0-0").calls]
    calls[0]["response"]["usage"]["input_tokens_details"] = {"cached_tokens": 1}
    write_raw(tmp_path / "once", "0-0", calls)
    write_raw(tmp_path / "twice", "0-0", [*calls, calls[0], {**calls[1], "response": {}}])
    once, twice = (metrics(tmp_path / name, "--raw-only") for name in ("once", "twice"))
    assert (once["tokens_in"], once["cached_tokens"], once["raw_calls"], once["repeated_lines"]) == (6, 1, 2, 0)
    assert twice == {**once, "repeated_lines": 2}


def test_damaged_raw_lines_are_counted_and_named_and_never_fatal(tmp_path: Path) -> None:
    forge = healthy("0-0")
    forge.write(tmp_path, raw=True)
    path = tmp_path / "0-0.capture.jsonl"
    first, second = path.read_bytes().splitlines(True)
    path.write_bytes(b"\xef\xbb\xbf" + first + b'{"cut\n' + b"\0\0\0\n" + b"\n" + b"[1]\n" + second + second[:40])
    for options in ((), ("--raw-only",)):
        told = document("--max", "damaged_lines=3", tmp_path, *options)
        assert (told["metrics"]["damaged_lines"], told["metrics"]["raw_calls"]) == (4, 2)
        assert "damaged_lines" in told["failed_checks"]
        named = [told["examples"][f"findings.{reason}"][0] for reason in ("damaged_line", "nul_bytes", "torn_tail")]
        assert [(each["file"], each["line"]) for each in named] == [("0-0.capture.jsonl", n) for n in (2, 3, 7)]
    assert "damaged lines 4" in run("health", tmp_path).out


def test_calls_that_failed_are_told_by_category(tmp_path: Path) -> None:
    good, late, busy = Forge("0-0"), {"status_code": 504}, {"status_code": 429}
    call = good.root([1], [2])
    failed = [call.raw(model_call_id=f"x{n}", response={}, **why) for n, why in enumerate((late, busy, late))]
    write_raw(tmp_path, "0-0", [call.raw(), *failed])
    told = metrics(tmp_path, "--raw-only")
    assert (told["raw_calls"], told["error_categories"]) == (4, {"timeout": 2, "rate_limit": 1})


def test_no_number_of_a_raw_call_is_too_large_to_be_added_up(tmp_path: Path) -> None:
    forge = healthy("0-0")
    usage = {"input_tokens": 2**63 - 1, "output_tokens": 2**63 - 1}
    huge = [call.raw(latency_ms=9e18, response={"usage": usage}) for call in forge.calls]
    write_raw(tmp_path / "run", "0-0", huge)
    done = run("health", "run", "--raw-only", "-f", "json", "--csv", "x.csv", "--parquet", "x.parquet", cwd=tmp_path)
    assert done.code == 0, done.err
    assert json.loads(done.out)["metrics"]["tokens_in"] == 2 * (2**63 - 1)


def test_text_from_a_capture_cannot_move_the_cursor(tmp_path: Path) -> None:
    evil = "\x1b[2J\u202e\r\x07evil"
    forge = Forge(f"r{evil}")
    call = forge.root([1], [2], id="a", model=evil)
    forge.write(tmp_path)
    write_raw(tmp_path, forge.rollout_id, [call.raw(request={"model": evil, "temperature": evil}, response={})])
    write_files(tmp_path, {f"s{evil}.tokens.jsonl": b"{}\n"})
    printed = run("health", tmp_path, "--by", "model", "--max", "masked=0")
    assert not CONTROLS.search(printed.out) and not CONTROLS.search(printed.err)
    assert "\\u001b[2J\\u202e\\u000d\\u0007evil" in printed.out
