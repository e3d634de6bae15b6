"""Parameters and tools of Chat Completions requests, in the words of Responses where it has them (contracts.md 4.5)."""

from collections.abc import Iterator

from ng_capture.contracts.episode import Json, Tool
from ng_capture.records.json_text import object_in, objects_in

_TURNS = ("messages", "tools", "functions")


def parameters_of(request: Json) -> Json | None:
    """All fields but turns and tools; limits, efforts, formats and choices as Responses spells them."""
    told: dict[str, object] = {}
    for key, value in request.items():
        if key not in _TURNS:
            _tell(told, key, value)
    return told or None


def _tell(told: dict[str, object], key: str, value: object) -> None:
    match key:
        case "max_tokens" | "max_completion_tokens":
            # where both stand, the newer name counts
            if key == "max_completion_tokens" or "max_output_tokens" not in told:
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
