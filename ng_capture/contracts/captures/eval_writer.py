"""Episodes as the evaluation view: metrics and steps of a rollout, without payloads and ids (contracts.md 5.2, 5.4)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ng_capture.contracts.captures.calls import Made, calls_in
from ng_capture.contracts.captures.facts import Facts, facts_of
from ng_capture.contracts.captures.tokens_writer import rollout_id_of
from ng_capture.contracts.captures.unheld import UNHELD, unheld
from ng_capture.contracts.dialects.thinking import OFFSETS
from ng_capture.contracts.episode import Episode, ToolCall, Turn
from ng_capture.contracts.interface import Feature, Options, Writer, Written
from ng_capture.contracts.losses import Loss, merged
from ng_capture.records.json_text import encode_json, printable, respell
from ng_capture.records.usage import total_usage

_LOSSES: Mapping[str, Feature | None] = {**UNHELD, "tokens_dropped": Feature.TOKENS}


class ToolUse(msgspec.Struct, frozen=True):
    """A tool that was called; `arguments` is the JSON value, `{"_raw": text}` where they are none."""

    call_id: str | None
    name: str | None
    arguments: msgspec.Raw


class Step(Facts, frozen=True, kw_only=True):
    """A model call with the names of the preview's step records and of NeMo Gym's model-call records.

    `turn_index` counts in the conversation of the call (contracts.md 5.3, ours); null for a call that makes no step.
    """

    run_id: str
    step_index: int
    turn_index: int | None
    model_call_id: str | None
    response_id: str | None
    model: str | None
    cache_hit: bool | None
    tool_calls: tuple[ToolUse, ...]
    reasoning_content: str | None


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of what is known, null where nothing is; `num_turns` are distinct turns."""

    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    cached_tokens: int | None
    cache_creation_tokens: int | None
    latency_total_ms: float | None
    num_calls: int
    num_steps: int
    num_turns: int | None
    num_tool_calls: int
    failed_calls: int
    error_categories: dict[str, int]


class EvaluationView(msgspec.Struct, frozen=True):
    """One rollout."""

    rollout_id: str
    metrics: Metrics
    steps: tuple[Step, ...]


def write_evaluation(episode: Episode, _: Options) -> Written:
    """The view of a rollout."""
    rollout_id = rollout_id_of(episode)
    calls = calls_in(episode)
    steps = tuple(_step(at, made, rollout_id) for at, made in enumerate(calls))
    tokens = [Loss("tokens_dropped", made.turn.place) for made in calls if made.call.tokens is not None]
    view = EvaluationView(rollout_id, _metrics(calls, steps), steps)
    return Written((msgspec.json.encode(view),), merged((*unheld(episode), *tokens)))


def _step(at: int, made: Made, rollout_id: str) -> Step:
    call = made.call
    cached = call.usage.cached_tokens
    return Step(
        run_id=rollout_id,
        step_index=at,
        turn_index=made.turn_index,
        model_call_id=_text(call.call_id),
        response_id=_text(call.response_id),
        model=_text(call.model),
        cache_hit=None if cached is None else cached > 0,
        tool_calls=tuple(map(_tool_use, made.turn.calls)),
        reasoning_content=_reasoning(made.turn),
        **{name: _text(told) for name, told in msgspec.structs.asdict(facts_of(call)).items()},
    )


def _text(told: Any) -> Any:
    """A value as a report can hold it: half of a surrogate pair in a text is spelled out."""
    return printable(told) if isinstance(told, str) else told


def _metrics(calls: Sequence[Made], steps: Sequence[Step]) -> Metrics:
    usage = total_usage(made.call.usage for made in calls)
    latencies = [step.latency_total_ms for step in steps if step.latency_total_ms is not None]
    turns = {step.turn_index for step in steps if step.turn_index is not None}
    categories = Counter(step.error_category for step in steps if step.error_category is not None)
    return Metrics(
        **msgspec.structs.asdict(usage),
        latency_total_ms=math.fsum(latencies) if latencies else None,
        num_calls=len(steps),
        num_steps=len(steps),
        num_turns=len(turns) or None,
        num_tool_calls=sum(len(step.tool_calls) for step in steps),
        failed_calls=sum(map(_failed, steps)),
        error_categories=dict(sorted(categories.items())),
    )


def _failed(step: Step) -> bool:
    refused = step.status_code is not None and step.status_code >= 400
    return refused or step.error_category not in (None, "incomplete")


def _tool_use(call: ToolCall) -> ToolUse:
    try:
        arguments = respell(call.arguments)
    except ValueError:
        arguments = encode_json({"_raw": printable(call.arguments)})
    return ToolUse(_text(call.call_id), _text(call.name) or None, msgspec.Raw(arguments))


def _reasoning(turn: Turn) -> str | None:
    """Its reasoning, a line each; what was cut out of a text was none (contracts.md 5.2)."""
    thoughts = [thought for thought in turn.thoughts if OFFSETS not in (thought.item or ())]
    texts = (text for thought in thoughts for text in thought.summary or thought.content if text)
    return printable("\n".join(texts)) or None


EVALUATION_WRITER = Writer(write_evaluation, ".eval.jsonl", _LOSSES)
