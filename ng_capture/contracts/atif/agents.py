"""Agents and the tools that they were offered, in the form of ATIF and in their own (contracts.md 3.4, 8)."""

from ng_capture.contracts.atif.draft import Draft
from ng_capture.contracts.atif.notes import AgentNotes, ToolNote, opened, sealed
from ng_capture.contracts.atif.place import text_at
from ng_capture.contracts.dialects.tools import in_chat_form
from ng_capture.contracts.episode import Agent, Json, Tool
from ng_capture.records.json_text import object_in, objects_in

_UNKNOWN = "unknown"
_OWN = "chat"


def read_agent(value: Json) -> Agent:
    """The agent of a document without errors."""
    notes, extra = opened(value.get("extra"), AgentNotes)
    known = {
        name: None if name in notes.unknown and value.get(name) == _UNKNOWN else text_at(value, name)
        for name in ("name", "version")
    }
    definitions = value.get("tool_definitions")
    return Agent(
        name=known["name"],
        version=known["version"],
        model=text_at(value, "model_name"),
        tools=_read_tools(definitions, notes.tools) if isinstance(definitions, list) else None,
        extra=extra,
    )


def write_agent(agent: Agent, draft: Draft, path: str) -> dict[str, object]:
    """The agent of a document; ATIF wants a name and a version, whether anybody knows them or not."""
    options = draft.options
    row = object_in(object_in(draft.episode.row).get("agent_ref"))
    name = _first(agent.name, text_at(row, "name"), options.agent_name)
    version = _first(agent.version, options.agent_version)
    unknown = tuple(field for field, known in (("name", name), ("version", version)) if known is None)
    for field in unknown:
        draft.lose(f"agent_{field}_unknown", f"{path}/{field}")
    told: dict[str, object] = {
        "name": _UNKNOWN if name is None else name,
        "version": _UNKNOWN if version is None else version,
    }
    if agent.model is not None:
        told["model_name"] = agent.model
    notes = AgentNotes(unknown)
    if agent.tools is not None:
        told["tool_definitions"], kept = _write_tools(agent.tools, draft, path)
        notes = AgentNotes(unknown, kept)
    extra = sealed(agent.extra, notes)
    return told if extra is None else {**told, "extra": extra}


def _read_tools(definitions: list[object], notes: tuple[ToolNote, ...] | None) -> tuple[Tool, ...]:
    given = [Tool(_name(value), value, _OWN) for value in objects_in(definitions)]
    if notes is None or sum(note.function for note in notes) != len(given):
        return tuple(given)
    functions = iter(given)
    return tuple(_noted(note, next(functions) if note.function else None) for note in notes)


def _noted(note: ToolNote, given: Tool | None) -> Tool:
    """The tool of a note, as its dialect spells it; one that is defined otherwise by now stays what it is."""
    if given is not None and note.value is None:
        return Tool(given.name, _spelled(given.value, note.dialect), note.dialect)
    tool = Tool(_name(note.value or {}), note.value or {}, note.dialect, note.function)
    return tool if given is None or in_chat_form(tool) == given.value else given


def _write_tools(tools: tuple[Tool, ...], draft: Draft, path: str) -> tuple[list[object], tuple[ToolNote, ...] | None]:
    """Definitions as Chat Completions have them, and notes on the tools where these do not tell all of them."""
    definitions, notes = list[object](), list[ToolNote]()
    for tool in tools:
        value = tool.value if tool.function and tool.dialect == _OWN else in_chat_form(tool)
        if value is None:
            draft.lose("tool_definition_not_function", f"{path}/tool_definitions", tool.name)
            notes.append(ToolNote(tool.dialect, dict(tool.value), function=False))
            continue
        definitions.append(value)
        same = _spelled(value, tool.dialect) == tool.value
        notes.append(ToolNote(tool.dialect, None if same else dict(tool.value)))
    plain = all(note == ToolNote(_OWN) for note in notes)
    return definitions, None if plain else tuple(notes)


def _spelled(value: Json, dialect: str) -> Json:
    """A definition in the spelling of a dialect."""
    if dialect == _OWN:
        return value
    function = object_in(value.get("function"))
    if dialect == "messages":
        return {"input_schema" if key == "parameters" else key: member for key, member in function.items()}
    return {"type": "function", **function}


def _first(*texts: str | None) -> str | None:
    return next((text for text in texts if text is not None), None)


def _name(value: Json) -> str | None:
    return text_at(object_in(value.get("function")), "name") or text_at(value, "name")
