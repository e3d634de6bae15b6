"""Content fingerprints of conversations, byte for byte as NeMo Gym 0.7.0 stamps them (capture-files.md 2.5)."""

import hashlib
import itertools
import json
import marshal
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import orjson

FINGERPRINT_VERSION = 2

_HEAD = struct.Struct(">BQ").pack
_NAMELESS = -1
_SAID, _CONTEXT = b"nemo-gym-lineage", b"nemo-gym-lineage-context"
_TEXT_TYPES = frozenset({"", "text", "input_text", "output_text"})


class Unfingerprintable(ValueError):
    """A shape or value that has no fingerprint (capture-files.md 2.5): nothing can be said about its content."""


def assistant_fingerprint(items: Sequence[object]) -> str:
    """SHA-256 over what the model wrote in `items`; "" where it wrote nothing (capture-files.md 2.5)."""
    authored = [item for item in map(_object, items) if is_model_authored(item)]
    sha256 = hashlib.sha256(_SAID)
    for item in authored:
        for fields in _said_in(item):
            sha256.update(fields)
    return sha256.hexdigest() if authored else ""


def conversation_digest(items: Sequence[object]) -> str:
    """SHA-256 over all `items`, whoever wrote them; of no items too (capture-files.md 2.5)."""
    *_, last = conversation_digests(items)
    return last


def conversation_digests(items: Sequence[object]) -> Iterator[str]:
    """The digest of no item, of the first, of the first two, and so on."""
    sha256 = hashlib.sha256(_CONTEXT)
    yield sha256.hexdigest()
    for item in map(_object, items):
        for fields in _context_of(item):
            sha256.update(fields)
        yield sha256.hexdigest()


class Digests(NamedTuple):
    """What is told of some items: the fingerprint of all that the model wrote, None where it cannot be told, and the
    digests of no item, of the first, of the first two, as far as they can be told."""

    fingerprint: str | None
    begins: tuple[str, ...]


class Beginnings:
    """Digests of conversations of which most begin as another one did: no beginning is hashed twice."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, bytes], _Beginning] = {}

    def digests(self, items: Sequence[object]) -> Digests:
        """The same as of `assistant_fingerprint` and `conversation_digests`."""
        at = _NOTHING
        begins = [_NOTHING.digest]
        for item in items:
            at = self._after(at, item)
            begins.append(at.digest)
        fingerprint = at.said.hexdigest() if at.said is not None and at.authored else None if at.said is None else ""
        return Digests(fingerprint, tuple(itertools.takewhile(bool, begins)))

    def _after(self, begin: "_Beginning", item: object) -> "_Beginning":
        try:
            # exact: no two values have the same
            key = (begin.number, marshal.dumps(item, 2))  # type: ignore[arg-type]
        except ValueError:
            key = (_NAMELESS, b"")
        if key[0] == _NAMELESS:
            return begin.then(item, _NAMELESS)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = begin.then(item, len(self._known) + 1)
        return known


class _Beginning(NamedTuple):
    """The hashes of the first items of a conversation, None where they cannot be told; its number names it."""

    number: int
    said: "hashlib._Hash | None"
    authored: bool
    context: "hashlib._Hash | None"
    digest: str

    def then(self, item: object, number: int) -> "_Beginning":
        """With one item more."""
        authored = is_model_authored(item)
        said, context = self.said, self.context
        if said is not None:
            said = _continued(said, item, _said_in if authored else _nothing_in)
        if context is not None:
            context = _continued(context, item, _context_of)
        return _Beginning(
            number, said, self.authored or authored, context, context.hexdigest() if context is not None else ""
        )


def _continued(
    sha256: "hashlib._Hash", item: object, fields_of: "Callable[[dict[str, Any]], Iterator[bytes]]"
) -> "hashlib._Hash | None":
    more = sha256.copy()
    try:
        for fields in fields_of(_object(item)):
            more.update(fields)
    except Unfingerprintable:
        return None
    return more


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


def _said_in(item: dict[str, Any]) -> Iterator[bytes]:
    return chain(_parts(item, 0), _calls(item, 2))


def _nothing_in(_: dict[str, Any]) -> Iterator[bytes]:
    return iter(())


def _context_of(item: dict[str, Any]) -> Iterator[bytes]:
    yield _fields(0, _text(item.get("role") or item.get("type")))
    yield from chain(_parts(item, 1), _calls(item, 3), _results(item, 6))


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


_NOTHING = _Beginning(0, hashlib.sha256(_SAID), False, hashlib.sha256(_CONTEXT), hashlib.sha256(_CONTEXT).hexdigest())
