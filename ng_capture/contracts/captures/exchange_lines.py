"""A line of `.capture.jsonl`: what stands in it, and every rule that it breaks (contracts.md 5.1)."""

import math
from collections.abc import Iterator

import msgspec

from ng_capture.contracts.atif.foreign import foreign_format, looks_like_atif
from ng_capture.contracts.captures.rules import fault
from ng_capture.contracts.episode import Json
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.records.json_text import decode_json, object_in, printable
from ng_capture.records.raw_call import RawCall

DIALECTS = ("responses", "chat", "messages")
_CATEGORIES = frozenset(
    (
        *("timeout", "rate_limit", "auth", "not_found", "client_error", "upstream_error", "cancelled", "connection"),
        *("exception", "incomplete", "capture_parse_error", "stream_truncated", "context_length_exceeded"),
    )
)
_TEXT, _NUMBER, _COUNT, _OBJECT, _FLAG = "text", "number", "count", "object", "flag"
_FIELDS = {
    "model_call_id": _TEXT,
    "dialect": _TEXT,
    "model_ref": _OBJECT,
    "started_at": _NUMBER,
    "completed_at": _NUMBER,
    "latency_ms": _NUMBER,
    "latency_ttft_ms": _NUMBER,
    "status_code": _COUNT,
    "error_category": _TEXT,
    "request": _OBJECT,
    "response": _OBJECT,
    "request_raw": _TEXT,
    "response_raw": _TEXT,
    "client_session_id": _TEXT,
    "upstream_attempted": _FLAG,
    "response_source": _TEXT,
    "upstream_status_code": _COUNT,
    "local_response_reason": _TEXT,
    # of the preview (NeMo Gym, pull request 1715)
    "model_server": _TEXT,
    "trial_index": _COUNT,
    "turn_index": _COUNT,
    # of tables of calls
    "rollout_id": _TEXT,
}
_OWN = frozenset({"model_call_id", "dialect", "request", "request_raw", "response_raw", "step_index", "tokens_in"})
"""What no line of another format has: one of these makes it a call, however broken."""


_EVIDENCE = (
    *("client_session_id", "trial_index", "turn_index"),
    *("upstream_attempted", "response_source", "upstream_status_code", "local_response_reason"),
)


class ExchangeLine(msgspec.Struct, frozen=True, eq=False):
    """A line that is an object, what judging reads of it, and where it stands.

    `data` is its text: a rollout of many calls sends its history with each, decoded that fills the memory. `index`
    counts the lines of the rollout from 0.
    """

    data: bytes
    raw: RawCall
    file: str
    index: int

    @property
    def value(self) -> Json:
        """The object, decoded anew."""
        return object_in(decode_json(self.data).value)


def foreign_name(value: Json) -> str | None:
    """What a line is that is no captured call; None for one that has anything of a call."""
    if not _OWN.isdisjoint(value):
        return None
    if looks_like_atif(value):
        return "ATIF trajectory"
    foreign = foreign_format(value)
    if foreign is not None:
        return foreign.name
    return None if "response" in value else "nothing of a call is in it"


def has_payload(value: Json) -> bool:
    """True where something of what was asked or answered is there."""
    return any(value.get(key) is not None for key in ("request", "response", "request_raw", "response_raw"))


def evidence_in(value: Json) -> Json | None:
    """What a line says of how its call came about, where that is not the usual: the model's server answered (5.1)."""
    usual = {
        "upstream_attempted": True,
        "response_source": "upstream",
        "upstream_status_code": value.get("status_code"),
    }
    told = {name: value[name] for name in _EVIDENCE if name in value and _is(value[name], _FIELDS[name])}
    return {
        name: printable(each) if isinstance(each, str) else each
        for name, each in told.items()
        if each != usual.get(name)
    } or None


def faults_of(value: Json, raw: RawCall, file: str) -> Iterator[Fault]:
    """Every rule that a line breaks."""
    for rule, path, message in _faults(value, raw):
        yield fault(rule, message, path, raw.line, file)


def _faults(value: Json, raw: RawCall) -> Iterator[tuple[str, str, str]]:
    payload = has_payload(value)
    for key, member in value.items():
        name = printable(key)
        if key in _FIELDS and member is not None and not _is(member, _FIELDS[key]):
            yield "capture.field.type", pointer(name), f"{name} is no {_FIELDS[key]}"
        elif key not in _FIELDS and payload:
            yield "capture.field.unknown", pointer(name), f"{name} is no field of a captured call"
    if not raw.call_id:
        yield "capture.call_id.missing", "/model_call_id", "no model_call_id"
    yield from _of_dialect(value.get("dialect"))
    if payload:
        yield from _of_payload(value, raw)
    yield from _of_outcome(value, raw)


def _of_dialect(dialect: object) -> Iterator[tuple[str, str, str]]:
    if dialect is None:
        yield "capture.dialect.missing", "/dialect", "no dialect"
    elif isinstance(dialect, str) and dialect not in DIALECTS:
        yield "capture.dialect.unknown", "/dialect", f"{printable(dialect)[:40]} is none of {', '.join(DIALECTS)}"


def _of_payload(value: Json, raw: RawCall) -> Iterator[tuple[str, str, str]]:
    if not isinstance(value.get("request"), dict):
        yield "capture.request_missing", "/request", "what was asked is not there"
    if raw.answered and not isinstance(value.get("response"), dict) and not value.get("response_raw"):
        yield "capture.response_missing", "/response", "an answered call without its response"
    if raw.stream_truncated:
        yield "capture.stream_truncated", "/response_raw", "the stream has no end"


def _of_outcome(value: Json, raw: RawCall) -> Iterator[tuple[str, str, str]]:
    category = value.get("error_category")
    if isinstance(category, str) and category not in _CATEGORIES:
        yield "capture.error_category.unknown", "/error_category", f"{printable(category)[:40]} is no error category"
    if category is None and raw.status_code is not None and raw.status_code >= 400:
        yield "capture.error_category.missing", "/error_category", f"status {raw.status_code} without a category"
    begun, ended = number_in(value, "started_at"), number_in(value, "completed_at")
    if begun is not None and ended is not None and ended < begun:
        yield "capture.times.order", "/completed_at", "the call ends before it begins"
    for key in ("latency_ms", "latency_ttft_ms"):
        latency = number_in(value, key)
        if latency is not None and latency < 0:
            yield "capture.times.order", pointer(key), f"{key} is negative"


def _is(value: object, kind: str) -> bool:
    if kind == _NUMBER:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == _COUNT:
        return type(value) is int and value >= 0
    return isinstance(value, {_TEXT: str, _OBJECT: dict, _FLAG: bool}[kind])


def number_in(value: Json, *keys: str) -> float | None:
    """The first of the fields that is a finite number."""
    for key in keys:
        told = value.get(key)
        if isinstance(told, int | float) and not isinstance(told, bool) and abs(told) < 2**63 and math.isfinite(told):
            return float(told)
    return None
