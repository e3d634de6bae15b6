"""The objects of ATIF and their fields (contracts.md 1.1, 1.2): field, kind, need, and the version that added it."""

import msgspec

OLDEST, NEWEST = 0, 8
"""The versions, by what stands behind `ATIF-v1.`."""

SYSTEM_OBSERVATION, PARTS, SOUNDS = 2, 6, 8
"""The versions that let system steps observe, and that added content in parts, and sounds among them."""

LAST_BY_SESSION = 6
"""The last version that wants a session_id, and whose references may name a sub-agent by it alone."""

_PREFIX = "ATIF-v1."

_TABLE = """
trajectory.schema_version | version | required | 0
trajectory.session_id | text | optional | 0
trajectory.trajectory_id | text | optional | 7
trajectory.agent | agent | required | 0
trajectory.steps | steps | required | 0
trajectory.notes | text | optional | 0
trajectory.final_metrics | final_metrics | optional | 0
trajectory.continued_trajectory_ref | text | optional | 0
trajectory.extra | object | optional | 1
trajectory.subagent_trajectories | trajectories | optional | 7
agent.name | text | required | 0
agent.version | text | required | 0
agent.model_name | text | optional | 0
agent.tool_definitions | objects | optional | 5
agent.extra | object | optional | 0
step.step_id | integer | required | 0
step.timestamp | time | optional | 0
step.source | source | required | 0
step.model_name | text | optional | 0
step.reasoning_effort | effort | optional | 0
step.message | content | required | 0
step.reasoning_content | text | optional | 0
step.tool_calls | tool_calls | optional | 0
step.observation | observation | optional | 0
step.metrics | metrics | optional | 0
step.is_copied_context | boolean | optional | 5
step.llm_call_count | count | optional | 7
step.extra | object | optional | 0
tool_call.tool_call_id | text | required | 0
tool_call.function_name | text | required | 0
tool_call.arguments | arguments | required | 0
tool_call.extra | object | optional | 7
observation.results | results | required | 0
result.source_call_id | text | optional | 0
result.content | content | optional | 0
result.subagent_trajectory_ref | references | optional | 0
result.extra | object | optional | 7
reference.trajectory_id | text | optional | 7
reference.trajectory_path | text | optional | 0
reference.session_id | text | optional | 0
reference.extra | object | optional | 0
metrics.prompt_tokens | tally | optional | 0
metrics.completion_tokens | tally | optional | 0
metrics.cached_tokens | tally | optional | 0
metrics.cost_usd | cost | optional | 0
metrics.prompt_token_ids | ids | optional | 4
metrics.completion_token_ids | ids | optional | 3
metrics.logprobs | numbers | optional | 0
metrics.extra | object | optional | 0
final_metrics.total_prompt_tokens | tally | optional | 0
final_metrics.total_completion_tokens | tally | optional | 0
final_metrics.total_cached_tokens | tally | optional | 0
final_metrics.total_cost_usd | cost | optional | 0
final_metrics.total_steps | count | optional | 0
final_metrics.extra | object | optional | 0
part.type | text | required | 0
part.text | text | optional | 0
part.source | object | optional | 0
image_source.media_type | text | required | 0
image_source.path | text | required | 0
audio_source.media_type | text | required | 0
audio_source.path | text | required | 0
audio_source.duration_sec | seconds | optional | 0
"""

AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
"""What only an agent's step has, beside llm_call_count, which other validators let pass elsewhere."""

LISTS = {
    "steps": "step",
    "tool_calls": "tool_call",
    "results": "result",
    "references": "reference",
    "trajectories": "trajectory",
}
"""The kinds that are lists, by what is in them."""

IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
AUDIO_TYPES = frozenset(f"audio/{name}" for name in ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"))
_ALIASES = {
    "mp3": "mpeg",
    "mpga": "mpeg",
    "x-mpeg": "mpeg",
    "x-wav": "wav",
    "wave": "wav",
    "vnd.wave": "wav",
    "x-m4a": "mp4",
    "m4a": "mp4",
    "x-aac": "aac",
    "x-flac": "flac",
    "x-aiff": "aiff",
}


class Field(msgspec.Struct, frozen=True):
    """A field of an object; `since` is the version that added it."""

    name: str
    kind: str
    required: bool
    since: int


def _objects() -> dict[str, dict[str, Field]]:
    objects: dict[str, dict[str, Field]] = {}
    for row in _TABLE.strip().splitlines():
        place, kind, need, since = row.split(" | ")
        owner, name = place.split(".")
        objects.setdefault(owner, {})[name] = Field(name, kind, need == "required", int(since))
    return objects


OBJECTS = _objects()


def version_of(value: object) -> int | None:
    """The version that a `schema_version` names, None where it names none that is known."""
    known = {f"{_PREFIX}{number}": number for number in range(OLDEST, NEWEST + 1)}
    return known.get(value) if isinstance(value, str) else None


def spelled(version: int) -> str:
    """A version as `schema_version` has it."""
    return f"{_PREFIX}{version}"


def audio_type(media_type: str) -> str:
    """The registered spelling of a sound's media type (contracts.md 1.2, last lines)."""
    kind, _, name = media_type.strip().lower().partition("/")
    return f"{kind}/{_ALIASES.get(name, name)}" if kind == "audio" else f"{kind}/{name}"
