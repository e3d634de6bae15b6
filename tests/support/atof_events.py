"""Events of ATOF 0.1, as few fields as they need; times are seconds after a moment."""

from typing import Any

Event = dict[str, Any]
START = 1_767_225_600


def event(kind: str, uuid: str, at: float, **fields: Any) -> Event:
    """An event of a kind."""
    moment = {"timestamp": int((START + at) * 1_000_000)}
    return {"kind": kind, "atof_version": "0.1", "uuid": uuid, "parent_uuid": None, **moment, "name": uuid, **fields}


def begin(uuid: str, at: float, category: str, parent: str | None = None, data: Any = None, **fields: Any) -> Event:
    """The start of a scope."""
    return _scope("start", uuid, at, category, parent, data, fields)


def end(uuid: str, at: float, category: str, parent: str | None = None, data: Any = None, **fields: Any) -> Event:
    """The end of a scope."""
    return _scope("end", uuid, at, category, parent, data, fields)


def mark(uuid: str, at: float, parent: str | None = None, data: Any = None, **fields: Any) -> Event:
    """A mark."""
    return event("mark", uuid, at, parent_uuid=parent, data=data, **fields)


def _scope(
    phase: str, uuid: str, at: float, category: str, parent: str | None, data: Any, fields: dict[str, Any]
) -> Event:
    told = {"scope_category": phase, "attributes": [], "category": category, "parent_uuid": parent, "data": data}
    return event("scope", uuid, at, **{**told, **fields})


def agent(
    uuid: str, since: float, until: float, *inside: Event, parent: str | None = None, **fields: Any
) -> list[Event]:
    """An agent with the events in its scope."""
    return [
        begin(uuid, since, "agent", parent, **fields),
        *inside,
        end(uuid, until, "agent", parent, **fields),
    ]


def llm(uuid: str, since: float, request: Any, response: Any, parent: str = "a", **fields: Any) -> list[Event]:
    """A call of a model, which takes one second."""
    return [
        begin(uuid, since, "llm", parent, request, **fields),
        end(uuid, since + 1, "llm", parent, response, **fields),
    ]


def tool(
    uuid: str, since: float, given: Any, gave: Any, call: str | None = None, parent: str = "a", **fields: Any
) -> list[Event]:
    """A tool, which takes a tenth of a second; `call` is the call that it names."""
    profile = {"category_profile": {"tool_call_id": call}} if call is not None else {}
    fields = {"name": "f", **profile, **fields}
    return [begin(uuid, since, "tool", parent, given, **fields), end(uuid, since + 0.1, "tool", parent, gave, **fields)]


def user(text: Any) -> Event:
    """A message of the user."""
    return {"role": "user", "content": text}


def system(text: str) -> Event:
    """Instructions."""
    return {"role": "system", "content": text}


def says(text: Any, *calls: Event) -> Event:
    """A message of the model."""
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def call(call_id: str | None, name: str = "f", arguments: Any = "{}") -> Event:
    """A call in a message of Chat Completions."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def gives(call_id: str | None, text: Any) -> Event:
    """What a tool gave back, as a message."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def ask(*messages: Event, **parameters: Any) -> Event:
    """A request of Chat Completions."""
    return {"messages": list(messages), **parameters}


def answer(message: Event, finish: str = "stop", **envelope: Any) -> Event:
    """A response of Chat Completions."""
    return {"choices": [{"message": message, "finish_reason": finish}], **envelope}
