"""Claims about `gym/`: the sums of `health` are the sums of what NeMo Gym 0.7.0 reports, named deviations aside."""

import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars
import pytest

from ng_capture.verdicts.deviations import DEVIATIONS
from tests.support.command import run
from tests.support.corpus import corpus_folder, ids_in
from tests.support.forge import write_rows
from tests.support.gym import ALONE, WITH_ROW, Gym
from tests.support.runs import Metrics, metrics

FOLDER = corpus_folder("gym")
GYM = Gym(FOLDER)
SOURCES = ids_in(FOLDER / "expected.jsonl", [WITH_ROW, ALONE])
SUMS = (
    *("n_calls", "chains", "roots", "quarantined_calls", "empty_generation_calls", "unresolved_parent_calls"),
    *("generated_tokens_captured", "generated_tokens_delivered", "capture_incomplete"),
)
USAGE = ("tokens_in", "tokens_out", "tokens_reasoning", "tokens_total", "cached_tokens", "latency_total_ms")

both_sources = pytest.mark.parametrize("source", SOURCES)


def arguments(source: str) -> tuple[object, ...]:
    rows = ("--rollouts", FOLDER / "rollouts.jsonl") if source == WITH_ROW else ()
    return FOLDER / "capture", *rows


@functools.cache
def told(source: str, ids: tuple[str, ...] = ()) -> Metrics:
    """What `health` says of some rollouts, or of all."""
    chosen = [word for rollout_id in ids for word in ("--include", rollout_id)]
    return metrics(*arguments(source), *chosen)


def compared(source: str) -> dict[str, dict[str, Any]]:
    """The metrics that are wanted of every rollout of which the reference and we count the same."""
    wanted = {rollout_id: GYM.wanted_metrics(rollout_id, source) for rollout_id in GYM.reference[source]}
    return {rollout_id: metrics for rollout_id, metrics in wanted.items() if metrics is not None}


def retired(source: str) -> set[str]:
    """Rollouts that were handed off: the reference refuses them, or gives up."""
    said = GYM.reference[source].items()
    return {i for i, each in said if each["outcome"] == "none" or "is retired" in (each["error"] or "")}


def counted(values: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in values:
        total.update(each)
    return dict(total)


@both_sources
def test_the_sums_of_a_run_are_the_sums_of_what_the_reference_reports(source: str) -> None:
    wanted = compared(source)
    assert len(wanted) >= 80
    sums = {name: sum(each.get(name) or 0 for each in wanted.values()) for name in SUMS}
    found = told(source, tuple(wanted))
    assert {name: found[name] for name in SUMS} == sums
    assert found["parent_link_failures"] == counted(each.get("parent_link_failures", {}) for each in wanted.values())


@both_sources
def test_terminal_attribution_is_counted_by_witness_and_by_chain(source: str) -> None:
    wanted = compared(source)
    told_by = [each["terminal_attribution"] for each in wanted.values() if "terminal_attribution" in each]
    by = {"method": Counter(t["method"] for t in told_by), "chain": Counter(t["chain"] or "none" for t in told_by)}
    assert told(source, tuple(wanted))["terminal_attribution"] == by


@both_sources
def test_fractions_are_those_of_the_sums_and_the_mean_is_that_of_the_rollouts(source: str) -> None:
    wanted = compared(source)
    found = told(source, tuple(wanted))
    delivered = [each["delivered_fraction"] for each in wanted.values() if each.get("generated_tokens_captured")]
    assert found["delivered_fraction_mean"] == pytest.approx(sum(delivered) / len(delivered))
    shares = {
        "delivered_fraction": ("generated_tokens_delivered", "generated_tokens_captured"),
        "quarantined_fraction": ("quarantined_calls", "n_calls"),
    }
    for name, (part, whole) in shares.items():
        sums = [sum(each.get(key) or 0 for each in wanted.values()) for key in (part, whole)]
        assert found[name] == pytest.approx(sums[0] / sums[1])


@both_sources
def test_the_mask_fraction_is_the_references_but_for_the_named_deviations(source: str) -> None:
    masked, deviations = 0, 0
    judged = GYM.reference[source].keys() - retired(source)
    for rollout_id in judged:
        deviation = (GYM.wanted(rollout_id, source) or {}).get("deviation")
        assert deviation is None or deviation in DEVIATIONS
        deviations += deviation is not None
        masked += GYM.reference[source][rollout_id]["mask_sample"] is (deviation is None)
    found = told(source)
    assert deviations > 0
    assert (found["masked"], found["trainable"]) == (masked, len(judged) - masked)
    assert found["mask_fraction"] == pytest.approx(masked / len(judged))
    assert found["retired"] == len(retired(source))


@both_sources
def test_what_is_not_compared_is_masked_here_and_there_or_has_tokens_of_its_own(source: str) -> None:
    rest = GYM.reference[source].keys() - compared(source).keys()
    refused = tuple(i for i in rest if GYM.reference[source][i]["metrics"])
    assert 0 < len(refused) <= 8 and all(GYM.reference[source][rollout_id]["mask_sample"] for rollout_id in refused)
    assert told(source, refused)["masked"] == told(source, refused)["rollouts"] == len(refused)
    assert {GYM.reference[source][i]["outcome"] for i in rest.difference(refused)} <= {"redundant", "none"}


def test_usage_and_latency_add_up_to_what_the_reference_sums() -> None:
    said = [each["model_calls"]["metrics"] for each in GYM.reference[WITH_ROW].values()]
    found = told(WITH_ROW)
    for name in USAGE:
        known = [each[name] for each in said if each[name] is not None]
        assert found[name] == (sum(known) if known else None), name
    assert found["raw_calls"] == sum(each["num_calls"] for each in said)


@both_sources
def test_a_breakdown_by_attempt_and_group_adds_up_to_the_whole(source: str) -> None:
    for by in ("attempt", "group"):
        parts = run("health", *arguments(source), "--by", by, "-f", "json")
        metrics_of_parts = [part["metrics"] for part in json.loads(parts.out)["breakdown"]["parts"]]
        assert len(metrics_of_parts) > 1
        for name in ("rollouts", "trainable", "masked", "retired", *SUMS):
            assert sum(each[name] or 0 for each in metrics_of_parts) == told(source)[name]


@pytest.mark.parametrize("to", ["rollouts", "rows"])
@both_sources
def test_a_rebuilt_file_is_as_healthy_as_the_captures(source: str, to: str, tmp_path: Path) -> None:
    # a capture without a finished row is in no file of finished rows
    rowless = GYM.reference[ALONE].keys() - GYM.rows.keys() if (source, to) == (WITH_ROW, "rollouts") else set()
    chosen = [word for rollout_id in sorted(rowless) for word in ("--exclude", rollout_id)]
    assert run("rebuild", *arguments(source), *chosen, "--to", to, "-o", tmp_path / "out.jsonl").code == 0
    looked, found = metrics(*arguments(source), *chosen), metrics(tmp_path / "out.jsonl")
    assert looked["running"] + looked["abandoned"] > 0
    assert found == {**looked, "running": None, "abandoned": None}


# The rows that the reference delivers


def delivered(source: str) -> dict[str, dict[str, Any]]:
    """The finished rows as the reference leaves them; what matters of a rebuilt response is that it carries tokens."""
    rows = {i: json.loads(line) for i, line in GYM.rows.items()}
    if source == ALONE:
        rows = {rollout_id: {"_ng_rollout_id": rollout_id} for rollout_id in GYM.reference[ALONE]}
    for rollout_id, row in rows.items():
        said = GYM.reference[source][rollout_id]
        if said["outcome"] in ("built", "failed"):
            row["_ng_token_capture"] = said["metrics"] | ({"error": said["error"]} if said["error"] else {})
            row |= {"mask_sample": True} if said["mask_sample"] else {}
        if said["rebuilt_sha256"] is not None:
            row["response"] = {"output": [{"generation_token_ids": [1]}]}
    return rows


@both_sources
def test_delivered_rows_add_up_to_what_they_say(source: str, tmp_path: Path) -> None:
    rows = delivered(source)
    write_rows(tmp_path / "rows.jsonl", rows.values())
    found = metrics(tmp_path / "rows.jsonl")
    said = {i: GYM.reference[source][i] for i in rows if "is retired" not in (GYM.reference[source][i]["error"] or "")}
    sums = {name: sum(each["metrics"].get(name) or 0 for each in said.values()) for name in SUMS}
    assert {name: found[name] for name in SUMS} == sums
    assert found["masked"] == sum(bool(each["mask_sample"]) for each in said.values())
    assert found["rollouts"] - found["retired"] == len(said)


@both_sources
def test_the_reasons_of_a_delivered_row_are_among_those_that_verify_names(source: str, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", delivered(source).values())
    run("health", tmp_path / "rows.jsonl", "--parquet", tmp_path / "t.parquet")
    reports = {report["rollout_id"]: report for report in run("verify", *arguments(source), "-f", "jsonl").rows}
    explained, wrong = 0, {}
    for row in polars.read_parquet(tmp_path / "t.parquet").iter_rows(named=True):
        report = reports[row["rollout_id"]]
        if row["verdict"] == report["verdict"] == "masked" and row["reasons"] is not None:
            explained += 1
            surplus = set(row["reasons"]) - set(report["reasons"])
            wrong |= {row["rollout_id"]: (surplus, report["reasons"])} if surplus else {}
    assert explained >= 18 and not wrong
