"""Where the generated tokens went."""

from pathlib import Path

from ng_capture.verdicts.judging import Policy
from tests.support.forge import Forge
from tests.support.judging import judged


def test_under_all_what_hangs_on_two_contents_is_lost_to_those(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a")
    forge.root([1], [2], id="a", created_at=7.0)
    first.then([3], [4, 5], id="b")
    forge.root([8], [9], id="s")
    forge.write(tmp_path)
    accounting = judged(tmp_path, policy=Policy.ALL).accounting
    assert (accounting.trained, accounting.lost) == (1, {"conflicting_records": 3})


def test_under_all_what_leads_to_an_unsettled_retry_is_lost_to_it(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a")
    first.then([3], [4], id="b")
    first.then([3], [5], id="c")
    forge.root([8], [9], id="s")
    forge.write(tmp_path)
    accounting = judged(tmp_path, policy=Policy.ALL).accounting
    assert (accounting.trained, accounting.lost) == (1, {"ambiguous_retry": 3})


def test_after_and_beside_the_scored_call_are_told_apart(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a")
    scored = first.then([3], [4], id="b")
    first.then([3], [5], id="lost")
    scored.then([6], [7], id="later")
    first.then([8], [9], id="beside")
    forge.write(tmp_path)
    accounting = judged(tmp_path, forge.row(scored)).accounting
    assert accounting.lost == {"abandoned_retry": 1, "after_terminal": 1, "off_path": 1}


def test_a_time_of_no_world_is_told_as_it_is(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2], id="a", created_at=1e300)
    forge.root([3], [4], id="b")
    forge.write(tmp_path)
    assert "1e+300" in next(f.message for f in judged(tmp_path).findings if f.reason == "multiple_roots")


def test_a_call_without_ids_is_nobodys_inferred_child(tmp_path: Path) -> None:
    forge = Forge()
    bare = {"parent_resolution": None, "parent_call_id": None}
    forge.root([1], [2], id="a", **bare).then([3], [4], id="b", **bare)
    forge.root([1], [5], id="bad", prompt_token_ids=[-1], **bare)
    forge.write(tmp_path)
    assert judged(tmp_path, infer_links=True).reasons == ("bad_token_id",)
