"""Delta prompts are put together from their parents, or not at all."""

from pathlib import Path

from ng_capture.verdicts.judging import Policy
from tests.support.forge import Forge
from tests.support.judging import judged, rows_of


def test_a_chain_of_deltas_is_put_together_whatever_the_order_of_its_lines(tmp_path: Path) -> None:
    forge = Forge(delta=True)
    forge.root([1, 2], [3], id="c").then([4], [5], id="b").then([6], [7], id="a")
    forge.calls.reverse()
    forge.write(tmp_path)
    (row,) = rows_of(judged(tmp_path))
    assert (row["calls"], row["tokens"]) == (["c", "b", "a"], [1, 2, 3, 4, 5, 6, 7])


def test_deltas_in_a_circle_have_no_prompt_to_begin_with(tmp_path: Path) -> None:
    """Neither they nor what hangs on them is in a row, under any policy; what stands beside them is."""
    forge = Forge(delta=True)
    begun = forge.root([1], [2], id="a")
    first = begun.then([3], [4], id="x", parent_call_id="y")
    first.then([5], [6], id="y").then([7], [8], id="z")
    forge.write(tmp_path)
    judgement = judged(tmp_path, policy=Policy.ALL)
    assert [row["calls"] for row in rows_of(judgement)] == [["a"]]
    told = {(finding.reason, finding.call, finding.parent) for finding in judgement.findings if finding.parent}
    assert told == {("parent_cycle", "x", "y"), ("parent_cycle", "y", "x"), ("delta_unresolvable", "z", "y")}
