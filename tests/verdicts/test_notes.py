"""What is noted of a rollout that may be trained all the same."""

from pathlib import Path

import pytest

from tests.support.forge import Forge
from tests.support.judging import judged, rows_of

ROWS_OF_ROOT, ROWS_OF_NEXT = [[[1]], [[2]], [[3]]], [[[1]], [[2]], [[3]], [[4]], [[5]]]


@pytest.mark.parametrize(
    ("root", "following", "without"),
    [(ROWS_OF_ROOT, None, "b"), (None, ROWS_OF_NEXT, "a"), (ROWS_OF_ROOT, ROWS_OF_NEXT, None), (None, None, None)],
)
def test_a_chain_in_which_some_calls_have_routed_experts_is_noted(
    tmp_path: Path, root: object, following: object, without: str | None
) -> None:
    """None of its tokens has any then (policies-and-exports.md I28): a replay would follow a gap."""
    forge = Forge()
    forge.root([1, 2], [3], id="a", routed_experts=root).then([4], [5], id="b", routed_experts=following)
    forge.write(tmp_path)
    judgement = judged(tmp_path)
    assert judgement.verdict == "trainable"
    noted = [finding.calls for finding in judgement.findings if finding.reason == "routed_experts_missing"]
    assert noted == ([] if without is None else [(without,)])
    (row,) = rows_of(judgement)
    whole = None if root is None else [[[1]], [[2]], [[3]], [[4]], None]
    assert row.get("routed_experts") == (whole if without is None else [None] * 5)


def test_the_versions_of_the_weights_that_sampled_a_rollout_are_noted(tmp_path: Path) -> None:
    """All of them, in order (I17); one alone is nothing to note."""
    forge = Forge()
    last = forge.root([1, 2], [3], weight_version=10).then([4], [5], weight_version=9)
    forge.write(tmp_path)
    (noted,) = (finding for finding in judged(tmp_path).findings if finding.reason == "mixed_weight_versions")
    assert "9, 10" in noted.message
    last.fields["weight_version"] = 10
    forge.write(tmp_path)
    assert "mixed_weight_versions" not in {finding.reason for finding in judged(tmp_path).findings}
