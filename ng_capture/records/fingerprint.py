"""Content fingerprints of conversations, byte for byte as NeMo Gym 0.7.0 stamps them (capture-files.md 2.5)."""

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import orjson

FINGERPRINT_VERSION = 2

_HEAD = struct.Struct(">BQ").pack
_TEXT_TYPES = frozenset({"", "text", "input_text", "output_text"})


class Unfingerprintable(ValueError):
    """A shape or value that has no fingerprint (capture-files.md 2.5): nothing can be said about its content."""


def assistant_fingerprint(items: Sequence[object]) -> str:
    """SHA-256 over what the model wrote in `items`; "" where it wrote nothing (capture-files.md 2.5)."""
    authored = [item for item in map(_object, items) if is_model_authored(item)]
    sha256 = hashlib.sha256(b"nemo-gym-lineage")
    for item in authored:
        for fields in chain(_parts(item, 0), _calls(item, 2)):
            sha256.update(fields)
    return sha256.hexdigest() if authored else ""


def conversation_digest(items: Sequence[object]) -> str:
    """SHA-256 over all `items`, whoever wrote them; of no items too (capture-files.md 2.5)."""
    *_, last = conversation_digests(items)
    return last


def conversation_digests(items: Sequence[object]) -> Iterator[str]:
    """The digest of no item, of the first, of the first two, and so on."""
    sha256 = hashlib.sha256(b"nemo-gym-lineage-context")
    yield sha256.hexdigest()
    for item in map(_object, items):
        sha256.update(_fields(0, _text(item.get("role") or item.get("type"))))
        for fields in chain(_parts(item, 1), _calls(item, 3), _results(item, 6)):
            sha256.update(fields)
        yield sha256.hexdigest()


def is_model_authored(item: object) -> bool:
    """Whether the model wrote `item`: role "assistant" or type "function_call" (capture-files.md 2.5)."""
    return isinstance(item, dict) and (item.get("role") == "assistant" or item.get("type") == "function_call")


def trailing_run(items: Sequence[object]) -> list[object]:
    """The model-authored items that end `items`; any other item, reasoning too, breaks the run (capture-files.md 5)."""
    start = len(items)
    while start and is_model_authored(items[start - 1]):
        start -= 1
    return list(items[start:])


def last_run(items: Sequence[object]) -> list[object]:
    """The last maximal run of model-authored items, wherever it stands; reasoning breaks it (capture-files.md 5)."""
    end = len(items)
    while end and not is_model_authored(items[end - 1]):
        end -= 1
    return trailing_run(items[:end])


def request_items(request: Mapping[str, object]) -> list[object]:
    """The turns of a request, after a pseudo item for its instructions and tools if any (capture-files.md 2.5)."""
    turns = next((turns for key in ("messages", "input") if isinstance(turns := request.get(key), list)), [])
    envelope = {key: request.get(key) for key in ("instructions", "tools")}
    if not any(envelope.values()):
        return list(turns)
    try:
        content = json.dumps(envelope, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise Unfingerprintable(f"instructions or tools without JSON text: {error}") from error
    return [{"role": "_ng_request_envelope", "content": content}, *turns]


def _parts(item: dict[str, Any], tag: int) -> Iterator[bytes]:
    content = item.get("content")
    if isinstance(content, str):
        if content:
            yield _fields(tag, "text", content)
        return
    for element in _list(content):
        block = {"type": "text", "text": element} if isinstance(element, str) else _object(element)
        block_type, text = _text(block.get("type")), block.get("text")
        if block_type in ("tool_use", "tool_result"):
            continue  # hashed as a call or a result
        if block_type in _TEXT_TYPES and isinstance(text, str):
            if text:
                yield _fields(tag, "text", text)
        elif block_type:
            yield _fields(tag, block_type, _canonical(block))
        else:
            raise Unfingerprintable("content block without type and text")


def _calls(item: dict[str, Any], tag: int) -> Iterator[bytes]:
    if item.get("type") == "function_call":
        namespace, name = _text(item.get("namespace")), _text(item.get("name"))
        call_id = _text(item.get("call_id") or item.get("id"))
        yield _fields(tag, call_id, f"{namespace}__{name}" if namespace else name, _arguments(item.get("arguments")))
    for block in _blocks(item, "tool_use"):
        yield _fields(tag, _text(block.get("id")), _text(block.get("name")), _arguments(block.get("input")))
    for call in map(_object, _list(item.get("tool_calls"))):
        function = _object(call.get("function") or {})
        arguments = _arguments(function.get("arguments"))
        yield _fields(tag, _text(call.get("id")), _text(function.get("name")), arguments)


def _results(item: dict[str, Any], tag: int) -> Iterator[bytes]:
    if item.get("type") == "function_call_output":
        yield _fields(tag, _text(item.get("call_id") or item.get("id")), _output(item.get("output")))
    elif item.get("role") == "tool":
        yield _fields(tag, _text(item.get("tool_call_id")), _output(item.get("content")))
    for block in _blocks(item, "tool_result"):
        yield _fields(tag, _text(block.get("tool_use_id") or block.get("id")), _output(block.get("content")))


def _blocks(item: dict[str, Any], block_type: str) -> Iterator[dict[str, Any]]:
    content = item.get("content")
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict) and block.get("type") == block_type)


def _fields(first_tag: int, *values: str) -> bytes:
    """Tag, length and value of each: no two lists of fields share their bytes."""
    try:
        encoded = [value.encode() for value in values]
    except UnicodeEncodeError as error:
        raise Unfingerprintable("text with a lone surrogate") from error
    return b"".join([_HEAD(tag, len(value)) + value for tag, value in enumerate(encoded, first_tag)])


def _arguments(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return _canonical(value)
    try:
        # Python's parser, because it takes NaN and Infinity, as the stamps on disk did.
        return _canonical(json.loads(value))
    except json.JSONDecodeError:
        return value.strip()
    except (ValueError, RecursionError) as error:
        raise Unfingerprintable(f"arguments that cannot be parsed: {error}") from error


def _output(value: object) -> str:
    return value if isinstance(value, str) else _canonical(value)


def _canonical(value: object) -> str:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise Unfingerprintable(f"value without canonical JSON: {error}") from error


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unfingerprintable(f"{type(value).__name__} where an object belongs")
    return value


def _list(value: object) -> list[object]:
    if value is not None and not isinstance(value, list):
        raise Unfingerprintable(f"{type(value).__name__} where a list belongs")
    return value or []


def _text(value: object) -> str:
    if value and not isinstance(value, str):
        raise Unfingerprintable(f"{type(value).__name__} where text belongs")
    return value if isinstance(value, str) else ""
