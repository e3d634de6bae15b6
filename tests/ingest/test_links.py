"""What each call continues: by what the source says, by its words, by its tokens (capture-files.md 3)."""

import random
from array import array
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.ingest.candidate import Candidate
from ng_capture.ingest.held import Evidence, HeldCall
from ng_capture.ingest.links import Link, find_links
from ng_capture.records.lineage import Parent
from tests.support.candidates import Made, candidates, conversations, rows_of
from tests.support.forge import Row
from tests.support.ingesting import dialogue
from tests.support.raw_calls import chat_call, says, user


def links(rows: list[Row]) -> dict[str, Link]:
    return find_links(candidates(rows), {})


def parents(rows: list[Row]) -> dict[str, str | None]:
    return {name: link.parent.parent_call_id for name, link in links(rows).items()}


def without_words(rows: list[Row]) -> list[Row]:
    return [{**row, "request": {}} for row in rows]


def as_held(candidate: Candidate) -> HeldCall:
    """The same call as if it lay in the store."""
    record = candidate.record
    assert record is not None
    full = array("i", [*record.prompt_token_ids, *record.generation_token_ids])
    bare = msgspec.structs.replace(record, prompt_token_ids=[], generation_token_ids=[], generation_log_probs=[])
    return HeldCall(candidate.call_id, bare, full, len(record.generation_token_ids), Evidence(None, b"", b""))


def test_a_conversation_is_a_chain_that_its_words_tell() -> None:
    found = links(dialogue(3))
    assert {name: link.parent.parent_call_id for name, link in found.items()} == {"c0": None, "c1": "c0", "c2": "c1"}
    assert [link.how for link in found.values()] == [None, "conversation", "conversation"]
    assert found["c0"].parent == Parent("root")


def test_tokens_alone_are_a_chain_by_the_longest_prefix() -> None:
    found = links(without_words(dialogue(3)))
    assert {name: (link.parent.parent_call_id, link.how) for name, link in found.items()} == {
        "c0": (None, None),
        "c1": ("c0", "prefix"),
        "c2": ("c1", "prefix"),
    }


def test_where_words_and_tokens_disagree_the_words_count_and_the_edge_is_broken() -> None:
    rows = dialogue(3)
    message = rows[2]["response"]["choices"][0]["message"]
    # all that c0 holds, and nothing of c1
    message["prompt_token_ids"] = [*message["prompt_token_ids"][:4], 7]
    found = links(rows)["c2"]
    assert (found.parent, found.how) == (Parent("resolved", "c1"), "conversation")


def test_of_two_equal_answers_the_one_whose_tokens_the_prompt_holds_is_continued() -> None:
    asked = [user("go")]
    one, other = (
        chat_call(name, asked, says("same"), prompt=[1], generation=[token], at=at)
        for name, token, at in (("a", 5, 1.0), ("b", 6, 2.0))
    )
    then = [*asked, says("same"), user("on")]
    assert parents([one, other, chat_call("c", then, says("x"), prompt=[1, 5, 9], generation=[3], at=3.0)])["c"] == "a"
    assert parents([one, other, chat_call("c", then, says("x"), prompt=[1, 6, 9], generation=[3], at=3.0)])["c"] == "b"


def test_of_two_equal_answers_of_which_neither_fits_none_is_chosen() -> None:
    asked = [user("go")]
    rows = [
        chat_call(name, asked, says("same"), prompt=[1], generation=[token], at=float(token))
        for name, token in (("a", 5), ("b", 6))
    ]
    then = [*asked, says("same"), user("on")]
    found = links([*rows, chat_call("c", then, says("x"), prompt=[1, 7, 9], generation=[3], at=9.0)])["c"]
    assert (found.parent, found.how) == (Parent("unresolved", reason="ambiguous"), None)


def test_of_two_calls_that_are_one_token_for_token_the_first_id_stands_for_both() -> None:
    asked = [user("go")]
    rows = [chat_call(name, asked, says("same"), prompt=[1], generation=[5], at=1.0) for name in "ba"]
    then = [*asked, says("same"), user("on")]
    assert parents([*rows, chat_call("c", then, says("x"), prompt=[1, 5, 9], generation=[3], at=9.0)])["c"] == "a"


def test_an_answer_that_nobody_gave_leaves_a_call_unresolved() -> None:
    asked = [user("go"), says("who said that?"), user("on")]
    found = links([chat_call("a", asked, says("x"), prompt=[1], generation=[5], at=1.0)])["a"]
    assert (found.parent, found.how) == (Parent("unresolved", reason="no_match"), None)


def test_a_request_that_cannot_be_fingerprinted_is_a_lookup_error() -> None:
    asked: list[Row] = [{"role": "assistant", "content": 1e400}, user("on")]
    row = chat_call("a", [user("x")], says("x"), prompt=[1], generation=[5], at=1.0)
    row["request"]["messages"] = asked
    found = links([row])["a"]
    assert found.parent.resolution == "unresolved" and found.parent.reason in ("lookup_error", "no_match")


def test_what_the_source_names_is_taken_whatever_the_words_say() -> None:
    named = [msgspec.structs.replace(each, named_parent="elsewhere") for each in candidates(dialogue(2))[1:]]
    found = find_links([*candidates(dialogue(1)), *named], {})["c1"]
    assert (found.parent, found.how) == (Parent("resolved", "elsewhere"), "recorded")


@pytest.mark.parametrize("words", [True, False])
def test_a_parent_may_lie_in_the_store(words: bool) -> None:
    rows = dialogue(3) if words else without_words(dialogue(3))
    made = candidates(rows)
    held = {each.call_id: as_held(each) for each in made[:2]}
    found = find_links(made[2:], held)
    assert found["c2"].parent == Parent("resolved", "c1")
    # the same whether they are brought again or not
    assert find_links(made, held)["c2"] == found["c2"]


def test_a_call_never_goes_on_with_its_own_response() -> None:
    row = dialogue(1)[0]
    row["request"]["previous_response_id"] = row["response"]["id"]
    found = links([row])["c0"]
    assert found.parent == Parent("unresolved", reason="no_match")


def test_a_call_that_generated_nothing_is_no_parent_by_tokens() -> None:
    rows = without_words(dialogue(2))
    rows[0]["response"]["choices"][0]["message"] |= {"generation_token_ids": [], "generation_log_probs": []}
    assert parents(rows)["c1"] is None


# Whatever was made


def told(found: dict[str, Link]) -> dict[str, tuple[Parent, str | None]]:
    return {name: (link.parent, link.how) for name, link in found.items()}


ANY = st.one_of(conversations(), conversations(alike=True), conversations(broken=True))


@settings(deadline=None)
@given(ANY, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_in_which_calls_are_read_changes_no_link(
    calls: list[Made], words: bool, chance: random.Random
) -> None:
    made = candidates(rows_of(calls, words=words))
    shuffled = made.copy()
    chance.shuffle(shuffled)
    assert told(find_links(shuffled, {})) == told(find_links(made, {}))


def test_where_words_and_tokens_go_round_in_a_circle_the_words_count() -> None:
    """The first call would continue the second by its tokens, and the second the first by its words."""
    first = chat_call("a", [user("go")], says("one"), prompt=[1, 2, 9], generation=[3], at=1.0)
    then = [user("go"), says("one"), user("on")]
    second = chat_call("b", then, says("two"), prompt=[1], generation=[2], at=2.0)
    assert parents([first, second]) == {"a": None, "b": "a"}
    assert links([first, second])["a"].parent == Parent("root")


@settings(deadline=None)
@given(ANY, st.data())
def test_links_never_go_round_in_a_circle(calls: list[Made], data: st.DataObject) -> None:
    # clocks that go wrong, calls whose words were lost, calls that lie in the store
    times = data.draw(st.permutations([call.at for call in calls]))
    for call, at in zip(calls, times, strict=True):
        call.at = at
    made = candidates(call.row(words=data.draw(st.booleans())) for call in calls)
    held = {each.call_id: as_held(each) for each in made if data.draw(st.booleans())}
    found = find_links(made, {} if data.draw(st.booleans()) else held)
    for name in found:
        seen: list[str] = []
        here: str | None = name
        while here in found and here is not None:
            assert here not in seen, (seen, calls)
            seen.append(here)
            here = found[here].parent.parent_call_id


@settings(deadline=None)
@given(conversations())
def test_what_truly_happened_is_found_by_words_and_by_tokens(calls: list[Made]) -> None:
    true = {call.name: call.parent.name if call.parent else None for call in calls}
    assert parents(rows_of(calls)) == true
    assert parents(rows_of(calls, words=False)) == true


@settings(deadline=None)
@given(st.one_of(conversations(alike=True), conversations(broken=True)))
def test_a_link_by_tokens_is_that_to_the_longest_sequence_that_the_prompt_begins_with(calls: list[Made]) -> None:
    found = links(rows_of(calls, words=False))
    for call in calls:
        fit = [each for each in calls if each is not call and call.prompt[: len(each.full)] == each.full]
        longest = max((len(each.full) for each in fit), default=None)
        parent = found[call.name].parent.parent_call_id
        if longest is None:
            assert parent is None and found[call.name].parent == Parent("root")
        else:
            assert parent == min(each.name for each in fit if len(each.full) == longest)


@settings(deadline=None)
@given(conversations(alike=True), st.data())
def test_a_link_that_is_told_to_hold_does_not_depend_on_how_much_lies_in_the_store(
    calls: list[Made], data: Any
) -> None:
    made = candidates(rows_of(calls))
    held = {each.call_id: as_held(each) for each in made if data.draw(st.booleans())}
    at_once, then = find_links(made, {}), find_links(made, held)
    for name, link in then.items():
        if link.how == "conversation" and at_once[name].how == "conversation":
            assert link == at_once[name]
