"""Claims about which chains a policy delivers that no corpus case holds."""

from pathlib import Path

from ng_capture.verdicts.judging import Policy
from tests.support.forge import Forge
from tests.support.judging import judged


def test_under_all_a_scored_call_in_a_circle_of_links_keeps_what_it_extends(tmp_path: Path) -> None:
    forge = Forge("r-1")
    first = forge.root([1, 2], [3], id="a")
    last = first.then([4], [5], id="b")
    first.fields.update(parent_call_id="b", parent_resolution="resolved")
    forge.write(tmp_path)
    judgement = judged(tmp_path, forge.row(last), Policy.ALL)
    assert [row.calls for row in judgement.rows] == [("a", "b")]
