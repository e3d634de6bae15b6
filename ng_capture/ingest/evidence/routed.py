"""Routed experts of an answer: found, their shape told, passed on as they are (ingest.md 1.6)."""

import ast
import base64
import binascii
from collections.abc import Iterator

import msgspec

from ng_capture.ingest.evidence.answers import Answer
from ng_capture.ingest.evidence.spellings import bundle_carriers
from ng_capture.ingest.normalised import Routed
from ng_capture.records.json_text import object_in
from ng_capture.records.routed_experts import decode_routed_experts

_NPY = b"\x93NUMPY"


class FoundRouted(msgspec.Struct, frozen=True):
    """Routed experts with their shape, both None where they were not served or are dropped for the warning."""

    value: object | None = None
    shape: Routed | None = None
    warning: str | None = None


def routed_of(answer: Answer, tokens: int) -> FoundRouted:
    """The routed experts of an answer of so many tokens, its prompt included."""
    value = next((value for value in _values(answer) if value is not None), None)
    if value is None:
        return FoundRouted()
    shape = _shape(value)
    if shape is None or shape.rows not in (tokens, tokens - 1):
        return FoundRouted(warning="routed_experts_malformed")
    return FoundRouted(value, shape, "routed_experts_one_short" if shape.rows < tokens else None)


def _values(answer: Answer) -> Iterator[object]:
    yield answer.message.get("routed_experts")
    for _, item in bundle_carriers(answer):
        yield item.get("routed_experts")
    for carrier in (
        answer.choice,
        answer.meta_info,
        object_in(answer.response.get("nvext")),
        object_in(answer.response.get("sglext")),
    ):
        yield carrier.get("routed_experts")
    prompt, generation = (answer.choice.get(key) for key in ("prompt_moe_topk_indices", "moe_topk_indices"))
    if isinstance(prompt, list) and isinstance(generation, list):
        yield [*prompt, *generation]


def _shape(value: object) -> Routed | None:
    """The shape of an envelope, of nested lists, of an array file in base64, of an object that tells it."""
    if isinstance(value, dict):
        return _told_shape(value.get("shape"))
    decoded = decode_routed_experts(value)
    if decoded is None:
        return _array_shape(value) if isinstance(value, str) else None
    layers = {len(row) for row in decoded.rows}
    chosen = {len(layer) for row in decoded.rows for layer in row}
    if len(layers) != 1 or len(chosen) != 1:
        return None
    return Routed(len(decoded.rows), layers.pop(), chosen.pop())


def _told_shape(shape: object) -> Routed | None:
    if not isinstance(shape, list | tuple) or len(shape) != 3 or not all(type(n) is int and n > 0 for n in shape):
        return None
    return Routed(*shape)


def _array_shape(text: str) -> Routed | None:
    """What the header of a `.npy` file says (vLLM): magic, version, its length in two bytes, a literal."""
    try:
        data = base64.b64decode(text, validate=True)
        end = 10 + int.from_bytes(data[8:10], "little")
        header = ast.literal_eval(data[10:end].decode("latin-1").strip()) if data.startswith(_NPY) else None
    except (binascii.Error, ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return _told_shape(header.get("shape")) if isinstance(header, dict) else None
