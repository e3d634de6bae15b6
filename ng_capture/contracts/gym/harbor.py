"""A row as Gym's mapping of Harbor trajectories makes it, defects and all but for its random ids (contracts.md 3.1)."""

import json
from collections.abc import Iterator

from ng_capture.contracts.episode import Content, Episode, Json, Role, ToolCall, Turn
from ng_capture.contracts.gym.passed_over import passed_over
from ng_capture.contracts.gym.terminus import commands_of
from ng_capture.contracts.identity import made_id
from ng_capture.contracts.interface import Refused, Written
from ng_capture.contracts.items.lowering import lowered
from ng_capture.contracts.items.parts import write_content
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.rules import Fault
from ng_capture.records.json_text import encode_json

_ENVELOPE: Json = {
    "created_at": 0.0,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "object": "response",
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
    "status": "completed",
}


def write_harbor(episode: Episode) -> Written | Refused:
    """A row of leading user steps and of all the agent's steps; refused where the mapping writes Python into texts."""
    faults = tuple(_in_parts(episode))
    if faults:
        return Refused(faults)
    mapping = _Mapping(episode)
    output = [item for turn in episode.main.turns if turn.role == Role.ASSISTANT for item in mapping.step(turn)]
    seed = made_id("resp_", mapping.seed, output)
    response = {"id": seed, **_ENVELOPE, "model": episode.main.agent.model or "", "output": output}
    row: dict[str, object] = {
        "responses_create_params": {"input": list(_input(episode.main.turns))},
        "response": {**response, "usage": _usage(episode)},
    }
    if episode.reward is not None:
        row["reward"] = episode.reward
    return Written((encode_json(row),), (*mapping.losses, *passed_over(episode)))


def _in_parts(episode: Episode) -> Iterator[Fault]:
    for turn in episode.main.turns:
        if isinstance(turn.content, tuple) and turn.role in (Role.ASSISTANT, Role.USER):
            message = "a message in parts: Harbor's mapping fails on it, or writes it as Python would print it"
            yield Fault("gym.harbor.message", "error", message, f"{turn.place}/message")


def _input(turns: tuple[Turn, ...]) -> Iterator[Json]:
    for turn in turns:
        if turn.role != Role.USER:
            return
        yield {"content": turn.content or "", "role": "user", "type": "message"}


class _Mapping:
    def __init__(self, episode: Episode) -> None:
        self.seed = episode.rollout_id or episode.main.trajectory_id or episode.main.session_id or ""
        self.losses = list[Loss]()
        self._step = 0

    def step(self, turn: Turn) -> Iterator[Json]:
        """A message, the calls, and the results by their place."""
        if turn.copied:
            self.losses.append(Loss("copied_context", turn.place, detail="written again as output"))
        yield self._message(turn)
        calls = commands_of(turn, self._step)
        call_ids = [call.call_id or self._id("call_", place) for place, call in enumerate(calls)]
        for place, (call, call_id) in enumerate(zip(calls, call_ids, strict=True)):
            yield {
                "arguments": _arguments(call),
                "call_id": call_id,
                "name": call.name,
                "type": "function_call",
                "id": self._id("fc_", place),
                "status": "completed",
            }
        for place, result in enumerate(turn.results):
            call_id = call_ids[place] if place < len(call_ids) else self._id("call_", place)
            if result.call_id is None or result.call_id != call_id:
                code = "link_ambiguous" if result.call_id is not None else "link_by_position"
                self.losses.append(Loss(code, turn.place))
            yield {
                "call_id": call_id,
                "output": self._output(result.content, turn),
                "type": "function_call_output",
                "id": self._id("fco_", place),
                "status": "completed",
            }
        self._step += 1

    def _message(self, turn: Turn) -> Json:
        reasoning = "\n".join(text for thought in turn.thoughts for text in thought.texts)
        said = turn.content if isinstance(turn.content, str) else ""
        text = f"<think>{reasoning}</think>{said}" if reasoning else said
        item: dict[str, object] = {
            "id": self._id("cht_", 0),
            "content": [{"annotations": [], "text": text, "type": "output_text", "logprobs": None}],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        }
        tokens = turn.call.tokens if turn.call is not None else None
        if tokens is None or not (tokens.prompt_ids or tokens.completion_ids or tokens.log_probs):
            return item
        if not tokens.complete:
            self.losses.append(Loss("tokens_incomplete", turn.place, detail="written as empty"))
        experts = {} if tokens.routed_experts is None else {"routed_experts": tokens.routed_experts}
        return {
            **item,
            "prompt_token_ids": tokens.prompt_ids or [],
            "generation_token_ids": tokens.completion_ids or [],
            "generation_log_probs": tokens.log_probs or [],
            **experts,
        }

    def _output(self, content: Content | None, turn: Turn) -> object:
        if content is None:
            self.losses.append(Loss("call_without_output", turn.place))
            return ""
        return write_content(lowered(content, False, turn.place, self.losses.append), None, "input_text", plain=True)

    def _id(self, prefix: str, place: int) -> str:
        return made_id(prefix, self.seed, self._step, place)


def _arguments(call: ToolCall) -> str:
    """The arguments as Python's `json.dumps` writes an object, in characters of ASCII."""
    try:
        value = call.value
    except ValueError:
        return call.arguments
    return json.dumps(value) if isinstance(value, dict) else call.arguments


def _usage(episode: Episode) -> Json:
    """The totals; what is unknown is 0 here, as the mapping has it."""
    totals = episode.main.totals.usage if episode.main.totals is not None else None
    tokens_in = (totals.tokens_in if totals is not None else None) or 0
    tokens_out = (totals.tokens_out if totals is not None else None) or 0
    return {
        "input_tokens": tokens_in,
        "input_tokens_details": {
            "cached_tokens": (totals.cached_tokens if totals is not None else None) or 0,
            "cache_write_tokens": 0,
        },
        "output_tokens": tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens_in + tokens_out,
    }
