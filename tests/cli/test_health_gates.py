"""`ng-capture health` as the gate of a job: limits, an earlier run to compare with, what was asked for."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import run
from tests.support.forge import write_rows
from tests.support.runs import document, healthy, metrics, words_of, write_lost, write_many, write_retired

Check = dict[str, Any]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `run`: 45 trainable rollouts and 5 masked ones."""
    folder = tmp_path_factory.mktemp("gates")
    write_many(folder / "run", 45, 5)
    return folder


def checked(place: Path, *options: object) -> dict[str, Check]:
    """The checks of the run by name; every name once."""
    checks = document("run", *options, cwd=place)["checks"]
    by_name = {check["name"]: check for check in checks}
    assert len(by_name) == len(checks)
    return by_name


def status(place: Path, *options: object) -> dict[str, str]:
    """What came of the gates, those that hold without a limit aside."""
    return {name: check["status"] for name, check in checked(place, *options).items() if check["bound"] is not None}


# The mask fraction, as NeMo Gym means it


@pytest.mark.parametrize(("limit", "code"), [("0.0999", 1), ("0.1", 0), ("0.2", 0), ("0", 1)])
def test_the_mask_fraction_fails_above_its_limit_and_not_on_it(place: Path, limit: str, code: int) -> None:
    assert run("health", "run", "--max-mask-fraction", limit, cwd=place).code == code


def test_a_failed_gate_is_named_with_value_limit_and_rollouts(place: Path) -> None:
    done = run("health", "run", "--max-mask-fraction", "0.05", cwd=place)
    assert done.code == 1
    line = "FAIL mask_fraction 0.100 at most 0.050 (5 of 50) lost-0, lost-1, lost-2, lost-3, lost-4"
    assert words_of(done.out)[-1] == line


def test_a_failed_gate_is_told_apart_where_the_report_goes_elsewhere(place: Path, tmp_path: Path) -> None:
    done = run("health", "run", "--max-mask-fraction", "0.05", "-f", "json", "-o", tmp_path / "out.json", cwd=place)
    told = "FAIL mask_fraction: 0.100  at most 0.050  (5 of 50) (lost-0, lost-1, lost-2, lost-3, lost-4)"
    assert (done.code, done.out, done.err.splitlines()[0]) == (1, "", told)
    assert run("health", "run", "--max", "masked=0", "-f", "json", "--quiet", cwd=place).err == ""


def test_below_50_rollouts_the_mask_fraction_is_not_judged(place: Path) -> None:
    done = run("health", "run", "--max-mask-fraction", "0.05", "--exclude", "good-44", cwd=place)
    assert done.code == 0
    assert "- mask_fraction not judged: 49 rollouts with a verdict, at least 50" in words_of(done.out)


def test_rollouts_that_were_handed_off_are_no_samples(tmp_path: Path) -> None:
    write_many(tmp_path / "run", 44, 5)
    write_retired(tmp_path / "run", "retired-0")
    assert status(tmp_path, "--max-mask-fraction", "0.05") == {"mask_fraction": "not_judged"}


@pytest.mark.parametrize(("samples", "expected"), [(0, "failed"), (50, "failed"), (51, "not_judged")])
def test_a_floor_of_samples_that_is_given_holds_for_every_gate(place: Path, samples: int, expected: str) -> None:
    options = ("--min-samples", samples, "--max-mask-fraction", "0", "--max", "masked=0", "--min", "trainable=50")
    told = status(place, *options)
    assert told == dict.fromkeys(("mask_fraction", "masked", "trainable"), expected)


def test_other_gates_are_judged_on_the_first_rollout(tmp_path: Path) -> None:
    write_many(tmp_path / "run", 1, 1)
    assert status(tmp_path, "--max", "mask_fraction=0.4", "--min", "trainable=2") == {
        "mask_fraction": "failed",
        "trainable": "failed",
    }


def test_no_floor_of_samples_saves_a_run_that_captured_nothing(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert run("health", tmp_path / "run", "--max-mask-fraction", "1", "--min-samples", "9").code == 1


# Limits on any metric


def test_limits_hold_on_plain_dotted_and_summed_metrics(place: Path) -> None:
    kept = {
        "--min": (
            "trainable=45",
            "delivered_fraction=1",
            "terminal_attribution.method.none=50",
            "prompt_lengths.p95=4",
        ),
        "--max": ("masked=5", "mask_fraction=0.1", "reasons.capture_incomplete=5", "reasons=5", "reasons.torn_tail=0"),
    }
    options = [word for option, limits in kept.items() for limit in limits for word in (option, limit)]
    assert set(status(place, *options).values()) == {"passed"}


def test_limits_fail_on_plain_dotted_and_summed_metrics(place: Path) -> None:
    broken = {
        "--min": (
            "trainable=46",
            "trained_fraction=0.99",
            "terminal_attribution.method.none=51",
            "prompt_lengths.p95=5",
        ),
        "--max": ("masked=4", "mask_fraction=0.099", "reasons.capture_incomplete=4", "lost_by_reason=4", "models=94"),
    }
    options = [word for option, limits in broken.items() for limit in limits for word in (option, limit)]
    told = document("run", *options, cwd=place)
    assert {check["status"] for check in told["checks"] if check["bound"] is not None} == {"failed"}
    assert told["failed_checks"] == [limit.partition("=")[0] for limits in broken.values() for limit in limits]


def test_a_gate_tells_value_limit_and_where_it_failed(place: Path) -> None:
    (check,) = (each for each in checked(place, "--max", "reasons.capture_incomplete=2").values() if each["bound"])
    assert check == {
        "name": "reasons.capture_incomplete",
        "status": "failed",
        "message": "5  at most 2",
        "bound": "max",
        "value": 5,
        "limit": 2.0,
        "baseline": None,
        "rollouts": [f"lost-{number}" for number in range(5)],
    }


@pytest.mark.parametrize(("limit", "expected"), [(1, "failed"), (2, "passed")])
def test_a_list_counts_its_members(place: Path, tmp_path: Path, limit: int, expected: str) -> None:
    (tmp_path / "ids").write_text("good-0\nmissing-0\nmissing-1\n")
    checks = document("run", "--expect", tmp_path / "ids", "--max", f"missing_captures={limit}", cwd=place)["checks"]
    (gate,) = (check for check in checks if check["bound"] is not None)
    assert (gate["value"], gate["status"]) == (2, expected)


@pytest.mark.parametrize(
    ("options", "gate"),
    [
        ((), ("--max", "tokens_in=1e18")),
        ((), ("--min", "expected_rollouts=0")),
        ((), ("--max", "missing_captures=9")),
        ((), ("--max", "error_categories.timeout=9")),
        (("--raw-only",), ("--max", "masked=99")),
        (("--raw-only",), ("--max", "mask_fraction=1")),
        (("--raw-only",), ("--max", "reasons.torn_tail=1")),
    ],
)
def test_what_is_unknown_keeps_no_limit(place: Path, options: tuple[str, ...], gate: tuple[str, str]) -> None:
    done = run("health", "run", *options, *gate, cwd=place)
    name = gate[1].partition("=")[0]
    assert done.code == 1, done.err
    assert any(line.startswith(f"FAIL {name} unknown at ") for line in words_of(done.out))


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--max", "mask_fracton=1"], "--max mask_fracton: no metric that is a number", "mask_fraction"),
        (["--min", "xyz=1"], "--min xyz: no metric that is a number", "ng-capture schema health-document"),
        (["--max", "reasons.torn_tale=0"], "--max reasons.torn_tale: no metric that is a number", "reasons."),
        (["--max", "latency_ms=9"], "--max latency_ms: no metric that is a number", "latency_ms."),
        (["--max", "sampling=9"], "--max sampling: no metric that is a number", "schema health-document"),
        (["--max", "masked.p50=9"], "--max masked.p50: no metric that is a number", "did you mean masked"),
        (["--max", "masked"], "--max masked: METRIC=X is wanted", "--max mask_fraction=0.05"),
        (["--max", "masked=few"], "--max masked=few: the limit is no number", ""),
        (["--max", "masked=nan"], "--max masked=nan: the limit is no number", ""),
        (["--max-mask-fraction", "nan"], "--max-mask-fraction: the limit is no number", ""),
        (["--max-mask-fraction", "5"], "", ""),
    ],
)
def test_a_limit_that_means_nothing_is_told_before_anything_is_read(
    tmp_path: Path, arguments: list[str], message: str, hint: str
) -> None:
    done = run("health", "not-even-there", *arguments, "-o", tmp_path / "out", "--csv", tmp_path / "out.csv")
    assert (done.code, done.out, list(tmp_path.iterdir())) == (2, "", [])
    assert message in done.err and "not-even-there" not in done.err
    assert hint in (done.err.partition("hint: ")[2] if message else done.err)


@pytest.mark.parametrize("form", ["text", "json", "markdown", "github", "junit", "prometheus"])
def test_a_model_may_be_named_by_bytes_that_are_no_text(tmp_path: Path, form: str) -> None:
    healthy("0-0").write(tmp_path)
    gate = b"models.\xff\x1b[1m=1".decode("utf-8", "surrogateescape")
    done = run("health", tmp_path, "--min", gate, "-f", form)
    assert done.code == 1 and "udcff" in done.out
    assert "\x1b" not in done.out + done.err


# An earlier run


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """The document of a run whose rollouts were all trainable."""
    path = tmp_path / "health.json"
    assert run("health", write_many(tmp_path / "before", 4, 0), "-f", "json", "-o", path).code == 0
    return path


def test_a_metric_that_dropped_by_more_than_its_limit_fails(place: Path, baseline: Path) -> None:
    # 45 trainable rollouts of two tokens are more than 4, and 5 of 95 tokens are lost
    kept = ("--max-drop", "trainable=0", "--max-drop", "delivered_fraction=0", "--max-drop", "trained_fraction=0.1")
    assert set(status(place, "--baseline", baseline, *kept).values()) == {"passed"}
    check = checked(place, "--baseline", baseline, "--max-drop", "trained_fraction=0.05")["trained_fraction"]
    assert (check["status"], check["bound"], check["baseline"]) == ("failed", "max_drop", 1.0)
    assert check["message"] == "0.947  was 1.000, dropped by 0.053, at most 0.050"


def test_a_drop_of_just_the_limit_is_kept(tmp_path: Path, baseline: Path) -> None:
    write_many(tmp_path / "run", 2, 2)
    assert status(tmp_path, "--baseline", baseline, "--max-drop", "trainable=2") == {"trainable": "passed"}
    assert status(tmp_path, "--baseline", baseline, "--max-drop", "trainable=1") == {"trainable": "failed"}


def test_what_the_earlier_run_did_not_know_keeps_no_limit(place: Path, baseline: Path) -> None:
    assert status(place, "--baseline", baseline, "--max-drop", "tokens_in=9") == {"tokens_in": "failed"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema":"ng-capture.verify/1","metrics":{}}',
        '{"schema":"ng-capture.health/2","metrics":{}}',
        '{"schema":"ng-capture.health/1"}',
        '{"schema":"ng-capture.health/1","metrics":[]}',
        '{"schema":"ng-capture.health/1","metrics":{"trainable":"many"}}',
        '{"schema":"ng-capture.health/1","metrics":{"trainable":{"a":"b"}}}',
        '{"schema":"ng-capture.health/1","metrics":' + "[" * 2000 + "]" * 2000 + "}",
    ],
)
def test_a_baseline_that_is_no_health_document_is_wrong_use(place: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "other.json").write_text(text)
    done = run("health", "run", "--baseline", tmp_path / "other.json", "--max-drop", "trainable=0", cwd=place)
    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert f"{tmp_path / 'other.json'}: " in done.err


# What was asked for


def test_rollouts_asked_for_and_not_captured_are_named_and_masked(place: Path, tmp_path: Path) -> None:
    ids = [f"good-{n}" for n in range(45)] + [f"lost-{n}" for n in range(5)]
    (tmp_path / "ids").write_text("\n".join([*ids, "good-100", "good-99"]))
    told = document("run", "--expect", tmp_path / "ids", cwd=place)
    assert told["failed_checks"] == ["missing_captures"]
    counted = {"rollouts": 52, "expected_rollouts": 52, "missing_rollouts": 2, "orphan_rollouts": 0, "masked": 7}
    assert {name: told["metrics"][name] for name in counted} == counted
    assert told["metrics"]["missing_captures"] == ["good-99", "good-100"]
    assert told["metrics"]["reasons"] == {"capture_incomplete": 5, "empty_capture": 2}


def test_captures_that_nobody_asked_for_are_named(place: Path, tmp_path: Path) -> None:
    ids = [f"good-{n}" for n in range(45)] + [f"lost-{n}" for n in range(3)]
    (tmp_path / "ids").write_text("\n".join(ids))
    done = run("health", "run", "--expect", tmp_path / "ids", cwd=place)
    assert done.code == 1
    line = "FAIL orphan_captures 2 rollouts were captured and not asked for (48 were asked for) lost-3, lost-4"
    assert line in words_of(done.out)


def test_what_was_asked_for_can_be_rows_or_ids_in_any_spelling(tmp_path: Path) -> None:
    for name in ("plain", "0-1", "0-1-a2", "named"):
        healthy(name).write(tmp_path / "run")
    rows = [
        {"_ng_task_index": 0, "_ng_rollout_index": 1},
        {"_ng_task_index": 0, "_ng_rollout_index": 1, "_ng_attempt_index": 2},
        {"_ng_rollout_id": "named", "reward": 1.0},
        {"_ng_rollout_id": "named"},
    ]
    lines = "".join(json.dumps(row) + "\r\n" for row in rows)
    (tmp_path / "asked").write_text(f"\ufeff  plain \n\n{lines}", "utf-8")
    told = metrics(tmp_path / "run", "--expect", tmp_path / "asked")
    assert (told["expected_rollouts"], told["missing_captures"], told["orphan_captures"]) == (4, [], [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("good-0\n{broken\n", "asked:2: neither a JSON object nor a rollout id"),
        ('{"reward":1.0}\n', "asked:1: names no rollout"),
        ("good-0\n../good-1\n", "asked:2: '../good-1' is no rollout id"),
        ('{"_ng_rollout_id":"-x"}\n', "asked:1: malformed rollout id: '-x'"),
        ("\n \n", "asked: names no rollout"),
    ],
)
def test_a_line_that_asks_for_nothing_is_wrong_use_with_its_place(
    place: Path, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "asked").write_text(text)
    done = run("health", place / "run", "--expect", "asked", cwd=tmp_path)
    assert (done.code, done.out, message in done.err) == (2, "", True)


@pytest.mark.parametrize(
    ("asked", "missing", "orphans", "failed"),
    [(52, 2, 0, ["missing_captures"]), (50, 0, 0, []), (48, 0, 2, ["orphan_captures"])],
)
def test_a_number_of_rollouts_can_be_asked_for(
    place: Path, asked: int, missing: int, orphans: int, failed: list[str]
) -> None:
    told = document("run", "--expect-rollouts", asked, cwd=place)
    assert told["failed_checks"] == failed
    counted = ("expected_rollouts", "missing_rollouts", "orphan_rollouts", "rollouts", "masked")
    assert [told["metrics"][name] for name in counted] == [asked, missing, orphans, 50 + missing, 5 + missing]
    assert told["metrics"]["missing_captures"] is None and told["metrics"]["orphan_captures"] is None


def test_a_number_of_rollouts_that_no_run_has_is_wrong_use(place: Path) -> None:
    done = run("health", place / "run", "--expect-rollouts", "9" * 400, "-f", "prometheus")
    assert (done.code, done.out) == (2, "") and "--expect-rollouts" in done.err


def test_a_number_asked_for_masks_like_the_ids_would(place: Path, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("good-0\ngood-1\n" + "".join(f"good-{n}\n" for n in range(100, 108)))
    chosen = ("--include", "good-[01]", "--include", "good-1??")
    named = metrics("run", *chosen, "--expect", tmp_path / "ids", cwd=place)
    counted = metrics("run", *chosen, "--expect-rollouts", 10, cwd=place)
    ids = {"missing_captures", "orphan_captures"}
    assert {k: v for k, v in counted.items() if k not in ids} == {k: v for k, v in named.items() if k not in ids}


def test_ids_and_a_number_are_not_asked_for_at_once(place: Path, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("good-0\n")
    assert run("health", "run", "--expect", tmp_path / "ids", "--expect-rollouts", 3, cwd=place).code == 2


def test_chosen_ids_choose_what_was_asked_for_too(place: Path, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("good-0\nlost-0\nother-0\n")
    told = metrics("run", "--expect", tmp_path / "ids", "--include", "lost-[0]", cwd=place)
    assert (told["expected_rollouts"], told["missing_captures"], told["orphan_captures"]) == (1, [], [])


def test_a_finished_row_without_a_capture_is_missing_and_a_tombstone_is_not(tmp_path: Path) -> None:
    store = tmp_path / "run"
    rows = [forge.row(forge.calls[-1]) for forge in (healthy("0-0"), healthy("0-1"))]
    healthy("0-0").write(store)
    write_lost(store, "0-2")
    write_retired(store, "0-3")
    write_rows(tmp_path / "rows.jsonl", rows)
    (tmp_path / "ids").write_text("0-0\n0-1\n0-2\n0-3\n")
    for asked in (("--expect", tmp_path / "ids"), ("--expect-rollouts", 4)):
        told = metrics(store, "--rollouts", tmp_path / "rows.jsonl", *asked)
        assert (told["rollouts"], told["missing_rollouts"], told["masked"], told["retired"]) == (4, 1, 2, 1)


def test_a_capture_that_cannot_be_read_is_not_missing(tmp_path: Path) -> None:
    healthy("0-0").write(tmp_path / "run")
    (tmp_path / "run" / "0-1.tokens.jsonl").mkdir()
    (tmp_path / "ids").write_text("0-0\n0-1\n")
    done = run("health", "run", "--expect", "ids", "-f", "json", cwd=tmp_path)
    assert (done.code, json.loads(done.out)["failed_checks"]) == (3, [])
