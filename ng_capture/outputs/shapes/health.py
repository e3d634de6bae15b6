"""The health document (design.md, Command line)."""

from typing import Literal

from pydantic import ConfigDict, Field

from ng_capture.outputs.shapes.written import Written


class PercentilesShape(Written):
    """Nearest-rank percentiles: each is a value that occurred."""

    p50: int
    p95: int
    max: int


class TerminalCountsShape(Written):
    """Rollouts by the witness that named the scored call, and by the status of its chain (NeMo Gym's strings)."""

    method: dict[str, int]
    chain: dict[str, int]


class HealthMetricsShape(Written):
    """Over all rollouts of a run; unknown is null, never 0."""

    rollouts: int = Field(description="Rollouts captured, asked for, or with a finished row.")
    with_calls: int = Field(description="Rollouts with at least one captured call.")
    with_capture: int = Field(description="Rollouts with a captured call, or with a line of one that cannot be read.")
    trainable: int | None = Field(description="Rollouts that a trainer may trust.")
    masked: int | None = Field(description="Rollouts that must not be trained.")
    mask_fraction: float | None = Field(description="masked / (trainable + masked).")
    retired: int = Field(description="Rollouts whose payload was handed off and dropped; neither trainable nor masked.")
    unread: int = Field(description="Rollouts whose files the machine could not read.")
    unexplained: int | None = Field(description="Masked rollouts whose source does not tell why.")
    running: int | None = Field(description="Masked rollouts that end in an open call and are still being written.")
    abandoned: int | None = Field(
        description="Masked rollouts that end in an open call and were left an hour ago or more."
    )
    expected_rollouts: int | None = Field(description="Rollouts asked for (--expect, --expect-rollouts).")
    missing_rollouts: int | None = Field(description="Of those, rollouts without a capture.")
    orphan_rollouts: int | None = Field(description="Captured rollouts that nobody asked for.")
    missing_captures: list[str] | None = Field(
        description="Ids of the missing rollouts; null where only a number was given."
    )
    orphan_captures: list[str] | None = Field(description="Ids of the orphans; null where only a number was given.")
    reasons: dict[str, int] | None = Field(description="Masked rollouts by reason; one rollout may have several.")
    findings: dict[str, int] | None = Field(description="Rollouts by error or warning, whether it masks or not.")
    calls: int | None = Field(description="Distinct calls with a token record or a raw call.")
    n_calls: int | None = Field(description="Token records, repeated ones included (NeMo Gym's n_calls).")
    chains: int | None = Field(description="Chains of calls that extend one another.")
    roots: int | None = Field(description="First calls of chains.")
    quarantined_calls: int | None = Field(description="Answers that were asked for again and not kept.")
    quarantined_fraction: float | None = Field(description="quarantined_calls / n_calls.")
    empty_generation_calls: int | None = Field(description="Calls that generated nothing.")
    unresolved_parent_calls: int | None = Field(description="Calls that are not joined to what came before them.")
    parent_link_failures: dict[str, int] | None = Field(description="Links that failed, by NeMo Gym's strings.")
    capture_incomplete: int | None = Field(description="Rollouts that are marked incomplete or lack an announced call.")
    terminal_attribution: TerminalCountsShape | None = Field(description="How the scored call was found.")
    generated_tokens_captured: int | None = Field(description="Generated tokens in chains (NeMo Gym's sum).")
    generated_tokens_delivered: int | None = Field(description="Of those, tokens of main chains, masked or not.")
    delivered_fraction: float | None = Field(description="generated_tokens_delivered / generated_tokens_captured.")
    delivered_fraction_mean: float | None = Field(description="Mean of the rollouts' own delivered_fraction.")
    generated_tokens_sampled: int | None = Field(
        description="Generated tokens of all distinct calls: trained + context + lost."
    )
    generated_tokens_trained: int | None = Field(description="Tokens that carry loss under the policy.")
    generated_tokens_context: int | None = Field(description="Tokens that stand in a row without loss.")
    generated_tokens_lost: int | None = Field(description="Tokens that stand in no row.")
    trained_fraction: float | None = Field(description="generated_tokens_trained / generated_tokens_sampled.")
    lost_by_reason: dict[str, int] | None = Field(description="Lost tokens by reason.")
    calls_per_rollout: PercentilesShape | None = Field(description="Calls of a rollout.")
    prompt_lengths: PercentilesShape | None = Field(description="Tokens of a call's whole prompt.")
    generation_lengths: PercentilesShape | None = Field(description="Tokens of a call's generation.")
    single_call_rollouts: int | None = Field(description="Rollouts with exactly one call.")
    single_call_fraction: float | None = Field(description="single_call_rollouts / with_calls.")
    tool_rollouts: int | None = Field(description="Rollouts that were offered tools; null where no request is known.")
    tool_single_call_fraction: float | None = Field(description="Share of tool_rollouts with exactly one call.")
    zero_logprob_calls: int | None = Field(description="Calls whose log probabilities are nothing but 0.0.")
    length_stopped_calls: int | None = Field(description="Calls that stopped at their limit; null without raw calls.")
    repeated_lines: int | None = Field(description="Lines that repeat a call that was counted already.")
    models: dict[str, int] | None = Field(description="Calls by model.")
    raw_calls: int | None = Field(description="Distinct calls in .capture.jsonl; null where there is none.")
    damaged_lines: int | None = Field(description="Lines of .capture.jsonl that cannot be read.")
    unidentified_lines: int | None = Field(description="Lines of .capture.jsonl that name no call.")
    error_categories: dict[str, int] | None = Field(description="Raw calls without a good answer, by category.")
    calls_with_partial_usage: int | None = Field(
        description="Answered raw calls whose prompt or answer was not counted."
    )
    tokens_in: int | None = Field(description="Prompt tokens as the server counts them, cached ones included once.")
    tokens_out: int | None = Field(description="Generated tokens as the server counts them.")
    tokens_reasoning: int | None = Field(description="Reasoning tokens, a part of tokens_out.")
    tokens_total: int | None = Field(description="As reported, else in + out of each call.")
    cached_tokens: int | None = Field(description="Prompt tokens read from the cache, a part of tokens_in.")
    cache_creation_tokens: int | None = Field(description="Prompt tokens written to the cache, a part of tokens_in.")
    latency_total_ms: float | None = Field(description="Sum of the known latencies.")
    latency_ms: PercentilesShape | None = Field(description="Latency of a raw call, in whole milliseconds.")
    latency_ttft_ms: PercentilesShape | None = Field(description="Time to the first token, in whole milliseconds.")
    shared_seed_rollouts: int | None = Field(
        description="Rollouts with a seed that another has, too; null among many seeds."
    )
    sampling: dict[str, dict[str, dict[str, int]]] | None = Field(
        description="Requests by model, sampling parameter and value; unset where a request left it open."
    )


DESCRIPTIONS = {name: field.description or "" for name, field in HealthMetricsShape.model_fields.items()}
"""What every metric is, in words."""


class CheckShape(Written):
    """What came of a gate or check."""

    name: str
    status: Literal["passed", "failed", "not_judged"]
    message: str
    bound: Literal["min", "max", "max_drop"] | None
    value: float | None
    limit: float | None
    baseline: float | None
    rollouts: list[str]


class NoticeShape(Written):
    """A metric with a value that a healthy run does not have."""

    metric: str
    value: float | None
    means: str
    look_at: str


class ExampleShape(Written):
    """A rollout that shows something, and where to look."""

    rollout_id: str
    directory: str | None = None
    file: str | None = None
    line: int | None = None
    message: str | None = None


class PartShape(Written):
    """The metrics of one model, task, attempt or group; key is null where a rollout names none."""

    key: str | None
    metrics: HealthMetricsShape


class BreakdownShape(Written):
    """The parts of a run."""

    by: Literal["model", "task", "attempt", "group"]
    parts: list[PartShape]


class HealthFile(Written):
    """`health -f json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_name: Literal["ng-capture.health/1"] = Field(alias="schema")
    tool_version: str
    paths: list[str]
    metrics: HealthMetricsShape
    checks: list[CheckShape]
    failed_checks: list[str]
    notices: list[NoticeShape]
    examples: dict[str, list[ExampleShape]]
    breakdown: BreakdownShape | None
