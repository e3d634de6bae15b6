"""Tools as every dialect defines them, taken apart."""

import msgspec

from ng_capture.contracts.episode import Json, Tool
from ng_capture.records.json_text import object_in


class Definition(msgspec.Struct, frozen=True):
    """A function that was offered; unknown is None. `parameters` is its JSON schema."""

    name: str
    description: str | None = None
    parameters: Json | None = None
    strict: bool | None = None


def definition_of(tool: Tool) -> Definition | None:
    """The function of a tool in any dialect's spelling; None for one that the server runs, or that has no name."""
    told = object_in(tool.value.get("function")) or tool.value
    name = told.get("name")
    if not tool.function or not isinstance(name, str):
        return None
    description, strict = told.get("description"), told.get("strict")
    parameters = told.get("parameters", told.get("input_schema"))
    return Definition(
        name=name,
        description=description if isinstance(description, str) else None,
        parameters=parameters if isinstance(parameters, dict) else None,
        strict=strict if isinstance(strict, bool) else None,
    )


def in_chat_form(tool: Tool) -> Json | None:
    """A function as chat and ATIF define it, without what is unknown; None for what is no function."""
    definition = definition_of(tool)
    if definition is None:
        return None
    told = msgspec.structs.asdict(definition)
    return {"type": "function", "function": {key: value for key, value in told.items() if value is not None}}
