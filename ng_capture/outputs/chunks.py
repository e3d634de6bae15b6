"""JSON in pieces: long arrays are written from where they lie, never put together in memory."""

from array import array
from collections.abc import Iterable, Mapping

import orjson

from ng_capture.records.json_text import encode_json

Chunk = bytes | bytearray | memoryview


def float_array(values: "array[float]") -> bytes:
    """A JSON array that spells the same doubles."""
    return orjson.dumps(values.tolist())


def array_of(items: Iterable[list[Chunk]]) -> list[Chunk]:
    """A JSON array of items in pieces."""
    chunks: list[Chunk] = [b"["]
    for number, item in enumerate(items):
        if number:
            chunks.append(b",")
        chunks += item
    return [*chunks, b"]"]


def object_of(members: Mapping[str, list[Chunk]]) -> list[Chunk]:
    """A JSON object of values in pieces."""
    chunks: list[Chunk] = []
    for key, value in members.items():
        chunks += [b"%b%b:" % (b"," if chunks else b"{", encode_json(key)), *value]
    return [*chunks, b"}"] if chunks else [b"{}"]


def joined(chunks: Iterable[Chunk]) -> bytes:
    """All pieces as one."""
    return b"".join(chunks)
