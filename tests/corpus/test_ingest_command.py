"""Claims about `ingest/`, `drift/` and `gym/`: what `ng-capture ingest` writes of them is what they say."""

import math
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ng_capture.errors import InvalidRecord
from ng_capture.records.token_entry import Unreadable
from ng_capture.records.token_record import decode_record
from tests.corpus.test_drift import sha256_of
from tests.corpus.test_ingest_lines import packed
from tests.support.command import Run, run
from tests.support.corpus import corpus_folder, ids_in, json_lines
from tests.support.drift import Drift
from tests.support.forge import Row
from tests.support.ingesting import document, ingest, links, stored, training_rows, verdicts
from tests.support.judging import trained
from tests.support.reference import Records

CASES_FILE = corpus_folder("ingest") / "cases.jsonl"
CASES: dict[str, Row] = {case["id"]: case for case in json_lines(CASES_FILE)}
IDS = ids_in(CASES_FILE, CASES)
DRIFT = Drift(corpus_folder("drift"))
GYM = corpus_folder("gym")
ARRAYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
ERRORS_ONLY = [name for name, case in CASES.items() if any("error" in each for each in case["expect"])]


# Every case, a rollout each, in one run


class Cases(NamedTuple):
    """What a run over all cases printed and left, by their ids."""

    done: Run
    rollouts: dict[str, Row]
    store: Path
    verdicts: dict[str, Row]
    rows: dict[str, list[Row]]

    def calls(self, name: str) -> list[Row]:
        rollout = self.rollouts.get(name)
        return [] if rollout is None else list(rollout["calls"])


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    folder = tmp_path_factory.mktemp("cases")
    (folder / "logs").mkdir()
    for name, case in CASES.items():
        (folder / "logs" / f"{name}.capture.jsonl").write_bytes(packed(case))
    done = ingest(folder / "store", folder / "logs")
    rows: dict[str, list[Row]] = {name: [] for name in CASES}
    for row in training_rows(folder / "store"):
        rows[row["rollout_id"]].append(row)
    told = {rollout["rollout_id"]: rollout for rollout in document(done)["rollouts"]}
    return Cases(done, told, folder / "store", verdicts(folder / "store"), rows)


def wanted_calls(name: str) -> list[Row]:
    return [each for each in CASES[name]["expect"] if "error" not in each]


def named(call: Row) -> str:
    wanted: str = call.get("call_id", "c1")
    return wanted


def same(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(
        math.isclose(one, other, abs_tol=1e-6) for one, other in zip(found, expected, strict=True)
    )


@pytest.mark.parametrize("name", IDS)
def test_the_calls_of_a_case_are_told_as_it_says(name: str, cases: Cases) -> None:
    told, wanted = cases.calls(name), wanted_calls(name)
    assert len(told) == len(wanted)
    for call, expected in zip(told, wanted, strict=True):
        assert call["call_id"] == named(expected)
        assert call["trainable"] == expected["trainable"]
        assert call["problems"] == expected.get("problems", [])
        assert call["missing"] == expected.get("missing", [])
        assert call["warnings"] == expected.get("warnings", []) or not call["trainable"]
        for field in ("origin", "log_probs_kind"):
            # nothing is noted of a call without a record
            assert call[field] in (expected.get(field, call[field]), None)
            assert call[field] is not None or not call["trainable"]


@pytest.mark.parametrize("name", IDS)
def test_the_faults_of_a_case_are_told_with_their_file_and_line(name: str, cases: Cases) -> None:
    file = f"{cases.store.parent}/logs/{name}.capture.jsonl"
    found = [each for each in document(cases.done)["findings"] if each["file"] == file and each["severity"] == "error"]
    wanted = [each for each in CASES[name]["expect"] if "error" in each]
    assert [each["reason"] for each in found] == [each["error"] for each in wanted]
    for finding, expected in zip(found, wanted, strict=True):
        assert "line" not in expected or finding["line"] == expected["line"]
    problems = Counter(problem for call in cases.calls(name) for problem in call["problems"])
    of_calls = Counter(each["reason"] for each in cases.rollouts.get(name, {"findings": []})["findings"])
    # choices of one call are one fault
    assert problems.keys() <= of_calls.keys()


@pytest.mark.parametrize("name", IDS)
def test_the_records_of_a_case_hold_exactly_what_was_served(name: str, cases: Cases) -> None:
    records = stored(cases.store, name)
    for expected in wanted_calls(name):
        if expected["trainable"]:
            record = records[named(expected)]
            for array in ARRAYS:
                assert array not in expected or same(record[array], expected[array]), array
            assert record["cum_len"] == len(record["prompt_token_ids"]) + len(record["generation_token_ids"])
    for line in (cases.store / f"{name}.tokens.jsonl").read_bytes().splitlines() if records else ():
        assert decode_record(line).rollout_id == name


@pytest.mark.parametrize("name", IDS)
def test_what_an_answer_said_stands_in_its_record(name: str, cases: Cases) -> None:
    records = stored(cases.store, name)
    for expected in wanted_calls(name):
        record = records.get(named(expected))
        if record is None or not expected["trainable"]:
            continue
        items = record["output_items"]
        tools = [item["name"] for item in items if item["type"] == "function_call"]
        assert "tool_calls" not in expected or tools == expected["tool_calls"]
        thoughts = [part["text"] for item in items if item["type"] == "reasoning" for part in item["summary"]]
        assert "reasoning" not in expected or thoughts == [expected["reasoning"]]
        if "routed" in expected:
            assert (record["routed_experts"] is not None) == (expected["routed"] is not None)


@pytest.mark.parametrize("name", IDS)
def test_no_token_of_a_case_is_trained_but_those_of_trainable_calls(name: str, cases: Cases) -> None:
    wanted = {named(each): each for each in wanted_calls(name) if each["trainable"]}
    found = trained(cases.rows[name])
    assert {call for call, _ in found} <= wanted.keys()
    assert len(set(found)) == len(found)
    told = {(call, offset) for call, each in wanted.items() for offset in range(len(each["generation_token_ids"]))}
    assert set(found) <= told


def is_whole(name: str) -> bool:
    return all("error" not in each and each["trainable"] for each in CASES[name]["expect"])


@pytest.mark.parametrize("name", ids_in(CASES_FILE, [name for name in CASES if is_whole(name)]))
def test_a_case_without_a_fault_is_trained_whole(name: str, cases: Cases) -> None:
    wanted, said = wanted_calls(name), cases.verdicts[name]
    if len(wanted) > 1:
        # two answers to one prompt, of which nothing says which was used
        assert (said["reasons"], cases.rows[name]) == (["ambiguous_retry"], [])
    elif "continues_message" in wanted[0].get("warnings", []):
        # its request holds an answer that no call gave: a chain of its own, where all are asked for
        assert (said["reasons"], len(cases.rows[name])) == (["parent_unresolved"], 1)
    else:
        assert (said["verdict"], said["reasons"]) == ("trainable", [])
        generated = [(named(each), place) for each in wanted for place in range(len(each["generation_token_ids"]))]
        assert trained(cases.rows[name]) == generated


@pytest.mark.parametrize("name", ids_in(CASES_FILE, ERRORS_ONLY))
def test_a_case_with_a_lost_line_is_masked_until_it_comes(name: str, cases: Cases) -> None:
    assert cases.verdicts[name]["verdict"] == "masked"


@pytest.mark.parametrize("name", ids_in(CASES_FILE, ["N63"]))
def test_of_two_choices_nothing_is_known_and_neither_is_trained(name: str, cases: Cases) -> None:
    assert (cases.verdicts[name]["reasons"], cases.rows[name]) == (["ambiguous_choices"], [])
    assert stored(cases.store, name).keys() == {"c1#0", "c1#1"}


# Drift


@pytest.fixture(scope="module", params=[(), ("--delta",)])
def drifted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("drift") / "store"
    done = ingest(store, DRIFT.captures, *request.param)
    assert done.code == 0 and document(done)["summary"]["added"] == 334
    return store


def test_the_ids_and_log_probabilities_of_all_calls_are_those_of_the_truth(drifted: Path) -> None:
    seen = 0
    for rollout_id in DRIFT.rollouts:
        records = Records(json_lines(drifted / f"{rollout_id}.tokens.jsonl"))
        for call, record in records.first.items():
            true = DRIFT.truth[call]
            digests = (sha256_of(records.prompt(call) or ()), sha256_of(records.generation(call)))
            assert digests == (true["prompt_sha256"], true["generation_sha256"]), call
            assert math.fsum(record["generation_log_probs"]) == pytest.approx(true["log_prob_sum"], abs=1e-5)
            assert records.has_own_digest(call)
            seen += 1
    assert seen == len(DRIFT.truth) == 334


def test_every_call_of_drift_names_its_true_parent(drifted: Path) -> None:
    found = {call: parent for rollout_id in DRIFT.rollouts for call, parent in links(drifted, rollout_id).items()}
    assert found == {call: true["parent_call_id"] for call, true in DRIFT.truth.items()}


def test_every_break_of_drift_masks_and_what_holds_is_trainable(drifted: Path) -> None:
    found = run("verify", drifted, "-f", "jsonl", "-q", "--policy", "all").rows
    broken = {row["rollout_id"] for row in DRIFT.broken}
    breaks = {finding["call"] for row in found for finding in row["findings"] if finding["reason"] == "prefix_mismatch"}
    assert {row["rollout_id"] for row in found} == DRIFT.rollouts.keys()
    assert breaks == {row["model_call_id"] for row in DRIFT.broken}
    reasons = {row["rollout_id"] for row in found if "prefix_mismatch" in {each["reason"] for each in row["findings"]}}
    assert reasons == broken


def test_of_drift_every_token_is_trained_in_one_row_at_most(drifted: Path) -> None:
    rows: dict[str, list[Row]] = {}
    for row in training_rows(drifted):
        rows.setdefault(row["rollout_id"], []).append(row)
    for rollout_id, made in rows.items():
        generated = {
            (c, n) for c, r in stored(drifted, rollout_id).items() for n in range(len(r["generation_token_ids"]))
        }
        found = trained(made)
        assert len(set(found)) == len(found) and set(found) <= generated


# NeMo Gym's own captures


@pytest.fixture(scope="module")
def rewritten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("gym") / "store"
    assert ingest(store, GYM / "capture").code == 1
    return store


def judged(store: Path, *words: object) -> dict[str, Row]:
    return {row["rollout_id"]: row for row in run("verify", store, "-f", "jsonl", "-q", *words).rows}


@pytest.mark.parametrize("words", [(), ("--rollouts", GYM / "rollouts.jsonl"), ("--policy", "strict")])
def test_a_rewritten_capture_has_the_verdict_of_the_original(words: tuple[object, ...], rewritten: Path) -> None:
    ours, theirs = judged(rewritten, *words), judged(GYM / "capture", *words)
    for name in theirs.keys() - ours.keys():
        # a tombstone: nothing is there to be read
        assert {path.name for path in (GYM / "capture").glob(f"{name}.*")} == {f"{name}.tokens.state.json"}
        del theirs[name]
    assert len(theirs) > 80
    assert {name: row["verdict"] for name, row in ours.items()} == {
        name: row["verdict"] for name, row in theirs.items()
    }


@pytest.mark.parametrize("policy", ["strict", "terminal", "all"])
def test_a_rewritten_capture_gives_the_rows_of_the_original(policy: str, rewritten: Path) -> None:
    words = ("--to", "rows", "--policy", policy, "--rollouts", GYM / "rollouts.jsonl", "-q", "-o", "-")
    ours, theirs = (
        [{key: value for key, value in row.items() if key != "sources"} for row in run("rebuild", store, *words).rows]
        for store in (rewritten, GYM / "capture")
    )
    rewritable = {row["rollout_id"] for row in theirs if is_rewritable(row["rollout_id"])}
    assert len(rewritable) > 20 and len({row["rollout_id"] for row in theirs} - rewritable) <= 3
    assert ours == [row for row in theirs if row["rollout_id"] in rewritable]


def is_rewritable(rollout_id: str) -> bool:
    """False where the reference refuses a record: it has no form in which it could be written again."""
    try:
        for line in (GYM / "capture" / f"{rollout_id}.tokens.jsonl").read_bytes().splitlines():
            decode_record(line)
    except (InvalidRecord, Unreadable):
        return False
    return True


def test_what_is_rewritten_can_be_read_by_the_rules_of_the_reference(rewritten: Path) -> None:
    read = 0
    for path in sorted(rewritten.glob("*.tokens.jsonl")):
        lines = path.read_bytes().splitlines(keepends=True)
        assert all(line.endswith(b"\n") for line in lines)
        records = [decode_record(line) for line in lines]
        assert {record.rollout_id for record in records} == {path.name.removesuffix(".tokens.jsonl")}
        assert len({record.model_call_id for record in records}) == len(records)
        read += len(records)
    assert read > 300


def test_the_same_captures_again_change_no_byte(rewritten: Path) -> None:
    before = {path.name: path.read_bytes() for path in rewritten.iterdir()}
    done = ingest(rewritten, GYM / "capture")
    assert {path.name: path.read_bytes() for path in rewritten.iterdir()} == before
    assert document(done)["summary"]["added"] == 0
