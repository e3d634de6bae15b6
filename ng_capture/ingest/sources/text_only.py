"""Logs that hold text and no ids: known by what they hold, to be refused with the reason (ingest.md 2)."""

from collections.abc import Callable

import msgspec

from ng_capture.ingest.sources.head import Head


class TextOnly(msgspec.Struct, frozen=True):
    """A log that cannot hold token ids: what it is, why, and what to do instead."""

    title: str
    recognises: Callable[[Head], bool]
    why: str
    instead: str


_CAPTURE = "capture at the model server: let the calls go through NeMo Gym or a proxy that keeps whole bodies (HAR)"


def _telemetry(head: Head) -> bool:
    flat = ("attributes.gen_ai", "resourceSpans", "resource_spans")
    return any(path.startswith(flat) for path in head.first)


def _langfuse(head: Head) -> bool:
    one = head.has("traceId") and head.has_any("usageDetails", "modelParameters", "startTime")
    return one or (head.has("observations") and head.has_any("observations.traceId", "observations.startTime"))


def _claude_code(head: Head) -> bool:
    return any("leafUuid" in keys or keys.issuperset({"sessionId", "uuid"}) for keys in head.values)


def _codex(head: Head) -> bool:
    return head.has("timestamp", "type", "payload")


TEXT_ONLY = (
    TextOnly(
        "OpenTelemetry GenAI spans",
        _telemetry,
        "the conventions have no field for token ids",
        _CAPTURE,
    ),
    TextOnly(
        "a Langfuse export",
        _langfuse,
        "an observation keeps the message, not the response, and so drops the token ids",
        _CAPTURE,
    ),
    TextOnly(
        "a Claude Code session",
        _claude_code,
        "the Anthropic API gives no token ids, and the session keeps content blocks only",
        "point ANTHROPIC_BASE_URL at a capture address whose model server gives ids",
    ),
    TextOnly(
        "a Codex rollout",
        _codex,
        "it keeps items of text and encrypted reasoning, no token ids",
        "point the model provider's base_url at a capture address whose model server gives ids",
    ),
)


def text_only(head: Head) -> TextOnly | None:
    """The log of text alone that a file is, if it is one."""
    return next((each for each in TEXT_ONLY if each.recognises(head)), None)
