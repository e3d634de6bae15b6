"""One item as a thought, words, a call or a result; each keeps what is left of the item (contracts.md 4.0)."""

import msgspec

from ng_capture.contracts.episode import Content, Json, Opaque, Role, Thought, ToolCall, ToolResult
from ng_capture.contracts.items.parts import read_content, text_of, without
from ng_capture.contracts.items.tokens import TOKEN_FIELDS
from ng_capture.records.json_text import encode_json, object_in

TEXT_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
"""Calls whose arguments are a text, and where it stands."""
OBJECT_CALLS = {
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "web_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "image_generation_call": "prompt",
    "tool_search_call": "arguments",
}
"""Calls whose arguments are JSON of their own, and where it stands; the item is kept whole."""
OUTPUTS = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "computer_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "tool_search_output",
    }
)
ITEM_TYPES = frozenset(
    {
        *("message", "reasoning", "compaction", "item_reference", "additional_tools"),
        *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response"),
        *TEXT_CALLS,
        *OBJECT_CALLS,
        *OUTPUTS,
    }
)
"""The types of items that Responses know."""
ANSWERED_CALLS = frozenset(
    {"function", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)
"""Kinds of calls whose output is an item of its own."""
_ROLES = {role.value: role for role in Role}


class Message(msgspec.Struct, frozen=True):
    """Words of one side; `item` is the message as it stood, its content's parts without their texts."""

    role: Role
    content: Content | None
    item: Json


class Other(msgspec.Struct, frozen=True):
    """An item of another kind, whole."""

    part: Opaque


class ServerCall(msgspec.Struct, frozen=True):
    """A call that the server ran, with what came back."""

    call: ToolCall
    result: ToolResult


Piece = Message | Thought | ToolCall | ServerCall | ToolResult | Other


def piece_of(value: object) -> Piece | None:
    """What an item is; None for what is no item at all."""
    if not isinstance(value, dict):
        return None
    item = without(value, *TOKEN_FIELDS)
    kind = item.get("type")
    if (kind is None or kind == "message") and (message := _message(item)) is not None:
        return message
    if kind == "reasoning":
        return _thought(item)
    if isinstance(kind, str) and kind in TEXT_CALLS:
        return _text_call(kind, item)
    if isinstance(kind, str) and kind in OBJECT_CALLS:
        asked = item.get(OBJECT_CALLS[kind])
        return ToolCall(_call_id(item), kind, "{}" if asked is None else encode_json(asked).decode(), kind, item)
    if isinstance(kind, str) and kind in OUTPUTS:
        return _result(item)
    return Other(Opaque(kind if isinstance(kind, str) else "item", value))


def _message(item: Json) -> Message | None:
    role = item.get("role")
    side = _ROLES.get(role) if isinstance(role, str) else None
    said = None if side is None else read_content(item.get("content"), plain=side == Role.ASSISTANT)
    if side is None or said is None:
        return None
    rest = dict(item if said.content is None else without(item, "content"))
    if said.parts is not None:
        rest["content"] = list(said.parts)
    return Message(side, said.content, rest)


def _thought(item: Json) -> Thought:
    encrypted = item.get("encrypted_content")
    rest = dict(without(item, "encrypted_content") if isinstance(encrypted, str) else item)
    texts = dict[str, tuple[str, ...]]()
    for key in ("summary", "content"):
        parts = item.get(key)
        found = [text_of(part) for part in parts] if isinstance(parts, list) else [None]
        if isinstance(parts, list) and all(text is not None for text in found):
            texts[key] = tuple(text for text in found if text is not None)
            rest[key] = [without(object_in(part), "text") for part in parts]
    proof = encrypted if isinstance(encrypted, str) else None
    return Thought(texts.get("summary", ()), texts.get("content", ()), proof, item=rest)


def _text_call(kind: str, item: Json) -> Piece:
    key = TEXT_CALLS[kind]
    text, name = item.get(key), item.get("name")
    if not isinstance(text, str):
        # older rows hold an object where a text belongs: its JSON is what can be said of it
        text = "" if text is None else encode_json(text).decode()
    call_id = _call_id(item)
    rest = _untold(item, key, "name", "id" if kind == "mcp_call" else "call_id")
    call = ToolCall(
        call_id, name if isinstance(name, str) else "", text, "function" if kind == "function_call" else kind, rest
    )
    output = item.get("output")
    if kind != "mcp_call" or not isinstance(output, str):
        return call
    result = ToolResult(call_id, output, is_error=True if item.get("error") is not None else None)
    return ServerCall(msgspec.structs.replace(call, item=without(rest, "output")), result)


def _result(item: Json) -> ToolResult:
    said = read_content(item.get("output"), plain=False)
    if said is None:
        output = item.get("output")
        part = Opaque("output", output) if isinstance(output, dict) else Opaque("value", {"value": output})
        return ToolResult(_call_id(item), (part,), item=without(_untold(item, "call_id"), "output"))
    rest = dict(without(_untold(item, "call_id"), "output"))
    if said.content is None and "output" in item:
        rest["output"] = None
    if said.parts is not None:
        rest["output"] = list(said.parts)
    return ToolResult(_call_id(item), said.content, item=rest)


def _untold(item: Json, *keys: str) -> Json:
    """An item without the members that are texts, which a piece tells; what is no text, or none, stays as it stood."""
    return {key: value for key, value in item.items() if key not in keys or not isinstance(value, str) or not value}


def _call_id(item: Json) -> str | None:
    for key in ("call_id", "id"):
        if isinstance(value := item.get(key), str) and (key == "call_id" or item.get("type") in _NAMED_BY_ID):
            return value
    return None


_NAMED_BY_ID = frozenset({"mcp_call", "local_shell_call_output", *OBJECT_CALLS})
