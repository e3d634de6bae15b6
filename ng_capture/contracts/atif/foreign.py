"""Other formats that come under the name of a trajectory: recognised, and refused by name (contracts.md 9.9)."""

from collections.abc import Mapping

import msgspec

from ng_capture.records.json_text import decode_exact

_TABLE = """
mini-swe-agent | trajectory_format messages
mini-swe-agent | info messages
gemini-cli | sessionId projectHash messages
SWE-agent | trajectory history info
Claude Code session | sessionId parentUuid
Codex session | timestamp type payload
OpenHands event | source action args
OpenHands event | source observation content
Harbor conversation export | conversations
Harbor trial result | trial_name task_name
Gym rollout row | responses_create_params
Gym ng_trajectory | invocations turns model_calls
Gym model-call capture | model_call_id dialect
Gym token record | model_call_id prompt_token_ids
ATOF event | atof_version
verifiers episode | env traces
verifiers row | prompt completion
OpenAI Responses response | object output
OpenAI Chat Completions response | choices
Anthropic Messages response | role content stop_reason
chat messages | messages
chat message | role content
Inspect log | eval samples
LangSmith run | run_type inputs
OpenTelemetry spans | resourceSpans
"""


class _Format(msgspec.Struct, frozen=True):
    name: str
    keys: frozenset[str]


_FORMATS = tuple(
    _Format(name, frozenset(keys.split())) for name, keys in (row.split(" | ") for row in _TABLE.strip().splitlines())
)


def looks_like_atif(value: object) -> bool:
    """True for an object that says that it is ATIF, or has what only an ATIF trajectory has."""
    if not isinstance(value, dict):
        return False
    version = value.get("schema_version")
    return (isinstance(version, str) and version.startswith("ATIF")) or {"agent", "steps"} <= value.keys()


def foreign_format(value: object) -> str | None:
    """The name of the format that a document is of, None for ATIF and for what nobody knows."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, Mapping) or looks_like_atif(value):
        return None
    return next((each.name for each in _FORMATS if each.keys <= value.keys()), None)


def foreign_lines(data: bytes) -> str | None:
    """The name of the format whose first line is a document of its own, for files that are not one JSON value."""
    first, _, rest = data.lstrip().partition(b"\n")
    try:
        return foreign_format(decode_exact(first)) if rest.strip() else None
    except ValueError:
        return None
