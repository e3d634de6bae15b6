"""What `ingest` found wrong with a raw call, as it stands in the record under `ng_capture`."""

from pathlib import Path
from typing import Any

import pytest

from ng_capture.records.token_entry import NOTED
from ng_capture.verdicts.judging import Policy
from tests.support.forge import Forge
from tests.support.judging import judged, rows_of, trained

CONTEXT = ("beam_search", "generation_aborted")
IN_DOUBT = ("duplicate_key", "multiple_token_items", "source_mismatch", "stream_truncated", "token_count_mismatch")


def noted(directory: Path, note: Any, policy: Policy = Policy.TERMINAL) -> Any:
    """The judgement of three calls in a row, of which the second has this note."""
    forge = Forge()
    forge.root([1], [2], id="a").then([3], [4], id="b", ng_capture=note).then([5], [6], id="c")
    forge.write(directory)
    return judged(directory, policy=policy)


def test_every_noted_problem_has_its_consequence() -> None:
    assert {*CONTEXT, *IN_DOUBT} == NOTED


@pytest.mark.parametrize("problem", sorted(NOTED))
def test_a_noted_problem_masks_at_its_call(problem: str, tmp_path: Path) -> None:
    judgement = noted(tmp_path, {"problems": [problem]})
    assert (judgement.verdict, judgement.reasons) == ("masked", (problem,))
    (finding,) = judgement.findings
    assert (finding.call, finding.line, finding.detail) == ("b", 2, "as its raw call was read")
    assert judgement.deviation == "raw_call_contradiction"


@pytest.mark.parametrize("problem", CONTEXT)
def test_what_the_policy_did_not_sample_is_context(problem: str, tmp_path: Path) -> None:
    judgement = noted(tmp_path, {"problems": [problem]}, Policy.ALL)
    (row,) = rows_of(judgement)
    assert (row["calls"], trained([row])) == (["a", "b", "c"], [("a", 0), ("c", 0)])


@pytest.mark.parametrize("problem", IN_DOUBT)
def test_ids_in_doubt_are_in_no_row(problem: str, tmp_path: Path) -> None:
    rows = rows_of(noted(tmp_path, {"problems": [problem]}, Policy.ALL))
    assert [row["calls"] for row in rows] == [["a"], ["c"]]


@pytest.mark.parametrize(
    "note",
    [
        None,
        [],
        "beam_search",
        {},
        {"problems": None},
        {"problems": "beam_search"},
        {"problems": []},
        {"problems": ["prefix_mismatch", "no_such_reason", 7, None, {"x": 1}]},
        {"warnings": ["beam_search"]},
    ],
)
def test_what_is_no_note_says_nothing(note: Any, tmp_path: Path) -> None:
    judgement = noted(tmp_path, note)
    assert (judgement.verdict, judgement.findings) == ("trainable", ())


def test_what_the_record_shows_itself_is_said_once(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2], id="a", ng_capture={"problems": ["token_count_mismatch", "beam_search"]})
    forge.write(tmp_path, raw=True)
    text = (tmp_path / "r-1.capture.jsonl").read_text()
    (tmp_path / "r-1.capture.jsonl").write_text(text.replace('"output_tokens":1', '"output_tokens":9'))
    judgement = judged(tmp_path)
    found = [finding for finding in judgement.findings if finding.severity == "error"]
    assert sorted(finding.reason for finding in found) == ["beam_search", "token_count_mismatch"]
    # the one that has the numbers
    assert [(f.usage, f.ids) for f in found if f.reason == "token_count_mismatch"] == [(9, 1)]
