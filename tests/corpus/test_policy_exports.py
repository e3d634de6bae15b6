"""Claims about `policies/` in every format and form: tokens, mask, log probabilities come back from what is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture import load
from ng_capture.outputs.chunks import joined
from ng_capture.outputs.export.choices import NO_CHOICE, Export
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.made import make
from ng_capture.outputs.forms import Form
from ng_capture.outputs.rebuild import Rebuilt
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.writer import RebuildWriter
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.corpus import corpus_file, corpus_folder, ids_in
from tests.support.exported import in_float32, recovered
from tests.support.policies import judged_case
from tests.support.tables import WRITTEN, named

FILE = corpus_folder("policies") / "cases.json"
CASES: dict[str, Any] = {case["id"]: case for case in json.loads(FILE.read_bytes())} if FILE.exists() else {}
REWARDED = decode_row(b'{"reward": 1.0, "_ng_task_index": 3}')


def made(case_id: str, policy: Policy, name: str, advantage: float | None = None) -> list[dict[str, Any]]:
    judgement = judged_case(CASES[case_id], policy)
    how = Rebuild(Shape(name), judgement.judging, export=NO_CHOICE if name != "rows" else Export(min_trainable=1))
    lines = make(judgement, REWARDED, how, advantage).lines
    return [json.loads(joined(line)) for line in lines]


@pytest.mark.parametrize("name", ["rows", *FORMATS])
@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("case_id", ids_in(FILE, CASES))
def test_the_trajectories_come_back(case_id: str, policy: Policy, name: str) -> None:
    expected = CASES[case_id]["expected"][policy]["trajectories"]
    rows = [recovered(name, row) for row in made(case_id, policy, name)]
    assert [(row.tokens, row.loss_mask) for row in rows] == [(each["tokens"], each["loss_mask"]) for each in expected]
    for row, each in zip(rows, expected, strict=True):
        assert row.log_probs is None or row.log_probs == each["logprobs"]


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("case_id", ids_in(FILE, CASES))
def test_a_datum_of_rl_holds_log_probabilities_and_advantages(case_id: str, policy: Policy) -> None:
    expected = CASES[case_id]["expected"][policy]["trajectories"]
    rows = [recovered("tinker", row) for row in made(case_id, policy, "tinker", advantage=-0.5)]
    assert [row._asdict() for row in rows] == [
        {"tokens": each["tokens"], "loss_mask": each["loss_mask"], "log_probs": each["logprobs"]} for each in expected
    ]


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize(("name", "form"), [*WRITTEN, ("gym-response", Form.JSONL)])
def test_the_trajectories_of_all_cases_come_back_from_one_file(
    tmp_path: Path, name: str, form: Form, policy: Policy
) -> None:
    """Through the writer, and back through `load`."""
    corpus_file(FILE)
    out = named(tmp_path, form)
    expected = []
    with RebuildWriter(str(out), None, Rebuild(Shape(name), Judging(policy), form=form), None) as writer:
        for case_id, case in CASES.items():
            judgement = judged_case(case, policy)
            made = make(judgement, REWARDED, Rebuild(Shape(name), judgement.judging, form=form), None)
            writer.add(Rebuilt(unit=case_id, lines=made.lines, table=made.table, records=made.records))
            expected += case["expected"][policy]["trajectories"]
    rows = list(load(out))
    assert [(row.tokens.tolist(), row.loss_mask.tolist()) for row in rows] == [
        (each["tokens"], each["loss_mask"]) for each in expected
    ]
    for row, each in zip(rows, expected, strict=True):
        assert row.logprobs is None or row.logprobs.tolist() == list(map(in_float32, each["logprobs"]))
