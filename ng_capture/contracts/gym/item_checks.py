"""Every rule on single items, as Gym's models have them (contracts.md 4.0), and on what they drop without a word."""

import json
from collections.abc import Container, Iterator, Mapping
from typing import Literal

import msgspec

from ng_capture.contracts.episode import Json
from ng_capture.contracts.items.pieces import ITEM_TYPES
from ng_capture.contracts.items.tokens import TOKEN_FIELDS, TOKEN_KEYS
from ng_capture.contracts.items.writing import CARRIERS
from ng_capture.contracts.rules import pointer
from ng_capture.records.json_text import object_in

Broken = tuple[str, str, str]
"""A rule of `gym.`, what breaks it, and where."""
SideName = Literal["input", "output"]

_TYPES: dict[str, tuple[type, ...]] = {"text": (str,), "list": (list,), "content": (str, list), "object": (dict,)}
_NONE = type(None)


class Fields(msgspec.Struct, frozen=True):
    """The fields of an item or a part: those that it must have, those that may be null, others; the rest is dropped."""

    needed: Mapping[str, str]
    free: Mapping[str, str] = {}
    known: frozenset[str] = frozenset()


_STATUS = frozenset({"status"})
_EASY = Fields({"role": "text", "content": "content"}, {"phase": "text"})
_PUT_IN = Fields({"role": "text", "content": "list", "status": "text"})
_PUT_OUT = Fields({"id": "text", "content": "list"}, {"role": "text", "phase": "text"}, _STATUS)
ITEMS: dict[str, Fields] = {
    "reasoning": Fields({"id": "text", "summary": "list"}, {"encrypted_content": "text", "content": "list"}),
    "function_call": Fields(
        {"call_id": "text", "name": "text", "arguments": "text"}, {"id": "text", "namespace": "text"}, _STATUS
    ),
    "function_call_output": Fields({"call_id": "text", "output": "content"}, {"id": "text"}, _STATUS),
}
_INPUT_PARTS: dict[str, Fields] = {
    "input_text": Fields({"text": "text"}),
    "input_image": Fields({"detail": "text"}, {"image_url": "text", "file_id": "text"}),
    "input_file": Fields({}, known=frozenset({"file_data", "file_id", "file_url", "filename", "detail"})),
    "input_video": Fields({}, known=frozenset({"video_url", "video"})),
}
_OUTPUT_PARTS: dict[str, Fields] = {
    "output_text": Fields({"text": "text", "annotations": "list"}, {"logprobs": "list"}),
    "refusal": Fields({"refusal": "text"}),
}
_RESULT_PARTS = {**_INPUT_PARTS, "input_image": Fields({}, {"detail": "text", "image_url": "text", "file_id": "text"})}
_TEXT_PARTS = {"summary_text": Fields({"text": "text"}), "reasoning_text": Fields({"text": "text"})}
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_STATUSES = frozenset({"in_progress", "completed", "incomplete"})
_ONLY_IN = frozenset({"compaction_trigger"})
_REFUSED = frozenset({"item_reference"})


def broken_item(item: object, path: str, side: SideName) -> Iterator[Broken]:
    """The rules that an item of a request's input or of a response's output breaks."""
    if not isinstance(item, dict):
        yield "item.object", "an item is a JSON object", path
        return
    kind = item.get("type")
    if kind is None and side == "output":
        yield "item.type_missing", "Gym wants the type of every item of an output", path
    elif kind is None or kind == "message":
        yield from _message(item, path)
    elif isinstance(kind, str) and kind in ITEMS:
        yield from _fields(item, ITEMS[kind], path, "item")
        yield from _inside(kind, item, path)
    elif not isinstance(kind, str) or not _is_known(kind, side):
        yield "item.type_unknown", f"{kind!r} is no type of an item of an {side}", f"{path}/type"
    yield from _tokens(item, path)


def _is_known(kind: str, side: SideName) -> bool:
    return kind not in _REFUSED and (kind in ITEM_TYPES or (side == "input" and kind in _ONLY_IN))


def _message(item: Json, path: str) -> Iterator[Broken]:
    """A message; which of three it is follows from its role and its content."""
    role, content = item.get("role"), item.get("content")
    if not _is_one_of(role, _ROLES):
        yield "item.field_type", f"role {role!r}, not one of {', '.join(sorted(_ROLES))}", f"{path}/role"
        return
    put_out = role == "assistant" and isinstance(content, list) and _is_output(content, item)
    put_in = role != "assistant" and isinstance(content, list) and _is_one_of(item.get("status"), _STATUSES)
    yield from _fields(item, _PUT_OUT if put_out else _PUT_IN if put_in else _EASY, path, "item")
    if isinstance(content, list):
        yield from _parts(content, _OUTPUT_PARTS if put_out else _INPUT_PARTS, f"{path}/content")


def _is_output(content: list[object], item: Json) -> bool:
    return _is_one_of(object_in(content[0]).get("type"), _OUTPUT_PARTS) if content else isinstance(item.get("id"), str)


def _is_one_of(value: object, names: Container[str]) -> bool:
    return isinstance(value, str) and value in names


def _inside(kind: str, item: Json, path: str) -> Iterator[Broken]:
    if kind == "reasoning":
        for key in ("summary", "content"):
            yield from _parts(item.get(key), _TEXT_PARTS, f"{path}/{key}")
    elif kind == "function_call_output":
        yield from _parts(item.get("output"), _RESULT_PARTS, f"{path}/output")
    elif isinstance(arguments := item.get("arguments"), str):
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            yield "call.arguments", "the text is no JSON object", f"{path}/arguments"


def _fields(value: Json, fields: Fields, path: str, of: str) -> Iterator[Broken]:
    for name, kind in fields.needed.items():
        if name not in value:
            yield f"{of}.field_missing", f"no {name}", path
        elif not isinstance(value[name], _TYPES[kind]):
            yield f"{of}.field_type", f"{name} is {_named(value[name])}, not {kind}", f"{path}{pointer(name)}"
    for name, kind in fields.free.items():
        if not isinstance(value.get(name), (*_TYPES[kind], _NONE)):
            yield f"{of}.field_type", f"{name} is {_named(value[name])}, not {kind}", f"{path}{pointer(name)}"
    status = value.get("status")
    if "status" in fields.known and status is not None and not _is_one_of(status, _STATUSES):
        yield f"{of}.field_type", f"status {status!r}", f"{path}/status"
    known = {"type", *fields.needed, *fields.free, *fields.known, *TOKEN_FIELDS}
    for name in value:
        if name not in known:
            yield f"{of}.field_unknown", f"{name} is dropped when Gym writes it again", f"{path}{pointer(name)}"


def _parts(content: object, known: Mapping[str, Fields], path: str) -> Iterator[Broken]:
    for at, value in enumerate(content if isinstance(content, list) else ()):
        part, here = object_in(value), f"{path}{pointer(at)}"
        fields = known.get(str(part.get("type")))
        if fields is None:
            yield "part.type_unknown", f"{part.get('type')!r} is no type of a part here", here
        else:
            yield from _fields(part, fields, here, "part")


def _tokens(item: Json, path: str) -> Iterator[Broken]:
    held = [key for key in TOKEN_KEYS if key in item]
    if not held and "routed_experts" not in item:
        return
    missing = [key for key in TOKEN_KEYS if key not in item]
    if missing:
        yield "tokens.partial", f"without {', '.join(missing)}: all token fields or none", path
    empty = [key for key in held if item[key] == []]
    if empty:
        yield "tokens.empty", f"no tokens in {', '.join(empty)}", path
    for key in held:
        yield from _array(item[key], key, path)
    if not _is_carrier(item):
        yield "tokens.misplaced", f"Gym drops the tokens of an item of type {item.get('type')}", path
    sizes = [len(value) for key in TOKEN_KEYS[1:] if isinstance(value := item.get(key), list)]
    if len(sizes) == 2 and sizes[0] != sizes[1]:
        yield "tokens.length", f"{sizes[0]} generated tokens, {sizes[1]} log probabilities", path


def _is_carrier(item: Json) -> bool:
    return _is_one_of(item.get("type", "message"), CARRIERS)


def _array(value: object, key: str, path: str) -> Iterator[Broken]:
    here = f"{path}/{key}"
    if value is None:
        yield "tokens.null", "null; a field of no tokens is left out", here
    elif not isinstance(value, list):
        yield "tokens.type", f"{_named(value)}, not a list", here
    elif value:
        numbers = (int, float) if key == "generation_log_probs" else (int,)
        wrong = next((at for at, each in enumerate(value) if type(each) not in numbers), None)
        if wrong is not None:
            yield "tokens.type", f"{_named(value[wrong])} in place {wrong}", f"{here}/{wrong}"
        elif key != "generation_log_probs" and min(value) < 0:
            yield "tokens.negative", f"an id below 0 in place {value.index(min(value))}", here


def _named(value: object) -> str:
    """What JSON calls the type of a value."""
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), "something else")
