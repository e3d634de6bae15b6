"""Captured event streams: the data of their events, in order (capture-files.md 7.2)."""

import itertools
import json
import re
from collections.abc import Mapping

from ng_capture.records.json_text import object_in

_LINE_END = re.compile(r"\r\n|\r|\n")


class _Done(dict[str, object]):
    """An empty event that stays itself wherever it is copied to."""

    def __reduce__(self) -> str:
        return "DONE"


DONE: Mapping[str, object] = _Done()
"""The event that ends a chat stream; told apart by identity from one that is empty."""


def stream_events(stream: object) -> list[Mapping[str, object]]:
    """The data of a stream; what is no JSON object is an empty event, a plain body is no stream."""
    if not isinstance(stream, str) or "data:" not in stream:
        return []
    # not splitlines: it also breaks at characters that stand in texts
    lines = _LINE_END.split(stream)
    events: list[Mapping[str, object]] = []
    for has_data, block in itertools.groupby(lines, key=bool):
        data = [line[5:].strip() for line in block if line.startswith("data:")] if has_data else []
        whole = _event("\n".join(data)) if len(data) > 1 else {}
        events += [whole] if whole else map(_event, data)
    return events


def _event(text: str) -> Mapping[str, object]:
    if text == "[DONE]":
        return DONE
    try:
        return object_in(json.loads(text))
    except (ValueError, RecursionError):
        return {}
