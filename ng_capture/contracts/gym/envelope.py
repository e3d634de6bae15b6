"""What stands around the items of a row: parameters of the request, the envelope of the response (contracts.md 4.0)."""

from collections.abc import Callable, Iterable

from ng_capture.contracts.dialects.finishes import finish_of
from ng_capture.contracts.dialects.tools import definition_of
from ng_capture.contracts.episode import Episode, Json, Thread, Tool, Turn
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.times import seconds_of

PARAMETERS = frozenset(
    {
        *("background", "context_management", "conversation", "include", "max_output_tokens", "max_tool_calls"),
        *("metadata", "model", "moderation", "parallel_tool_calls", "previous_response_id", "prompt"),
        *("prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store"),
        *("stream", "stream_options", "temperature", "text", "tool_choice", "top_logprobs", "top_p", "truncation"),
        "user",
    }
)
"""The parameters that Gym's request has besides input, instructions and tools; it refuses any other."""
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_FUNCTION = {"type": "function", "parameters": None, "strict": None}
_ECHOED = ("max_output_tokens", "temperature", "top_p")


def written_parameters(request: Json | None, lose: Callable[[Loss], None]) -> dict[str, object]:
    """The parameters that Gym takes; a null says nothing and is left out, since Gym refuses some."""
    told = {key: value for key, value in (request or {}).items() if value is not None}
    for key in sorted(told.keys() - PARAMETERS):
        lose(Loss("request_fields_dropped", detail=key))
    return {key: value for key, value in told.items() if key in PARAMETERS}


def written_tools(tools: Iterable[Tool] | None, own: bool, lose: Callable[[Loss], None]) -> list[Json]:
    """The tools as Responses define them; those of a row that is `own` as they stood.

    Gym wants to be told what a function may leave out. A tool of another API that is no function is left out.
    """
    written = list[Json]()
    for tool in tools or ():
        definition = definition_of(tool)
        if tool.dialect == "responses":
            written.append({**(_FUNCTION if tool.function and not own else {}), **tool.value})
        elif definition is None:
            lose(Loss("tool_definition_not_function", detail=tool.name))
        else:
            whole: dict[str, object] = {"type": "function", "name": definition.name}
            if definition.description is not None:
                whole["description"] = definition.description
            written.append({**whole, "parameters": definition.parameters or {}, "strict": bool(definition.strict)})
    return written


def envelope_of(episode: Episode, own: bool) -> Json | None:
    """The envelope as it stood: of a row, or of one that went through another contract; None where none stood."""
    stood = episode.response
    return stood if stood is not None and (own or stood.get("object") == "response") else None


def same_response(episode: Episode, envelope: Json, output: list[Json], usage: object) -> Json:
    """The response in the envelope in which it stood."""
    whole = {**envelope, "output": output}
    if usage is not None or "usage" in envelope:
        whole["usage"] = usage
    model = model_of(episode.main)
    return whole if model is None else {**whole, "model": model}


def new_response(
    episode: Episode, output: list[Json], usage: object, response_id: str, lose: Callable[[Loss], None]
) -> Json:
    """The response in an envelope of what the episode says, in the defaults of Gym."""
    fresh = [turn for turn in episode.main.turns if turn.fresh]
    request = episode.request or {}
    choice = request.get("tool_choice")
    ended = [turn for turn in fresh if turn.call is not None and turn.call.finish_reason is not None]
    if ended and ended[-1] is fresh[-1] and _is_said(fresh[-1]):
        ended.pop()
    if ended:
        lose(Loss("finish_reason_dropped", ended[0].place, len(ended)))
    return {
        "id": response_id,
        "object": "response",
        "created_at": next((at for turn in reversed(fresh) if (at := seconds_of(turn)) is not None), 0.0),
        "parallel_tool_calls": any(len(turn.calls) > 1 for turn in fresh),
        "tool_choice": "auto" if choice is None else choice,
        "tools": written_tools(episode.main.agent.tools, False, lambda _: None),
        **{key: request[key] for key in _ECHOED if request.get(key) is not None},
        **_status(episode),
        "model": model_of(episode.main) or "unknown",
        "output": output,
        "usage": usage,
    }


def model_of(thread: Thread) -> str | None:
    """The model of a thread: the agent's, else the one that all its calls name."""
    names = {turn.call.model for turn in thread.turns if turn.fresh and turn.call is not None and turn.call.model}
    return thread.agent.model or (names.pop() if len(names) == 1 else None)


def only_response_id(thread: Thread) -> str | None:
    """The id of the response of the one call that there was."""
    fresh = [turn for turn in thread.turns if turn.fresh]
    return fresh[0].call.response_id if len(fresh) == 1 and fresh[0].call is not None else None


def _is_said(last: Turn) -> bool:
    """True for an end that the status of the response tells, or that its calls do."""
    finish = finish_of(last.call.finish_reason) if last.call is not None else None
    return finish in _INCOMPLETE or finish == ("tool_calls" if last.calls else "stop")


def _status(episode: Episode) -> Json:
    """How the last call ended."""
    last = next((turn.call for turn in reversed(episode.main.turns) if turn.fresh and turn.call is not None), None)
    finish = finish_of(last.finish_reason) if last is not None else None
    reason = _INCOMPLETE.get(finish) if finish is not None else None
    if reason is None:
        return {"status": "incomplete" if episode.truncated else "completed"}
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}
