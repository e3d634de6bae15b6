"""Claims about `ingest/`: every raw call, in whatever spelling, becomes what its case says."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from ng_capture.ingest.normalise import normalise
from ng_capture.ingest.normalised import NormalisedCall
from tests.support.corpus import corpus_folder, ids_in, json_lines
from tests.support.raw_exchanges import exchange_of

_FILE = corpus_folder("ingest") / "cases.jsonl"


def _is_about_a_call(case: Mapping[str, Any]) -> bool:
    """One line that is no packing, and no fault of lines: those are for the reader of logs."""
    return (
        len(case["lines"]) == 1
        and set(case["how"] or {}) <= {"strict"}
        and not any("error" in expected or "duplicate_record" in expected for expected in case["expect"])
    )


CASES = {case["id"]: case for case in json_lines(_FILE) if _is_about_a_call(case)}


def _told(call: NormalisedCall) -> dict[str, object]:
    """The fields of a call under the names of the cases."""
    answer = call.answer
    told = {name: getattr(call, name) for name in call.__struct_fields__}
    for name in ("problems", "missing", "warnings"):
        told[name] = list(told[name])
    return told | {
        "trainable": call.trainable,
        "tool_calls": [] if answer is None else [each.name for each in answer.tool_calls],
        "reasoning": None if answer is None else answer.reasoning,
        "routed": None if call.routed is None else msgspec.to_builtins(call.routed),
    }


def _same(found: object, expected: object) -> bool:
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(_same, found, expected))
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, abs_tol=1e-6)
    return found == expected


@pytest.mark.parametrize("case_id", ids_in(_FILE, CASES))
def test_a_raw_call_becomes_what_its_case_says(case_id: str) -> None:
    case = CASES[case_id]
    calls = normalise(exchange_of(case["lines"][0].encode()))
    assert len(calls) == len(case["expect"])
    for call, expected in zip(calls, case["expect"], strict=True):
        told = _told(call)
        assert {key: told[key] for key in expected if not _same(told[key], expected[key])} == {}
        assert call.warnings == tuple(expected.get("warnings", ())) or not call.trainable
