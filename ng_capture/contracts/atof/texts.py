"""Payloads that are no messages as texts, as the NeMo Agent Toolkit writes them (contracts.md 2.2)."""

from ng_capture.records.json_text import encode_json


def result_text(data: object) -> str | None:
    """What a tool gave back: a single `result` or `output` by itself, a text as it is, any other value as JSON."""
    if isinstance(data, dict) and len(data) == 1 and data.keys() <= {"result", "output"}:
        (data,) = data.values()
    return None if data is None else _text(data)


def summary_text(data: object) -> str | None:
    """What became of a context: a single `summary` or `result` by itself."""
    if isinstance(data, dict) and len(data) == 1 and data.keys() <= {"summary", "result"}:
        (data,) = data.values()
    return None if data is None or data == {} else _text(data)


def boundary_text(data: object) -> str | None:
    """What a workflow was given or gave: a single text by itself, whatever its key."""
    if isinstance(data, dict) and len(data) == 1:
        (only,) = data.values()
        if isinstance(only, str):
            return only
    return note_text(data)


def note_text(data: object) -> str | None:
    """What a runtime noted; nothing, and an empty object, are no note."""
    return None if data is None or data == {} else _text(data)


def _text(data: object) -> str:
    return data if isinstance(data, str) else encode_json(data).decode()
