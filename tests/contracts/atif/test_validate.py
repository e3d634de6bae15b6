"""Every rule on ATIF documents: where it is told, how severe, and all at once (contracts.md 1.3 and 7.3)."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.contracts.atif.contract import ATIF
from ng_capture.contracts.atif.rule_table import RULES
from ng_capture.contracts.atif.schema import AGENT_ONLY, audio_type
from ng_capture.contracts.atif.validate import check_source
from ng_capture.contracts.sources import Source
from tests.support.atif import Doc, called, document, errors, faults_of, put, told, with_steps, without
from tests.support.atif import agent_step as agent
from tests.support.atif import user_step as user

SOUND = {"media_type": "audio/wav", "path": "https://example.test/a.wav"}
IMAGE = {"media_type": "image/png", "path": "https://example.test/a.png"}


def json_text(value: object) -> bytes:
    return json.dumps(value).encode()


def said(*parts: object, version: int = 8) -> Doc:
    return with_steps(user(list(parts)), schema_version=f"ATIF-v1.{version}")


def answered(*results: Doc, calls: tuple[Doc, ...] = (called(),), **members: object) -> Doc:
    """A step that calls, and what came back."""
    return with_steps(agent(tool_calls=list(calls), observation={"results": list(results)}), **members)


def measured(**metrics: object) -> Doc:
    return with_steps(agent(metrics=metrics))


def referring(reference: object, version: int = 7, **members: object) -> Doc:
    result = {"source_call_id": "c1", "subagent_trajectory_ref": [reference]}
    return answered(result, schema_version=f"ATIF-v1.{version}", **members)


def child(name: object = "k", **members: object) -> Doc:
    return with_steps(user(), trajectory_id=name, **members)


def timed(*times: object) -> Doc:
    return with_steps(*(user(timestamp=time) for time in times))


CASES: dict[str, tuple[object, list[tuple[str, str, str]]]] = {
    "a list": ([1], [("error", "atif.root.type", "")]),
    "a number": (1, [("error", "atif.root.type", "")]),
    "no version": (without(document(), "/schema_version"), [("error", "atif.schema_version.missing", "")]),
    "a version of another spelling": (
        document(schema_version="1.7"),
        [("error", "atif.schema_version.unknown", "/schema_version")],
    ),
    "a version to come": (
        document(schema_version="ATIF-v1.10"),
        [("error", "atif.schema_version.unknown", "/schema_version")],
    ),
    "a version that is a number": (document(schema_version=1.7), [("error", "atif.field.type", "/schema_version")]),
    "a required field that is null": (document(agent=None), [("error", "atif.field.type", "/agent")]),
    "an unknown field with a slash": (document(**{"a/b": 1}), [("error", "atif.field.unknown", "/a~1b")]),
    "an unknown field of a sub-agent's step": (
        put(document(subagent_trajectories=[child()]), "/subagent_trajectories/0/steps/0/x", 1),
        [
            ("error", "atif.field.unknown", "/subagent_trajectories/0/steps/0/x"),
            ("info", "atif.subagent.unreferenced", "/subagent_trajectories/0"),
        ],
    ),
    "a number in a text": (
        measured(prompt_tokens="2"),
        [("error", "atif.field.type", "/steps/0/metrics/prompt_tokens")],
    ),
    "a boolean for a number": (
        measured(prompt_tokens=True),
        [("error", "atif.field.type", "/steps/0/metrics/prompt_tokens")],
    ),
    "a text for a boolean": (
        with_steps(user(is_copied_context="no")),
        [("error", "atif.field.type", "/steps/0/is_copied_context")],
    ),
    "tools that are no objects": (
        put(document(), "/agent/tool_definitions", ["f"]),
        [("error", "atif.field.type", "/agent/tool_definitions/0")],
    ),
    "tools that are no list": (
        put(document(), "/agent/tool_definitions", {}),
        [("error", "atif.field.type", "/agent/tool_definitions")],
    ),
    "another speaker": (put(document(), "/steps/0/source", "tool"), [("error", "atif.field.type", "/steps/0/source")]),
    "a count below zero": (
        document(final_metrics={"total_steps": -1}),
        [("error", "atif.number.range", "/final_metrics/total_steps")],
    ),
    "tokens below zero": (
        measured(prompt_tokens=-1),
        [("warning", "atif.number.range", "/steps/0/metrics/prompt_tokens")],
    ),
    "tokens that 64 bits do not count": (
        measured(prompt_tokens=2**63),
        [("warning", "atif.number.range", "/steps/0/metrics/prompt_tokens")],
    ),
    "a price below zero": (measured(cost_usd=-0.5), [("warning", "atif.number.range", "/steps/0/metrics/cost_usd")]),
    "a price in words": (measured(cost_usd="free"), [("error", "atif.field.type", "/steps/0/metrics/cost_usd")]),
    "ids below zero": (
        measured(completion_token_ids=[1, -2, -3]),
        [("warning", "atif.number.range", "/steps/0/metrics/completion_token_ids/1")],
    ),
    "ids that are texts": (
        measured(completion_token_ids=[1, "2"]),
        [("error", "atif.field.type", "/steps/0/metrics/completion_token_ids/1")],
    ),
    "ids that are no list": (
        measured(completion_token_ids=7),
        [("error", "atif.field.type", "/steps/0/metrics/completion_token_ids")],
    ),
    "log probabilities that are texts": (
        measured(logprobs=[-1, "x"]),
        [("error", "atif.field.type", "/steps/0/metrics/logprobs/1")],
    ),
    "log probabilities that are no list": (
        measured(logprobs={}),
        [("error", "atif.field.type", "/steps/0/metrics/logprobs")],
    ),
    "steps that are no list": (document(steps={}, final_metrics=None), [("error", "atif.field.type", "/steps")]),
    "a step that is no object": (
        document(steps=[1], final_metrics=None),
        [("error", "atif.field.type", "/steps/0")],
    ),
    "no steps": (document(steps=[], final_metrics=None), [("error", "atif.steps.empty", "/steps")]),
    "a gap is told once": (
        document(steps=[{"step_id": at, "source": "user", "message": ""} for at in (1, 3, 4)], final_metrics=None),
        [("error", "atif.step_id.sequence", "/steps/1/step_id")],
    ),
    "two gaps are told twice": (
        document(steps=[{"step_id": at, "source": "user", "message": ""} for at in (1, 3, 4, 9)], final_metrics=None),
        [
            ("error", "atif.step_id.sequence", "/steps/1/step_id"),
            ("error", "atif.step_id.sequence", "/steps/3/step_id"),
        ],
    ),
    "a count of calls on a user's step": (
        with_steps(user(llm_call_count=1)),
        [("warning", "atif.step.agent_only", "/steps/0/llm_call_count")],
    ),
    "even no tool calls on a user's step": (
        with_steps(user(tool_calls=[])),
        [("error", "atif.step.agent_only", "/steps/0/tool_calls")],
    ),
    "effort without a call": (
        with_steps(agent(llm_call_count=0, reasoning_effort="low")),
        [("warning", "atif.llm_call_count.zero", "/steps/0/reasoning_effort")],
    ),
    "effort that is a list": (
        with_steps(agent(reasoning_effort=[])),
        [("error", "atif.field.type", "/steps/0/reasoning_effort")],
    ),
    "a time in words": (timed("noon"), [("error", "atif.timestamp.format", "/steps/0/timestamp")]),
    "a time that is a number": (timed(1), [("error", "atif.field.type", "/steps/0/timestamp")]),
    "a time of no zone": (timed("2026-01-02T03:04:05"), [("warning", "atif.timestamp.naive", "/steps/0/timestamp")]),
    "a time before the last": (
        timed("2026-01-02T03:04:05Z", "2026-01-02T03:04:04Z"),
        [("warning", "atif.timestamp.order", "/steps/1/timestamp")],
    ),
    "times of two zones that are in order": (timed("2026-01-02T03:00:00+02:00", "2026-01-02T02:00:00Z"), []),
    "times with and without a zone are not compared": (
        timed("2026-01-02T03:04:05Z", "2026-01-01"),
        [("warning", "atif.timestamp.naive", "/steps/1/timestamp")],
    ),
    "arguments in a text": (
        answered({"source_call_id": "c1"}, calls=(called(arguments="{}"),)),
        [("error", "atif.tool_call.arguments", "/steps/0/tool_calls/0/arguments")],
    ),
    "an id that names two calls of a step": (
        answered({"source_call_id": "c1"}, calls=(called(), called())),
        [("warning", "atif.tool_call.reused_id", "/steps/0/tool_calls/1/tool_call_id")],
    ),
    "a call without a result": (
        with_steps(agent(tool_calls=[called()])),
        [("warning", "atif.tool_call.no_result", "/steps/0/tool_calls/0")],
    ),
    "a result that names no call of its step": (
        answered({"source_call_id": "z"}, {"source_call_id": "c1"}),
        [("error", "atif.observation.source_call_id", "/steps/0/observation/results/0/source_call_id")],
    ),
    "a result that names a broken call is not judged": (
        answered({"source_call_id": "c1"}, calls=({"tool_call_id": 1, "function_name": "f", "arguments": {}},)),
        [("error", "atif.field.type", "/steps/0/tool_calls/0/tool_call_id")],
    ),
    "a result that names nothing": (
        answered({"content": "x"}),
        [("warning", "atif.observation.unlinked", "/steps/0/observation/results/0")],
    ),
    "a result of a step without calls": (with_steps(agent(observation={"results": [{"content": "x"}]})), []),
    "a reference to nothing": (
        referring({}),
        [("error", "atif.subagent_ref.unresolvable", "/steps/0/observation/results/0/subagent_trajectory_ref/0")],
    ),
    "a reference by session": (
        referring({"session_id": "s"}),
        [("error", "atif.subagent_ref.unresolvable", "/steps/0/observation/results/0/subagent_trajectory_ref/0")],
    ),
    "a reference by session to v1.6": (
        referring({"session_id": "s"}, version=6),
        [("warning", "atif.subagent_ref.unresolvable", "/steps/0/observation/results/0/subagent_trajectory_ref/0")],
    ),
    "a reference to nothing to v1.6": (
        referring({}, version=6),
        [("error", "atif.subagent_ref.unresolvable", "/steps/0/observation/results/0/subagent_trajectory_ref/0")],
    ),
    "a reference to what is not embedded": (
        referring({"trajectory_id": "k"}),
        [
            (
                "warning",
                "atif.subagent_ref.not_found",
                "/steps/0/observation/results/0/subagent_trajectory_ref/0/trajectory_id",
            )
        ],
    ),
    "a reference to what is embedded": (referring({"trajectory_id": "k"}, subagent_trajectories=[child()]), []),
    "a reference from one sub-agent to another": (
        document(subagent_trajectories=[child(), {**referring({"trajectory_id": "k"}), "trajectory_id": "l"}]),
        [("info", "atif.subagent.unreferenced", "/subagent_trajectories/1")],
    ),
    "a sub-agent without an id": (
        document(subagent_trajectories=[without(child(), "/trajectory_id")]),
        [("error", "atif.subagent.trajectory_id", "/subagent_trajectories/0")],
    ),
    "two sub-agents of one id": (
        referring({"trajectory_id": "k"}, subagent_trajectories=[child(), child()]),
        [("error", "atif.subagent.trajectory_id", "/subagent_trajectories/1/trajectory_id")],
    ),
    "a sub-agent's sub-agent may have the id of an outer one": (
        referring({"trajectory_id": "k"}, subagent_trajectories=[child(subagent_trajectories=[child()])]),
        [],
    ),
    "a part of another type": (
        said({"type": "video"}),
        [("error", "atif.content.part", "/steps/0/message/0")],
    ),
    "a part without a type": (said({"text": "a"}), [("error", "atif.field.missing", "/steps/0/message/0")]),
    "a part that is a text": (said("a"), [("error", "atif.field.type", "/steps/0/message/0")]),
    "a text without text": (said({"type": "text"}), [("error", "atif.content.part", "/steps/0/message/0")]),
    "a text with a source": (
        said({"type": "text", "text": "a", "source": IMAGE}),
        [("error", "atif.content.part", "/steps/0/message/0")],
    ),
    "an image with text": (
        said({"type": "image", "text": "a", "source": IMAGE}),
        [("error", "atif.content.part", "/steps/0/message/0")],
    ),
    "an image of a sound's type": (
        said({"type": "image", "source": {**IMAGE, "media_type": "audio/wav"}}),
        [("error", "atif.content.media_type", "/steps/0/message/0/source/media_type")],
    ),
    "an image without a type": (
        said({"type": "image", "source": without(IMAGE, "/media_type")}),
        [("error", "atif.field.missing", "/steps/0/message/0/source")],
    ),
    "a sound by another name": (
        said({"type": "audio", "source": {**SOUND, "media_type": "Audio/MP3"}}),
        [("info", "atif.content.media_type_alias", "/steps/0/message/0/source/media_type")],
    ),
    "a sound before v1.8": (
        said({"type": "audio", "source": SOUND}, version=7),
        [("warning", "atif.version.field_too_new", "/steps/0/message/0")],
    ),
    "a sound that lasts less than nothing": (
        said({"type": "audio", "source": {**SOUND, "duration_sec": -1}}),
        [("error", "atif.number.range", "/steps/0/message/0/source/duration_sec")],
    ),
    "a message that is a number": (with_steps(user(7)), [("error", "atif.field.type", "/steps/0/message")]),
    "more from the cache than in the prompt": (
        measured(prompt_tokens=1, cached_tokens=2),
        [("warning", "atif.metrics.cached_exceeds_prompt", "/steps/0/metrics/cached_tokens")],
    ),
    "arrays that fit nothing": (
        measured(
            prompt_tokens=1, prompt_token_ids=[], completion_token_ids=[1], logprobs=[-1, -2], completion_tokens=3
        ),
        [
            ("warning", "atif.metrics.length", "/steps/0/metrics/logprobs"),
            ("warning", "atif.metrics.length", "/steps/0/metrics/completion_token_ids"),
            ("warning", "atif.metrics.length", "/steps/0/metrics/prompt_token_ids"),
        ],
    ),
    "log probabilities alone that do not fit the count": (
        measured(logprobs=[-1], completion_tokens=3),
        [("warning", "atif.metrics.length", "/steps/0/metrics/logprobs")],
    ),
    "counts of several calls are sums, which arrays need not be": (
        with_steps(agent(llm_call_count=2, metrics={"prompt_tokens": 9, "prompt_token_ids": [1]})),
        [],
    ),
    "a log probability above zero": (
        measured(logprobs=[-1, 0, 0.5, 2]),
        [("warning", "atif.metrics.logprob_positive", "/steps/0/metrics/logprobs/2")],
    ),
    "totals below the sum": (
        put(
            measured(prompt_tokens=3, cost_usd=0.2), "/final_metrics", {"total_prompt_tokens": 2, "total_cost_usd": 0.1}
        ),
        [
            ("warning", "atif.final_metrics.below_sum", "/final_metrics/total_prompt_tokens"),
            ("warning", "atif.final_metrics.below_sum", "/final_metrics/total_cost_usd"),
        ],
    ),
    "totals above the sum": (put(measured(prompt_tokens=3), "/final_metrics", {"total_prompt_tokens": 9}), []),
    "copied steps are not counted": (
        put(
            with_steps(
                agent(is_copied_context=True, metrics={"prompt_tokens": 9}), agent(metrics={"prompt_tokens": 1})
            ),
            "/final_metrics",
            {"total_prompt_tokens": 1},
        ),
        [],
    ),
    "another number of steps": (
        document(final_metrics={"total_steps": 9}),
        [("warning", "atif.final_metrics.total_steps", "/final_metrics/total_steps")],
    ),
    "another number of steps that notes explain": (document(final_metrics={"total_steps": 9}, notes="nine calls"), []),
    "an older trajectory of no session": (
        without(document(schema_version="ATIF-v1.6"), "/session_id"),
        [("warning", "atif.legacy.session_id_required", "")],
    ),
    "a system step that observes in v1.1": (
        with_steps(
            {"source": "system", "message": "", "observation": {"results": []}},
            schema_version="ATIF-v1.1",
        ),
        [("warning", "atif.version.field_too_new", "/steps/0/observation")],
    ),
    "a field of a later version that is null": (document(schema_version="ATIF-v1.0", extra=None), []),
}


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_told_where_it_is_with_its_rule_and_severity(name: str) -> None:
    value, expected = CASES[name]
    assert told(value) == expected


@pytest.mark.parametrize("field", AGENT_ONLY)
@pytest.mark.parametrize("source", ["user", "system"])
def test_what_only_an_agent_has_is_told_on_every_other_step(field: str, source: str) -> None:
    value: Any = {"tool_calls": [called()], "metrics": {}}.get(field, "x")
    step = {"source": source, "message": "", field: value}
    assert errors(with_steps(step)) == [("atif.step.agent_only", f"/steps/0/{field}")]


def test_all_faults_are_told_at_once() -> None:
    value = put(put(without(document(), "/agent/version"), "/steps/2/step_id", 7), "/steps/0/metrics", {})
    value = put(value, "/steps/1/observation/results/0/source_call_id", "z")
    assert set(errors(value)) == {
        ("atif.field.missing", "/agent"),
        ("atif.step_id.sequence", "/steps/2/step_id"),
        ("atif.step.agent_only", "/steps/0/metrics"),
        ("atif.observation.source_call_id", "/steps/1/observation/results/0/source_call_id"),
    }


def test_a_fault_names_its_step_and_what_was_found() -> None:
    (fault,) = faults_of(put(document(), "/steps/2/metrics/prompt_tokens", 2.5))
    assert (fault.step, fault.path) == (3, "/steps/2/metrics/prompt_tokens")
    assert "expected an integer, found a number" in fault.message
    (fault,) = faults_of(put(document(), "/agent/version", None))
    assert fault.step is None and "found null" in fault.message
    (fault,) = faults_of(document(**{"x" * 99: 1}))
    assert "x" * 57 + "..." in fault.message and "x" * 58 not in fault.message


def test_aliases_of_sounds_are_those_of_the_specification() -> None:
    spelled = {"mp3": "mpeg", "x-m4a": "mp4", "vnd.wave": "wav", "X-FLAC": "flac", "ogg": "ogg", "midi": "midi"}
    assert {name: audio_type(f" audio/{name}") for name in spelled} == {
        name: f"audio/{known}" for name, known in spelled.items()
    }
    assert audio_type("image/MP3") == "image/mp3"


@pytest.mark.parametrize(
    ("name", "rule", "path"),
    [
        ("part", "atif.content.file_missing", "/steps/1/observation/results/0/content/0/source/path"),
        ("next", "atif.continuation.not_found", "/continued_trajectory_ref"),
        (
            "child",
            "atif.subagent_ref.not_found",
            "/steps/1/observation/results/0/subagent_trajectory_ref/0/trajectory_path",
        ),
    ],
)
def test_files_that_a_document_names_are_looked_for_beside_it(tmp_path: Path, name: str, rule: str, path: str) -> None:
    result = {
        "source_call_id": "c1",
        "content": [{"type": "image", "source": {**IMAGE, "path": "part"}}],
        "subagent_trajectory_ref": [{"trajectory_path": "child"}],
    }
    step = agent(tool_calls=[called()], observation={"results": [result]})
    value = with_steps(user(), step, continued_trajectory_ref="next")
    for each in ("part", "next", "child"):
        (tmp_path / each).write_bytes(b"{}")
    (tmp_path / "t.json").write_bytes(json_text(value))
    assert check_source(Source(str(tmp_path / "t.json"))).faults == ()
    (tmp_path / name).unlink()
    (fault,) = check_source(Source(str(tmp_path / "t.json"))).faults
    assert (fault.severity, fault.rule, fault.path) == ("warning", rule, path)
    assert told(value) == []


def test_addresses_are_looked_for_nowhere(tmp_path: Path) -> None:
    value = said({"type": "image", "source": IMAGE}, {"type": "image", "source": {**IMAGE, "path": "data:,x"}})
    (tmp_path / "t.json").write_bytes(json_text(value))
    assert check_source(Source(str(tmp_path / "t.json"))).faults == ()


def test_validating_tells_the_faults_of_text_and_of_document_together(tmp_path: Path) -> None:
    assert ATIF.reader is not None and ATIF.reader.validate is not None
    text = json_text(document(x=1))[:-1] + b', "x": NaN}'
    (tmp_path / "t.json").write_bytes(b"\xef\xbb\xbf" + text)
    found = [fault.rule for fault in ATIF.reader.validate(Source(str(tmp_path / "t.json")))]
    assert found == ["atif.json.bom", "atif.json.duplicate_key", "atif.json.non_finite", "atif.field.unknown"]


def test_every_rule_of_documents_is_told_by_some_case() -> None:
    found = {rule for _, expected in CASES.values() for _, rule, _ in expected}
    beside = {"atif.foreign", "atif.content.file_missing", "atif.continuation.not_found"}
    assert found | beside == {rule for rule in RULES if not rule.startswith("atif.json.")}
