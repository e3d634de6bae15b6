"""The ids that Gym's import of ATIF makes (contracts.md 3.2): `atif_` and 20 digits of what the item is of."""

import hashlib
import json
from typing import Any

from ng_capture.contracts.episode import Content, Episode, Json, Role, Text, Totals, Turn
from ng_capture.contracts.gym.strict_usage import reported_usage
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import UNKNOWN_USAGE

_DIGITS = 20


def strict_id(seed: str, *named: str) -> str:
    """The id of an item of a trajectory."""
    text = "\0".join((seed, *named)).encode("utf-8", "surrogatepass")
    return f"atif_{hashlib.sha256(text).hexdigest()[:_DIGITS]}"


def identity_seed(episode: Episode) -> str:
    """What the ids of a trajectory are made of: its own id, else the digest of all that it says."""
    trajectory_id = episode.main.trajectory_id
    if trajectory_id is not None and trajectory_id.strip():
        return trajectory_id
    text = json.dumps(_document(episode), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return f"content:{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _document(episode: Episode) -> dict[str, Any]:
    """The trajectory with every member that ATIF v1.7 knows, absent ones null, as Gym's model of it is written."""
    thread, agent = episode.main, episode.main.agent
    source = object_in((thread.extra or {}).get("nemo_gym")).get("source")
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": thread.session_id,
        "trajectory_id": None,
        "agent": {
            "name": agent.name,
            "version": agent.version,
            "model_name": agent.model,
            "tool_definitions": None if agent.tools is None else [tool.value for tool in agent.tools],
        },
        "steps": [_step(at, turn) for at, turn in enumerate(thread.turns, start=1)],
        "notes": thread.notes,
        "final_metrics": None if thread.totals is None else _final(thread.totals),
        "continued_trajectory_ref": None,
        "subagent_trajectories": None,
        "extra": {"nemo_gym": {"source": source}} if isinstance(source, dict) else None,
    }


def _step(at: int, turn: Turn) -> dict[str, Any]:
    calls = [{"tool_call_id": call.call_id, "function_name": call.name, "arguments": call.value} for call in turn.calls]
    return {
        "step_id": at,
        "source": "agent" if turn.role == Role.ASSISTANT else turn.role.value,
        "message": _content("" if turn.content is None else turn.content),
        "timestamp": turn.timestamp,
        "model_name": turn.call.model if turn.call is not None else None,
        "reasoning_effort": turn.reasoning_effort,
        "reasoning_content": reasoning_of(turn),
        "tool_calls": calls or None,
        "observation": {"results": _results(turn)} if turn.results else None,
        "metrics": _metrics(turn),
        "llm_call_count": turn.model_calls,
        "is_copied_context": turn.copied or None,
    }


def reasoning_of(turn: Turn) -> str | None:
    """What ATIF holds of the thoughts of a step."""
    texts = [text for thought in turn.thoughts for text in thought.texts]
    return "\n".join(texts) if texts else None


def _results(turn: Turn) -> list[dict[str, Any]]:
    return [
        {
            "source_call_id": result.call_id,
            "content": _content(result.content),
            "subagent_trajectory_ref": None,
            "extra": _structured(result.extra),
        }
        for result in turn.results
    ]


def _structured(extra: Json | None) -> Json | None:
    return {"tool_result": extra["tool_result"]} if extra is not None and "tool_result" in extra else None


def _content(content: Content | None) -> object:
    if content is None or isinstance(content, str):
        return content
    return [{"type": "text", "text": part.text, "source": None} for part in content if isinstance(part, Text)]


def _metrics(turn: Turn) -> dict[str, Any] | None:
    call, usage = turn.call, reported_usage(turn.call)
    if call is None or (usage == UNKNOWN_USAGE and call.cost_usd is None and not call.usage_extra):
        return None
    extra = {"total_tokens": usage.tokens_total, "reasoning_tokens": usage.tokens_reasoning}
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": call.cost_usd,
        "prompt_token_ids": None,
        "completion_token_ids": None,
        "logprobs": None,
        "extra": {key: value for key, value in extra.items() if value is not None} or None,
    }


def _final(totals: Totals) -> dict[str, Any]:
    return {
        "total_prompt_tokens": totals.usage.tokens_in,
        "total_completion_tokens": totals.usage.tokens_out,
        "total_cached_tokens": totals.usage.cached_tokens,
        "total_cost_usd": totals.cost_usd,
        "total_steps": totals.steps,
    }
