"""Traces: a tree of messages with exact ids, its branches as threads (contracts.md 6)."""

import json
from typing import Any

import pytest

from ng_capture.contracts.episode import Role, Thread, Turn
from ng_capture.contracts.interface import Read, Refused
from tests.support.atof_events import call
from tests.support.conversions import codes, converted, document_of, faults_of, outcomes_of, read_one, refused
from tests.support.verifiers_records import Record, episode, made, node, trace

TALK = (
    node(None, "system", "S", "ab", tools=[{"type": "function", "name": "f", "parameters": {}}]),
    node(0, "user", "hi", "cd"),
    node(
        1,
        "assistant",
        None,
        "eFG",
        message={"tool_calls": [{"id": "c1", "type": "function", "name": "f", "arguments": "{}"}]},
    ),
    node(2, "tool", "7", "hi", message={"tool_call_id": "c1"}),
    node(3, "assistant", "seven", "jK"),
)
CALLS = (made(2), made(4))
GYM = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")


def read(*nodes: Record, calls: Any = (), **fields: Any) -> Read:
    return read_one("verifiers", [episode(trace(*nodes, calls=calls, **fields))])


def said(thread: Thread) -> list[Turn]:
    return [turn for turn in thread.turns if turn.role == Role.ASSISTANT]


def ids(text: str) -> list[int]:
    return [ord(letter) for letter in text]


class TestTokens:
    def test_the_prompt_of_a_call_is_all_before_its_first_sampled_id(self) -> None:
        made_ = read(*TALK, calls=CALLS)
        tokens = [turn.call.tokens for turn in said(made_.episode.main) if turn.call]
        assert [(each.prompt_ids, each.completion_ids, each.log_probs) for each in tokens if each] == [
            (ids("abcde"), ids("FG"), [-0.5, -0.5]),
            (ids("abcdeFGhij"), ids("K"), [-0.5]),
        ]
        assert codes(made_) == ["logprobs_rounded"]

    def test_ids_and_log_probabilities_reach_every_target_exactly(self) -> None:
        records = [episode(trace(*TALK, calls=CALLS))]
        exact = [[ids("abcde"), ids("FG"), [-0.5, -0.5]], [ids("abcdeFGhij"), ids("K"), [-0.5]]]
        steps = [each["metrics"] for each in document_of("verifiers", "atif", records)["steps"] if each.get("metrics")]
        assert [
            [each[key] for key in ("prompt_token_ids", "completion_token_ids", "logprobs")] for each in steps
        ] == exact
        items = document_of("verifiers", "gym", records)["response"]["output"]
        assert [[item[key] for key in GYM] for item in items if GYM[0] in item] == exact
        (done,) = converted("verifiers", "tokens", records)
        assert done.written is not None
        lines = [json.loads(line) for line in done.written.documents]
        assert [[line[key] for key in GYM] for line in lines] == exact
        assert [line["parent_call_id"] for line in lines] == [None, lines[0]["model_call_id"]]

    @pytest.mark.parametrize(
        "broken",
        [
            {"mask": [False]},
            {"logprobs": [-0.5, -0.5, -0.5]},
            {"token_ids": ["x", 1, 2]},
            {"token_ids": [-1, 1, 2]},
            {"mask": [0, 1, 1]},
            {"logprobs": [None, -0.5]},
            {"logprobs": [float("nan"), -0.5]},
            {"mask": [True, False, True], "logprobs": [-0.5, -0.5]},
        ],
    )
    def test_arrays_that_do_not_fit_give_no_ids_to_any_call_behind_them(self, broken: Record) -> None:
        nodes = [*TALK[:2], {**TALK[2], **broken}, *TALK[3:]]
        read_ = read(*nodes, calls=CALLS)
        first, second = [turn.call.tokens for turn in said(read_.episode.main) if turn.call]
        assert first is None and "tokens_incomplete" in codes(read_)
        # where only the run is broken the ids themselves are known
        assert (second is None) is ("verifiers.node.tokens" in {fault.rule for fault in read_.faults})

    def test_think_tags_are_told_where_they_stood(self) -> None:
        read_ = read(node(None, "user", "hi"), node(0, "assistant", "<think>R</think>yo"))
        assert [(each.code, each.path) for each in read_.losses] == [
            ("think_tags_split", "/traces/0/nodes/1/message/content"),
        ]

    def test_an_answer_without_ids_has_none_and_that_is_no_loss(self) -> None:
        read_ = read(node(None, "user", "hi"), node(0, "assistant", "yo"), calls=[made(1)])
        (turn,) = said(read_.episode.main)
        assert turn.call is not None and turn.call.tokens is None and codes(read_) == []

    def test_missing_log_probabilities_stay_missing(self) -> None:
        read_ = read(node(None, "user", "hi", "a"), node(0, "assistant", "yo", "B", logprobs=[]))
        (turn,) = said(read_.episode.main)
        assert turn.call is not None and turn.call.tokens is not None and turn.call.tokens.log_probs is None


class TestCalls:
    def test_usage_counts_what_was_read_from_the_cache_among_the_prompt(self) -> None:
        usage = {"prompt_tokens": 2, "completion_tokens": 1, "cached_input_tokens": 9, "cost": 0.5, "audio": 3}
        (_, turn) = said(read(*TALK, calls=[made(4, usage=usage)]).episode.main)
        assert turn.call is not None
        told = turn.call.usage
        assert (told.tokens_in, told.cached_tokens, told.tokens_out, told.tokens_total) == (11, 9, 1, 12)
        assert (turn.call.cost_usd, turn.call.usage_extra) == (0.5, {"audio": 3})

    @pytest.mark.parametrize("usage", [None, {}, {"cached_input_tokens": 4}])
    def test_counts_that_are_not_told_are_unknown(self, usage: Any) -> None:
        (_, turn) = said(read(*TALK, calls=[made(4, usage=usage)]).episode.main)
        assert turn.call is not None and turn.call.usage.tokens_in is None and turn.call.usage.tokens_total is None

    @pytest.mark.parametrize(
        ("endpoint", "dialect"),
        [("/chat/completions", "chat"), ("/v1/responses", "responses"), ("/v1/messages", "messages"), ("/x", None)],
    )
    def test_the_endpoint_tells_the_dialect_and_times_the_latency(self, endpoint: str, dialect: str | None) -> None:
        time = {"start": 1_750_000_000.0, "end": 1_750_000_000.5}
        (_, turn) = said(read(*TALK, calls=[made(4, endpoint=endpoint, time=time, policy="p")]).episode.main)
        assert turn.call is not None and (turn.call.dialect, turn.call.latency_ms) == (dialect, 500.0)
        assert turn.extra is not None and turn.extra["ng_capture"]["verifiers"]["call"]["policy"] == "p"

    def test_a_time_that_was_never_set_is_unknown(self) -> None:
        (_, turn) = said(read(*TALK, calls=[made(4, time={"start": 0.0, "end": "x"})]).episode.main)
        assert turn.call is not None and turn.call.started_at is None and turn.call.latency_ms is None

    @pytest.mark.parametrize("failed", [{"error": {"type": "X"}}, {"node": None}])
    def test_a_call_that_failed_makes_no_step_and_is_counted(self, failed: Record) -> None:
        read_ = read(*TALK, calls=[{**made(2), **failed}, made(4)])
        assert [(each.code, each.path) for each in read_.losses if each.code == "failed_call_omitted"] == [
            ("failed_call_omitted", "/traces/0/calls/0"),
        ]

    @pytest.mark.parametrize("at", [99, -1, "2", True])
    def test_a_call_of_no_node_is_told(self, at: Any) -> None:
        found = [(fault.rule, fault.path, fault.line) for fault in read(*TALK, calls=[made(4), made(at)]).faults]
        assert found == [("verifiers.call.node", "/traces/0/calls/1/node", 1)]

    def test_custom_calls_keep_their_input_and_encrypted_reasoning_is_carried(self) -> None:
        message = {
            "tool_calls": [{"id": "c1", "type": "custom", "name": "g", "arguments": "raw"}, call("c2")],
            "provider_state": [{"type": "reasoning", "encrypted_content": "x"}],
        }
        read_ = read(node(None, "user", "hi"), node(0, "assistant", None, message=message))
        (turn,) = said(read_.episode.main)
        assert [(each.kind, each.name, each.arguments) for each in turn.calls] == [
            *(("custom_tool_call", "g", "raw"), ("function", "f", "{}")),
        ]
        assert codes(read_) == ["reasoning_encrypted_opaque"]


class TestRollout:
    @pytest.mark.parametrize(
        ("rewards", "expected"),
        [
            ({"a": {"score": 1.0, "weight": 1.0}, "b": {"score": 0.5, "weight": 0.2}}, 1.1),
            ({"a": {"score": 1.0}}, 1.0),
            ({"a": {"score": 2, "weight": 0.5}, "b": None}, 1.0),
            ({"a": None}, None),
            ({}, None),
            (None, None),
            ({"a": {"score": "x"}, "b": {"score": 1}}, None),
        ],
    )
    def test_the_reward_is_the_weighted_sum_or_unknown(self, rewards: Any, expected: float | None) -> None:
        read_ = read(*TALK, rewards=rewards)
        assert read_.episode.reward == (None if expected is None else pytest.approx(expected))
        assert ("reward_unavailable" in codes(read_)) is (expected is None)

    @pytest.mark.parametrize(
        ("fields", "finish", "expected"),
        [
            ({"stop_condition": "max_turns"}, "stop", True),
            ({"stop_condition": "agent_completed"}, "stop", False),
            ({"stop_condition": "agent_completed"}, "length", True),
            ({"is_completed": False}, "stop", None),
        ],
    )
    def test_a_rollout_that_was_cut_says_so(self, fields: Record, finish: str, expected: bool | None) -> None:
        assert read(*TALK, calls=[made(4, finish_reason=finish)], **fields).episode.truncated is expected

    def test_tools_are_those_of_the_latest_root_else_of_the_trace(self) -> None:
        bare = [{key: value for key, value in each.items() if key != "tools"} for each in TALK]
        told = [{"type": "function", "name": "g"}, {"type": "web_search"}]
        assert [tool.name for tool in read(*TALK, tools=told).episode.main.agent.tools or ()] == ["f"]
        offered = read(*bare, tools=told).episode.main.agent.tools or ()
        assert [(tool.name, tool.function) for tool in offered] == [("g", True), (None, False)]
        assert read(*bare).episode.main.agent.tools is None

    def test_the_agent_and_what_both_records_say_are_kept(self) -> None:
        read_ = read(*TALK, calls=CALLS, info={"k": 1})
        agent = read_.episode.main.agent
        assert (agent.name, agent.model, agent.extra) == (
            "solver",
            "m",
            {"ng_capture": {"verifiers": {"trainable": True}}},
        )
        assert read_.episode.row is not None and read_.episode.row["info"] == {"k": 1}
        assert read_.episode.row["env"] == {"id": "env"}
        assert (read_.episode.rollout_id, read_.episode.main.session_id) == ("t", "e")

    def test_every_agent_of_an_episode_is_a_rollout_of_its_own(self) -> None:
        two = [trace(*TALK, id="t1"), trace(*TALK, id="t2")]
        outcomes = outcomes_of("verifiers", [episode(*two)])
        assert [(each.episode.rollout_id, each.place) for each in outcomes if isinstance(each, Read)] == [
            *(("t1", "line 1, trace 0"), ("t2", "line 1, trace 1")),
        ]

    def test_an_episode_without_a_trace_is_reported_and_the_next_is_read(self) -> None:
        outcomes = outcomes_of("verifiers", [episode(), episode(trace(*TALK))])
        assert isinstance(outcomes[0], Refused) and isinstance(outcomes[1], Read)
        (fault,) = outcomes[0].faults
        assert (fault.rule, fault.path, fault.line) == ("verifiers.traces.none", "/traces", 1)


class TestBranches:
    def test_a_compaction_is_two_threads_and_a_step_that_says_so(self) -> None:
        read_ = read(
            node(None, "user", "long"),
            node(0, "assistant", "one"),
            node(1, "assistant", "SUMMARY"),
            node(None, "user", "go on from SUMMARY"),
            node(3, "assistant", "done", semantic_parents=[{"node": 2, "type": "compaction"}]),
        )
        (before,) = read_.episode.main.subagents
        assert [turn.content for turn in before.turns] == ["long", "one", "SUMMARY"]
        step = read_.episode.main.turns[0]
        assert step.extra == {"context_management": {"type": "compaction", "boundary": "replace"}}
        assert step.results[0].subagents[0].trajectory_id == before.trajectory_id
        assert [turn.content for turn in read_.episode.main.turns[1:]] == ["go on from SUMMARY", "done"]
        assert codes(read_) == []

    def test_a_compaction_puts_nothing_into_training_text_but_what_was_said(self) -> None:
        nodes = (
            *(node(None, "user", "long"), node(0, "assistant", "SUMMARY"), node(None, "user", "go on from SUMMARY")),
            node(2, "assistant", "done", semantic_parents=[{"node": 1, "type": "compaction"}]),
        )
        messages = document_of("verifiers", "sft", [episode(trace(*nodes))])["messages"]
        assert [each["content"] for each in messages] == ["go on from SUMMARY", "done"]

    def test_what_two_branches_share_counts_once_in_the_later_one(self) -> None:
        read_ = read(
            node(None, "user", "hi", "a"),
            node(0, "assistant", "one", "B"),
            node(1, "user", "left", "c"),
            node(2, "assistant", "L", "D"),
            node(1, "user", "right", "e"),
            node(4, "assistant", "R", "F"),
            calls=[made(1), made(3), made(5)],
        )
        (earlier,) = read_.episode.main.subagents
        assert [(turn.content, turn.copied) for turn in said(read_.episode.main)] == [("one", False), ("R", False)]
        assert [(turn.content, turn.copied) for turn in said(earlier)] == [("one", True), ("L", False)]
        assert codes(read_) == ["copied_context", "history_rewritten", "logprobs_rounded"]
        at = [number for number, turn in enumerate(read_.episode.main.turns) if turn.role == Role.EVENT]
        assert at == [2]

    CALLER = (
        node(None, "user", "hi"),
        node(0, "assistant", None, message={"tool_calls": [call("c1", arguments='{"goal": "do it"}'), call("c2")]}),
        node(None, "user", "do it"),
        node(2, "assistant", "did it"),
    )

    def test_a_sub_agent_that_a_call_began_is_on_that_calls_result(self) -> None:
        link = {"semantic_parents": [{"node": 1, "type": "subagent_call"}]}
        read_ = read(
            *self.CALLER[:2],
            {**self.CALLER[2], **link},
            self.CALLER[3],
            node(1, "tool", "it is done", message={"tool_call_id": "c1"}),
            node(4, "assistant", "end"),
        )
        results = {each.call_id: each for each in read_.episode.main.turns[1].results}
        assert [ref.trajectory_id for ref in results["c1"].subagents] == ["t-branch-0"]
        assert results["c1"].content == "it is done" and codes(read_) == []

    def test_a_sub_agent_that_gave_back_is_on_the_call_before(self) -> None:
        back = {"semantic_parents": [{"node": 3, "type": "subagent_return"}]}
        read_ = read(*self.CALLER, node(1, "assistant", "end", **back))
        (result,) = read_.episode.main.turns[1].results
        assert (result.call_id, result.content) == ("c1", None)
        assert [ref.trajectory_id for ref in result.subagents] == ["t-branch-0"]

    def test_a_branch_that_nothing_links_stands_beside_and_is_reported(self) -> None:
        read_ = read(
            node(None, "user", "title?"),
            node(0, "assistant", "T"),
            node(None, "user", "hi"),
            node(2, "assistant", "yo"),
        )
        assert codes(read_) == ["subagent_parent_unknown"]
        assert read_.episode.main.turns[-1].role == Role.EVENT

    @pytest.mark.parametrize("kind", ["subagent_call", "subagent_return"])
    def test_a_link_to_a_turn_without_calls_names_none(self, kind: str) -> None:
        calls = kind == "subagent_call"
        read_ = read(
            node(None, "user", "hi"),
            node(0, "assistant", "no call"),
            node(None, "user", "do", **({"semantic_parents": [{"node": 1, "type": kind}]} if calls else {})),
            node(2, "assistant", "did"),
            node(1, "user", "b", **({} if calls else {"semantic_parents": [{"node": 3, "type": kind}]})),
            node(4, "assistant", "end"),
        )
        assert "subagent_parent_unknown" in codes(read_)


class TestFaults:
    @pytest.mark.parametrize(
        ("rule", "path", "broken"),
        [
            ("verifiers.node.message", "/traces/0/nodes/1", {"message": "x"}),
            ("verifiers.node.parent", "/traces/0/nodes/1/parent", {"parent": 1}),
            ("verifiers.node.parent", "/traces/0/nodes/1/parent", {"parent": -1}),
            ("verifiers.node.parent", "/traces/0/nodes/1/parent", {"parent": True}),
            (
                "verifiers.node.link",
                "/traces/0/nodes/1/semantic_parents",
                {"semantic_parents": [{"node": 9, "type": "x"}]},
            ),
            ("verifiers.node.tokens", "/traces/0/nodes/1/token_ids", {"mask": []}),
        ],
    )
    def test_a_broken_node_is_told_at_its_place(self, rule: str, path: str, broken: Record) -> None:
        nodes = [TALK[0], {**TALK[1], **broken}, *TALK[2:]]
        (fault,) = faults_of("verifiers", [episode(trace(*nodes))])
        assert (fault.rule, fault.path, fault.line) == (rule, path, 1)
        (outcome,) = outcomes_of("verifiers", [episode(trace(*nodes))])
        assert isinstance(outcome, Refused) is (fault.severity == "error")

    @pytest.mark.parametrize(
        ("nodes", "rule"),
        [(None, "verifiers.field.type"), ([], "verifiers.conversation.empty"), ([3], "verifiers.node.message")],
    )
    def test_a_trace_without_messages_is_refused(self, nodes: Any, rule: str) -> None:
        assert refused("verifiers", [episode({**trace(), "nodes": nodes})]) == [rule]

    def test_a_trace_that_is_no_object_is_refused(self) -> None:
        assert refused("verifiers", [{**episode(), "traces": [3]}]) == ["verifiers.field.type"]


@pytest.mark.parametrize("condition", [{}, [], 3, None])
def test_a_stop_condition_that_is_no_text_is_none(condition: object) -> None:
    [outcome] = converted("verifiers", "gym", [episode(trace(node(None, "user", "hi"), stop_condition=condition))])
    assert outcome.written is not None
