"""Harbor's conversation export: rows that repeat one another, every answer once (contracts.md 1)."""

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from ng_capture.contracts.interface import Head, Read
from ng_capture.contracts.recognition import head_of
from ng_capture.contracts.registry import reader_of
from tests.support.atof_events import says, user
from tests.support.conversions import (
    as_lines,
    codes,
    converted,
    document_of,
    faults_of,
    held,
    outcomes_of,
    read_one,
    refused,
)

Row = dict[str, Any]


def row(*messages: Row, step: int = 0, **fields: Any) -> Row:
    told = {"agent": "terminus-2", "model": "m", "run_id": "run", "trial_name": "trial", "episode": f"episode-{step}"}
    return {"conversations": list(messages), **told, "result": "1.0", "trace_source": "main", **fields}


def talk(answers: int, *, before: tuple[Row, ...] = ()) -> list[Row]:
    """Messages of both sides by turns."""
    return [*before, *(each for at in range(answers) for each in (user(f"u{at}"), says(f"a{at}")))]


def rows_of(answers: int, **fields: Any) -> list[Row]:
    """A row for each answer, each with all before it."""
    return [row(*talk(at + 1), step=at, **fields) for at in range(answers)]


def reads(rows: list[Row]) -> list[Read]:
    return [each for each in outcomes_of("harbor", rows) if isinstance(each, Read)]


def own(read: Read) -> list[Any]:
    return [turn.content for turn in read.episode.main.turns if turn.fresh]


SUMMARY = row(*talk(2), user("s"), says("S"), trace_source="sum")


class TestRows:
    def test_of_rows_that_repeat_one_another_the_last_one_is_the_episode(self) -> None:
        (read,) = reads(rows_of(3))
        assert own(read) == ["a0", "a1", "a2"] and codes(read) == []
        assert (read.episode.rollout_id, read.place) == ("trial-episode-2", "line 3")

    def test_the_order_of_rows_means_nothing_to_what_is_said(self) -> None:
        assert [own(read) for read in reads(rows_of(3)[::-1])] == [["a0", "a1", "a2"]]

    def test_a_history_that_was_cut_begins_another_episode(self) -> None:
        later = row(user("summary"), says("b"), step=2)
        assert [own(read) for read in reads([*rows_of(2), later])] == [["a0", "a1"], ["b"]]

    def test_an_answer_of_the_main_agent_is_a_copy_where_a_summary_repeats_it(self) -> None:
        summary = row(*talk(2), user("sum up"), says("SUM"), trace_source="summarization-1")
        for rows in ([*rows_of(2), summary], [summary, *rows_of(2)]):
            by_name = {read.episode.rollout_id: read for read in reads(rows)}
            assert own(by_name["trial-episode-1"]) == ["a0", "a1"]
            assert own(by_name["trial-summarization-1-episode-0"]) == ["SUM"]
            assert codes(by_name["trial-summarization-1-episode-0"]) == ["copied_context"]

    def test_an_answer_of_another_agent_is_a_copy_where_the_main_one_was_told_it(self) -> None:
        question = row(user("handoff"), says("Q?"), trace_source="questions")
        main = row(user("task"), user("handoff"), says("Q?"), user("A!"), says("b"))
        assert [own(read) for read in reads([main, question])] == [["b"], ["Q?"]]

    def test_of_last_rows_alone_every_answer_stands_where_it_is(self) -> None:
        (read,) = reads([row(user("u"), says("same"), user("v"), says("same"))])
        assert own(read) == ["same", "same"]

    def test_two_cut_histories_share_a_beginning_that_counts_once(self) -> None:
        left = row(*talk(1), user("l"), says("L"))
        right = row(*talk(1), user("r"), says("R"), step=1)
        assert [own(read) for read in reads([left, right])] == [["a0", "L"], ["R"]]

    def test_trials_are_apart_though_they_say_the_same(self) -> None:
        two = [*rows_of(1, trial_name="one"), *rows_of(2, trial_name="two")]
        assert [(read.episode.rollout_id, own(read)) for read in reads(two)] == [
            *(("one-episode-0", ["a0"]), ("two-episode-1", ["a0", "a1"])),
        ]

    @settings(deadline=None)
    @given(
        st.permutations(
            [*rows_of(3), row(*talk(2), user("s"), says("S"), trace_source="sum"), row(user("n"), says("N"))]
        )
    )
    def test_every_answer_counts_once_in_whatever_order_rows_lie(self, rows: list[Row]) -> None:
        assert sorted(each for read in reads(rows) for each in own(read)) == ["N", "S", "a0", "a1", "a2"]

    @pytest.mark.parametrize("answers", [1, 2, 3])
    def test_fewer_rows_are_a_prefix_of_the_turns(self, answers: int) -> None:
        (part,), (whole,) = reads(rows_of(answers)), reads(rows_of(4))
        told = [(turn.role, turn.content, turn.copied) for turn in whole.episode.main.turns]
        assert [(turn.role, turn.content, turn.copied) for turn in part.episode.main.turns] == told[: 2 * answers]


class TestForms:
    @pytest.mark.parametrize("indent", [None, 2])
    def test_a_list_of_rows_is_read_as_lines_are(self, indent: int | None) -> None:
        data = json.dumps(rows_of(2), indent=indent).encode()
        (read,) = [each for each in outcomes_of("harbor", data) if isinstance(each, Read)]
        assert own(read) == ["a0", "a1"] and read.place == "row 1"
        assert [turn.place for turn in read.episode.main.turns][:2] == ["/1/conversations/0", "/1/conversations/1"]

    def test_think_tags_are_reasoning_and_told_where_they_stood(self) -> None:
        read = read_one("harbor", [row(user("u"), says("<think>R</think>x"))])
        assert [text for thought in read.episode.main.turns[1].thoughts for text in thought.texts] == ["R"]
        assert [(each.code, each.path) for each in read.losses] == [("think_tags_split", "/conversations/1/content")]

    @pytest.mark.parametrize(
        ("result", "reward"),
        [
            ("1.0", 1.0),
            ("0", 0.0),
            (0.5, 0.5),
            ("AgentTimeoutError", None),
            (None, None),
            ("nan", None),
            (True, None),
            ("inf", None),
        ],
    )
    def test_the_result_is_the_reward_where_it_is_a_number(self, result: Any, reward: float | None) -> None:
        read = read_one("harbor", [row(user("u"), says("x"), result=result)])
        assert read.episode.reward == reward
        assert ("reward_unavailable" in codes(read)) is (reward is None)
        assert read.episode.row is not None and read.episode.row["result"] == result

    def test_a_row_in_a_list_or_a_line_is_known_by_its_trial(self) -> None:
        for data in (as_lines(rows_of(1)), json.dumps(rows_of(1), indent=1).encode()):
            with held(data, "x.json") as source:
                assert reader_of("harbor").recognises(head_of(source))
        for value in ([], {}, [3], {"conversations": []}, {"conversations": 3, "trial_name": "x"}):
            assert not reader_of("harbor").recognises(Head("x", False, value))

    def test_a_row_without_a_result_has_no_reward(self) -> None:
        bare = {key: value for key, value in row(user("u"), says("x")).items() if key != "result"}
        assert read_one("harbor", [bare]).episode.reward is None

    def test_who_acted_and_what_the_row_says_beside_are_kept(self) -> None:
        read = read_one("harbor", [row(user("u"), says("x"), task="t", conversations_sharegpt=[{"from": "human"}])])
        main = read.episode.main
        assert (main.agent.name, main.agent.model, main.session_id, main.trajectory_id) == (
            *("terminus-2", "m", "run", "trial-episode-0"),
        )
        assert read.episode.row is not None and read.episode.row["task"] == "t"
        assert "conversations_sharegpt" not in read.episode.row

    def test_a_row_of_no_trial_is_named_by_nothing(self) -> None:
        bare = {"conversations": [user("u"), says("x")], "agent": "a"}
        assert read_one("harbor", [bare]).episode.rollout_id is None

    def test_a_copied_answer_is_not_trained_on(self) -> None:
        summary = row(*talk(1), user("s"), says("S"), trace_source="sum")
        for done in converted("harbor", "sft", [*rows_of(1), summary]):
            assert done.written is not None
            weights = [each["weight"] for each in json.loads(done.written.documents[0])["messages"] if "weight" in each]
            assert weights == ([1] if "sum" not in done.name.stem else [0, 1])

    def test_an_export_becomes_a_trajectory(self) -> None:
        steps = document_of("harbor", "atif", rows_of(2))["steps"]
        assert [(step["source"], step["message"]) for step in steps] == [
            *(("user", "u0"), ("agent", "a0"), ("user", "u1"), ("agent", "a1")),
        ]


class TestFaults:
    def test_what_is_no_row_is_refused_at_its_place_and_the_rest_is_read(self) -> None:
        data = json.dumps([3, {"conversations": []}, {"conversations": "x"}, row(user("u"), says("x"))]).encode()
        assert [(fault.rule, fault.path) for fault in faults_of("harbor", data)] == [
            *(("harbor.row", "/0"), ("harbor.conversation.empty", "/1/conversations"), ("harbor.row", "/2")),
        ]
        assert [isinstance(each, Read) for each in outcomes_of("harbor", data)].count(True) == 1

    def test_a_field_of_another_type_is_a_warning(self) -> None:
        read = read_one("harbor", [row(user("u"), says("x"), agent=3)])
        assert [(fault.rule, fault.path, fault.severity, fault.line) for fault in read.faults] == [
            ("harbor.field.type", "/agent", "warning", 1),
        ]

    def test_broken_lines_are_told_and_the_others_read(self) -> None:
        data = b"{\n" + as_lines([row(user("u"), says("x"))])
        assert [(fault.rule, fault.line) for fault in faults_of("harbor", data)] == [("harbor.json.syntax", 1)]
        assert [isinstance(each, Read) for each in outcomes_of("harbor", data)] == [False, True]

    def test_an_empty_file_and_an_empty_list_hold_no_row(self) -> None:
        assert refused("harbor", b"[]") == ["harbor.empty"]
        assert refused("harbor", b"") == ["harbor.json.syntax"]

    @settings(deadline=None)
    @given(st.data())
    def test_a_change_in_any_one_place_never_crashes(self, data: st.DataObject) -> None:
        rows: Any = json.loads(json.dumps([*rows_of(2), row(*talk(1), trace_source="s")]))
        place = rows
        while True:
            key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place)))))
            if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
                break
            place = place[key]
        place[key] = data.draw(st.sampled_from([None, 3, "\ud800", [], {}, [3], "x", 1e999, True]))
        for target in ("atif", "sft"):
            converted("harbor", target, json.dumps(rows).encode())

    @settings(deadline=None)
    @given(st.integers(0, 300), st.binary(max_size=3))
    def test_bytes_that_are_struck_anywhere_never_crash(self, at: int, struck: bytes) -> None:
        data = as_lines(rows_of(2))
        for outcome in outcomes_of("harbor", data[:at] + struck + data[at + len(struck) :]):
            assert isinstance(outcome, Read) or outcome.faults
