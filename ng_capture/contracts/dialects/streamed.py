"""A response that stands as the text of its stream, put together (contracts.md 4.7)."""

from typing import Any

import msgspec

from ng_capture.contracts.losses import Loss
from ng_capture.records.assembling import assemble, is_rebuilt
from ng_capture.records.raw_call import raw_call_of
from ng_capture.records.streams import stream_events


class Unstreamed(msgspec.Struct, frozen=True):
    """A document whose response is an object; `truncated` tells that its stream has no end, or one of an error."""

    value: Any
    losses: tuple[Loss, ...] = ()
    truncated: bool = False


def unstreamed(value: Any, dialect: str) -> Unstreamed:
    """A pair with its response put together, where that is a text; any other document as it is."""
    text = value.get("response") if isinstance(value, dict) else None
    if not isinstance(text, str):
        return Unstreamed(value)
    events = stream_events(text)
    cut = raw_call_of({"response_raw": text, "dialect": dialect}, 0, 0).stream_truncated
    cut = cut or any(event.get("type") == "error" or event.get("error") is not None for event in events)
    losses = (Loss("stream_rebuilt", "/response"),) if cut or is_rebuilt(events) else ()
    return Unstreamed({**value, "response": assemble(events)}, losses, cut)
