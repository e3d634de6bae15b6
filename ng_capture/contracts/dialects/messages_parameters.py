"""Parameters and tools of Messages requests, in the words of Responses where it has them (contracts.md 4.1)."""

from collections.abc import Iterator

from ng_capture.contracts.dialects.chat_parameters import Fields
from ng_capture.contracts.dialects.tools import definition_of
from ng_capture.contracts.episode import Json, Tool
from ng_capture.records.json_text import object_in, objects_in

_TURNS = ("messages", "tools", "system")
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def parameters_of(request: Json) -> Json | None:
    """All fields but turns and tools; limits and choices as Responses spells them, stop texts as chat does."""
    told: dict[str, object] = {}
    for key, value in request.items():
        match key:
            case "max_tokens":
                told["max_output_tokens"] = value
            case "stop_sequences":
                told["stop"] = value
            case "tool_choice" if isinstance(value, dict):
                told |= _choice(value)
            case _ if key not in _TURNS:
                told[key] = value
    return told or None


def _choice(value: Json) -> Json:
    kind, name = value.get("type"), value.get("name")
    told: dict[str, object] = {"tool_choice": _CHOICES.get(str(kind), value)}
    if kind == "tool" and isinstance(name, str):
        told["tool_choice"] = {"type": "function", "name": name}
    if isinstance(value.get("disable_parallel_tool_use"), bool):
        told["parallel_tool_calls"] = not value["disable_parallel_tool_use"]
    return told


def tools_of(request: Json) -> tuple[Tool, ...] | None:
    """The tools of a request, None where it does not say."""
    return tuple(_tools(request)) if isinstance(request.get("tools"), list) else None


def _tools(request: Json) -> Iterator[Tool]:
    for tool in objects_in(request.get("tools")):
        name, kind = tool.get("name"), tool.get("type")
        yield Tool(name if isinstance(name, str) else None, tool, "messages", kind in (None, "custom"))


_TAKEN = frozenset({"model", "temperature", "top_p", "top_k", "stream", "thinking"})
"""Parameters that Messages spell as they stand."""
_KINDS = {"auto": "auto", "required": "any", "none": "none"}


def written_parameters(parameters: Json | None, *, own: bool) -> Fields:
    """The parameters of a request; `own` tells that they were read from one, so that all have a place."""
    given, told = parameters or {}, dict[str, object]()
    dropped = list[str]()
    for key, value in given.items():
        match key:
            case "max_output_tokens":
                told["max_tokens"] = value
            case "stop":
                told["stop_sequences"] = [value] if isinstance(value, str) else value
            case "tool_choice" | "parallel_tool_calls":
                # put together below
                pass
            case "metadata" if own or set(object_in(value)) == {"user_id"}:
                told[key] = value
            case _ if own or (key in _TAKEN and value is not None):
                told[key] = value
            case _ if value is not None:
                dropped.append(key)
    choice = _written_choice(given.get("tool_choice"), given.get("parallel_tool_calls"), own=own)
    return Fields({**told, **({} if choice is None else {"tool_choice": choice})}, tuple(dropped))


def _written_choice(choice: object, parallel: object, *, own: bool) -> Json | None:
    """One object for which tools may be called and whether at once."""
    told = object_in(choice)
    written: dict[str, object] = dict(told)
    if isinstance(choice, str) and choice in _KINDS:
        written = {"type": _KINDS[choice]}
    elif told.get("type") == "function" and "name" in told:
        written = {"type": "tool", "name": told["name"]}
    if parallel is False or (own and parallel is True):
        return {"type": "auto", **written, "disable_parallel_tool_use": not parallel}
    return written or None


def written_tool(tool: Tool) -> Json | None:
    """A tool as Messages define it; None for one that has no place there."""
    if tool.dialect == "messages":
        return tool.value
    definition = definition_of(tool)
    if definition is None:
        return None
    told: dict[str, object] = {"name": definition.name}
    if definition.description is not None:
        told["description"] = definition.description
    # a schema must be there, and that of no parameters is what it says
    told["input_schema"] = definition.parameters or {"type": "object", "properties": {}}
    return {**told, "strict": True} if definition.strict else told
