"""The broken edges of a rollout: which they are, where they break, what stands there."""

from pathlib import Path
from typing import Any

from ng_capture.outputs.explain.breaks import Break, find_breaks, find_unlinked
from ng_capture.outputs.explain.rollout import ShownRollout
from tests.support.forge import Forge
from tests.support.looking import shown, shown_forge
from tests.support.raw_calls import chat_call, says, system, user, write_capture
from tests.support.vocabulary import Vocabulary


def only(rollout: ShownRollout, **how: Any) -> Break:
    (found,) = find_breaks(rollout, how.get("tokenizer"))
    return found


def breaks(rollout: ShownRollout) -> list[tuple[str, str]]:
    return [(found.call, found.parent) for found in find_breaks(rollout, None)]


def test_a_break_says_where_it_is_and_what_stands_there() -> None:
    forge = Forge()
    held = [*range(100, 120)]
    forge.root(held, [3, 4, 5, 6], id="a").broken([*held, 3, 9, 5, 6, 7], [8], id="b", model="other")
    found = only(shown_forge(forge))
    assert (found.rollout_id, found.call, found.parent, found.turn, found.model) == ("r-1", "b", "a", 1, "other")
    assert (found.common_len, found.region, found.offset) == (21, "generation", 1)
    assert (found.parent_prompt_len, found.held_len, found.new_len) == (20, 24, 25)
    assert (found.held_run, found.new_run, found.held_meets, found.new_meets) == (1, 1, 22, 22)
    assert (found.held.start, found.new.start) == (13, 13)
    assert found.held.ids == (*held[13:], 3, 4, 5, 6) and found.new.ids == (*held[13:], 3, 9, 5, 6, 7)
    assert (found.reason, found.parent_named) == ("prefix_mismatch", True)
    assert (found.held.text, found.texts_equal) == (None, None)


def test_a_break_near_the_beginning_shows_what_there_is() -> None:
    forge = Forge()
    forge.root([1], [3], id="a").broken([2], [4], id="b")
    found = only(shown_forge(forge))
    assert (found.held.start, found.held.ids, found.new.ids) == (0, (1, 3), (2,))
    assert (found.common_len, found.region, found.offset) == (0, "prompt", 0)


def test_with_a_tokenizer_the_texts_are_shown_and_compared() -> None:
    words = Vocabulary("<|stop|>")
    held, new = words.ids("Q", "ab", "c", "<|stop|>"), words.ids("Q", "a", "bc", "<|stop|>", "On")
    forge = Forge()
    forge.root(held[:1], held[1:], id="a").broken(new, [1], id="b")
    found = only(shown_forge(forge), tokenizer=words.tokenizer)
    assert (found.held.text, found.new.text, found.texts_equal) == ("Qabc<|stop|>", "Qabc<|stop|>On", True)
    assert (found.cause, found.group, found.confidence) == ("noncanonical_merge", "retokenised", "likely")


def test_breaks_come_in_the_order_in_which_the_calls_were_made() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="z")
    first.broken([1, 9], [4], id="y").broken([1, 8], [5], id="x", created_at=1.0)
    found = find_breaks(shown_forge(forge), None)
    assert [(each.call, each.turn) for each in found] == [("x", 0), ("y", 2)]


def test_a_link_that_holds_is_no_break() -> None:
    forge = Forge()
    forge.root([1], [2]).then([3], [4]).retry([5])
    assert breaks(shown_forge(forge)) == []


def unlinked(rollout: ShownRollout) -> list[tuple[str, str, str | None, int | None]]:
    found = find_unlinked(rollout, find_breaks(rollout, None))
    return [(each.call, each.reason, each.fits, each.fits_len) for each in found]


def test_a_link_that_failed_though_the_prompt_fits_is_no_break() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a")
    forge.unresolved([1, 2, 3, 4], [5], id="b")
    rollout = shown_forge(forge)
    assert breaks(rollout) == []
    assert unlinked(rollout) == [("b", "parent_unresolved", "a", 3)]


def test_a_parent_that_has_no_record_leaves_nothing_to_compare() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").then([4], [5], id="b", parent_call_id="lost")
    forge.root([7, 8], [9], id="c", parent_call_id="lost", parent_resolution="resolved")
    rollout = shown_forge(forge)
    assert breaks(rollout) == []
    assert sorted(unlinked(rollout)) == [("b", "parent_missing", "a", 3), ("c", "parent_missing", None, None)]


def test_a_broken_prefix_is_not_told_as_a_missing_link_too() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").broken([1, 9], [4], id="b")
    assert unlinked(shown_forge(forge)) == []


def test_a_call_that_names_itself_has_no_break() -> None:
    forge = Forge()
    forge.root([1], [2], id="a", parent_call_id="a", parent_resolution="resolved")
    assert breaks(shown_forge(forge)) == []


def test_a_parent_that_cannot_be_told_is_presumed_by_the_longest_common_beginning() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5], id="b")
    forge.root([1, 7], [8], id="c")
    forge.unresolved([1, 2, 3, 4, 9], [10], id="d")
    found = only(shown_forge(forge))
    assert (found.parent, found.parent_named, found.reason) == ("b", False, "parent_unresolved")


def test_of_calls_with_as_much_in_common_the_last_is_presumed() -> None:
    forge = Forge()
    forge.root([1, 2], [3, 4], id="z")
    forge.root([1, 2], [3, 5], id="a")
    forge.unresolved([1, 2, 3, 9], [10], id="d")
    assert only(shown_forge(forge)).parent == "a"


def test_a_later_call_and_one_with_nothing_in_common_are_never_presumed() -> None:
    forge = Forge()
    forge.root([7, 8], [9], id="a")
    forge.unresolved([1, 2, 3, 4], [5], id="b")
    forge.root([1, 2, 3], [6], id="c")
    assert breaks(shown_forge(forge)) == []


def test_where_every_call_has_its_raw_call_the_conversation_presumes_the_parent() -> None:
    forge = Forge()
    forge.root([1, 2], [3, 4], id="a")
    forge.root([1, 2, 3], [5], id="b")
    forge.unresolved([1, 2, 3, 9], [10], id="c")
    asked = [system("s"), user("go")]
    raw = [
        chat_call("a", asked, says("yes"), at=1.0),
        chat_call("b", [user("title?")], says("x"), at=2.0),
        chat_call("c", [*asked, says("yes"), user("on")], says("end"), at=3.0),
    ]
    assert breaks(shown_forge(forge)) == [("c", "b")]
    assert breaks(shown_forge(forge, raw=raw)) == [("c", "a")]
    assert breaks(shown_forge(forge, raw=raw[:2])) == [("c", "b")]


def test_a_delta_that_cannot_be_put_together_has_no_break_and_hides_no_other() -> None:
    forge = Forge(delta=True)
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5], id="b", parent_call_id="lost")
    first.broken([1, 9], [6], id="c")
    forge.unresolved([1, 2, 8], [7], id="d", prompt_is_delta=False)
    assert breaks(shown_forge(forge)) == [("c", "a"), ("d", "a")]


def test_through_an_empty_generation_the_break_is_that_of_the_call_before_it() -> None:
    forge = Forge()
    forge.root([1, 2], [3], id="a").broken([1, 9], [], id="empty").then([4], [5], id="b")
    assert breaks(shown_forge(forge)) == [("b", "a")]


def test_another_call_whose_sequence_does_begin_the_prompt_is_named() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3], id="a")
    second = first.then([4], [5], id="b")
    second.then([6], [7], id="c").broken([*second.full, 9], [10], id="d")
    found = next(each for each in find_breaks(shown_forge(forge), None) if each.call == "d")
    assert (found.parent, found.fits) == ("c", "b")
    forge = Forge()
    forge.root([1, 2], [3], id="a").broken([1, 9], [4], id="b")
    assert only(shown_forge(forge)).fits is None


def test_the_parent_of_raw_calls_is_presumed(tmp_path: Path) -> None:
    asked = [user("go")]
    rows = [
        chat_call("a", asked, says("yes"), prompt=[1, 2], generation=[3, 4], at=1.0),
        chat_call("b", [*asked, says("no"), user("on")], says("end"), prompt=[1, 2, 5, 6], generation=[7], at=2.0),
    ]
    write_capture(tmp_path, "r-1", rows)
    found = only(shown(tmp_path))
    assert (found.call, found.parent, found.parent_named) == ("b", "a", False)
    assert (found.cause, found.confidence) == ("assistant_text_edited", "likely")


def test_the_stop_token_of_other_generations_tells_what_was_generated_behind_it() -> None:
    forge = Forge()
    first = forge.root([1, 2], [3, 50], id="a")
    second = first.then([4], [5, 50, 8, 9], id="b")
    second.broken([*first.full, 4, 5, 50, 6], [7, 50], id="c")
    assert only(shown_forge(forge)).cause == "tokens_after_stop"
