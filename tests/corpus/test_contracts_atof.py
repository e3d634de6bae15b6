"""ATOF of the corpus: equal to the NeMo Agent Toolkit's own ATIF where contracts.md says so, each difference named.

The toolkit's converter is known by `nat-exmp*.json` and by `oracle/nat_atof_to_atif.jsonl` (nvidia-nat-atif 1.9.0);
NeMo Relay's streams by its own exporter's files.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from ng_capture.contracts.registry import writable
from tests.support.conversions import converted, differences, document_of, faults_of, read_one
from tests.support.corpus import corpus_folder, json_lines

CONTRACTS = corpus_folder("contracts")
ATOF = CONTRACTS / "atof"
STREAMS = sorted(path.name for path in ATOF.glob("*.jsonl"))
ORACLE = {case["case"]: case for case in json_lines(CONTRACTS / "oracle" / "nat_atof_to_atif.jsonl")}
CONVERTED = [name for name, case in ORACLE.items() if case.get("output", {}).get("steps")]

ADDED = re.compile(
    r"""
      /trajectory_id                          # a document has a name, also where it is no sub-agent's
    | /final_metrics/total_steps
    | (/subagent_trajectories/\d+)?/extra     # the scope's own data, the conversion and its losses
    | .*/extra/ng_capture
    """,
    re.VERBOSE,
)
"""What our documents hold and the toolkit's do not (7.2, T-ATOF-1: apart from additions in extra)."""

DIFFERENCES: dict[str, dict[str, str]] = {
    "nat-exmp03": {"/steps/0/extra": "a mark keeps its name, uuid and category"},
    "marks": {f"/steps/{at}/extra": "a mark keeps its name, uuid and category" for at in range(4)},
    "orphan tool no id": {"/steps/0/extra": "a tool without a call keeps where and when it ran"},
    "raw args": {"/steps/1/tool_calls/0/extra": "the text of arguments that are no object is kept (3.4, 4)"},
    "openai reasoning + usage lost": {
        "/steps/1/metrics": "usage is mapped (T-ATOF-4)",
        "/steps/1/reasoning_content": "reasoning is mapped (T-ATOF-4)",
        "/final_metrics/total_prompt_tokens": "usage is mapped",
        "/final_metrics/total_completion_tokens": "usage is mapped",
        "/final_metrics/extra": "usage is mapped",
    },
    "context replace": {
        "/steps": "the summary is told as the next request tells it; the toolkit leaves it beside the conversation"
    },
    "agent under agent (no dispatcher)": {
        "/steps": "an agent under an agent is embedded, not flattened (2.4)",
        "/subagent_trajectories": "an agent under an agent is embedded, not flattened (2.4)",
        "/agent/model_name": "the model is the sub-agent's, not its caller's",
    },
    "two llm same ts parallel": {
        f"/steps/{at}/{field}": "of one moment the uuid tells the order: lines have none (2.1)"
        for at in (1, 2)
        for field in ("message", "extra/ancestry/function_id", "extra/invocation/invocation_id")
    },
}
"""Where ours is not the toolkit's, by case and place, and why."""

READ_NEVERTHELESS: dict[str, tuple[list[tuple[str, Any, int]], set[str]]] = {
    # source, message and number of results of each step; losses
    "int timestamps": ([("user", "hi", 0), ("agent", "yo", 0)], set()),
    "orphan tool before llm": ([("system", "", 1), ("user", "hi", 0), ("agent", "x", 0)], {"output_unlinked"}),
    "list args": ([("user", "hi", 0), ("agent", "", 0)], {"arguments_not_object"}),
    "assistant parts": ([("user", "hi", 0), ("agent", [{"type": "text", "text": "x"}], 0)], set()),
    "mark splits obs": ([("user", "hi", 0), ("agent", "", 1), ("system", '{"n":1}', 0)], set()),
    "mark with attributes": ([("system", "{}", 0)], {"agent_name_unknown"}),
}
"""What the toolkit raises on, and we read (2.2, defects; T-ATOF-2, 6, 7)."""

REFUSED = {
    "empty stream": {"atof.empty"},
    "bad version": {"atof.version"},
    "naive ts": {"atof.timestamp.naive", "atof.episode.empty"},
}


def unexpected(case: str, expected: Any, found: Any) -> Iterator[str]:
    """Differences that no table names, and names that nothing differs in."""
    named = dict(DIFFERENCES.get(case, {}))
    expected = {"final_metrics": {}, **expected}
    for path, _, there in differences(expected, found):
        if named.pop(path, None) is None and not (ADDED.fullmatch(path) and there is not None):
            yield path
    yield from named


@pytest.mark.parametrize("name", [name for name in STREAMS if name.startswith("nat-")])
def test_a_stream_of_the_toolkit_is_its_own_atif_but_for_what_is_named(name: str) -> None:
    stem = name.removesuffix(".atof.jsonl")
    expected = json.loads((CONTRACTS / "atif" / "valid" / f"{stem}.json").read_bytes())
    found = document_of("atof", "atif", (ATOF / name).read_bytes())
    assert list(unexpected(stem, expected, found)) == []


@pytest.mark.parametrize("case", CONVERTED)
def test_what_the_toolkit_converts_is_converted_equally_but_for_what_is_named(case: str) -> None:
    found = document_of("atof", "atif", ORACLE[case]["input"])
    expected = ORACLE[case]["output"]
    if case == "agent under agent (no dispatcher)":
        # the steps are the sub-agent's own, and the caller's one refers to it
        (child,) = found["subagent_trajectories"]
        told = [(step["source"], step["message"]) for step in child["steps"]]
        assert told == [(step["source"], step["message"]) for step in expected["steps"]]
    if case == "context replace":
        more = [step for step in found["steps"] if (step["source"], step["message"]) == ("system", "SUM")]
        assert [step["message"] for step in found["steps"] if step not in more] == [
            step["message"] for step in expected["steps"]
        ]
    assert list(unexpected(case, expected, found)) == []


@pytest.mark.parametrize("case", [name for name in ORACLE if name in READ_NEVERTHELESS])
def test_what_the_toolkit_raises_on_is_read_with_its_losses(case: str) -> None:
    steps, losses = READ_NEVERTHELESS[case]
    (done,) = converted("atof", "atif", ORACLE[case]["input"])
    assert done.written is not None
    found = json.loads(done.written.documents[0])["steps"]
    told = [(step["source"], step["message"], len(step.get("observation", {}).get("results", []))) for step in found]
    assert told == steps
    assert {loss.code for loss in done.losses} - {"agent_version_unknown"} == losses


def test_an_image_in_a_request_is_read_and_its_unknown_type_reported() -> None:
    (done,) = converted("atof", "atif", ORACLE["image user parts"]["input"])
    assert done.written is not None and "media_type_unknown" in {loss.code for loss in done.losses}


@pytest.mark.parametrize("case", [name for name in ORACLE if name in REFUSED])
def test_what_is_no_atof_is_refused_by_rule(case: str) -> None:
    (done,) = converted("atof", "atif", ORACLE[case]["input"])
    assert done.written is None and {fault.rule for fault in done.faults} == REFUSED[case]


def test_every_case_of_the_oracle_is_looked_at() -> None:
    assert set(ORACLE) == {*CONVERTED, *READ_NEVERTHELESS, *REFUSED, "image user parts"}


@pytest.mark.parametrize("name", STREAMS)
def test_the_streams_of_the_corpus_break_no_rule_and_are_written_to_every_contract(name: str) -> None:
    data = (ATOF / name).read_bytes()
    assert {fault.severity for fault in faults_of("atof", data)} <= {"info"}
    for target in writable():
        (done,) = converted("atof", target, data)
        # no telemetry carries exact ids
        assert (done.written is None) == (target == "tokens")


class TestRelay:
    def test_a_sub_agent_is_embedded_with_its_thinking_session_and_reference(self) -> None:
        found = document_of("atof", "atif", (ATOF / "relay_subagent_messages.atof.jsonl").read_bytes())
        assert (found["agent"]["name"], found["session_id"]) == ("lead", "sess-sub-1")
        (child,) = found["subagent_trajectories"]
        assert (child["agent"]["name"], child["session_id"]) == ("reader", "sess-sub-1-child")
        (step,) = [each for each in found["steps"] if each.get("tool_calls")]
        assert step["reasoning_content"] == "I should delegate."
        (ref,) = step["observation"]["results"][0]["subagent_trajectory_ref"]
        assert ref["trajectory_id"] == child["trajectory_id"]

    def test_the_version_and_session_of_the_agent_are_told_though_its_parent_is_not_there(self) -> None:
        found = document_of("atof", "atif", (ATOF / "relay_chat_tools.atof.jsonl").read_bytes())
        assert (found["agent"]["name"], found["agent"]["version"]) == ("calc_agent", "2.1")
        assert found["session_id"] == "sess-chat-1"

    @pytest.mark.parametrize("name", ["relay_chat_tools", "relay_subagent_messages"])
    def test_models_words_calls_and_results_are_those_of_relays_own_exporter(self, name: str) -> None:
        expected = json.loads((CONTRACTS / "atif" / "valid" / f"{name}.json").read_bytes())
        found = document_of("atof", "atif", (ATOF / f"{name}.atof.jsonl").read_bytes())
        # Relay leaves instructions and marks out (2.3)
        assert list(_told(found)) == list(_told(expected))

    @pytest.mark.parametrize("name", ["relay_chat_tools", "relay_subagent_messages"])
    def test_totals_are_those_of_relays_own_exporter_but_for_what_was_written_to_the_cache(self, name: str) -> None:
        expected = json.loads((CONTRACTS / "atif" / "valid" / f"{name}.json").read_bytes())["final_metrics"]
        found = document_of("atof", "atif", (ATOF / f"{name}.atof.jsonl").read_bytes())["final_metrics"]
        written = found.get("extra", {}).get("cache_creation_input_tokens", 0)
        for key in ("total_prompt_tokens", "total_completion_tokens"):
            assert found[key] == expected[key]
        # Relay counts what was written to the cache among what was read from it (2.3)
        assert found["total_cached_tokens"] + written == expected["total_cached_tokens"]

    def test_a_cut_stream_is_a_partial_trajectory(self) -> None:
        data = (ATOF / "relay_chat_tools.atof.jsonl").read_bytes()
        cut = b"".join(data.splitlines(keepends=True)[:7])
        made = read_one("atof", cut)
        assert made.episode.truncated is True
        assert {loss.detail for loss in made.losses if loss.code == "scope_unfinished"} == {"agent"}


def _told(trajectory: Any) -> Iterator[Any]:
    """What was said and called, two differences apart.

    Relay tells the model by the answer's name of it, ours by the runtime's with the answer's beside; and Relay leaves
    one part of text a list, where ours is a text (T-AN-7).
    """
    for step in trajectory["steps"]:
        if step["source"] == "system":
            continue
        model = step.get("extra", {}).get("ng_capture", {}).get("response_model", step.get("model_name"))
        message = step["message"][0]["text"] if isinstance(step["message"], list) else step["message"]
        calls = [
            (each["tool_call_id"], each["function_name"], each["arguments"]) for each in step.get("tool_calls", [])
        ]
        results = [each["source_call_id"] for each in step.get("observation", {}).get("results", [])]
        yield step["source"], message, model, calls, sorted(results)
    for child in trajectory.get("subagent_trajectories", []):
        yield list(_told(child))
