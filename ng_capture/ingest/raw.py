"""One call as a log holds it, whatever log that is: what was asked, what was answered, where it stands."""

from collections.abc import Mapping, Sequence

import msgspec


class RolloutClaim(msgspec.Struct, frozen=True):
    """What says to which rollout a call belongs: `path`, `file_name`, `field`, `header`, `option` (ingest.md 3)."""

    source: str
    rollout_id: str


class RawExchange(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A request and its response, unjudged. What the log does not say is None, or empty.

    `events` are those of a stream, in their order; `response` is then what they add up to. `response_raw` is the text
    of a response that was streamed or could not be parsed. `duplicate_key` names a token field that stands twice in one
    object; `lone_surrogate` tells of half a surrogate pair in a text. `claims` say which rollout it is of, the
    strongest first. Times in seconds since 1970.
    """

    file: str
    line: int
    byte: int | None = None
    call_id: str | None = None
    claims: tuple[RolloutClaim, ...] = ()
    dialect: str | None = None
    model_ref: Mapping[str, object] | None = None
    started_at: float | None = None
    completed_at: float | None = None
    latency_ms: float | None = None
    latency_ttft_ms: float | None = None
    status_code: int | None = None
    error_category: str | None = None
    client_session_id: str | None = None
    parent_call_id: str | None = None
    request: Mapping[str, object] = {}
    response: Mapping[str, object] = {}
    events: Sequence[Mapping[str, object]] = ()
    response_raw: str | None = None
    duplicate_key: str | None = None
    lone_surrogate: bool = False
