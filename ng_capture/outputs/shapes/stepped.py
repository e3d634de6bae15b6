"""What `steps` prints and `rebuild --attach-calls` folds into rows (capture-files.md 7, contracts.md 5)."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from ng_capture.outputs.shapes.written import FindingShape, Written

_Payload = dict[str, Any] | None


class ToolUseShape(Written):
    """A tool that was called."""

    call_id: str | None
    name: str | None
    arguments: Any = Field(description='The JSON value of its arguments; {"_raw": text} where they are none.')


class ModelCallShape(Written):
    """One model call with NeMo Gym's names (ModelCallRecord of 0.7.0); unknown is null, never 0."""

    model_call_id: str | None
    response_id: str | None
    client_session_id: str | None
    call_index: int = Field(description="Place of its line among the lines of its file, damaged ones counted; from 0.")
    model_ref: _Payload
    model: str | None
    dialect: str | None
    status_code: int | None
    response_status: str | None
    finish_reason: str | None
    upstream_attempted: bool | None
    response_source: str | None
    upstream_status_code: int | None
    local_response_reason: str | None
    started_at: float | None = Field(description="Unix seconds.")
    completed_at: float | None = Field(description="Unix seconds.")
    tokens_in: int | None = Field(description="The whole prompt, cached tokens counted once.")
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    tool_calls: list[ToolUseShape]
    reasoning_content: str | None
    cache_hit: bool | None
    cached_tokens: int | None = Field(description="Read from the prompt cache.")
    cache_creation_tokens: int | None
    error_category: str | None
    latency_total_ms: float | None
    latency_ttft_ms: float | None


class StepShape(ModelCallShape):
    """A model call of `steps`."""

    request: _Payload = Field(None, description="With --payloads, like the next three.")
    response: _Payload = None
    request_raw: str | None = None
    response_raw: str | None = None
    turn_index: int | None = Field(description="From 0; null where it is not known.")
    file: str
    line: int = Field(description="From 1.")


class GapShape(Written):
    """What is not known of the calls, with NeMo Gym's codes."""

    code: Literal[
        "model_call_capture_no_records",
        "model_call_capture_records_unreadable",
        "model_call_capture_incomplete",
        "model_call_capture_unreadable",
    ]
    detail: str | None = None


class CallMetricsShape(Written):
    """NeMo Gym's sums of what is known, null where nothing is."""

    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    cached_tokens: int | None
    latency_total_ms: float | None
    num_calls: int


class AttachedCalls(Written):
    """`ng_model_call_capture` of a row that `rebuild --attach-calls` writes."""

    rollout_id: str
    metrics: CallMetricsShape
    calls: list[ModelCallShape]
    gaps: list[GapShape] = Field([], description="Absent where there is none.")


class StepTotalsShape(CallMetricsShape):
    """The totals of a rollout's steps."""

    cache_creation_tokens: int | None
    calls_with_partial_usage: int = Field(description="Answered calls whose prompt or answer was not counted.")
    num_turns: int | None = Field(description="Distinct turns; null where no step has one.")
    num_tool_calls: int
    failed_calls: int = Field(description="Calls that were not answered.")
    error_categories: dict[str, int]


class RolloutStepsShape(Written):
    """One line of `steps -f jsonl`: the steps of a rollout in the order of its capture file."""

    rollout_id: str
    directory: str
    metrics: StepTotalsShape
    steps: list[StepShape]
    repeated_lines: int = Field(description="Lines of calls that an earlier line has; counted once.")
    damaged_lines: int = Field(description="Lines that could not be read.")
    gaps: list[GapShape]
    findings: list[FindingShape]


class StepsSummaryShape(Written):
    """Sums over rollouts of what is known."""

    rollouts: int
    with_calls: int
    num_calls: int
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    cached_tokens: int | None
    cache_creation_tokens: int | None
    num_tool_calls: int
    failed_calls: int
    error_categories: dict[str, int]
    repeated_lines: int
    damaged_lines: int


class StepsDocument(Written):
    """`steps -f json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_name: Literal["ng-capture.steps/1"] = Field(alias="schema")
    rollouts: list[RolloutStepsShape]
    summary: StepsSummaryShape
