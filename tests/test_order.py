"""Promise 4: the order of lines and of files decides nothing (design.md, "Judging" and "Reliability promises")."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.outputs.report import report_on
from ng_capture.verdicts.policies import Policy
from tests.support.capture import Capture
from tests.support.forge import Files, Forge, in_lines, write_files
from tests.support.judging import delivered, judged, rows_of
from tests.support.strategies import captures

PARTS = ("", ".gz", ".zst")
OF_THE_PLACE = ("file", "line", "lines", "byte", "message")


def told(files: Files, capture: Capture, policy: Policy) -> dict[str, Any]:
    """Everything that is said of a rollout but where it was read."""
    judgement, rows = delivered(capture, policy, files)
    report = msgspec.to_builtins(report_on(judgement, None, None))
    # what the reference would have said rests on where its index ends
    del report["deviation"]
    bare = [{key: value for key, value in found.items() if key not in OF_THE_PLACE} for found in report["findings"]]
    report["findings"] = sorted(bare, key=repr)
    report["notes"] = sorted(report["notes"])
    report["rows"] = [{key: value for key, value in row.items() if key != "sources"} for row in rows]
    return report


@settings(max_examples=70, deadline=None)
@given(capture=captures("call whole"), policy=st.sampled_from(list(Policy)), data=st.data())
def test_the_order_of_lines_changes_nothing_that_is_told(capture: Capture, policy: Policy, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(capture.lines))))
    shuffled = capture.files_in(order, [""] * len(order))
    assert told(shuffled, capture, policy) == told(capture.files(), capture, policy)


@settings(max_examples=70, deadline=None)
@given(capture=captures("call whole"), policy=st.sampled_from(list(Policy)), data=st.data())
def test_records_split_over_plain_and_compressed_files_are_one_rollout(
    capture: Capture, policy: Policy, data: st.DataObject
) -> None:
    count = len(capture.lines)
    order = data.draw(st.permutations(range(count)))
    parts = data.draw(st.lists(st.sampled_from(PARTS), min_size=count, max_size=count))
    assert told(capture.files_in(order, parts), capture, policy) == told(capture.files(), capture, policy)


@pytest.mark.parametrize("part", PARTS)
def test_a_compressed_file_is_judged_as_the_plain_one(part: str, tmp_path: Path) -> None:
    forge = Forge()
    answer = forge.root([1, 2], [3]).then([4], [5, 6])
    forge.write(tmp_path, compression=part)
    assert [row["tokens"] for row in rows_of(judged(tmp_path, forge.row(answer)))] == [[1, 2, 3, 4, 5, 6]]


def test_two_unreadable_lines_lose_their_neighbours_to_one_reason_in_either_order(tmp_path: Path) -> None:
    forge = Forge()
    newer, sound = forge.root([1], [2], schema_version=2).line(), forge.root([3], [4]).line()
    lost = []
    for number, lines in enumerate([(newer, b"?", sound), (b"?", newer, sound)]):
        write_files(tmp_path / str(number), {"r-1.tokens.jsonl": in_lines(lines)})
        lost.append(judged(tmp_path / str(number)).accounting.lost)
    assert lost[0] == lost[1]
