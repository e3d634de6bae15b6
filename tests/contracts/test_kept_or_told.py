"""Nothing vanishes: what an episode holds is in the document that is written of it, or a loss tells that it is not."""

import json

import msgspec
import pytest

from ng_capture.contracts.episode import (
    Agent,
    Episode,
    ModelCall,
    Opaque,
    Role,
    SubagentRef,
    Thought,
    Thread,
    Tokens,
    Tool,
    ToolCall,
    ToolResult,
    Totals,
    Turn,
)
from ng_capture.contracts.interface import Options, Profile, Written
from ng_capture.contracts.registry import writable, writer_of
from ng_capture.records.usage import Usage

CALL = ModelCall(
    call_id="CALL-ID",
    response_id="RESPONSE-ID",
    model="MODEL",
    dialect="chat",
    finish_reason="stop",
    started_at=1767225601.5,
    completed_at=1767225602.5,
    usage=Usage(tokens_in=77701, tokens_out=77702, cached_tokens=77703, cache_creation_tokens=77704),
    cost_usd=0.77705,
    tokens=Tokens([77706], [77707], [-0.77708]),
)
CHILD = Thread((Turn(Role.USER, "do it"), Turn(Role.ASSISTANT, "CHILD", model_calls=1)), trajectory_id="b")
MAIN = Thread(
    turns=(
        Turn(Role.SYSTEM, "SYSTEM"),
        Turn(Role.DEVELOPER, "DEVELOPER"),
        Turn(Role.USER, "USER", timestamp="2026-01-01T00:00:09Z"),
        Turn(Role.ASSISTANT, "COPIED", copied=True),
        Turn(Role.EVENT, "NOTED"),
        Turn(
            Role.ASSISTANT,
            "SAID",
            thoughts=(Thought(content=("REASON",), signature="SIGNATURE"),),
            calls=(ToolCall("c1", "TOOL", '{"k":"ARGUMENT"}'),),
            results=(ToolResult("c1", "RESULT", is_error=True, subagents=(SubagentRef("b", path="REFERENCE"),)),),
            call=CALL,
            model_calls=1,
            reasoning_effort="EFFORT",
            extra={"k": "TURN-EXTRA"},
            item={"envelope": {"system_fingerprint": "PRINT"}},
        ),
        Turn(Role.ASSISTANT, (Opaque("refusal", {"type": "refusal", "refusal": "REFUSED"}),)),
        Turn(Role.ASSISTANT, "SUMS", call=ModelCall(model="ANOTHER", dialect="chat"), model_calls=7771),
        Turn(Role.ASSISTANT, "CUT", call=ModelCall(finish_reason="length", dialect="chat"), model_calls=1),
    ),
    agent=Agent(
        "AGENT-NAME",
        "AGENT-VERSION",
        "MODEL",
        (Tool("OFFERED", {"type": "function", "name": "OFFERED", "parameters": {}}, "responses"),),
        extra={"k": "AGENT-EXTRA"},
    ),
    trajectory_id="TRAJECTORY",
    session_id="SESSION",
    totals=Totals(cost_usd=0.77711),
    notes="NOTES",
    subagents=(CHILD,),
    extra={"k": "THREAD-EXTRA"},
)
EPISODE = Episode(
    contract="test",
    main=MAIN,
    rollout_id="ROLLOUT",
    reward=0.77709,
    request={"temperature": 0.7771, "metadata": {"k": "REQUEST"}},
    row={"answer": "ROW"},
    response={"id": "ENVELOPE", "env_id": "ENVIRONMENT"},
)
TOTALS = Episode(
    "test",
    Thread(
        (Turn(Role.USER, "hi"), Turn(Role.ASSISTANT, "one"), Turn(Role.ASSISTANT, "two")),
        totals=Totals(Usage(tokens_in=77712, tokens_out=77713)),
    ),
)
METADATA = ("TRAJECTORY", "SESSION", "NOTES", "AGENT-NAME", "AGENT-VERSION", "AGENT-EXTRA", "THREAD-EXTRA", "ROLLOUT")
CONVERSATION = ("SYSTEM", "DEVELOPER", "USER", "COPIED", "SAID", "TOOL", "ARGUMENT", "RESULT", "CUT")
TOLD_BY: dict[str, set[str]] = {
    **{each: {"metadata_dropped"} for each in METADATA},
    **{each: {"conversation_dropped"} for each in CONVERSATION},
    "CHILD": {"subagent_dropped", "conversation_dropped"},
    "NOTED": {"mark_dropped", "conversation_dropped"},
    "REASON": {"reasoning_dropped", "conversation_dropped"},
    "SIGNATURE": {"reasoning_signature_dropped", "conversation_dropped"},
    "OFFERED": {"tools_dropped"},
    "77701": {"usage_dropped", "step_fields_dropped"},
    "77702": {"usage_dropped", "step_fields_dropped"},
    "77703": {"usage_dropped", "step_fields_dropped"},
    "77704": {"cache_write_dropped", "usage_dropped"},
    "77706": {"tokens_dropped"},
    "77707": {"tokens_dropped"},
    "-0.77708": {"tokens_dropped"},
    "0.77705": {"usage_dropped", "step_fields_dropped", "metadata_dropped"},
    "0.77711": {"usage_dropped", "metadata_dropped"},
    "0.77709": {"reward_dropped"},
    "0.7771,": {"request_fields_dropped"},
    "REQUEST": {"request_fields_dropped"},
    "ROW": {"row_fields_dropped"},
    "TURN-EXTRA": {"step_fields_dropped", "conversation_dropped"},
    "EFFORT": {"step_fields_dropped", "conversation_dropped"},
    "CALL-ID": {"step_fields_dropped:model_call"},
    "RESPONSE-ID": {"step_fields_dropped:model_call"},
    "PRINT": {"step_fields_dropped:system_fingerprint", "conversation_dropped"},
    "REFUSED": {"conversation_dropped"},
    '"refusal"': {"parts_flattened:refusal", "conversation_dropped"},
    "length": {"finish_reason_dropped"},
    "ENVELOPE": {"metadata_dropped:response.id"},
    "ENVIRONMENT": {"metadata_dropped:response.env_id"},
    "ANOTHER": {"step_fields_dropped:model_name", "conversation_dropped"},
    "7771,": {"step_fields_dropped:llm_call_count", "conversation_dropped"},
    "REFERENCE": {"step_fields_dropped:subagent_trajectory_ref", "conversation_dropped"},
    "00:00:09": {"timestamps_dropped", "conversation_dropped"},
    "1767225601.5": {"timestamps_dropped"},
}
"""What the episode holds, each by a text that stands nowhere else, with the losses that may tell that it is missing:
a code, or `code:name` where the loss must name it.
"""


def told(episode: Episode, target: str, profile: Profile = Profile.NATIVE) -> tuple[str, set[str]]:
    """What is written, and the losses: their codes, and `code:name` for each name in their details."""
    written = writer_of(target).write(episode, Options(profile=profile))
    assert isinstance(written, Written)
    names = {f"{loss.code}:{name}" for loss in written.losses for name in (loss.detail or "").split(", ")}
    return b"".join(written.documents).decode(), {loss.code for loss in written.losses} | names


@pytest.mark.parametrize("target", writable())
def test_what_is_not_in_the_document_is_among_the_losses(target: str) -> None:
    text, losses = told(EPISODE, target)
    assert [each for each, codes in TOLD_BY.items() if each not in text and not losses & codes] == []


@pytest.mark.parametrize("target", [each for each in writable() if each not in ("tokens", "jsonl", "eval")])
def test_totals_that_no_step_shows_are_kept_or_told(target: str) -> None:
    text, losses = told(TOTALS, target)
    assert "77712" in text or "usage_dropped" in losses


@pytest.mark.parametrize("target", ["chat", "messages"])
def test_totals_that_the_one_answer_shows_are_not_told_as_lost(target: str) -> None:
    call = ModelCall(usage=Usage(tokens_in=5, tokens_out=2, tokens_total=7))
    turns = (Turn(Role.USER, "hi"), Turn(Role.ASSISTANT, "one", call=call, model_calls=1))
    _, losses = told(Episode("atif", Thread(turns, totals=Totals(Usage(tokens_in=5, tokens_out=2)))), target)
    assert "usage_dropped" not in losses


def test_what_the_mapping_of_harbor_passes_over_is_among_its_losses() -> None:
    turns = tuple(turn for turn in MAIN.turns if not isinstance(turn.content, tuple))
    episode = msgspec.structs.replace(EPISODE, main=msgspec.structs.replace(MAIN, turns=turns))
    text, losses = told(episode, "gym", Profile.HARBOR)
    passed_over = TOLD_BY | {role: {"step_fields_dropped"} for role in ("SYSTEM", "DEVELOPER", "USER", "NOTED")}
    missing = [each for each, codes in passed_over.items() if each not in text and not losses & codes]
    assert missing == ["REFUSED", '"refusal"']


def test_fields_that_say_nothing_are_not_told_as_lost() -> None:
    """Nor is a reward that stands beside its row, or in it."""
    plain = Thread((Turn(Role.USER, "hi"), Turn(Role.ASSISTANT, "yo", model_calls=1)))
    row = {"reward": 1.0, "failure_reason": None, "answer": "4"}
    _, losses = told(Episode("gym", plain, reward=1.0, request={"user": None}, row=row), "sft")
    assert losses == {"row_fields_dropped", "row_fields_dropped:answer"}


@pytest.mark.parametrize("target", writable())
def test_an_episode_that_holds_next_to_nothing_loses_nothing(target: str) -> None:
    """But what the target cannot be without."""
    plain = Episode("test", Thread((Turn(Role.USER, "hi"), Turn(Role.ASSISTANT, "yo", model_calls=1))))
    written = writer_of(target).write(plain, Options())
    lost = {loss.code for loss in written.losses if loss.severity == "dropped"}
    assert lost <= {"conversation_dropped", "tokens_incomplete"}
    assert "conversation_dropped" not in lost or target in ("tokens", "jsonl", "eval")


@pytest.mark.parametrize("target", ["chat", "messages", "sft"])
def test_citations_of_an_item_are_told_as_lost(target: str) -> None:
    part = {"type": "output_text", "annotations": [{"type": "url_citation", "url": "u"}]}
    said = Turn(Role.ASSISTANT, "cited", item={"type": "message", "content": [part]})
    _, losses = told(Episode("responses", Thread((Turn(Role.USER, "hi"), said))), target)
    assert "step_fields_dropped:annotations" in losses and "step_fields_dropped:logprobs" not in losses


def test_nobody_answers_where_nothing_was_answered() -> None:
    asked = Episode("messages", Thread((Turn(Role.USER, "hi"),)))
    text, _ = told(asked, "responses")
    assert "response" not in json.loads(text)


def test_instructions_and_system_turns_that_become_one_message_are_told() -> None:
    turns = (Turn(Role.SYSTEM, "I", extra={"role": "instructions"}), Turn(Role.SYSTEM, "S"), Turn(Role.USER, "hi"))
    _, losses = told(Episode("responses", Thread(turns)), "chat")
    assert "parts_flattened:2 messages of the system" in losses
