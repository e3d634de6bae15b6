"""verifiers of the corpus: real rows and traces, read with their losses and written to every contract (7.2)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ng_capture.contracts.conversion import Conversion, Converted
from ng_capture.contracts.interface import Options, Read, Refused
from ng_capture.contracts.registry import reader_of, writable, writer_of
from ng_capture.contracts.sources import Source
from tests.support.corpus import corpus_folder, json_lines

FOLDER = corpus_folder("contracts") / "verifiers"
RESULTS = sorted(path.name for path in FOLDER.glob("*.results.jsonl"))
TRACES = FOLDER / "v1_traces.jsonl"


def read(name: str) -> list[Read | Refused]:
    return list(reader_of("verifiers").read(Source(str(FOLDER / name)), Options()))


def reads(name: str) -> Iterator[Read]:
    for outcome in read(name):
        assert isinstance(outcome, Read), outcome
        yield outcome


def converted(name: str, target: str) -> list[Converted]:
    return list(Conversion(reader_of("verifiers"), writer_of(target)).convert(Source(str(FOLDER / name))))


def codes(outcome: Read | Refused) -> set[str]:
    return {loss.code for loss in outcome.losses}


@pytest.mark.parametrize("name", RESULTS)
def test_every_row_is_read_with_its_reward_and_the_model_beside_it(name: str) -> None:
    rows = json_lines(FOLDER / name)
    metadata = json.loads((FOLDER / name.replace("results.jsonl", "metadata.json")).read_bytes())
    found = list(reads(name))
    assert [each.episode.reward for each in found] == [row["reward"] for row in rows]
    assert {each.episode.main.agent.model for each in found} == {metadata["model"]}
    assert len({each.episode.rollout_id for each in found}) == len(rows)
    assert all(not each.faults for each in found)


@pytest.mark.parametrize("name", [*RESULTS, TRACES.name])
@pytest.mark.parametrize("target", writable())
def test_what_is_read_is_written_to_every_contract_but_what_wants_ids(name: str, target: str) -> None:
    without_ids = {"tokens.none"} if target == "tokens" else set()
    for done in converted(name, target):
        if done.written is None:
            assert {fault.rule for fault in done.faults} <= {"verifiers.traces.none"} | without_ids
        else:
            assert all(json.loads(document) for document in done.written.documents)


@pytest.mark.parametrize("name", RESULTS)
def test_every_call_is_there_and_every_result_on_its_call(name: str) -> None:
    for row, found in zip(json_lines(FOLDER / name), reads(name), strict=True):
        messages = [message for part in ("prompt", "completion") for message in row[part]]
        asked = sum(len(message.get("tool_calls") or []) for message in messages)
        answered = [message["content"] for message in messages if message["role"] == "tool"]
        turns = found.episode.main.turns
        assert sum(len(turn.calls) for turn in turns) == asked
        assert [result.content for turn in turns for result in turn.results] == answered
        for turn in turns:
            assert {result.call_id for result in turn.results} <= {call.call_id for call in turn.calls}


def test_calls_that_are_json_text_are_decoded_and_results_linked_by_their_order() -> None:
    found = list(reads("math_python_cb7a1799.results.jsonl"))
    calls = [call for each in found for turn in each.episode.main.turns for call in turn.calls]
    assert calls and all(isinstance(call.value, dict) and call.name == "python" for call in calls)
    assert any("link_by_position" in codes(each) for each in found)


@pytest.mark.parametrize("name", ["tool_test_5cde0948.results.jsonl", "mmmu_51f717af.results.jsonl"])
def test_a_failed_generation_is_what_was_asked_alone(name: str) -> None:
    for each in reads(name):
        assert codes(each) == {"conversation_unavailable"}
        assert all(turn.role != "assistant" for turn in each.episode.main.turns)


def test_replies_of_the_environment_stay_in_the_conversation() -> None:
    for row, each in zip(json_lines(FOLDER / RESULTS[-1]), reads(RESULTS[-1]), strict=True):
        told = [turn.role for turn in each.episode.main.turns]
        assert told == [message["role"] for part in ("prompt", "completion") for message in row[part]]


class TestTraces:
    def test_the_second_call_has_the_whole_sequence_as_its_prompt(self) -> None:
        made = read(TRACES.name)[0]
        assert isinstance(made, Read)
        call = made.episode.main.turns[-1].call
        assert call is not None and call.tokens is not None
        assert (call.tokens.prompt_ids, call.tokens.completion_ids) == (list(range(1, 12)), [12])
        assert call.tokens.log_probs == [-0.01]
        assert (call.usage.tokens_in, call.usage.cached_tokens) == (11, 9)
        assert made.episode.reward == pytest.approx(1.1)
        assert codes(made) == {"logprobs_rounded"}

    def test_a_compaction_is_two_threads_with_their_link_and_the_rollout_was_cut(self) -> None:
        made = read(TRACES.name)[1]
        assert isinstance(made, Read) and made.episode.truncated is True and made.episode.reward is None
        (before,) = made.episode.main.subagents
        (ref,) = [ref for turn in made.episode.main.turns for result in turn.results for ref in result.subagents]
        assert ref.trajectory_id == before.trajectory_id

    def test_an_episode_without_a_trace_is_reported(self) -> None:
        outcome = read(TRACES.name)[2]
        assert isinstance(outcome, Refused)
        assert [(fault.rule, fault.line) for fault in outcome.faults] == [("verifiers.traces.none", 3)]

    def test_ids_and_log_probabilities_are_the_same_in_every_target(self) -> None:
        spellings: dict[str, Any] = {
            "atif": ("prompt_token_ids", "completion_token_ids", "logprobs"),
            "gym": ("prompt_token_ids", "generation_token_ids", "generation_log_probs"),
            "tokens": ("prompt_token_ids", "generation_token_ids", "generation_log_probs"),
        }
        found = {}
        for target, keys in spellings.items():
            written = converted(TRACES.name, target)[0].written
            assert written is not None
            documents = [json.loads(document) for document in written.documents]
            found[target] = [tuple(holder[key] for key in keys) for holder in _holders(documents, keys[0])]
        assert found["atif"] == found["gym"] == found["tokens"]
        assert found["atif"] == [([1, 2, 3, 4, 5, 6], [7, 8], [-0.1235, -0.5]), (list(range(1, 12)), [12], [-0.01])]


def _holders(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """The objects that hold a key, in their order."""
    if isinstance(value, dict):
        if key in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for member in value:
            yield from _holders(member, key)
