"""What a stream tells as turns: each once, with the results of its tools and its agents in place (contracts.md 2.4)."""

import json
from typing import Any

import pytest

from ng_capture.contracts.episode import Role, Thread, Turn
from ng_capture.contracts.interface import Options, Read
from tests.support.atof_events import (
    Event,
    agent,
    answer,
    ask,
    begin,
    call,
    end,
    gives,
    llm,
    mark,
    says,
    system,
    tool,
    user,
)
from tests.support.conversions import codes, converted, document_of, outcomes_of, read_one

HI = user("hi")
CALLS = says(None, call("c1", arguments='{"x": 1}'))


def read(*events: Event) -> Read:
    return read_one("atof", list(events))


def lead(*inside: Event, **fields: Any) -> Read:
    return read(*agent("a", 0, 99, *inside, metadata={"version": "1"}, **fields))


def told(thread: Thread) -> list[tuple[str, Any]]:
    return [(turn.role.value, turn.content) for turn in thread.turns]


def results(turn: Turn) -> list[tuple[str | None, Any]]:
    return [(result.call_id, result.content) for result in turn.results]


class TestWhatIsNew:
    def test_the_same_words_said_twice_in_a_growing_history_are_two_turns(self) -> None:
        made = lead(
            *llm("l1", 1, ask(user("go on")), answer(says("one"))),
            *llm("l2", 3, ask(user("go on"), says("one"), user("go on")), answer(says("two"))),
        )
        assert told(made.episode.main) == [
            ("user", "go on"),
            ("assistant", "one"),
            ("user", "go on"),
            ("assistant", "two"),
        ]
        assert codes(made) == []

    def test_a_call_that_failed_and_was_made_again_is_one_turn_of_each_side(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), None), *llm("l2", 3, ask(HI), answer(says("yo"))))
        assert told(made.episode.main) == [("user", "hi"), ("assistant", "yo")]
        assert [(loss.code, loss.count) for loss in made.losses] == [("failed_call_omitted", 1)]

    @pytest.mark.parametrize(
        ("data", "metadata"),
        [
            (None, {}),
            ({"error": "429"}, {}),
            ({"error": {"message": "no"}}, {"otel.status_code": "ERROR"}),
            ({"content": "half"}, {"otel.status_code": "ERROR", "otel.status_description": "cut"}),
        ],
    )
    def test_a_call_without_an_answer_makes_no_step_and_its_error_is_kept(self, data: Any, metadata: Event) -> None:
        made = lead(*llm("l1", 1, ask(HI), data, metadata=metadata))
        assert told(made.episode.main) == [("user", "hi")]
        kept = made.episode.main.extra["ng_capture"]["atof"]["failed_calls"]  # type: ignore[index]
        expected = metadata.get("otel.status_description") or (data or {}).get("error")
        assert kept == [{"call": "l1", "error": expected}]
        assert codes(made) == ["failed_call_omitted"]

    def test_an_answer_that_is_resent_in_other_spelling_is_told_once(self) -> None:
        resent = says("", call("c1", arguments='{"x":1}'))
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            *llm("l2", 3, ask(HI, resent, gives("c1", "7")), answer(says("seven"))),
        )
        assert [turn.role for turn in made.episode.main.turns] == ["user", "assistant", "assistant"]
        assert results(made.episode.main.turns[1]) == [("c1", "7")]

    def test_changed_instructions_are_told_again_and_equal_ones_are_not(self) -> None:
        made = lead(
            *llm("l1", 1, ask({"role": "system", "content": "S"}, HI), "one"),
            *llm("l2", 3, ask({"role": "system", "content": "S"}, HI, says("one"), user("b")), "two"),
            *llm(
                "l3",
                5,
                ask({"role": "system", "content": "T"}, HI, says("one"), user("b"), says("two"), user("c")),
                "x",
            ),
        )
        assert [text for role, text in told(made.episode.main) if role == "system"] == ["S", "T"]
        assert [text for role, text in told(made.episode.main) if role == "user"] == ["hi", "b", "c"]

    def test_of_changed_instructions_only_what_changed_is_told_again(self) -> None:
        made = lead(
            *llm("l1", 1, ask(system("S"), system("one"), HI), "x"),
            *llm("l2", 3, ask(system("S"), system("two"), HI, says("x"), user("b")), "y"),
        )
        assert [text for role, text in told(made.episode.main) if role == "system"] == ["S", "one", "two"]

    def test_what_a_request_of_history_cannot_tell_for_certain_is_reported_once(self) -> None:
        history = (HI, says("<think>R</think>x", call("c1")), {"role": "tool", "content": "7"}, user("b"))
        made = lead(
            *llm("l1", 1, ask(*history), "y"),
            *llm("l2", 3, ask(*history, says("y"), user("c")), "z"),
        )
        assert sorted((loss.code, loss.count) for loss in made.losses) == [
            *(("copied_context", 1), ("link_by_position", 1), ("think_tags_split", 1)),
        ]
        assert results(made.episode.main.turns[1]) == [("c1", "7")]

    def test_a_history_that_goes_on_from_none_before_is_told_and_reported(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), "one"),
            *llm("l2", 3, ask(HI, says("one"), user("b")), "two"),
            *llm("l3", 5, ask(user("summary of it"), user("c")), "three"),
        )
        assert told(made.episode.main)[-3:] == [("user", "summary of it"), ("user", "c"), ("assistant", "three")]
        assert codes(made) == ["history_rewritten"]

    def test_history_of_a_run_before_is_copied(self) -> None:
        made = lead(*llm("l1", 1, ask(HI, says("before"), user("more")), "now"))
        assert [(turn.content, turn.copied) for turn in made.episode.main.turns] == [
            *(("hi", False), ("before", True)),
            *(("more", False), ("now", False)),
        ]
        assert codes(made) == ["copied_context"]

    def test_parameters_that_change_from_call_to_call_are_reported_with_their_names(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI, temperature=1, model="m"), "one"),
            *llm("l2", 3, ask(HI, says("one"), user("b"), temperature=0, model="m"), "two"),
        )
        assert made.episode.request == {"temperature": 1, "model": "m"}
        assert [(loss.code, loss.detail) for loss in made.losses] == [("request_fields_dropped", "temperature")]

    def test_interleaved_calls_keep_what_their_own_scopes_say(self) -> None:
        made = lead(
            begin("l1", 1, "llm", "a", ask(HI), category_profile={"model_name": "one"}),
            begin("l2", 2, "llm", "a", ask(HI), category_profile={"model_name": "two"}),
            end("l1", 3, "llm", "a", answer(says("A")), category_profile={"model_name": "one"}),
            end("l2", 4, "llm", "a", answer(says("B")), category_profile={"model_name": "two"}),
        )
        spoken = [turn for turn in made.episode.main.turns if turn.role == Role.ASSISTANT]
        assert [(turn.content, turn.call.model, turn.call.call_id) for turn in spoken if turn.call] == [
            *(("A", "one", "l1"), ("B", "two", "l2")),
        ]
        assert [turn.extra["ancestry"]["function_id"] for turn in spoken] == ["l1", "l2"]  # type: ignore[index]


class TestResults:
    def test_a_mark_between_a_call_and_its_result_takes_nothing_from_the_call(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            mark("m", 2.5, "a", {"n": 1}),
            *tool("t", 3, {"x": 1}, {"result": "42"}, call="c1"),
        )
        assert results(made.episode.main.turns[1]) == [("c1", "42")]
        assert told(made.episode.main)[2] == ("event", '{"n":1}')
        assert codes(made) == []

    def test_a_tool_whose_call_is_not_there_is_an_unlinked_result(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), "yo"), *tool("t", 3, {}, 1, call="zz"))
        assert results(made.episode.main.turns[1]) == [("zz", "1")]
        assert [(loss.code, loss.path) for loss in made.losses] == [("output_unlinked", "/t/start")]

    def test_what_ran_without_a_call_of_the_model_keeps_what_it_was_given(self) -> None:
        tools = tool("t", 3, {"q": 1}, 1, call="zz", name="find")
        around = [begin("r", 7, "retriever", "a", {"q": 2}), end("r", 8, "retriever", "a", {"docs": [1]})]
        turns = lead(*llm("l1", 1, ask(HI), "yo"), *tools, *around).episode.main.turns
        of_tool, of_scope = turns[1].results[0].extra, turns[-1].extra
        assert of_tool is not None and of_tool["ancestry"]["function_name"] == "find"  # type: ignore[index]
        assert of_scope is not None
        assert [each["ng_capture"]["input"] for each in (of_tool, of_scope)] == [{"q": 1}, {"q": 2}]  # type: ignore[index]

    def test_a_tool_before_any_answer_stands_on_its_own(self) -> None:
        made = lead(*tool("t", 0.5, {}, {"output": [1]}, call="zz"), *llm("l1", 1, ask(HI), "yo"))
        first = made.episode.main.turns[0]
        assert first.role == Role.EVENT and results(first) == [("zz", "[1]")]
        assert codes(made) == ["output_unlinked"]

    def test_a_tool_that_names_no_call_is_linked_by_name_and_arguments_where_one_fits(self) -> None:
        made = lead(
            *llm(
                "l1", 1, ask(HI), answer(says(None, call("c1", arguments='{"x": 1}'), call("c2", arguments='{"x": 2}')))
            ),
            *tool("t", 3, {"x": 2}, "two"),
        )
        assert results(made.episode.main.turns[1]) == [("c2", "two")]
        assert [(loss.code, loss.detail) for loss in made.losses] == [("link_by_position", "by name and arguments")]

    def test_where_two_calls_fit_none_is_guessed(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(says(None, call("c1"), call("c2")))),
            *tool("t", 3, {}, "one of them"),
        )
        assert results(made.episode.main.turns[1]) == [(None, "one of them")]
        assert codes(made) == ["output_unlinked"]

    def test_an_id_that_is_given_again_means_the_latest_call(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            *tool("t1", 2.5, {"x": 1}, "first", call="c1"),
            *llm("l2", 3, ask(HI, CALLS, gives("c1", "first")), answer(CALLS)),
            *tool("t2", 4.5, {"x": 1}, "second", call="c1"),
            *llm("l3", 5, ask(HI, CALLS, gives("c1", "first"), CALLS, gives("c1", "second")), "done"),
        )
        assert [results(turn) for turn in made.episode.main.turns] == [[], [("c1", "first")], [("c1", "second")], []]

    def test_a_tool_that_ran_twice_for_one_call_gives_two_results(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            *tool("t1", 3, {"x": 1}, "lost", call="c1", metadata={"otel.status_code": "ERROR"}),
            *tool("t2", 4, {"x": 1}, "found", call="c1"),
        )
        turn = made.episode.main.turns[1]
        assert [(each.content, each.is_error) for each in turn.results] == [("lost", True), ("found", None)]
        assert codes(made) == ["output_duplicate"]

    def test_what_the_model_was_told_counts_and_what_the_tool_gave_stays_beside(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            *tool("t1", 3, {"x": 1}, {"result": "a very long text"}, call="c1"),
            *llm("l2", 4, ask(HI, CALLS, gives("c1", "a very ...")), "done"),
        )
        (result,) = made.episode.main.turns[1].results
        assert result.content == "a very ..."
        assert result.extra == {"ng_capture": {"tool_output": "a very long text"}}

    def test_a_tool_that_was_told_but_never_seen_to_run_has_its_result(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            *llm("l2", 3, ask(HI, CALLS, gives("c1", "7")), "done"),
        )
        assert results(made.episode.main.turns[1]) == [("c1", "7")]

    def test_a_result_in_a_request_that_names_no_known_call_is_kept_and_reported(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), "yo"), *llm("l2", 3, ask(HI, says("yo"), gives("zz", "7"), user("b")), "done")
        )
        assert ("zz", "7") in [each for turn in made.episode.main.turns for each in results(turn)]
        assert codes(made) == ["output_unlinked"]

    def test_calls_without_ids_are_linked_by_what_they_ask(self) -> None:
        asked = says(None, call(None, arguments='{"x": 1}'))
        made = lead(*llm("l1", 1, ask(HI), answer(asked)), *tool("t", 3, {"x": 1}, "7"))
        assert results(made.episode.main.turns[1]) == [(None, "7")]
        assert codes(made) == ["link_by_position"]

    def test_a_result_that_only_its_own_dialect_knows_is_as_the_tool_gave_it(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            *tool("t1", 3, {"x": 1}, "plain", call="c1"),
            *llm("l2", 4, ask(HI, CALLS, gives("c1", [{"type": "widget", "n": 1}])), "done"),
        )
        assert results(made.episode.main.turns[1]) == [("c1", "plain")]

    def test_a_tool_of_no_call_that_never_ended_has_no_result(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), "yo"), tool("t", 3, {}, None, call="zz")[0])
        assert results(made.episode.main.turns[1]) == [] and codes(made) == ["scope_unfinished"]

    def test_a_tool_that_never_ended_leaves_its_call_unanswered(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), answer(CALLS)), tool("t", 3, {"x": 1}, None, call="c1")[0])
        assert results(made.episode.main.turns[1]) == []
        assert codes(made) == ["scope_unfinished"]

    def test_arguments_that_ran_other_than_asked_are_kept_beside_the_call(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), answer(CALLS)), *tool("t", 3, {"x": 2}, "2", call="c1"))
        (asked,) = made.episode.main.turns[1].calls
        assert asked.arguments == '{"x": 1}'
        assert asked.extra["ng_capture"]["arguments_run"] == {"x": 2}  # type: ignore[index]


class TestAgents:
    CHILD = (*llm("lb", 3, ask(user("do it")), "done", parent="b"),)

    def test_an_agent_in_a_tool_is_embedded_with_the_reference_on_the_calls_result(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            begin("t", 2.5, "tool", "a", {"x": 1}, category_profile={"tool_call_id": "c1"}),
            *agent("b", 2.6, 8, *self.CHILD, parent="t"),
            end("t", 9, "tool", "a", "done", category_profile={"tool_call_id": "c1"}),
        )
        (child,) = made.episode.main.subagents
        (result,) = made.episode.main.turns[1].results
        assert [ref.trajectory_id for ref in result.subagents] == ["b"] == [child.trajectory_id]
        assert told(child) == [("user", "do it"), ("assistant", "done")]

    def test_an_agent_beside_a_running_tool_is_that_tools(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), answer(CALLS)),
            begin("t", 2.5, "tool", "a", {"x": 1}, category_profile={"tool_call_id": "c1"}),
            *agent("b", 2.6, 8, *self.CHILD, parent="a"),
            end("t", 9, "tool", "a", "done", category_profile={"tool_call_id": "c1"}),
        )
        assert made.episode.main.turns[1].results[0].subagents[0].trajectory_id == "b"

    def test_of_several_running_tools_the_one_that_names_the_task_began_the_agent(self) -> None:
        two = says(None, call("c1", arguments='{"goal": "do it"}'), call("c2", arguments='{"goal": "other"}'))
        made = lead(
            *llm("l1", 1, ask(HI), answer(two)),
            begin("t2", 2.4, "tool", "a", {"goal": "other"}, category_profile={"tool_call_id": "c2"}),
            begin("t1", 2.5, "tool", "a", {"goal": "do it"}, category_profile={"tool_call_id": "c1"}),
            *agent("b", 2.6, 8, *self.CHILD, parent="a"),
            end("t1", 9, "tool", "a", "1", category_profile={"tool_call_id": "c1"}),
            end("t2", 9, "tool", "a", "2", category_profile={"tool_call_id": "c2"}),
        )
        assert {result.call_id: len(result.subagents) for result in made.episode.main.turns[1].results} == {
            "c1": 1,
            "c2": 0,
        }

    def test_an_agent_that_an_open_call_began_is_referred_to_though_no_tool_was_seen(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), answer(CALLS)), *agent("b", 2.6, 8, *self.CHILD, parent="a"))
        (result,) = made.episode.main.turns[1].results
        assert (result.call_id, result.content, result.subagents[0].trajectory_id) == ("c1", None, "b")

    def test_a_call_that_a_tool_answered_before_began_no_later_agent(self) -> None:
        two = says(None, call("c1", arguments='{"x": 1}'), call("c2", arguments='{"x": 2}'))
        made = lead(
            *llm("l1", 1, ask(HI), answer(two)),
            *tool("t1", 2.1, {"x": 1}, "done", call="c1"),
            *agent("b", 2.6, 8, *self.CHILD, parent="a"),
        )
        assert [(each.call_id, len(each.subagents)) for each in made.episode.main.turns[1].results] == [
            *(("c1", 0), ("c2", 1)),
        ]

    def test_an_agent_in_a_call_whose_own_agent_is_not_there_works_for_it(self) -> None:
        inside = agent("b", 1.2, 1.8, *llm("lb", 1.3, ask(user("do")), "x", parent="b"), parent="l1")
        first, last = llm("l1", 1, ask(HI), "yo", parent="gone")
        made = read(first, *inside, last)
        assert [child.trajectory_id for child in made.episode.main.subagents] == ["b"]

    def test_an_agent_that_no_call_began_stands_beside_and_is_reported(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), "yo"), *agent("b", 2.6, 8, *self.CHILD, parent="a"))
        event = made.episode.main.turns[2]
        assert event.role == Role.EVENT and event.results[0].subagents[0].trajectory_id == "b"
        assert codes(made) == ["agent_version_unknown", "subagent_parent_unknown"]

    def test_an_agent_in_a_tool_of_no_call_is_on_that_tools_result(self) -> None:
        made = lead(
            begin("t", 2.5, "tool", "a", {}),
            *agent("b", 2.6, 8, *self.CHILD, parent="t"),
            end("t", 9, "tool", "a", "x"),
        )
        (turn,) = made.episode.main.turns
        assert [ref.trajectory_id for ref in turn.results[0].subagents] == ["b"]

    def test_an_agent_in_a_context_is_on_the_step_of_the_context(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), "yo"),
            begin("k", 2.5, "context", "a"),
            *agent("b", 2.6, 8, *self.CHILD, parent="k"),
            end("k", 9, "context", "a", {"summary": "short"}),
        )
        context = made.episode.main.turns[2]
        assert context.results[0].content == "short"
        assert context.results[0].subagents[0].trajectory_id == "b"

    def test_an_agent_in_a_function_works_for_the_agent_around_it(self) -> None:
        inside = agent("b", 2.6, 8, *self.CHILD, parent="fn")
        made = lead(begin("fn", 2.5, "function", "a"), *inside, end("fn", 9, "function", "a"))
        assert [child.trajectory_id for child in made.episode.main.subagents] == ["b"]

    def test_an_agent_that_said_nothing_is_dropped_and_reported(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), "yo"), *agent("b", 2.6, 8, parent="a"))
        assert made.episode.main.subagents == ()
        assert "subagent_dropped" in codes(made)

    def test_agents_that_work_for_nobody_are_episodes_of_their_own(self) -> None:
        one = agent("a", 0, 9, *llm("l1", 1, ask(HI), "yo"))
        two = agent("b", 10, 19, *llm("l2", 11, ask(HI), "yo", parent="b"))
        reads = [each for each in outcomes_of("atof", [*one, *two]) if isinstance(each, Read)]
        assert [(each.episode.rollout_id, each.place) for each in reads] == [("a", "a"), ("b", "b")]

    def test_two_agents_of_one_session_are_told_apart_by_their_uuids(self) -> None:
        meta = {"metadata": {"session_id": "s"}}
        one = agent("a", 0, 9, *llm("l1", 1, ask(HI), "yo"), **meta)
        two = agent("b", 10, 19, *llm("l2", 11, ask(HI), "yo", parent="b"), **meta)
        assert [each.episode.rollout_id for each in outcomes_of("atof", [*one, *two]) if isinstance(each, Read)] == [
            "a",
            "b",
        ]
        assert read(*one).episode.rollout_id == "s"

    def test_calls_in_a_scope_that_is_not_in_the_file_are_one_conversation(self) -> None:
        made = read(
            *llm("l1", 1, ask(HI), answer(CALLS), parent="gone"),
            *tool("t", 3, {"x": 1}, "7", call="c1", parent="gone"),
        )
        assert results(made.episode.main.turns[1]) == [("c1", "7")]
        assert made.episode.main.agent.name is None

    def test_a_workflow_that_calls_models_itself_is_an_actor(self) -> None:
        made = read(
            begin("w", 0, "function", None, {"q": "hi"}),
            *llm("l1", 1, ask(HI), "yo", parent="w"),
            end("w", 9, "function", None, {"r": "yo"}),
        )
        assert made.episode.main.agent.name == "w"
        assert told(made.episode.main) == [("user", "hi"), ("assistant", "yo")]

    def test_an_agent_whose_clock_is_behind_its_callers_is_still_inside(self) -> None:
        made = lead(
            *llm("l1", 5, ask(HI), "yo"), *agent("b", -9, -1, *llm("lb", -5, ask(HI), "x", parent="b"), parent="a")
        )
        assert [child.trajectory_id for child in made.episode.main.subagents] == ["b"]

    @pytest.mark.parametrize(
        ("metadata", "options", "version", "lost"),
        [
            ({"version": "3"}, Options(), "3", False),
            ({}, Options(), "1.0.0", True),
            ({}, Options(agent_version="7"), "7", False),
        ],
    )
    def test_a_version_that_nobody_tells_is_the_toolkits_and_reported(
        self, metadata: Event, options: Options, version: str, lost: bool
    ) -> None:
        made = read_one("atof", agent("a", 0, 9, *llm("l", 1, ask(HI), "yo"), metadata=metadata), options)
        assert made.episode.main.agent.version == version
        assert ("agent_version_unknown" in codes(made)) is lost


class TestBesideTheConversation:
    def test_a_cut_run_is_a_partial_trajectory_with_its_open_scopes_told(self) -> None:
        whole = agent("a", 0, 99, *llm("l1", 1, ask(HI), answer(CALLS)), *llm("l2", 5, ask(HI, CALLS), "x"))
        made = read(*whole[:4])
        assert made.episode.truncated is True
        assert [(loss.path, loss.detail) for loss in made.losses if loss.code == "scope_unfinished"] == [
            *(("/a/start", "agent"), ("/l2/start", "llm")),
        ]
        assert [turn.role for turn in made.episode.main.turns] == ["user", "assistant"]

    def test_a_whole_run_says_nothing_of_being_cut(self) -> None:
        assert lead(*llm("l1", 1, ask(HI), "yo")).episode.truncated is None

    def test_a_compaction_is_a_step_and_the_shorter_history_no_loss(self) -> None:
        profile = {"category_profile": {"type": "compaction", "boundary": "replace"}}
        made = lead(
            *llm("l1", 1, ask(HI), "one"),
            *llm("l2", 3, ask(HI, says("one"), user("b")), "two"),
            begin("k", 4.5, "context", "a", None, **profile),
            end("k", 5, "context", "a", {"summary": "short"}, **profile),
            *llm("l3", 6, ask(system("short"), user("c")), "three"),
        )
        assert codes(made) == []
        assert made.episode.main.turns[4].extra == {"context_management": {"type": "compaction", "boundary": "replace"}}
        assert told(made.episode.main)[4:] == [
            *(("event", "k"), ("system", "short"), ("user", "c"), ("assistant", "three")),
        ]

    def test_a_compaction_puts_nothing_into_training_text_but_what_the_model_was_told(self) -> None:
        profile = {"category_profile": {"type": "compaction", "boundary": "replace"}}
        stream = agent(
            *("a", 0, 99),
            *llm("l1", 1, ask(HI), "one"),
            *(begin("k", 4.5, "context", "a", None, **profile), end("k", 5, "context", "a", "short", **profile)),
            *llm("l2", 6, ask(system("short"), user("c")), "two"),
        )
        messages = document_of("atof", "sft", stream)["messages"]
        assert [each["content"] for each in messages] == ["hi", "one", "short", "c", "two"]

    def test_a_compaction_that_tells_no_summary_is_no_loss_either(self) -> None:
        profile = {"category_profile": {"type": "compaction", "boundary": "replace"}}
        made = lead(
            *llm("l1", 1, ask(HI), "one"),
            begin("k", 4.5, "context", "a", None, **profile),
            end("k", 5, "context", "a", None, **profile),
            *llm("l2", 6, ask(user("other")), "two"),
        )
        assert codes(made) == [] and made.episode.main.turns[2].results == ()

    def test_a_context_keeps_its_schema_and_may_have_no_summary(self) -> None:
        schema = {"name": "x", "version": "1"}
        made = lead(begin("k", 4.5, "context", "a"), end("k", 5, "context", "a", None, data_schema=schema))
        (turn,) = made.episode.main.turns
        assert turn.results == () and turn.extra is not None and turn.extra["data_schema"] == schema

    @pytest.mark.parametrize(
        ("data", "expected"),
        [
            ({"role": "user", "content": "x"}, ("user", "x")),
            ({"role": "agent", "message": {"a": 1}}, ("assistant", '{"a":1}')),
            ({"role": "system"}, ("system", "")),
            ({"note": "n"}, ("event", '{"note":"n"}')),
            ("plain", ("event", "plain")),
            ({}, ("event", "{}")),
        ],
    )
    def test_a_mark_is_a_turn_where_it_names_who_speaks_else_a_note(self, data: Any, expected: tuple[str, str]) -> None:
        made = lead(*llm("l1", 1, ask(HI), "yo"), mark("m", 9, "a", data))
        assert told(made.episode.main)[-1] == expected
        assert codes(made) == []

    def test_a_mark_without_data_is_dropped_and_reported_by_name(self) -> None:
        made = lead(*llm("l1", 1, ask(HI), "yo"), mark("m", 9, "a", None, name="tick"))
        assert [(loss.code, loss.detail) for loss in made.losses] == [("mark_dropped", "tick")]

    def test_a_turn_that_a_mark_announced_is_not_told_again_by_the_request(self) -> None:
        made = lead(mark("m", 0.5, "a", {"role": "user", "content": "hi"}), *llm("l1", 1, ask(HI), "yo"))
        assert told(made.episode.main) == [("user", "hi"), ("assistant", "yo")]

    @pytest.mark.parametrize("category", ["retriever", "guardrail", "evaluator", "custom"])
    def test_a_scope_of_no_contract_is_a_note_where_it_says_something_and_counted(self, category: str) -> None:
        profile = {"category_profile": {"subtype": "x"}}
        silent = [begin("s", 5, category, "a", **profile), end("s", 6, category, "a", **profile)]
        noisy = [begin("n", 7, category, "a", **profile), end("n", 8, category, "a", {"docs": [1]}, **profile)]
        made = lead(*llm("l1", 1, ask(HI), "yo"), *silent, *noisy)
        assert told(made.episode.main)[-1] == ("event", '{"docs":[1]}')
        assert [(loss.code, loss.detail) for loss in made.losses] == [("scope_dropped", category)]
        assert made.episode.main.extra["ng_capture"]["atof"]["categories"] == {category: 2}  # type: ignore[index]

    def test_an_applications_own_calls_are_a_step_that_no_model_made(self) -> None:
        made = lead(
            *llm("l1", 1, ask(HI), "yo"),
            begin("fn", 3, "function", "a"),
            *tool("t1", 3.2, {"x": 1}, 5, parent="fn", name="g"),
            tool("t2", 3.4, {"x": 2}, None, call="own", parent="fn", name="h")[0],
            end("fn", 4, "function", "a", {"sum": 5}),
        )
        step = made.episode.main.turns[-1]
        assert step.model_calls == 0 and [(each.call_id, each.name) for each in step.calls] == [
            ("t1", "g"),
            ("own", "h"),
        ]
        assert results(step) == [("t1", "5")]
        assert step.extra is not None and step.extra["ng_capture"]["output"] == {"sum": 5}
        assert codes(made) == ["no_model_call", "scope_unfinished"]

    def test_an_application_step_that_never_ended_stands_where_its_last_tool_ran(self) -> None:
        made = lead(begin("fn", 3, "function", "a"), *tool("t1", 3.2, {}, 5, parent="fn"), *llm("l1", 4, ask(HI), "yo"))
        assert made.episode.main.turns[0].model_calls == 0

    def test_an_application_step_without_tools_is_a_note_or_dropped(self) -> None:
        noisy = [begin("fn", 3, "function", "a"), end("fn", 4, "function", "a", {"x": 1})]
        silent = [begin("gn", 5, "function", "a"), end("gn", 6, "function", "a", {})]
        made = lead(*llm("l1", 1, ask(HI), "yo"), *noisy, *silent)
        assert told(made.episode.main)[-1] == ("event", '{"x":1}')
        assert [(loss.code, loss.path) for loss in made.losses] == [("scope_dropped", "/gn/end")]

    def test_what_stands_in_no_agent_is_reported_with_the_first_episode(self) -> None:
        stray = [mark("m", 0, None, {"x": 1}, name="boot"), begin("s", 0, "retriever"), end("s", 1, "retriever")]
        made = read(*stray, *agent("a", 2, 99, *llm("l1", 3, ask(HI), "yo")))
        assert {("mark_dropped", "boot"), ("scope_dropped", "retriever")} <= {
            (each.code, each.detail) for each in made.losses
        }

    def test_an_agent_without_a_conversation_is_refused_by_its_name(self) -> None:
        (outcome,) = outcomes_of("atof", agent("a", 0, 9))
        assert [fault.rule for fault in outcome.faults] == ["atof.episode.empty"]
        assert "a holds no conversation" in outcome.faults[0].message

    @pytest.mark.parametrize(
        ("given", "gave", "expected"),
        [
            ({"query": "Q"}, {"result": "R"}, [("user", "Q"), ("assistant", "R")]),
            ("Q", {"a": 1, "b": 2}, [("user", "Q"), ("assistant", '{"a":1,"b":2}')]),
            ({"n": 1}, {}, [("user", '{"n":1}')]),
        ],
    )
    def test_a_workflow_without_calls_is_what_it_was_given_and_gave(self, given: Any, gave: Any, expected: Any) -> None:
        made = read(begin("w", 0, "agent", None, given), end("w", 9, "agent", None, gave))
        assert told(made.episode.main) == expected

    def test_metadata_flags_and_unknown_fields_of_an_event_survive_into_atif(self) -> None:
        kept = {"metadata": {"k": 1}, "attributes": ["remote"], "propagation_root_uuid": "r"}
        stream = agent("a", 0, 9, *llm("l1", 1, ask(HI), "yo", **kept))
        extra = document_of("atof", "atif", stream)["steps"][1]["extra"]
        assert extra["ng_capture"]["atof"] == {"start": kept, "end": kept}
        assert extra["invocation"]["framework"] == "nemo_relay"


class TestRows:
    """ATOF to Responses (contracts.md 3.7): one row for each agent that works for nobody."""

    STREAM = (
        *llm("l1", 1, ask(system("S"), HI, temperature=1, model="m"), answer(CALLS, usage={"prompt_tokens": 3})),
        *tool("t", 3, {"x": 1}, "7", call="c1"),
        mark("m", 3.5, "a", {"n": 1}),
        *llm("l2", 4, ask(system("S"), HI, CALLS, gives("c1", "7"), temperature=0, model="m"), answer(says("seven"))),
    )

    def test_the_first_request_is_the_rows_and_all_answers_its_output(self) -> None:
        (done,) = converted("atof", "gym", agent("a", 0, 99, *self.STREAM, metadata={"version": "1"}))
        assert done.written is not None
        row = json.loads(done.written.documents[0])
        params = row["responses_create_params"]
        assert (params["temperature"], [item["content"] for item in params["input"]]) == (1, ["S", "hi"])
        assert [item["type"] for item in row["response"]["output"]] == [
            *("function_call", "function_call_output", "message"),
        ]
        assert row["response"]["output"][0]["arguments"] == '{"x": 1}'
        assert {"request_fields_dropped", "mark_dropped"} <= {loss.code for loss in done.losses}

    def test_two_agents_that_work_for_nobody_are_two_rows(self) -> None:
        two = [*agent("a", 0, 99, *self.STREAM), *agent("b", 100, 199, *llm("l9", 101, ask(HI), "yo", parent="b"))]
        assert [done.name.stem for done in converted("atof", "gym", two)] == ["a", "b"]
