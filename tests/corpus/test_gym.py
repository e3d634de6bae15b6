"""Claims about `gym/`: we say what NeMo Gym 0.7.0 says, but for the named deviations, and nothing else differs."""

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest

from ng_capture.outputs.chunks import joined
from ng_capture.outputs.delivery import deliver
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.deviations import DEVIATIONS
from ng_capture.verdicts.judge import Judgement, judge
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.corpus import corpus_folder, ids_in
from tests.support.gym import (
    ALONE,
    WITH_ROW,
    Gym,
    answer_for_case,
    answer_for_rollout,
    answer_of,
    canonical_sha256,
    case_evidence,
    metrics_of,
    rebuilt,
    rows_of,
    rows_sha256,
    snapshot_of,
    told_metrics,
)
from tests.support.reference import Answer, Records, comparable, corrected

FOLDER = corpus_folder("gym")
GYM = Gym(FOLDER)
SOURCES = {WITH_ROW: "expected.jsonl", ALONE: "expected.unattributed.jsonl"}


def _runs(file: str, runs: Iterable[tuple[str, str]]) -> list[Any]:
    """Rollouts with and without their rows, as `rollout_id, source`; one skipped parameter without the file."""
    if not (FOLDER / file).exists():
        return [pytest.param("", "", id=file, marks=each.marks) for each in ids_in(FOLDER / file, ())]
    return [pytest.param(rollout_id, source, id=f"{rollout_id}, {source}") for rollout_id, source in runs]


def _said(source: str, *, built: bool) -> list[Any]:
    """The reference's answers that have chains, or those that have none because it refused to read."""
    answers = GYM.reference[source].items()
    return _runs(SOURCES[source], [(i, source) for i, said in answers if (said.get("chains") is not None) is built])


WANTED = _runs(
    "expected.ours.jsonl", [(i, source) for i in GYM.ours for source in SOURCES if GYM.wanted(i, source) is not None]
)
BUILT = [*_said(WITH_ROW, built=True), *_said(ALONE, built=True)]
REFUSED = [*_said(WITH_ROW, built=False), *_said(ALONE, built=False)]
DELIVERED = ids_in(FOLDER / "expected.jsonl", [i for i, said in GYM.reference[WITH_ROW].items() if said["row_sha256"]])
CASES = ids_in(FOLDER / "cases.jsonl", GYM.cases)
BUILT_CASES = ids_in(FOLDER / "cases.jsonl", [i for i, case in GYM.cases.items() if "chains" in case["expect"]])
OUR_CASES = ids_in(FOLDER / "cases.ours.jsonl", GYM.our_cases)

wanted_runs = pytest.mark.parametrize(("rollout_id", "source"), WANTED)
built_runs = pytest.mark.parametrize(("rollout_id", "source"), BUILT)


def judged(rollout_id: str, source: str, policy: Policy = Policy.TERMINAL) -> Judgement:
    return judge(GYM.snapshot(rollout_id), GYM.evidence(rollout_id, source), Judging(policy=policy))


def _skip_if_open(records: Records) -> None:
    if records.open:
        pytest.skip("a call id has two contents, and which of them stands in the chains is not fixed")


# Rollouts: the verdict and the training rows


@wanted_runs
def test_the_verdict_and_its_deviation_are_those_wanted(rollout_id: str, source: str) -> None:
    wanted = GYM.wanted(rollout_id, source) or {}
    judgement = judged(rollout_id, source)
    assert (judgement.verdict, judgement.deviation) == (wanted["verdict"], wanted["deviation"]), judgement.reasons


@wanted_runs
def test_the_verdict_is_the_references_where_no_deviation_is_named(rollout_id: str, source: str) -> None:
    said = GYM.reference[source].get(rollout_id, {}).get("mask_sample")
    judgement = judged(rollout_id, source)
    if said is not None:
        assert ((judgement.verdict == "masked") is said) is (judgement.deviation is None), judgement.reasons


@pytest.mark.parametrize("policy", Policy)
@wanted_runs
def test_the_training_rows_of_every_policy_are_those_wanted(rollout_id: str, source: str, policy: Policy) -> None:
    wanted = GYM.wanted(rollout_id, source) or {}
    rows = rows_of(judged(rollout_id, source, policy))
    assert (len(rows), rows_sha256(rows)) == (wanted["rows"][policy], wanted["rows_sha256"][policy])


@pytest.mark.parametrize("policy", Policy)
@wanted_runs
def test_every_captured_token_is_trained_context_or_lost(rollout_id: str, source: str, policy: Policy) -> None:
    told = judged(rollout_id, source, policy).accounting
    assert told.captured == told.trained + told.context + sum(told.lost.values())


# Rollouts: what the reference reports


@built_runs
def test_the_metrics_are_the_references(rollout_id: str, source: str) -> None:
    _skip_if_open(GYM.records(rollout_id))
    told = told_metrics(judged(rollout_id, source))
    said = GYM.reference[source][rollout_id]
    if said["metrics"]:
        assert told == metrics_of(GYM.wanted_answer(rollout_id, source), said)


@built_runs
def test_chains_and_lists_of_calls_are_the_references(rollout_id: str, source: str) -> None:
    _skip_if_open(GYM.records(rollout_id))
    told, wanted = answer_of(judged(rollout_id, source)), GYM.wanted_answer(rollout_id, source)
    names = ("chains", "quarantined", "unresolved", "empty", "retries")
    assert {name: getattr(told, name) for name in names} == {name: getattr(wanted, name) for name in names}


@pytest.mark.parametrize(("rollout_id", "source"), REFUSED)
def test_a_rollout_without_records_has_the_references_metrics(rollout_id: str, source: str) -> None:
    judgement = judged(rollout_id, source)
    said = GYM.reference[source][rollout_id]
    # where records could be read, the good lines have metrics that the reference does not know
    if not judgement.snapshot.entries and said["outcome"] != "none":
        assert told_metrics(judgement) == said["metrics"]


# Rollouts: rebuilt responses and delivered rows


@built_runs
def test_the_rebuilt_response_is_the_references(rollout_id: str, source: str) -> None:
    _skip_if_open(GYM.records(rollout_id))
    said = GYM.reference[source][rollout_id]
    if said["outcome"] == "redundant":
        pytest.skip("the row carries token ids already: nothing is rebuilt")
    answer = answer_for_rollout(said)
    if GYM.wanted_answer(rollout_id, source).chains != answer.chains:
        pytest.skip("a deviation changes the chains")
    response = GYM.evidence(rollout_id, source).response or {}
    built = rebuilt(judged(rollout_id, source), str(response.get("model") or ""))
    assert (built and canonical_sha256(built)) == said["rebuilt_sha256"]


@pytest.mark.parametrize("rollout_id", DELIVERED)
def test_the_delivered_row_is_the_references(rollout_id: str) -> None:
    said = GYM.reference[WITH_ROW][rollout_id]
    data = GYM.rows[rollout_id]
    judgement = judged(rollout_id, WITH_ROW)
    told = json.loads(joined(deliver(judgement, decode_row(data), data)[0]))
    if said["outcome"] in ("built", "failed"):
        _undo_deviations(told, json.loads(data), said, judgement)
    assert canonical_sha256(told) == said["row_sha256"]


def _undo_deviations(told: dict[str, Any], before: dict[str, Any], said: dict[str, Any], judgement: Judgement) -> None:
    """Put back into a delivered row what a named deviation, and nothing else, changes in it."""
    if judgement.deviation is not None:
        told["mask_sample"] = said["mask_sample"]
        if not said["mask_sample"]:
            del told["mask_sample"]
    readable = said.get("chains") is not None
    if not readable and judgement.snapshot.entries:
        # the good lines of a rollout that the reference refuses have a response and metrics of their own
        told["response"] = before.get("response")
        if "response" not in before:
            del told["response"]
    if _links_differ(said, judgement) if readable else judgement.snapshot.entries:
        told["_ng_token_capture"] = said["metrics"] | ({"error": said["error"]} if said["error"] else {})


def _links_differ(said: dict[str, Any], judgement: Judgement) -> bool:
    answer = answer_for_rollout(said)
    return corrected(answer, GYM.records(judgement.rollout_id)) != answer


# Build cases


def judged_case(case_id: str, policy: Policy = Policy.TERMINAL) -> Judgement:
    case = GYM.cases[case_id]
    snapshot = snapshot_of(case["rollout_id"], case["entries"], incomplete=case["incomplete"])
    return judge(snapshot, case_evidence(case), Judging(policy=policy))


def wanted_case_answer(case_id: str) -> Answer:
    return corrected(answer_for_case(GYM.cases[case_id]), Records(GYM.cases[case_id]["entries"]))


@pytest.mark.parametrize("case_id", OUR_CASES)
def test_the_verdict_of_a_case_and_its_deviation_are_those_wanted(case_id: str) -> None:
    wanted = GYM.our_cases[case_id]
    judgement = judged_case(case_id)
    assert (judgement.verdict, judgement.deviation) == (wanted["verdict"], wanted["deviation"]), judgement.reasons


@pytest.mark.parametrize("case_id", CASES)
def test_the_verdict_of_a_case_is_the_references_where_no_deviation_is_named(case_id: str) -> None:
    judgement = judged_case(case_id)
    said = GYM.cases[case_id]["expect"]["mask"]
    assert ((judgement.verdict == "masked") is said) is (judgement.deviation is None), judgement.reasons


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("case_id", OUR_CASES)
def test_the_training_rows_of_a_case_are_those_wanted(case_id: str, policy: Policy) -> None:
    rows = [[row["calls"], row["tokens"], row["loss_mask"]] for row in rows_of(judged_case(case_id, policy))]
    assert rows == GYM.our_cases[case_id]["rows"][policy]


@pytest.mark.parametrize("case_id", CASES)
def test_the_scored_call_of_a_case_is_the_references(case_id: str) -> None:
    expect = GYM.cases[case_id]["expect"]
    told = answer_of(judged_case(case_id))
    assert (told.method, told.terminal, told.reason) == (expect["method"], expect["terminal"], expect["reason"])


@pytest.mark.parametrize("case_id", CASES)
def test_a_case_is_incomplete_where_the_reference_says_so(case_id: str) -> None:
    assert judged_case(case_id).metrics.capture_incomplete is GYM.cases[case_id]["expect"]["incomplete"]


@pytest.mark.parametrize("case_id", BUILT_CASES)
def test_the_chains_and_counts_of_a_case_are_the_references(case_id: str) -> None:
    records = Records(GYM.cases[case_id]["entries"])
    told, wanted = answer_of(judged_case(case_id)), wanted_case_answer(case_id)
    assert comparable(told, records) == comparable(wanted, records)


@pytest.mark.parametrize("case_id", BUILT_CASES)
def test_the_fraction_of_a_case_is_the_references(case_id: str) -> None:
    _skip_if_open(Records(GYM.cases[case_id]["entries"]))
    wanted = wanted_case_answer(case_id)
    if wanted == answer_for_case(GYM.cases[case_id]):
        assert wanted.fraction == GYM.cases[case_id]["expect"]["fraction"]
    assert (judged_case(case_id).metrics.delivered_fraction or 0.0) == wanted.fraction


@pytest.mark.parametrize("case_id", BUILT_CASES)
def test_the_interstitial_tokens_of_a_case_are_the_references(case_id: str) -> None:
    records = Records(GYM.cases[case_id]["entries"])
    _skip_if_open(records)
    wanted = wanted_case_answer(case_id)
    if wanted.chains == answer_for_case(GYM.cases[case_id]).chains:
        interstitials = GYM.cases[case_id]["expect"]["interstitials"]
    else:
        interstitials = _interstitials(wanted, records)
    analysis = judged_case(case_id).analysis
    told = []
    for chain in analysis.chains:
        held = len(analysis.calls[chain.calls[0]].prompt or ())
        links = []
        for call in (analysis.calls[call] for call in chain.calls):
            assert call.prompt is not None and call.full is not None
            links.append(call.prompt.values().tolist()[held:])
            held = len(call.full)
        told.append(links)
    assert told == interstitials


def _interstitials(answer: Answer, records: Records) -> list[list[list[int]]]:
    found = []
    for _, calls in answer.chains:
        pairs = pairwise(calls)
        found.append([[], *((records.prompt(call) or [])[len(records.full(above)) :] for above, call in pairs)])
    return found


@pytest.mark.parametrize("case_id", BUILT_CASES)
def test_the_rebuilt_tokens_of_a_case_are_the_references(case_id: str) -> None:
    expect = GYM.cases[case_id]["expect"]
    wanted, records = wanted_case_answer(case_id), Records(GYM.cases[case_id]["entries"])
    _skip_if_open(records)
    built = rebuilt(judged_case(case_id))
    if "tokens" not in expect:
        assert built is None
        return
    tokens, items, usage = expect["tokens"], expect["items"], expect["usage"]
    if wanted.chains != answer_for_case(GYM.cases[case_id]).chains:
        tokens = [[records.prompt(call), records.generation(call)] for call in wanted.main]
        items = sum(len(records.first[call]["output_items"]) or 1 for call in wanted.main)
        usage = [len(tokens[0][0]), sum(len(generation) for _, generation in tokens)]
    assert built is not None
    carriers = [item for item in built["output"] if "generation_token_ids" in item]
    assert [[item["prompt_token_ids"], item["generation_token_ids"]] for item in carriers] == tokens
    assert len(built["output"]) == items
    assert [built["usage"]["input_tokens"], built["usage"]["output_tokens"]] == usage


# The table of deviations


def test_every_deviation_that_the_folder_names_is_in_the_table() -> None:
    assert GYM.deviations <= DEVIATIONS.keys()
