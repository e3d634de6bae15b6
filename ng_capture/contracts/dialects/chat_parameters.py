"""Parameters and tools of Chat Completions requests, in the words of Responses where it has them (contracts.md 4.5)."""

from collections.abc import Iterator

import msgspec

from ng_capture.contracts.dialects.tools import in_chat_form
from ng_capture.contracts.episode import Json, Tool
from ng_capture.records.json_text import object_in, objects_in

_TURNS = ("messages", "tools", "functions")


def parameters_of(request: Json) -> Json | None:
    """All fields but turns and tools; limits, efforts, formats and choices as Responses spells them."""
    told: dict[str, object] = {}
    for key, value in request.items():
        if key not in _TURNS:
            # the older name of the limit counts where the newer does not stand
            older = key == "max_tokens" and "max_completion_tokens" not in request
            _tell(told, "max_completion_tokens" if older else key, value)
    return told or None


def _tell(told: dict[str, object], key: str, value: object) -> None:
    match key:
        case "max_completion_tokens":
            told["max_output_tokens"] = value
        case "reasoning_effort":
            told["reasoning"] = {**object_in(told.get("reasoning")), "effort": value}
        case "verbosity":
            told["text"] = {**object_in(told.get("text")), "verbosity": value}
        case "response_format" if isinstance(value, dict):
            told["text"] = {**object_in(told.get("text")), "format": _format(value)}
        case "tool_choice" | "function_call":
            told["tool_choice"] = _choice(value)
        case _:
            told[key] = value


def _format(value: Json) -> Json:
    schema = value.get("json_schema")
    return {"type": "json_schema", **schema} if isinstance(schema, dict) else value


def _choice(value: object) -> object:
    told = object_in(value)
    named = told.get("function") or told.get("custom")
    if isinstance(named, dict):
        return {"type": told.get("type", "function"), **named}
    # the form of before tools: a bare name
    return {"type": "function", **told} if told and "type" not in told else value


def tools_of(request: Json) -> tuple[Tool, ...] | None:
    """The tools of a request, None where it does not say."""
    if not isinstance(request.get("tools"), list) and not isinstance(request.get("functions"), list):
        return None
    return tuple(_tools(request))


def _tools(request: Json) -> Iterator[Tool]:
    for tool in objects_in(request.get("tools")):
        named = object_in(tool.get("function") or tool.get("custom") or tool).get("name")
        kind = tool.get("type", "function")
        yield Tool(named if isinstance(named, str) else None, tool, "chat", kind == "function")
    for function in objects_in(request.get("functions")):
        named = function.get("name")
        yield Tool(named if isinstance(named, str) else None, {"type": "function", "function": function}, "chat")


class Fields(msgspec.Struct, frozen=True):
    """Parameters as a request spells them, and the names of those that have no place in it."""

    values: Json
    dropped: tuple[str, ...]


_TAKEN = frozenset(
    {
        *("model", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "n", "stream", "stream_options", "store"),
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "logprobs", "top_logprobs"),
        *("parallel_tool_calls", "metadata", "user", "service_tier", "prompt_cache_key", "safety_identifier"),
        *("max_tokens", "modalities", "audio", "prediction", "web_search_options", "chat_template_kwargs"),
    }
)
"""Parameters that chat spells as they stand."""


def written_parameters(parameters: Json | None, *, own: bool) -> Fields:
    """The parameters of a request; `own` tells that they were read from one, so that all have a place.

    A limit is `max_tokens`, as Gym writes it and all engines know it.
    """
    told: dict[str, object] = {}
    dropped = list[str]()
    for key, value in (parameters or {}).items():
        match key:
            case "max_output_tokens":
                told["max_completion_tokens" if "max_tokens" in (parameters or {}) else "max_tokens"] = value
            case "reasoning" if isinstance(value, dict):
                told |= {"reasoning_effort": value["effort"]} if value.get("effort") is not None else {}
                dropped += _beside("reasoning", value, "effort")
            case "text" if isinstance(value, dict):
                told |= {"response_format": _written_format(value["format"])} if value.get("format") else {}
                told |= {"verbosity": value["verbosity"]} if value.get("verbosity") is not None else {}
                dropped += _beside("text", value, "format", "verbosity")
            case "tool_choice":
                told |= {} if value is None else {"tool_choice": _written_choice(value)}
            case _ if own or (key in _TAKEN and value is not None):
                told[key] = value
            case _ if value is not None:
                dropped.append(key)
    return Fields(told, tuple(dropped))


def _beside(name: str, value: Json, *known: str) -> list[str]:
    return [f"{name}.{key}" for key in value if key not in known and value[key] is not None]


def _written_format(value: object) -> object:
    told = object_in(value)
    if told.get("type") != "json_schema":
        return value
    return {"type": "json_schema", "json_schema": {key: told[key] for key in told if key != "type"}}


def _written_choice(value: object) -> object:
    told = object_in(value)
    kind = told.get("type")
    if kind not in ("function", "custom") or "name" not in told:
        return value
    return {"type": kind, kind: {key: told[key] for key in told if key != "type"}}


def written_tool(tool: Tool) -> Json | None:
    """A tool as chat defines it; None for one that has no place there."""
    if tool.dialect == "chat":
        return tool.value
    if tool.dialect == "responses" and tool.value.get("type") == "custom":
        return {"type": "custom", "custom": {key: tool.value[key] for key in tool.value if key != "type"}}
    return in_chat_form(tool)
