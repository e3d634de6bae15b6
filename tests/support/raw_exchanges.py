"""Raw exchanges as a reader of logs makes them, for tests of what is made of them.

exchange_of(b'{"model_call_id": ...}')               # from a line of `.capture.jsonl`
asked({"prompt": [1, 2]}, {"choices": [...]})        # a request and its response
streamed_as([event, ...])                            # a response that came in events
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ng_capture.ingest.raw import RawExchange
from ng_capture.records.assembling import assemble
from ng_capture.records.json_text import object_in
from ng_capture.records.streams import DONE, stream_events

Fields = Mapping[str, Any]
_TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "token_ids")


def asked(request: Fields, response: Fields, **fields: Any) -> RawExchange:
    """A call that was answered with success."""
    return RawExchange(
        **{"file": "x", "line": 1, "call_id": "c1", "status_code": 200, **fields}, request=request, response=response
    )


def answered(response: Fields, **fields: Any) -> RawExchange:
    return asked({}, response, **fields)


def streamed_as(events: Sequence[Fields], request: Fields | None = None, *, done: bool = True) -> RawExchange:
    """A call whose response came in these events."""
    whole = [*events, *([DONE] if done else [])]
    return asked(request or {}, assemble(whole), events=whole)


def exchange_of(line: bytes, number: int = 1) -> RawExchange:
    """The call of a line of `.capture.jsonl`, with what its reader tells of the text."""
    twice: list[str] = []

    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in members]
        twice.extend(key for key in _TOKEN_FIELDS if keys.count(key) > 1)
        return dict(members)

    row = json.loads(line, object_pairs_hook=pairs)
    events = stream_events(row.get("response_raw"))
    return RawExchange(
        file="x.capture.jsonl",
        line=number,
        call_id=row.get("model_call_id"),
        dialect=row.get("dialect"),
        started_at=row.get("started_at"),
        completed_at=row.get("completed_at"),
        status_code=row.get("status_code"),
        error_category=row.get("error_category"),
        request=object_in(row.get("request")),
        response=object_in(row.get("response")) or assemble(events),
        events=events,
        response_raw=row.get("response_raw"),
        duplicate_key=twice[0] if twice else None,
        lone_surrogate="\\ud" in line.decode(),
    )
