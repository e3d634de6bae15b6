"""Other formats that come under the name of a trajectory: recognised, and refused by name (contracts.md 9.9)."""

from collections.abc import Iterator, Mapping

import msgspec

from ng_capture.records.json_text import decode_exact

_TABLE = """
mini-swe-agent | - | trajectory_format messages
mini-swe-agent | - | info messages
gemini-cli | - | sessionId projectHash messages
SWE-agent | - | trajectory history info
Claude Code session | - | sessionId parentUuid
Codex session | - | timestamp type payload
OpenHands event | - | source action args
OpenHands event | - | source observation content
Harbor trial result | - | trial_name task_name
Inspect log | - | eval samples
LangSmith run | - | run_type inputs
OpenTelemetry spans | - | resourceSpans
Harbor conversation export | harbor | conversations
Gym rollout row | gym | responses_create_params
Gym ng_trajectory | gym | invocations turns model_calls
Gym model-call capture | capture | model_call_id dialect
Gym token record | capture | model_call_id prompt_token_ids
ATOF event | atof | atof_version
verifiers episode | verifiers | env traces
verifiers row | verifiers | prompt completion
OpenAI Responses response | responses | object output
OpenAI Chat Completions response | chat | choices
Anthropic Messages response | messages | role content stop_reason
chat messages | chat | messages
"""


class Foreign(msgspec.Struct, frozen=True):
    """A format that is not ATIF: its name, the contract that reads it, if any, and the keys that tell it."""

    name: str
    contract: str | None
    keys: frozenset[str]

    @property
    def message(self) -> str:
        """What to say of a document of it."""
        hint = "" if self.contract is None else f", which --from {self.contract} reads"
        return f"this is no ATIF trajectory but of another format: {self.name}{hint}"


def _formats() -> Iterator[Foreign]:
    for row in _TABLE.strip().splitlines():
        name, contract, keys = row.split(" | ")
        yield Foreign(name, None if contract == "-" else contract, frozenset(keys.split()))


_FORMATS = tuple(_formats())


def looks_like_atif(value: object) -> bool:
    """True for an object that says that it is ATIF, or has what only an ATIF trajectory has."""
    if not isinstance(value, dict):
        return False
    version = value.get("schema_version")
    return (isinstance(version, str) and version.startswith("ATIF")) or {"agent", "steps"} <= value.keys()


def foreign_format(value: object) -> Foreign | None:
    """The format that a document is of, None for ATIF and for what nobody knows."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, Mapping) or looks_like_atif(value):
        return None
    return next((each for each in _FORMATS if each.keys <= value.keys()), None)


def foreign_lines(data: bytes) -> Foreign | None:
    """The format whose first line is a document of its own, for files that are not one JSON value."""
    first, _, rest = data.lstrip().partition(b"\n")
    try:
        return foreign_format(decode_exact(first)) if rest.strip() else None
    except ValueError:
        return None
