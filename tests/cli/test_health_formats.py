"""Every format of `ng-capture health`, read by a parser of that format."""

import os
import re
import time
from pathlib import Path
from typing import Any

import junitparser
import polars
import pytest
from polars.testing import assert_frame_equal
from prometheus_client.parser import text_string_to_metric_families

from ng_capture.outputs.shapes import SHAPES
from ng_capture.verdicts.reasons import REASONS
from tests.support.command import Run, run, strict_json
from tests.support.fixtures import ROOT
from tests.support.forge import Forge, write_files, write_rows
from tests.support.markdown_page import read_page
from tests.support.runs import broken, document, healthy, metrics, write_lost, write_many, write_retired
from tests.support.struck import struck
from tests.support.workflow_commands import WorkflowCommand, workflow_commands

FORMATS = ("text", "json", "markdown", "github", "junit", "prometheus")
FIXTURES = (ROOT / "capture", "--rollouts", ROOT / "rollouts.jsonl")
# what means something in Markdown, HTML, XML, workflow commands, Prometheus labels, CSV or on a terminal
HOSTILE = [
    "a|b",
    "<b>x</b>",
    "<!-- x -->",
    "[x](http://x.example/y)",
    "![x](y)",
    "`c`",
    "**b** _i_ ~~s~~",
    "&amp; &#124;",
    "\\|",
    "a\nb",
    "a\r\nb",
    "::error title=x::y",
    "%0A%3A%25",
    "k=v,k:v",
    "]]>",
    "\"q\" 'q'",
    "\x1b[2J\x07",
    "\u202eevil\u2066",
    "\u2028\u0085",
    "=1+1;2,3",
    "@team #1",
    "\u00e9\u4e2d\U0001f600",
]


# metrics of every run, each a number that is not negative
COUNTS = (
    *("rollouts", "with_calls", "trainable", "masked", "mask_fraction", "retired", "unread", "unexplained", "running"),
    *("reasons", "findings", "calls", "n_calls", "chains", "roots", "quarantined_calls", "capture_incomplete"),
    *("generated_tokens_captured", "generated_tokens_trained", "generated_tokens_lost"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`: two trainable rollouts, two masked, one handed off."""
    folder = tmp_path_factory.mktemp("formats")
    healthy("2-0").write(folder / "run", raw=True)
    healthy("10-0").write(folder / "run")
    broken("10-1").write(folder / "run")
    write_lost(folder / "run", "3-1")
    write_retired(folder / "run", "4-0")
    return folder


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`: a rollout for every hostile text, which is its id (`/` aside) and its model."""
    folder = tmp_path_factory.mktemp("hostile")
    for text in HOSTILE:
        forge = Forge(text.replace("/", ""))
        forge.root([1, 2], [3], id="a", model=text)
        forge.write(folder / "run", state=False, intents=False)
    return folder


def visible(text: str) -> str:
    """The text as it is shown: what moves a cursor or turns a line is spelled out."""
    unsafe = "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
    return re.sub(unsafe, lambda match: f"\\u{ord(match[0]):04x}", text)


# All of them


@pytest.mark.parametrize("form", ["text", "junit", "prometheus"])
def test_an_output_file_holds_what_would_have_been_printed(place: Path, tmp_path: Path, form: str) -> None:
    printed = run("health", "run", "-f", form, cwd=place)
    written = run("health", "run", "-f", form, "-o", tmp_path / "out", cwd=place)
    assert (written.out, written.code) == ("", printed.code) == ("", 0)
    # the time of the run is in it
    clock = re.compile(r"timestamp_seconds .*")
    assert clock.sub("", (tmp_path / "out").read_text()) == clock.sub("", printed.out) != ""


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_without_anything_can_be_told(tmp_path: Path, form: str) -> None:
    done = run("health", tmp_path, "-f", form)
    assert done.code == 1 and "no_calls_captured" in done.out


@pytest.mark.parametrize("form", FORMATS)
def test_names_that_are_no_utf_8_are_told_too(tmp_path: Path, form: str) -> None:
    name = os.fsdecode(b"caf\xe9")
    healthy("0-0").write(tmp_path / name)
    write_files(tmp_path / name, {f"{name}.tokens.jsonl": b""})
    done = run("health", tmp_path / name, "-f", form)
    assert done.code == 0, done.err
    assert form == "prometheus" or "caf\\xe9" in done.out.replace("\\\\", "\\")


# JSON


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--by", "task", "--expect-rollouts", "12", "--max-mask-fraction", "0.1", "--max", "tokens_in=1"),
        ("--raw-only", "--max", "masked=0"),
    ],
)
def test_the_document_is_strict_json_of_the_published_shape(options: tuple[str, ...]) -> None:
    sources = FIXTURES[:1] if "--raw-only" in options else FIXTURES
    text = run("health", *sources, *options, "-f", "json").out
    told = strict_json(text)
    assert told["schema"] == "ng-capture.health/1"
    model = SHAPES["health-document"].model_validate_json(text)
    assert model.model_dump(by_alias=True, exclude_unset=True) == told


def test_json_is_the_same_as_format_json(place: Path) -> None:
    assert run("health", "run", "--json", cwd=place) == run("health", "run", "-f", "json", cwd=place)


def test_hostile_text_is_kept_as_it_is_in_json(hostile: Path) -> None:
    text = run("health", "run", "-f", "json", cwd=hostile).out
    SHAPES["health-document"].model_validate_json(text)
    assert text.count("\n") == 1
    assert set(strict_json(text)["metrics"]["models"]) == set(HOSTILE)


# Markdown


def test_the_page_tells_shares_reasons_and_checks_in_tables(place: Path) -> None:
    page = read_page(run("health", "run", "-f", "markdown", "--max", "masked=1", cwd=place).out)
    assert page.headings == ["Capture health: run", "Checks", "Why masked", "Worth a look", "Numbers"]
    assert page.tables["Capture health: run"] == [
        ("", "rollouts", "share"),
        ("trainable", "2", "50.0 %"),
        ("masked", "2", "50.0 %"),
        ("retired", "1", ""),
        ("all", "5", ""),
    ]
    assert page.tables["Checks"] == [
        ("", "check", "value", "for example"),
        ("passed", "no_calls_captured", "0 of 4 rollouts have no captured call", ""),
        ("passed", "no_trainable_rollouts", "2 of 4 rollouts are trainable", ""),
        ("failed", "masked", "2  at most 1", "3-1, 10-1"),
    ]
    assert page.tables["Why masked"] == [
        ("reason", "rollouts", "for example", "what to do"),
        ("capture_incomplete", "1", "3-1", REASONS["capture_incomplete"].what_to_do),
        ("prefix_mismatch", "1", "10-1", REASONS["prefix_mismatch"].what_to_do),
    ]
    numbers = dict(page.tables["Numbers"])
    assert numbers["generated tokens lost"] == "3" and numbers["raw calls"] == "2, tokens in 6, out 2"
    assert numbers["chains"] == "5, roots 5, unresolved parents 1"


def test_the_page_tells_every_part_of_a_breakdown() -> None:
    page = read_page(run("health", *FIXTURES, "-f", "markdown", "--by", "attempt").out)
    assert page.tables["By attempt"] == [
        ("attempt", "rollouts", "trainable", "masked", "mask_fraction", "delivered_fraction"),
        ("0", "10", "6", "4", "0.400", "0.810"),
    ]


def test_the_page_says_first_whether_something_failed(place: Path) -> None:
    failed = run("health", "run", "-f", "markdown", "--max", "masked=1", cwd=place).out
    assert failed.splitlines()[2] == "**1 of 3 checks failed**"
    assert run("health", "run", "-f", "markdown", cwd=place).out.splitlines()[2] == "2 checks, none failed"


def test_hostile_text_is_text_in_the_cells_of_a_page(hostile: Path) -> None:
    page = read_page(run("health", "run", "-f", "markdown", "--by", "model", cwd=hostile).out)
    head, *rows = page.tables["By model"]
    assert {row[0] for row in rows} == set(map(visible, HOSTILE))
    assert {len(row) for row in rows} == {len(head)} == {6}
    assert all(row[1:4] == ("1", "0", "1") for row in rows if not re.fullmatch("[A-Za-z0-9._-]+", row[0]))


def test_a_hostile_path_is_text_in_the_heading_of_a_page(tmp_path: Path) -> None:
    name = "<b>*x*</b> `c` #".replace("/", "")
    healthy("0-0").write(tmp_path / name)
    page = read_page(run("health", name, "-f", "markdown", cwd=tmp_path).out)
    assert page.headings[0] == f"Capture health: {name}"


# Annotations of GitHub


def annotations(*arguments: object, cwd: Path) -> list[WorkflowCommand]:
    return workflow_commands(run("health", *arguments, "-f", "github", cwd=cwd).out)


def test_annotations_are_failed_checks_then_reasons_then_notices(place: Path) -> None:
    gate, lost, mismatch, *notices = annotations("run", "--max", "masked=1", cwd=place)
    assert (gate.name, gate.properties) == ("error", {"title": "masked"})
    assert gate.message == "2  at most 1 (for example 3-1, 10-1)"
    assert (lost.name, lost.properties) == (
        "warning",
        {"file": "run/3-1.tokens.intents", "line": "2", "title": "capture_incomplete masks 1"},
    )
    assert lost.message.startswith("3-1: call lost was announced but has no record; a call was lost")
    assert mismatch.properties["file"] == "run/10-1.tokens.jsonl" and mismatch.properties["line"] == "2"
    assert notices and {notice.name for notice in notices} == {"notice"}


def test_a_healthy_run_has_no_annotation(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path)
    assert run("health", tmp_path, "-f", "github") == Run(0, "", "")


def test_the_reason_that_masks_most_is_annotated_first(tmp_path: Path) -> None:
    write_many(tmp_path / "run", 0, 2)
    broken("x-0").write(tmp_path / "run")
    titles = [each.properties["title"] for each in annotations("run", cwd=tmp_path) if each.name == "warning"]
    assert titles == ["capture_incomplete masks 2", "prefix_mismatch masks 1"]


@pytest.mark.parametrize(("gates", "last"), [(5, None), (6, "2 more"), (20, "16 more")])
def test_there_are_at_most_ten_annotations_and_the_last_says_how_many_more(
    place: Path, gates: int, last: str | None
) -> None:
    options = [word for name in COUNTS[:gates] for word in ("--max", f"{name}=-1")]
    told = annotations("run", *options, cwd=place)
    levels = [each.name for each in told]
    assert levels == sorted(levels, key=["error", "warning", "notice"].index)
    assert (len(told), levels.count("error")) == (10, min(gates, 9))
    assert last is None or told[-1].message.startswith(last)


@pytest.mark.parametrize("texts", [HOSTILE[start : start + 6] for start in range(0, len(HOSTILE), 6)])
def test_hostile_text_stays_in_its_place_in_an_annotation(tmp_path: Path, texts: list[str]) -> None:
    verdicts = []
    for text, reason in zip(texts, REASONS, strict=False):
        finding = {"reason": reason, "severity": "error", "message": text, "file": text, "line": 7}
        verdicts.append({"rollout_id": text, "verdict": "masked", "reasons": [reason], "findings": [finding]})
    write_rows(tmp_path / "verdicts.jsonl", verdicts)
    told = annotations("verdicts.jsonl", cwd=tmp_path)
    assert {each.name for each in told} <= {"error", "warning", "notice"}
    reasons = [each for each in told if each.name == "warning"]
    assert {(each.properties["file"], each.properties["line"]) for each in reasons} == {
        (visible(t), "7") for t in texts
    }
    for each in reasons:
        name = each.properties["file"]
        assert each.message.startswith(f"{name}: {name}; ")


# JUnit


def suite_of(*arguments: object, cwd: Path) -> tuple[junitparser.TestSuite, dict[str, junitparser.TestCase]]:
    """The one suite of the report, and its cases by name."""
    report = junitparser.JUnitXml.fromstring(run("health", *arguments, "-f", "junit", cwd=cwd).out.encode())
    (suite,) = report
    outer = (report.tests, report.failures, report.errors, report.skipped)
    assert outer == (suite.tests, suite.failures, suite.errors, suite.skipped)
    cases = {case.name: case for case in suite}
    assert len(cases) == suite.tests
    return suite, cases


def test_a_report_has_a_case_for_every_rollout_and_every_check(tmp_path: Path) -> None:
    write_many(tmp_path / "run", 2, 1)
    broken("10-1").write(tmp_path / "run")
    write_retired(tmp_path / "run", "4-0")
    (tmp_path / "run" / "5-0.tokens.jsonl").mkdir()
    options = ("--max", "masked=1", "--max-mask-fraction", "0.1")
    suite, cases = suite_of("run", *options, cwd=tmp_path)
    kinds = {name: [type(result).__name__ for result in case.result] for name, case in cases.items()}
    assert kinds == {
        "4-0": ["Skipped"],
        "5-0": ["Error"],
        "10-1": ["Failure"],
        "good-0": [],
        "good-1": [],
        "lost-0": ["Failure"],
        "no_calls_captured": [],
        "no_trainable_rollouts": [],
        "masked": ["Failure"],
        "mask_fraction": ["Skipped"],
    }
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (10, 3, 1, 2)
    classes = {name: case.classname for name, case in cases.items()}
    assert (classes["good-0"], classes["masked"]) == ("ng-capture.rollouts", "ng-capture.checks")


def test_a_failed_case_tells_reasons_and_places(place: Path) -> None:
    _, cases = suite_of("run", "--max", "masked=1", cwd=place)
    (failure,) = cases["10-1"].result
    assert failure.message == "prefix_mismatch"
    assert failure.text.startswith("10-1.tokens.jsonl:2: prefix_mismatch: call b leaves its parent a at token 1 of 3")
    (gate,) = cases["masked"].result
    assert (gate.message, gate.text) == ("2  at most 1", "3-1, 10-1")


def test_rollouts_asked_for_and_not_captured_have_a_failed_case(place: Path, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("2-0\n99-0\n")
    _, cases = suite_of(place / "run", "--include", "2-0", "--include", "99-0", "--expect", "ids", cwd=tmp_path)
    assert [failure.message for failure in cases["99-0"].result] == ["empty_capture"]


def test_hostile_text_is_text_in_a_report(hostile: Path) -> None:
    _, cases = suite_of("run", cwd=hostile)
    rollouts = {name for name, case in cases.items() if case.classname == "ng-capture.rollouts"}
    assert rollouts == {visible(text.replace("/", "")) for text in HOSTILE}


# Prometheus


def gauges(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    """The values of every gauge by its labels' values, in the order of the labels' names."""
    told = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge" and family.documentation
        name = family.name.removeprefix("ng_capture_health_")
        assert {sample.name for sample in family.samples} <= {family.name} and name not in told
        told[name] = {tuple(value for _, value in sorted(each.labels.items())): each.value for each in family.samples}
    return told


def as_gauges(name: str, value: Any) -> dict[tuple[str, ...], float]:
    """What the gauge of a metric must hold."""
    if name == "terminal_attribution":
        return {(key, what): number for what, counts in value.items() for key, number in counts.items()}
    if name == "sampling":
        return {
            (model, parameter, key): number
            for model, asked in value.items()
            for parameter, counts in asked.items()
            for key, number in counts.items()
        }
    return {(key,): number for key, number in value.items()} if isinstance(value, dict) else {(): value}


@pytest.mark.parametrize("options", [(), ("--expect-rollouts", "12"), ("--raw-only",)])
def test_gauges_are_the_known_metrics_of_the_document(options: tuple[str, ...]) -> None:
    sources = FIXTURES[:1] if options == ("--raw-only",) else FIXTURES
    told = document(*sources, *options)
    shown = gauges(run("health", *sources, *options, "-f", "prometheus").out)
    known = {name: as_gauges(name, value) for name, value in told["metrics"].items() if value is not None}
    for name in ("missing_captures", "orphan_captures"):
        known.pop(name, None)
    assert known.keys() | {"check_failed", "last_run_timestamp_seconds"} == shown.keys()
    assert {name: shown[name] for name in known} == known
    assert shown["check_failed"] == {(c["name"],): float(c["status"] == "failed") for c in told["checks"]}


def test_the_time_of_the_last_run_is_now(place: Path) -> None:
    before = time.time()
    shown = gauges(run("health", "run", "-f", "prometheus", cwd=place).out)
    assert before <= shown["last_run_timestamp_seconds"][()] <= time.time()


def test_hostile_text_is_one_label(hostile: Path) -> None:
    shown = gauges(run("health", "run", "-f", "prometheus", cwd=hostile).out)
    assert shown["models"] == {(visible(text),): 1.0 for text in HOSTILE}


def test_the_file_of_gauges_is_the_old_one_or_the_whole_new_one(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "ng_capture.prom"
    assert run("health", "run", "-f", "prometheus", "-o", out, cwd=place).code == 0
    before = out.read_bytes()
    assert len(before) > 4096
    # a file may not grow beyond 2 KiB: the disk is full in the middle
    done = struck("health", "run", "--max", "masked=0", "-f", "prometheus", "-o", out, cwd=place, limit=2048)
    assert (done.code, "Traceback" in done.err) == (3, False)
    assert out.read_bytes() == before and list(tmp_path.iterdir()) == [out]
    assert run("health", "run", "-f", "prometheus", "-o", out, "--max", "masked=0", cwd=place).code == 1
    assert gauges(out.read_text())["check_failed"][("masked",)] == 1.0


# Tables


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[polars.DataFrame, Path]:
    """The Parquet table of the fixtures, and where the CSV of the same run is."""
    folder = tmp_path_factory.mktemp("tables")
    done = run("health", *FIXTURES, "--csv", folder / "t.csv", "--parquet", folder / "t.parquet")
    assert done.code == 0 and "10 rollouts" in done.out
    return polars.read_parquet(folder / "t.parquet"), folder / "t.csv"


def test_a_table_has_one_row_per_rollout_as_verify_reports_it(tables: tuple[polars.DataFrame, Path]) -> None:
    reports = run("verify", *FIXTURES, "-f", "jsonl").rows
    rows = tables[0].to_dicts()
    assert [row["rollout_id"] for row in rows] == [report["rollout_id"] for report in reports]
    for row, report in zip(rows, reports, strict=True):
        terminal, accounting = report["metrics"]["terminal_attribution"], report["accounting"]
        expected = {
            **{name: report[name] for name in ("verdict", "reasons", "repeated_lines")},
            **{name: report["metrics"][name] for name in ("n_calls", "chains", "roots", "delivered_fraction")},
            **{f"terminal_{name}": terminal[key] for name, key in (("method", "method"), ("call", "call_id"))},
            "generated_tokens_trained": accounting["trained"],
            "generated_tokens_lost": sum(accounting["lost"].values()),
            "calls": report["calls_read"],
            "models": ["policy-8b"],
        }
        assert {name: row[name] for name in expected} == expected


def test_the_columns_of_a_table_add_up_to_the_metrics(tables: tuple[polars.DataFrame, Path]) -> None:
    told = metrics(*FIXTURES)
    sums = {name: tables[0][name].sum() for name, kind in tables[0].schema.items() if kind == polars.Int64}
    shared = {name: value for name, value in told.items() if isinstance(value, int) and name in sums}
    assert len(shared) >= 18
    assert {name: sums[name] for name in shared} == shared
    verdicts = tables[0]["verdict"].value_counts().sort("verdict")["count"].to_list()
    assert verdicts == [told["masked"], told["trainable"]]


def test_the_types_of_a_table_do_not_depend_on_the_run(tmp_path: Path, tables: tuple[polars.DataFrame, Path]) -> None:
    assert run("health", tmp_path, "--parquet", tmp_path / "none.parquet").code == 1
    none = polars.read_parquet(tmp_path / "none.parquet")
    assert none.height == 0 and none.schema == tables[0].schema
    kinds = {
        "rollout_id": polars.String,
        "reasons": polars.List(polars.String),
        "capture_incomplete": polars.Boolean,
        "n_calls": polars.Int64,
        "tokens_in": polars.Int64,
        "delivered_fraction": polars.Float64,
    }
    assert {name: none.schema[name] for name in kinds} == kinds


def test_what_is_unknown_is_null_in_a_table(tables: tuple[polars.DataFrame, Path]) -> None:
    rows = {row["rollout_id"]: row for row in tables[0].to_dicts()}
    raw = ("raw_calls", "tokens_in", "tokens_out", "latency_total_ms", "damaged_lines")
    assert [rows["linear"][name] for name in raw] == [3, 23, 8, 1500.0, 0]
    assert [rows["compacted"][name] for name in raw] == [None] * 5
    assert rows["linear"]["tokens_reasoning"] is None and rows["linear"]["reasons"] == []


def test_the_csv_holds_what_the_parquet_holds(tables: tuple[polars.DataFrame, Path]) -> None:
    frame, path = tables
    lists = [name for name, kind in frame.schema.items() if kind == polars.List(polars.String)]
    as_text = {name: polars.String() if name in lists else kind for name, kind in frame.schema.items()}
    read = polars.read_csv(path, schema=as_text)
    assert_frame_equal(read, frame.with_columns(polars.col(*lists).list.join(";")))


def test_hostile_text_stays_in_its_cell(hostile: Path, tmp_path: Path) -> None:
    run("health", "run", "--csv", tmp_path / "t.csv", "--parquet", tmp_path / "t.parquet", cwd=hostile)
    frame, read = polars.read_parquet(tmp_path / "t.parquet"), polars.read_csv(tmp_path / "t.csv")
    assert frame["models"].explode().to_list() == read["models"].to_list()
    assert set(read["models"]) == set(HOSTILE)
    assert set(read["rollout_id"]) == {text.replace("/", "") for text in HOSTILE}


def test_saved_rows_without_a_receipt_leave_the_rest_of_a_table_null(tmp_path: Path) -> None:
    row = {"_ng_rollout_id": "0-0", "_ng_token_capture": {"n_calls": 2}, "mask_sample": True}
    write_rows(tmp_path / "rows.jsonl", [row])
    run("health", tmp_path / "rows.jsonl", "--parquet", tmp_path / "t.parquet")
    (told,) = polars.read_parquet(tmp_path / "t.parquet").to_dicts()
    known = {name: value for name, value in told.items() if value is not None}
    assert known == {"rollout_id": "0-0", "verdict": "masked", "n_calls": 2, "capture_incomplete": False}


def test_a_table_is_not_left_half_written(place: Path, tmp_path: Path) -> None:
    done = struck("health", "run", "-q", "--csv", tmp_path / "t.csv", cwd=place, limit=1024)
    assert (done.code, "Traceback" in done.err, list(tmp_path.iterdir())) == (3, False, [])
