"""Rows of results.jsonl: both spellings of calls, results without ids, what is missing (contracts.md 6)."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.contracts.episode import Tokens
from ng_capture.contracts.interface import Options, Read
from ng_capture.contracts.registry import reader_of
from ng_capture.contracts.sources import Source
from tests.support.atof_events import answer, call, gives, says, system, user
from tests.support.conversions import as_lines, codes, converted, document_of, faults_of, outcomes_of, read_one, refused
from tests.support.verifiers_records import Record, row, step

CALL = call("c1", arguments='{"x": 1}')
RESULT = {"role": "tool", "content": "7", "tool_calls": None}


def read(**fields: Any) -> Read:
    told = {"prompt": [user("hi")], "completion": [says("yo")], **fields}
    return read_one("verifiers", [row(told.pop("prompt"), told.pop("completion"), **told)])


class TestConversation:
    @pytest.mark.parametrize("spelled", [CALL, json.dumps(CALL)])
    def test_calls_are_read_as_objects_and_as_json_text(self, spelled: Any) -> None:
        made = read(completion=[says("", spelled), gives("c1", "7"), says("seven")])
        (called,) = made.episode.main.turns[1].calls
        assert (called.call_id, called.name, called.value) == ("c1", "f", {"x": 1})
        assert codes(made) == []

    def test_results_that_name_no_call_are_linked_by_their_order_and_reported(self) -> None:
        calls = [json.dumps(call(f"c{at}")) for at in range(2)]
        made = read(completion=[says("", *calls), {**RESULT, "content": "a"}, {**RESULT, "content": "b"}, says("x")])
        assert [(each.call_id, each.content) for each in made.episode.main.turns[1].results] == [
            ("c0", "a"),
            ("c1", "b"),
        ]
        assert [(each.code, each.path) for each in made.losses] == [
            *(("link_by_position", "/completion/1"), ("link_by_position", "/completion/2")),
        ]

    def test_fewer_results_than_calls_are_ambiguous(self) -> None:
        made = read(completion=[says("", CALL, call("c2")), RESULT])
        assert codes(made) == ["link_ambiguous", "link_by_position"]

    def test_a_result_before_any_call_is_unlinked(self) -> None:
        assert "output_unlinked" in codes(read(completion=[RESULT, says("x")]))

    def test_a_call_of_broken_json_text_is_kept_as_its_arguments(self) -> None:
        made = read(completion=[says("", "{broken")])
        assert made.episode.main.turns[1].calls[0].arguments == "{broken"

    def test_what_the_model_says_in_the_prompt_is_copied_and_in_the_completion_its_own(self) -> None:
        made = read(
            prompt=[system("S"), user("a"), says("shot"), user("b")], completion=[says("own"), user("c"), says("d")]
        )
        assert [(turn.content, turn.copied) for turn in made.episode.main.turns if turn.role == "assistant"] == [
            *(("shot", True), ("own", False), ("d", False)),
        ]
        assert [(each.code, each.path) for each in made.losses] == [("copied_context", "/prompt/2")]

    def test_bare_texts_are_what_each_side_said(self) -> None:
        made = read(prompt="Q", completion="A")
        assert [(turn.role, turn.content, turn.place) for turn in made.episode.main.turns] == [
            *(("user", "Q", "/prompt/0"), ("assistant", "A", "/completion/0")),
        ]

    def test_a_failed_generation_is_its_prompt_alone(self) -> None:
        made = read(completion=[], reward=0.0)
        assert [turn.content for turn in made.episode.main.turns] == ["hi"]
        assert codes(made) == ["conversation_unavailable"]

    @pytest.mark.parametrize("empty", [[], "", None])
    def test_a_row_that_says_nothing_is_refused(self, empty: Any) -> None:
        assert refused("verifiers", [row(empty, empty)])[-1] == "verifiers.conversation.empty"

    def test_think_tags_are_reasoning_and_told_where_they_stood(self) -> None:
        made = read(completion=[says("<think>R</think>yo")])
        assert [text for thought in made.episode.main.turns[1].thoughts for text in thought.texts] == ["R"]
        assert [(each.code, each.path) for each in made.losses] == [("think_tags_split", "/completion/0/content")]


class TestRow:
    def test_the_reward_is_the_rows_and_the_rest_stays(self) -> None:
        made = read(reward=0.25, answer="7", metric=2.0)
        assert made.episode.reward == 0.25
        assert made.episode.row == {"example_id": 7, "reward": 0.25, "answer": "7", "metric": 2.0}

    @pytest.mark.parametrize("reward", [None, True, "1.0", float("nan"), 10**400])
    def test_what_is_no_number_is_no_reward(self, reward: Any) -> None:
        made = read(reward=reward)
        assert made.episode.reward is None and "reward_unavailable" in codes(made)

    def test_rollouts_are_named_by_example_and_attempt(self) -> None:
        rows = [row("Q", "A", example_id=3), row("Q", "A", example_id=4), row("Q", "B", example_id=3)]
        old = {key: value for key, value in row("Q", "A", id=3).items() if key != "example_id"}
        unnamed = {key: value for key, value in row("Q", "A").items() if key != "example_id"}
        made = [each for each in outcomes_of("verifiers", [*rows, old, unnamed]) if isinstance(each, Read)]
        assert [each.episode.rollout_id for each in made] == ["3-0", "4-0", "3-1", "3-2", None]
        assert [each.place for each in made] == [f"line {at}" for at in range(1, 6)]

    @pytest.mark.parametrize("told", [True, False])
    def test_a_row_that_was_cut_says_so(self, told: bool) -> None:
        assert read(is_truncated=told).episode.truncated is told
        assert read().episode.truncated is None

    @pytest.mark.parametrize(
        "offered", [{"tool_defs": [CALL]}, {"info": {"oai_tools": [CALL]}}, {"info": '{"oai_tools": [{}]}'}]
    )
    def test_tools_are_found_wherever_versions_put_them(self, offered: Record) -> None:
        assert len(read(**offered).episode.main.agent.tools or ()) == 1

    @pytest.mark.parametrize("offered", [{}, {"info": "{"}, {"info": 3}, {"tool_defs": []}])
    def test_no_tools_are_none(self, offered: Record) -> None:
        assert read(**offered).episode.main.agent.tools is None

    def test_counts_that_are_written_as_floats_are_whole_numbers(self) -> None:
        totals = read(token_usage={"input_tokens": 9.0, "output_tokens": 3.5}).episode.main.totals
        assert totals is not None and (totals.usage.tokens_in, totals.usage.tokens_out) == (9, None)
        assert read(token_usage={}).episode.main.totals is None

    def test_metadata_beside_tells_the_model_and_how_it_was_asked(self, tmp_path: Path) -> None:
        (tmp_path / "run.results.jsonl").write_bytes(as_lines([row("Q", "A")]))
        meant = {"model": "m", "env": "e", "sampling_args": {"temperature": 1, "max_tokens": None}}
        (tmp_path / "run.metadata.json").write_text(json.dumps(meant))
        (made,) = reader_of("verifiers").read(Source(str(tmp_path / "run.results.jsonl")), Options())
        assert isinstance(made, Read) and made.episode.main.agent.model == "m"
        assert made.episode.request == {"model": "m", "temperature": 1}
        assert made.episode.row is not None and made.episode.row["metadata"] == meant

    @pytest.mark.parametrize("beside", [None, "[]", "{"])
    def test_without_metadata_the_model_is_unknown(self, tmp_path: Path, beside: str | None) -> None:
        (tmp_path / "results.jsonl").write_bytes(as_lines([row("Q", "A")]))
        if beside is not None:
            (tmp_path / "metadata.json").write_text(beside)
        (made,) = reader_of("verifiers").read(Source(str(tmp_path / "results.jsonl")), Options())
        assert isinstance(made, Read) and made.episode.main.agent.model is None and made.episode.request is None


class TestTrajectory:
    STEPS = (
        step([says("", CALL)], [1, 2], [3, 4], [-0.25, -0.5], reward=0.5, advantage=0.1),
        step([says("seven")], [1, 2, 3, 4, 5], [6], [-0.125]),
    )
    COMPLETION = (says("", CALL), gives("c1", "7"), says("seven"))

    def test_ids_and_log_probabilities_reach_every_target_exactly(self) -> None:
        rows = [row([user("hi")], list(self.COMPLETION), trajectory=list(self.STEPS))]
        exact = [([1, 2], [3, 4], [-0.25, -0.5]), ([1, 2, 3, 4, 5], [6], [-0.125])]
        steps = document_of("verifiers", "atif", rows)["steps"]
        assert [
            _arrays(each["metrics"], "prompt_token_ids", "completion_token_ids", "logprobs") for each in steps[1:]
        ] == exact
        items = document_of("verifiers", "gym", rows)["response"]["output"]
        gym = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
        assert [_arrays(item, *gym) for item in items if "prompt_token_ids" in item] == exact
        (done,) = converted("verifiers", "tokens", rows)
        assert done.written is not None
        assert [_arrays(json.loads(line), *gym) for line in done.written.documents] == exact

    def test_what_a_step_says_beside_stays_with_its_turn(self) -> None:
        made = read(completion=list(self.COMPLETION), trajectory=list(self.STEPS))
        turn = made.episode.main.turns[1]
        assert turn.model_calls == 1 and turn.extra == {
            "ng_capture": {"verifiers": {"tokens": {"completion_mask": [True, True]}, "reward": 0.5, "advantage": 0.1}}
        }

    def test_a_step_that_is_no_turn_is_reported_and_its_ids_are_nobodys(self) -> None:
        other = step([says("other")], [1], [2], [-0.5])
        made = read(completion=list(self.COMPLETION), trajectory=[self.STEPS[0], other])
        assert [(fault.rule, fault.path, fault.line) for fault in made.faults] == [
            ("verifiers.trajectory.unmatched", "/trajectory/1", 1),
        ]
        assert codes(made) == ["step_fields_dropped"]
        assert made.episode.main.turns[2].call is None

    def test_ids_that_the_model_did_not_generate_are_no_answer(self) -> None:
        masked = step([says("yo")], [1], [2, 3], [-0.5, -0.5])
        masked["tokens"]["completion_mask"] = [1, 0]
        made = read(trajectory=[masked])
        assert codes(made) == ["tokens_incomplete"]
        call_ = made.episode.main.turns[1].call
        assert call_ is not None and call_.tokens is None

    @pytest.mark.parametrize("tokens", [None, {}, {"prompt_ids": [], "completion_ids": []}])
    def test_a_model_without_ids_has_none(self, tokens: Any) -> None:
        made = read(trajectory=[{"completion": "yo", "tokens": tokens}])
        told = made.episode.main.turns[1].call
        assert told is not None and told.tokens is None and codes(made) == []

    def test_missing_log_probabilities_stay_missing(self) -> None:
        tokens = {"prompt_ids": [1], "completion_ids": [2]}
        made = read(trajectory=[{"completion": "yo", "tokens": tokens}])
        told = made.episode.main.turns[1].call
        assert told is not None and told.tokens == Tokens([1], [2], None)
        rows = [row([user("hi")], [says("yo")], trajectory=[{"completion": "yo", "tokens": tokens}])]
        assert "prompt_token_ids" not in str(document_of("verifiers", "gym", rows))

    @pytest.mark.parametrize(
        "broken",
        [
            {"prompt_ids": [[1]]},
            {"completion_ids": ["2"]},
            {"completion_ids": [-2]},
            {"completion_logprobs": [None]},
            {"completion_logprobs": [float("nan")]},
            {"completion_logprobs": "x"},
        ],
    )
    def test_what_is_no_id_and_no_log_probability_travels_nowhere(self, broken: Record) -> None:
        tokens = {"prompt_ids": [1], "completion_ids": [2], "completion_logprobs": [-0.5], **broken}
        made = read(trajectory=[{"completion": "yo", "tokens": tokens}])
        told = made.episode.main.turns[1].call
        assert told is not None and told.tokens is None and codes(made) == ["tokens_incomplete"]

    @pytest.mark.parametrize(
        "response",
        [
            answer(says("yo"), "stop", id="r", model="m", usage={"prompt_tokens": 3, "completion_tokens": 1}),
            {
                "id": "r",
                "model": "m",
                "usage": {"prompt_tokens": 3, "completion_tokens": 1},
                "message": {"content": "yo", "finish_reason": "stop"},
            },
        ],
    )
    def test_the_response_tells_the_call_in_either_spelling(self, response: Record) -> None:
        told = read(trajectory=[{"completion": [says("yo")], "response": response}]).episode.main.turns[1].call
        assert told is not None
        assert (told.response_id, told.model, told.finish_reason) == ("r", "m", "stop")
        assert (told.usage.tokens_in, told.usage.tokens_out) == (3, 1)

    def test_an_empty_list_of_choices_tells_nothing(self) -> None:
        told = (
            read(trajectory=[{"completion": "yo", "response": {"choices": [], "id": "r"}}]).episode.main.turns[1].call
        )
        assert told is not None and told.response_id == "r"


class TestFaults:
    @pytest.mark.parametrize(
        ("fields", "path"),
        [
            ({"prompt": 3}, "/prompt"),
            ({"completion": None}, "/completion"),
            ({"reward": "x"}, "/reward"),
            ({"trajectory": {}}, "/trajectory"),
        ],
    )
    def test_a_field_of_another_type_is_told_at_its_place(self, fields: Record, path: str) -> None:
        told = {"prompt": [user("hi")], "completion": [says("yo")], **fields}
        (fault,) = faults_of("verifiers", [row(told.pop("prompt"), told.pop("completion"), **told)])
        assert (fault.rule, fault.path, fault.line) == ("verifiers.field.type", path, 1)

    def test_all_faults_of_a_file_are_told_and_good_rows_are_read(self) -> None:
        data = b"{\n3\n" + as_lines([row("Q", "A"), row("", [])])
        assert [(fault.rule, fault.line) for fault in faults_of("verifiers", data)] == [
            *(("verifiers.json.syntax", 1), ("verifiers.line", 2), ("verifiers.conversation.empty", 4)),
        ]
        outcomes = outcomes_of("verifiers", data)
        assert [outcome.place for outcome in outcomes if isinstance(outcome, Read)] == ["line 3"]

    def test_a_torn_last_line_is_a_fault_and_the_rest_is_read(self) -> None:
        whole = as_lines([row("Q", "A"), row("Q", "B")])
        outcomes = outcomes_of("verifiers", whole[:-9])
        assert [isinstance(outcome, Read) for outcome in outcomes] == [True, False]

    def test_an_empty_file_holds_no_records(self) -> None:
        assert refused("verifiers", b"") == ["verifiers.empty"]


def _arrays(holder: Record, *keys: str) -> tuple[Any, ...]:
    return tuple(holder[key] for key in keys)
