"""Claims about captures and records of the corpora on their way through the contracts."""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.captures.contracts import CAPTURE
from ng_capture.contracts.conversion import Converted
from ng_capture.contracts.interface import Options, Read, Written
from ng_capture.contracts.registry import writable, writer_of
from ng_capture.contracts.rules import has_errors
from ng_capture.contracts.sources import Source
from ng_capture.files.listing import list_rollouts
from ng_capture.records.json_text import decode_json
from ng_capture.records.raw_call import raw_call_of
from tests.support.captured import converted, faults_in, put, written
from tests.support.command import run
from tests.support.corpus import corpus_folder, corpus_root, ids_in, json_lines, readable_lines

GYM = corpus_folder("gym") / "capture"
DRIFT = corpus_root() / "drift" / "captures"
CASES_FILE = corpus_root() / "ingest" / "cases.jsonl"
ORACLE_FILE = corpus_root() / "contracts" / "oracle" / "model_call_record.jsonl"
STATS_FILE = ORACLE_FILE.with_name("token_stats.jsonl")
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in json_lines(CASES_FILE)}
ORACLE: dict[str, dict[str, Any]] = {case["case"]: case for case in json_lines(ORACLE_FILE)}
STATS: dict[str, dict[str, Any]] = {case["case"]: case for case in json_lines(STATS_FILE)}
ARRAYS = {
    "prompt_token_ids": "prompt_token_ids",
    "completion_token_ids": "generation_token_ids",
    "logprobs": "generation_log_probs",
}

Row = dict[str, Any]


@cache
def episodes() -> tuple[Read, ...]:
    assert CAPTURE.reader is not None
    return tuple(each for each in CAPTURE.reader.read(Source(str(GYM)), Options()) if isinstance(each, Read))


@cache
def gym(to: str) -> dict[str, Written]:
    made = {read.place: writer_of(to).write(read.episode, Options()) for read in episodes()}
    return {name: each for name, each in made.items() if isinstance(each, Written)}


def documents(one: Converted | Written) -> list[Any]:
    written = one.written if isinstance(one, Converted) else one
    assert written is not None
    return [json.loads(each) for each in written.documents]


def agent_steps(trajectory: Row) -> Iterator[Row]:
    yield from (step for step in trajectory["steps"] if step["source"] == "agent")
    for each in trajectory.get("subagent_trajectories", ()):
        yield from agent_steps(each)


def recorded(rollout_id: str) -> dict[str, Row]:
    """The first record of each call, as it stands in the file."""
    found: dict[str, Row] = {}
    for row in readable_lines(GYM / f"{rollout_id}.tokens.jsonl"):
        found.setdefault(row["model_call_id"], row)
    return found


def whole(call_id: str, records: Mapping[str, Row]) -> Row:
    """The arrays of a record under the names of a trajectory, a delta behind the whole sequence of its parent."""
    record = records[call_id]
    prompt = record["prompt_token_ids"]
    if record["prompt_is_delta"]:
        parent = whole(record["parent_call_id"], records)
        prompt = parent["prompt_token_ids"] + parent["completion_token_ids"] + prompt
    return {
        "prompt_token_ids": prompt,
        "completion_token_ids": record["generation_token_ids"],
        "logprobs": record["generation_log_probs"],
    }


def test_every_rollout_with_a_line_is_converted() -> None:
    held = {
        files.rollout_id
        for files in list_rollouts([str(GYM)])
        if any(name.kind.endswith("jsonl") for name in files.names)
    }
    assert held
    for to in writable():
        assert gym(to).keys() == held


def test_records_come_out_as_they_stand_in_the_file() -> None:
    for name, one in gym("tokens").items():
        told = {row["model_call_id"]: row for row in documents(one)}
        assert told == recorded(name), name


def test_log_probabilities_keep_every_digit() -> None:
    for name, one in gym("tokens").items():
        first = {row["model_call_id"]: row["generation_log_probs"] for row in recorded(name).values()}
        for row in documents(one):
            assert list(map(repr, row["generation_log_probs"])) == list(map(repr, first[row["model_call_id"]]))


def test_ids_of_steps_are_those_of_the_records_or_not_there() -> None:
    compared = 0
    for name, one in gym("atif").items():
        records = recorded(name)
        for step in agent_steps(documents(one)[0]):
            told = {key: value for key, value in step.get("metrics", {}).items() if key in ARRAYS}
            if told:
                assert told == whole(step["extra"]["ng_capture"]["model_call_id"], records), name
                compared += 1
    assert compared > 1000


def test_trajectories_of_captures_break_no_rule(tmp_path: Path) -> None:
    assert ATIF.reader is not None
    assert ATIF.reader.validate is not None
    for name, one in gym("atif").items():
        path = tmp_path / "t.json"
        path.write_bytes(one.documents[0])
        assert not has_errors(list(ATIF.reader.validate(Source(str(path))))), name


def test_totals_of_a_trajectory_are_those_of_the_evaluation() -> None:
    for name, one in gym("atif").items():
        totals = documents(one)[0]["final_metrics"]
        metrics = documents(gym("eval")[name])[0]["metrics"]
        assert totals.get("total_prompt_tokens") == metrics["tokens_in"]
        assert totals.get("total_completion_tokens") == metrics["tokens_out"]


def verdicts(directory: Path) -> dict[str, str]:
    reports = [json.loads(line) for line in run("verify", directory, "-f", "jsonl").out.splitlines()]
    return {report["rollout_id"]: report["verdict"] for report in reports}


def lay(written: Written, directory: Path, name: str) -> Path:
    """What was written as the command lays it in a folder."""
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(b"".join(each + b"\n" for each in written.documents))
    for file in written.files:
        (directory / file.name).write_bytes(file.data)
    return directory / name


def test_records_that_were_written_are_judged_as_those_that_were_read(tmp_path: Path) -> None:
    for name, one in gym("tokens").items():
        lay(one, tmp_path, f"{name}.tokens.jsonl")
    before, after = verdicts(GYM), verdicts(tmp_path)
    assert after.keys() == gym("tokens").keys()
    assert after == {name: before[name] for name in after}


def test_a_table_gives_back_the_records_that_it_was_made_of(tmp_path: Path) -> None:
    for name, table in gym("jsonl").items():
        (again,) = converted(lay(table, tmp_path, f"{name}.calls.jsonl"), "tokens", "jsonl")
        assert sorted(again.written.documents if again.written else ()) == sorted(gym("tokens")[name].documents)


@cache
def drift(to: str) -> dict[str, Converted]:
    return {one.name.stem: one for one in converted(DRIFT, to)} if DRIFT.is_dir() else {}


@pytest.mark.parametrize("name", ids_in(DRIFT, ["every rollout"]))
def test_raw_calls_of_every_engine_keep_their_counts(name: str) -> None:
    assert len(drift("atif")) > 90
    for rollout_id, one in drift("atif").items():
        rows = list(readable_lines(DRIFT / f"{rollout_id}.capture.jsonl"))
        told = documents(one)[0]
        counts = [raw_call_of(row, 1, 0).usage.tokens_out for row in rows]
        known = [count for count in counts if count is not None]
        assert told["final_metrics"].get("total_completion_tokens") == (sum(known) if known else None)
        steps = [step for step in agent_steps(told) if not step.get("is_copied_context")]
        omitted = sum(loss.count for loss in one.losses if loss.code in ("retry_collapsed", "failed_call_omitted"))
        assert len(steps) + omitted == len(rows)


@pytest.mark.parametrize("name", ids_in(DRIFT, ["every rollout"]))
def test_ids_of_raw_calls_are_those_that_ingest_reads_or_not_there(name: str, tmp_path: Path) -> None:
    some = [*drift("tokens").items()][::4]
    run("ingest", *(DRIFT / f"{rollout_id}.capture.jsonl" for rollout_id, _ in some), "--to", tmp_path)
    compared = 0
    for rollout_id, one in some:
        ingested = {row["model_call_id"]: row for row in readable_lines(tmp_path / f"{rollout_id}.tokens.jsonl")}
        for row in documents(one) if one.written is not None else ():
            there = ingested[row["model_call_id"]]
            assert {key: row[key] for key in ARRAYS.values()} == {key: there[key] for key in ARRAYS.values()}
            compared += 1
    assert compared > 40


@pytest.mark.parametrize("name", ids_in(DRIFT, ["every rollout"]))
def test_histories_that_go_on_in_words_are_one_trajectory_whatever_their_ids_are(name: str) -> None:
    """Drifted ids break prefixes of tokens, never the conversation."""
    ids = {one.name.stem for one in drift("atif").values()}
    broken = [name for name, one in drift("atif").items() if "subagent_trajectories" in documents(one)[0]]
    assert len(broken) < len(ids) / 10


def packed(case: Mapping[str, Any]) -> list[bytes]:
    return [line.encode((case["how"] or {}).get("encoding", "utf-8"), "surrogatepass") for line in case["lines"]]


@pytest.mark.parametrize("name", ids_in(CASES_FILE, CASES))
def test_raw_calls_in_any_spelling_are_converted_or_refused_by_name(name: str, tmp_path: Path) -> None:
    put(tmp_path, packed(CASES[name]))
    for to in writable():
        for one in converted(tmp_path, to):
            assert (one.written is None) == has_errors(one.faults) or one.written is not None
            for each in one.written.documents if one.written is not None else ():
                decode_json(each)
    faults_in(tmp_path)


@pytest.mark.parametrize("name", ids_in(CASES_FILE, CASES))
def test_ids_of_raw_calls_are_those_of_the_case_or_not_there(name: str, tmp_path: Path) -> None:
    put(tmp_path, packed(CASES[name]))
    expected = [each for each in CASES[name]["expect"] if "error" not in each]
    for one in converted(tmp_path, "tokens"):
        for row in documents(one) if one.written is not None else ():
            assert any(_fits(row, each) for each in expected), row


def _fits(row: Row, expected: Row) -> bool:
    told = {name: expected[name] for name in ARRAYS.values() if expected.get(name) is not None}
    return all(
        len(row[name]) == len(value)
        and all(math.isclose(a, b, abs_tol=1e-6) for a, b in zip(row[name], value, strict=True))
        for name, value in told.items()
    )


# where the evaluation view tells something else than NeMo Gym's record, and why
NAMED = {
    (
        "two choices: first only",
        "tool_calls",
    ): "an episode has the first choice of a call, and says so (choice_dropped)",
}
NOT_OF_A_VIEW = {"model_call_id", "call_index", "model_ref", "response_status", "request_raw", "request", "response"}
RECORDS = [name for name, case in ORACLE.items() if case["converter"] == "model_call_record"]


def step_of(case: Row, directory: Path) -> Row:
    one = written(put(directory, [case["input"]]), "eval", metrics_only=True)
    (step,) = documents(one)[0]["steps"]
    assert isinstance(step, dict)
    return step


@pytest.mark.parametrize("name", ids_in(ORACLE_FILE, RECORDS))
def test_a_step_of_the_view_tells_what_the_reference_tells(name: str, tmp_path: Path) -> None:
    step = step_of(ORACLE[name], tmp_path)
    for key, value in ORACLE[name]["output"].items():
        if key not in NOT_OF_A_VIEW:
            assert (step[key] == value) != ((name, key) in NAMED), (key, step[key], value)


@pytest.mark.parametrize("name", ids_in(ORACLE_FILE, RECORDS))
def test_what_the_reference_does_not_tell_is_null(name: str, tmp_path: Path) -> None:
    step = step_of(ORACLE[name], tmp_path)
    output = ORACLE[name]["output"]
    own = {"run_id", "step_index", "turn_index", "model_server"}
    assert {key for key, value in step.items() if value is not None and key not in output} <= own


@pytest.mark.parametrize("name", ids_in(ORACLE_FILE, ["aggregate over all cases above, in order"]))
def test_sums_of_the_view_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    rows = [ORACLE[each]["input"] | {"model_call_id": str(at)} for at, each in enumerate(RECORDS)]
    metrics = documents(written(put(tmp_path, rows), "eval"))[0]["metrics"]
    output = ORACLE[name]["output"]
    assert {key: metrics[key] for key in output} == output


@pytest.mark.parametrize("name", ids_in(STATS_FILE, STATS))
def test_usage_is_counted_as_the_reference_counts_it(name: str, tmp_path: Path) -> None:
    case = STATS[name]
    dialect = "chat" if "completion_tokens" in case["input"] else "messages"
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}}]}
    response = (answer if dialect == "chat" else {"role": "assistant", "content": [{"type": "text", "text": "x"}]}) | {
        "usage": case["input"]
    }
    row = {"model_call_id": "a", "dialect": dialect, "status_code": 200, "response": response}
    (step,) = documents(written(put(tmp_path, [row | {"request": {"messages": []}}]), "eval"))[0]["steps"]
    assert {key: step[key] for key in case["output"]["stats"]} == case["output"]["stats"]
    assert [step["cache_hit"], step["cached_tokens"]] == case["output"]["cache_signal"]


def test_a_file_alone_gives_what_its_directory_gives() -> None:
    for name in [*gym("tokens")][::6]:
        for to in ("tokens", "eval"):
            assert documents(written(GYM / f"{name}.tokens.jsonl", to)) == documents(gym(to)[name])


TRACES = corpus_root() / "contracts" / "verifiers" / "v1_traces.jsonl"


@pytest.mark.parametrize("name", ids_in(TRACES, ["T-VF-3"]))
def test_traces_become_records_that_are_trusted(name: str, tmp_path: Path) -> None:
    (one, *_) = [each for each in converted(TRACES, "tokens", "verifiers") if each.written is not None]
    assert one.written is not None
    second = documents(one)[1]
    assert second["prompt_token_ids"] == list(range(1, 12))
    assert (second["generation_token_ids"], second["generation_log_probs"]) == ([12], [-0.01])
    lay(one.written, tmp_path, f"{one.name.stem}.tokens.jsonl")
    assert verdicts(tmp_path) == {one.name.stem: "trainable"}
