"""What health takes of one rollout."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from ng_capture.records.defects import Defect
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.findings import Finding, find
from ng_capture.verdicts.health.measures import Place
from ng_capture.verdicts.health.rollout import RolloutHealth, measures_of
from ng_capture.verdicts.metrics import Metrics
from tests.support.capture import Capture
from tests.support.forge import Files, Forge
from tests.support.judging import judged
from tests.support.rollout_health import (
    RAW_ONLY,
    Run,
    health_of,
    health_of_saved_verdict,
    measures,
    of_runs,
    rollout,
    runs,
)
from tests.support.strategies import captures


def finding(reason: str) -> Finding:
    return find(Defect(reason=reason))


def test_a_rollout_that_was_handed_off_is_told_by_its_one_reason() -> None:
    assert rollout(reasons=("retired",)).retired
    assert not rollout(reasons=("retired", "torn_tail")).retired
    assert not rollout(verdict="masked", reasons=None).retired


@pytest.mark.parametrize(
    ("told", "calls"),
    [
        ({"measures": measures(calls=3), "metrics": Metrics(n_calls=5)}, 3),
        ({"measures": measures(calls=0), "metrics": Metrics(n_calls=5)}, 0),
        ({"metrics": Metrics(n_calls=5)}, 5),
    ],
)
def test_the_calls_are_the_distinct_ones_or_else_those_that_gym_counted(told: dict[str, Any], calls: int) -> None:
    assert rollout(**told).calls == calls


NO_CALL = {"verdict": "masked", "measures": measures(calls=0)}


@pytest.mark.parametrize(
    ("told", "captured"),
    [
        ({"verdict": "masked", "measures": measures(calls=1)}, True),
        ({"verdict": "masked", "metrics": Metrics(n_calls=1)}, True),
        ({"verdict": "masked", "metrics": Metrics(n_calls=0)}, False),
        ({"verdict": "masked", "reasons": None}, False),
        ({"verdict": "trainable"}, True),
        ({**NO_CALL, "reasons": ("retired",)}, True),
        ({**NO_CALL, "reasons": ("empty_capture",)}, False),
        ({**NO_CALL, "findings": (finding("empty_capture"),)}, False),
        ({**NO_CALL, "findings": (finding("empty_capture"), finding("bom"))}, False),
        ({**NO_CALL, "findings": (finding("damaged_line"),)}, True),
        ({**NO_CALL, "findings": (finding("schema_too_new"),)}, True),
        ({**NO_CALL, "findings": (finding("capture_incomplete"),)}, False),
        ({**NO_CALL, "findings": (finding("empty_capture"), finding("torn_tail"))}, True),
    ],
)
def test_a_rollout_is_captured_where_something_of_its_calls_is_there_or_was(
    told: dict[str, Any], captured: bool
) -> None:
    assert rollout(**told).captured is captured


@pytest.mark.parametrize(
    ("files", "captured"),
    [
        ({"r-1.tokens.jsonl": b""}, False),
        ({"r-1.tokens.jsonl": b"\xef\xbb\xbf"}, False),
        ({"r-1.tokens.jsonl": b"{"}, True),
        ({"r-1.capture.jsonl": b'{"model_call_id": "x", "status_code": 500}\n'}, True),
        ({"r-1.tokens.state.json": b'{"retired": true}'}, True),
    ],
)
def test_a_directory_and_its_saved_verdict_tell_the_same_of_what_was_captured(files: Files, captured: bool) -> None:
    assert health_of(files).captured is captured
    assert health_of_saved_verdict(files).captured is captured


@of_runs
@given(run=runs(max_size=2))
def test_a_rollout_survives_json(run: Run) -> None:
    for each in run:
        told = msgspec.json.decode(msgspec.json.encode(each), type=RolloutHealth)
        assert msgspec.to_builtins(told) == msgspec.to_builtins(each)
        assert (told.calls, told.captured, told.retired) == (each.calls, each.captured, each.retired)


@of_runs
@given(run=runs(RAW_ONLY, max_size=2))
def test_raw_calls_alone_have_no_verdict_and_nothing_that_masks(run: Run) -> None:
    for each in run:
        assert (each.verdict, each.reasons, each.metrics, each.accounting) == (None, (), None, None)


@of_runs
@given(capture=captures("call end", max_faults=1))
def test_the_lengths_of_the_generations_add_up_to_what_was_sampled(capture: Capture) -> None:
    found = health_of(capture.files(), capture.row)
    assert found.measures is not None
    assert sum(found.measures.generation_lengths) == (found.accounting.captured if found.accounting else None)


def test_a_rollout_stands_where_its_source_says_or_else_where_its_id_says() -> None:
    elsewhere, beside = Place("maths", "maths", 1), Place("code", "code", 0)
    assert rollout("4-0", measures=measures(place=elsewhere), place=beside).stands_at == elsewhere
    assert rollout("4-0", place=beside).stands_at == beside
    assert rollout("4-0").stands_at == Place("4", "4", 0)


def test_the_place_is_the_rows_where_there_is_one(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2])
    forge.write(tmp_path)
    row = decode_row(json.dumps(forge.row(_ng_task_index="maths")).encode())
    assert measures_of(judged(tmp_path), row).place.task == "maths"
    assert measures_of(judged(tmp_path), None).place.task == "r"
