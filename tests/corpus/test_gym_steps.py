"""Claims about raw calls in `gym/` and `bugs/`: steps and attachments are what NeMo Gym reports of its model calls."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.records.rollout_row import rollout_id_of
from ng_capture.verdicts.health.metrics import METRICS
from tests.support.bug_case import bug_case
from tests.support.command import run
from tests.support.corpus import corpus_folder, ids_in, json_lines
from tests.support.runs import metrics

FOLDER = corpus_folder("gym")
SAID = {each["rollout_id"]: each["model_calls"] for each in json_lines(FOLDER / "expected.jsonl")}
RAW = [rollout_id for rollout_id in SAID if (FOLDER / "capture" / f"{rollout_id}.capture.jsonl").exists()]
BUGS = FOLDER.parent / "bugs"
RAW_BUGS = sorted({path.parents[1].name for path in BUGS.glob("*/store/*.capture.jsonl")})
NOT_OF_GYM = {"turn_index", "file", "line"}


def steps_in(path: Path, *words: str) -> dict[str, dict[str, Any]]:
    return {row["rollout_id"]: row for row in run("steps", path, "-f", "jsonl", *words).rows}


@pytest.fixture(scope="module")
def told() -> dict[str, dict[str, Any]]:
    return steps_in(FOLDER / "capture")


def digest(value: object) -> str:
    """The digest of the corpus: canonical JSON as its README says."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def as_attached(rollout: dict[str, Any]) -> dict[str, Any]:
    """The steps of a rollout as NeMo Gym attaches them to its row."""
    said = SAID[rollout["rollout_id"]]
    calls = [{name: step[name] for name in step if name not in NOT_OF_GYM} for step in rollout["steps"]]
    gaps = {"gaps": rollout["gaps"]} if rollout["gaps"] else {}
    sums = {name: rollout["metrics"][name] for name in said["metrics"]}
    return {"rollout_id": rollout["rollout_id"], "metrics": sums, "calls": calls, **gaps}


def test_the_steps_of_every_rollout_are_the_model_calls_of_the_reference(told: dict[str, dict[str, Any]]) -> None:
    assert len(told) > 80 and RAW
    for rollout_id, rollout in told.items():
        made, said = as_attached(rollout), SAID[rollout_id]
        assert made["metrics"] == said["metrics"]
        assert [gap["code"] for gap in rollout["gaps"]] == said["gaps"]
        assert digest(made) == said["sha256"], rollout_id


@pytest.mark.parametrize("jobs", [1, 2])
def test_attached_calls_are_those_of_the_reference(jobs: int, tmp_path: Path) -> None:
    rows = ("--rollouts", FOLDER / "rollouts.jsonl", "--jobs", jobs)
    for name, words in (("with", ["--attach-calls"]), ("without", [])):
        assert run("rebuild", FOLDER / "capture", *rows, *words, "-o", tmp_path / name, "-q").code == 0
    attached, without = (json_lines(tmp_path / name) for name in ("with", "without"))
    seen = set()
    for row in attached:
        calls = row.pop("ng_model_call_capture")
        seen.add(calls["rollout_id"])
        assert calls["rollout_id"] == rollout_id_of(row)
        assert digest(calls) == SAID[calls["rollout_id"]]["sha256"]
    assert attached == without
    # more than there are captures: some rows have none
    assert len(seen) == len(without) >= len(SAID) - 1


def test_turns_never_go_back_in_a_conversation(told: dict[str, dict[str, Any]]) -> None:
    for rollout_id in RAW:
        rollout = told[rollout_id]
        turns = [step["turn_index"] for step in rollout["steps"]]
        assert None not in turns and turns[0] == 0
        assert rollout["metrics"]["num_turns"] == len(set(turns))


def test_the_sums_of_steps_are_the_sums_of_health() -> None:
    summary = json.loads(run("steps", FOLDER / "capture", "--json").out)["summary"]
    found = metrics(FOLDER / "capture", "--raw-only")
    same = set(METRICS) & summary.keys() - {"rollouts", "with_calls"}
    assert {name: summary[name] for name in same} == {name: found[name] for name in same}
    assert (summary["num_calls"], summary["with_calls"]) == (found["raw_calls"], len(RAW))


@pytest.mark.parametrize("case_id", ids_in(BUGS, RAW_BUGS))
def test_the_raw_calls_of_a_bug_are_counted_as_its_case_says(case_id: str) -> None:
    case = bug_case(BUGS / case_id)
    store = case.folder / case.invocation.args["store"]
    steps = steps_in(store)
    summary = json.loads(run("steps", store, "--json").out)["summary"]
    said = case.expected.get("metrics", {})
    assert said.get("calls") in (None, summary["num_calls"])
    for name in said.keys() & summary.keys():
        assert summary[name] == said[name], name
    for name in said.keys() & {"calls_with_partial_usage"}:
        assert sum(each["metrics"][name] for each in steps.values()) == said[name]
    for rollout_id, wanted in case.expected.get("rollouts", {}).items():
        found = steps[rollout_id]["steps"]
        failed = {step["model_call_id"] for step in found if (step["status_code"] or 0) >= 400}
        assert failed == set(wanted.get("failed_calls", failed))
        cut = {each["call"] for each in wanted.get("findings", []) if each["reason"] == "stream_truncated"}
        assert cut == {step["model_call_id"] for step in found if step["error_category"] == "stream_truncated"}
        stopped = {step["model_call_id"] for step in found if step["finish_reason"] in ("length", "max_tokens")}
        assert stopped == set(wanted.get("truncated_calls", stopped))
