"""A turn, and the tools that were offered, as chat trainers take them."""

from collections.abc import Iterator, Mapping

from ng_capture.ingest.messages import ASSISTANT, Message
from ng_capture.records.json_text import encode_json, object_in, objects_in


def in_chat_form(message: Message, weight: int | None = None) -> dict[str, object]:
    """The message with the keys that say something; `weight` only on turns of the assistant.

    The arguments of a call stay text as they are spelled: as objects, a loader gives the calls of all rows the keys of
    every other one.
    """
    told: dict[str, object] = {"role": message.role, "content": message.text}
    if message.reasoning:
        told["reasoning_content"] = message.reasoning
    if message.tool_calls:
        told["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.call_id:
        told["tool_call_id"] = message.call_id
    if weight is not None and message.role == ASSISTANT:
        told["weight"] = weight
    return told


def tools_in_chat_form(request: Mapping[str, object]) -> str | None:
    """The tools of a request in any dialect as JSON text, None where it offers none.

    As text, since a loader of columns would give each schema the keys of all others.
    """
    tools = list(_tools(request.get("tools")))
    return encode_json(tools).decode() if tools else None


def _tools(tools: object) -> Iterator[Mapping[str, object]]:
    for tool in objects_in(tools):
        told = object_in(tool.get("function")) or tool
        # a tool that the server runs is a function without parameters, as NeMo Gym makes it (contracts.md 4.1)
        name = told.get("name") or told.get("type")
        description, parameters = told.get("description"), told.get("parameters", told.get("input_schema"))
        function: dict[str, object] = {"name": name}
        if isinstance(description, str):
            function["description"] = description
        function["parameters"] = parameters if isinstance(parameters, dict) else {"type": "object", "properties": {}}
        yield {"type": "function", "function": function}
