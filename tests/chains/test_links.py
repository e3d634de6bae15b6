"""How calls are joined to what came before them."""

from pathlib import Path

from ng_capture.verdicts.judging import Policy
from tests.support.forge import Forge, in_lines, write_files
from tests.support.judging import judged, rows_of

UNLINKED = {"parent_resolution": None, "parent_call_id": None}


def reasons(directory: Path, **how: object) -> set[str]:
    return set(judged(directory, **how).reasons)  # type: ignore[arg-type]


def test_links_are_inferred_only_where_no_record_has_any(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2], **UNLINKED).then([3], [4])
    forge.write(tmp_path)
    assert reasons(tmp_path, infer_links=True) == {"link_missing"}


def test_the_longest_fitting_call_is_the_inferred_parent(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a", **UNLINKED)
    second = first.then([3], [4], id="b", **UNLINKED)
    second.then([5], [6], id="c", **UNLINKED)
    forge.write(tmp_path)
    judgement = judged(tmp_path, infer_links=True)
    assert [row.calls for row in judgement.rows] == [("a", "b", "c")]
    assert judgement.deviation == "parent_never_guessed"


def test_identical_candidates_are_noted_and_the_smallest_id_is_taken(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2], id="b", **UNLINKED)
    kept = forge.root([1], [2], id="a", **UNLINKED)
    kept.then([3], [4], id="c", **UNLINKED)
    forge.write(tmp_path)
    judgement = judged(tmp_path, infer_links=True)
    assert [row.calls for row in judgement.rows] == [("a", "c")]
    assert [f.calls for f in judgement.findings if f.reason == "identical_parents"] == [("a", "b")]


def test_candidates_cut_otherwise_are_ambiguous(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2, 3], id="a", **UNLINKED)
    other = forge.root([1, 2], [3], id="b", **UNLINKED)
    other.then([4], [5], id="c", **UNLINKED)
    forge.write(tmp_path)
    assert "ambiguous_parent" in reasons(tmp_path, infer_links=True)


def test_a_child_is_joined_through_a_call_that_generated_nothing(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a")
    first.then([3], [], id="e").then([4], [5], id="c")
    forge.write(tmp_path)
    (row,) = rows_of(judged(tmp_path))
    assert (row["calls"], row["tokens"], row["loss_mask"]) == (["a", "c"], [1, 2, 3, 4, 5], [0, 1, 0, 0, 1])


def test_the_broken_link_of_an_empty_generation_matters_to_who_goes_through_it(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2], id="a")
    forge.unresolved([7], [], id="e")
    forge.write(tmp_path)
    assert reasons(tmp_path) == set()
    forge.calls[1].then([8], [9], id="c")
    forge.write(tmp_path)
    assert reasons(tmp_path) == {"parent_unresolved"}


def test_empty_generations_in_a_circle_end(tmp_path: Path) -> None:
    forge = Forge()
    one = forge.root([1], [], id="e1", parent_call_id="e2", parent_resolution="resolved")
    two = one.then([], [], id="e2")
    two.then([2], [3], id="c")
    forge.write(tmp_path)
    assert reasons(tmp_path) == {"parent_cycle"}


def test_a_child_of_a_call_with_two_contents_is_masked_for_those(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a")
    forge.root([1], [9], id="a")
    last = first.broken([1, 7], [3], id="b")
    forge.write(tmp_path)
    judgement = judged(tmp_path, forge.row(last))
    assert set(judgement.reasons) == {"conflicting_records", "terminal_chain_broken"}
    assert judged(tmp_path, forge.row(last), Policy.ALL).rows == ()


def test_a_child_of_a_call_whose_ids_are_not_its_digests_begins_a_row_of_its_own(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a", generation_token_ids=[8])
    first.then([3], [4], id="b")
    forge.write(tmp_path)
    judgement = judged(tmp_path, policy=Policy.ALL)
    assert [row.calls for row in judgement.rows] == [("b",)]
    assert [(f.call, f.detail) for f in judgement.findings if f.reason == "new_root"] == [("b", "digest_mismatch")]


def test_a_prompt_that_ends_inside_its_parent_says_so(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1, 2], [3, 4], id="a").broken([1, 2, 3], [5], id="b")
    forge.write(tmp_path)
    (finding,) = [f for f in judged(tmp_path).findings if f.reason == "prefix_mismatch"]
    assert (finding.first_difference, finding.expected, finding.found) == (3, 4, None)
    assert "the new prompt ends there" in finding.message


def test_prefix_supply_without_proof_is_a_finding(tmp_path: Path) -> None:
    forge = Forge()
    first = forge.root([1], [2], id="a")
    first.then([3], [4], id="b", prefix_requested=True)
    first.broken([9], [5], id="c", prefix_requested=True)
    forge.write(tmp_path)
    assert [f.call for f in judged(tmp_path).findings if f.reason == "prefix_supply_unproven"] == ["c"]


def test_a_delta_may_come_before_its_parent(tmp_path: Path) -> None:
    forge = Forge(delta=True)
    forge.root([1], [2], id="a").then([3], [4], id="b").then([5], [6], id="c")
    (tmp_path / "r-1.tokens.jsonl").write_bytes(in_lines(reversed(forge.lines())))
    assert [row.calls for row in judged(tmp_path).rows] == [("a", "b", "c")]


def test_a_delta_with_a_bad_id_is_in_no_row(tmp_path: Path) -> None:
    forge = Forge(delta=True)
    forge.root([1], [2], id="a").then([3], [4], id="b", prompt_token_ids=[-1])
    forge.write(tmp_path)
    judgement = judged(tmp_path, policy=Policy.ALL)
    assert [row.calls for row in judgement.rows] == [("a",)]
    assert ("bad_token_id", "b") in {(f.reason, f.call) for f in judgement.findings}


def test_copies_that_are_wrong_in_different_ways_are_two_contents(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1], [2], id="a", generation_log_probs=["x"])
    (line,) = forge.lines()
    write_files(tmp_path, {"r-1.tokens.jsonl": in_lines([line, line.replace(b'["x"]', b"[null]")])})
    assert "conflicting_records" in reasons(tmp_path)


def test_a_circle_of_a_delta_and_a_whole_record_is_read_from_the_whole_one(tmp_path: Path) -> None:
    forge = Forge(delta=True)
    first = forge.root([1], [2], id="b", parent_call_id="a", parent_resolution="resolved")
    first.then([3], [4], id="a")
    forge.write(tmp_path)
    judgement = judged(tmp_path, policy=Policy.ALL)
    assert [row.calls for row in judgement.rows] == [("b", "a")]
    assert [(f.call, f.detail) for f in judgement.findings if f.reason == "new_root"] == [("b", "parent_cycle")]


def test_a_delta_whose_length_is_told_wrongly_keeps_its_place(tmp_path: Path) -> None:
    forge = Forge(delta=True)
    last = forge.root([1], [2], id="a").then([3], [4], id="b", cum_len=9)
    forge.write(tmp_path)
    judgement = judged(tmp_path, forge.row(last))
    assert judgement.reasons == ("digest_mismatch", "terminal_chain_broken")
    assert judgement.deviation == "own_digest"


def test_a_comma_before_the_bracket_is_no_json(tmp_path: Path) -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").then([], [4], id="b")
    forge.write(tmp_path)
    path = tmp_path / "r-1.tokens.jsonl"
    path.write_bytes(path.read_bytes().replace(b"[1,2,3]", b"[1,2,3,]"))
    assert "damaged_line" in reasons(tmp_path)
