"""Routed experts of a call: one row per token, as an envelope or a nested list (capture-files.md 2.1)."""

import base64
import binascii
import re
from array import array
from typing import Any

import msgspec

from ng_capture.records.defects import Defect

_ENVELOPE = re.compile(r"nrlre1:([a-z0-9]+):(\d+)x(\d+)x(\d+):(.*)", re.DOTALL)
_TYPE_CODES = {"uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i", "int64": "q"}


class ExpertRows(msgspec.Struct, frozen=True):
    """`rows[t][layer][k]`: the experts chosen for token t."""

    rows: list[list[list[int]]]


def check_routed_experts(value: Any, tokens: int) -> Defect | None:
    """The defect of routed experts that fit no shape, or that lack the row of the last token."""
    decoded = decode_routed_experts(value)
    if decoded is None:
        return Defect(reason="routed_experts_malformed")
    if len(decoded.rows) == tokens:
        return None
    if len(decoded.rows) == tokens - 1:
        return Defect(reason="routed_experts_one_short", expected=tokens, found=len(decoded.rows))
    return Defect(reason="routed_experts_malformed", expected=tokens, found=len(decoded.rows))


def decode_routed_experts(value: Any) -> ExpertRows | None:
    """The rows, or None for a value of no known shape."""
    if isinstance(value, str):
        return _decode_envelope(value)
    try:
        return ExpertRows(msgspec.convert(value, list[list[list[int]]]))
    except (msgspec.ValidationError, UnicodeEncodeError):
        return None


def _decode_envelope(text: str) -> ExpertRows | None:
    match = _ENVELOPE.fullmatch(text)
    if match is None or match[1] not in _TYPE_CODES:
        return None
    tokens, layers, chosen = int(match[2]), int(match[3]), int(match[4])
    try:
        data = base64.b64decode(match[5], validate=True)
    except binascii.Error:
        return None
    values = array(_TYPE_CODES[match[1]])
    if len(data) != tokens * layers * chosen * values.itemsize:
        return None
    values.frombytes(data)
    flat = values.tolist()
    width = layers * chosen
    return ExpertRows(
        [
            [flat[start : start + chosen] for start in range(token, token + width, chosen)] if chosen else []
            for token in range(0, tokens * width, width or 1)
        ]
    )
