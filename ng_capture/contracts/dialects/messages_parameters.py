"""Parameters and tools of Messages requests, in the words of Responses where it has them (contracts.md 4.1)."""

from collections.abc import Iterator

from ng_capture.contracts.episode import Json, Tool
from ng_capture.records.json_text import objects_in

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
