"""A row as Gym's own import of ATIF makes it, refused where that refuses (contracts.md 3.2, profile strict)."""

import json
from collections.abc import Iterator

from ng_capture.contracts.episode import Content, Episode, Json, Role, Text, ToolResult, Turn
from ng_capture.contracts.gym.left_out import left_out
from ng_capture.contracts.gym.native import pair_of
from ng_capture.contracts.gym.strict_checks import strict_faults
from ng_capture.contracts.gym.strict_identity import identity_seed, reasoning_of, strict_id
from ng_capture.contracts.gym.strict_usage import strict_usage
from ng_capture.contracts.interface import Options, Refused, Written
from ng_capture.contracts.items.spelling import structured_result
from ng_capture.contracts.times import seconds_in
from ng_capture.records.json_text import encode_json


def write_strict(episode: Episode, options: Options) -> Written | Refused:
    """A row whose response is the one that Gym scores, or every reason why there is none."""
    counted = strict_usage(episode.main)
    faults = [*strict_faults(episode), *counted.faults]
    if faults:
        return Refused(tuple(sorted(faults, key=lambda fault: fault.step or 0)))
    seed = identity_seed(episode)
    steps = [turn for turn in episode.main.turns if turn.role == Role.ASSISTANT]
    response = {
        "id": strict_id(seed, "response"),
        "created_at": _created_at(steps),
        "model": next((name for turn in steps if (name := _model(turn))), episode.main.agent.model or "unknown"),
        "object": "response",
        "output": list(_output(episode, seed)),
        "parallel_tool_calls": any(len(turn.calls) > 1 for turn in steps),
        "tool_choice": "auto",
        "tools": [],
        "usage": counted.usage,
        "status": "completed",
    }
    row: dict[str, object] = {
        **(episode.row or {}),
        "responses_create_params": pair_of(episode, options).request or {"input": []},
        "response": response,
    }
    if episode.reward is not None:
        row["reward"] = episode.reward
    return Written((encode_json(row),), tuple(left_out(episode)))


def _output(episode: Episode, seed: str) -> Iterator[Json]:
    for at, turn in enumerate(episode.main.turns, start=1):
        if turn.role == Role.ASSISTANT:
            yield from _words(turn, seed, str(at))
            yield from _calls_and_results(turn, seed)


def _words(turn: Turn, seed: str, step: str) -> Iterator[Json]:
    reasoning = reasoning_of(turn)
    if reasoning is not None:
        summary = [{"text": reasoning, "type": "summary_text"}]
        yield {"id": strict_id(seed, "reasoning", step), "summary": summary, "type": "reasoning"}
    texts = _texts(turn.content)
    if texts or not turn.calls:
        yield {
            "id": strict_id(seed, "message", step),
            "content": [{"annotations": [], "text": text, "type": "output_text"} for text in texts or [""]],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        }


def _calls_and_results(turn: Turn, seed: str) -> Iterator[Json]:
    for call in turn.calls:
        yield {
            "arguments": json.dumps(call.value, ensure_ascii=False, separators=(",", ":"), sort_keys=True),
            "call_id": call.call_id,
            "name": call.name,
            "type": "function_call",
            "id": strict_id(seed, "function-call", call.call_id or ""),
            "status": "completed",
        }
    for place, result in enumerate(turn.results):
        yield {
            "call_id": result.call_id,
            "output": _result(result),
            "type": "function_call_output",
            "id": strict_id(seed, "function-output", result.call_id or "", str(place)),
            "status": "completed",
        }


def _result(result: ToolResult) -> object:
    if isinstance(result.content, tuple):
        return [{"type": "input_text", "text": text} for text in _texts(result.content)]
    return structured_result(result.extra) if result.content is None else result.content


def _texts(content: Content | None) -> list[str]:
    if content is None or isinstance(content, str):
        return [content] if content else []
    return [part.text for part in content if isinstance(part, Text)]


def _created_at(steps: list[Turn]) -> float:
    timestamp = next((turn.timestamp for turn in reversed(steps) if turn.timestamp is not None), None)
    return (seconds_in(timestamp) if timestamp is not None else None) or 0.0


def _model(turn: Turn) -> str | None:
    return turn.call.model if turn.call is not None else None
