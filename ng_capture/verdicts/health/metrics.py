"""The metrics of a run: what share of what was sampled reaches the trainer, and why the rest does not."""

import msgspec

from ng_capture.verdicts.health.distribution import Percentiles

Fraction = float | None


class TerminalCounts(msgspec.Struct, frozen=True):
    """Rollouts by the witness that named the scored call, and by the status of its chain."""

    method: dict[str, int]
    chain: dict[str, int]


class HealthMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Over all rollouts of a run; unknown is null, never 0. Gym's names mean what they mean in Gym, summed up.

    What each is, in words, stands in the published shape (`ng-capture schema health-document`) and in the README.
    """

    rollouts: int
    with_calls: int
    with_capture: int
    trainable: int | None
    masked: int | None
    mask_fraction: Fraction
    retired: int
    unread: int
    unexplained: int | None
    running: int | None
    abandoned: int | None
    expected_rollouts: int | None
    missing_rollouts: int | None
    orphan_rollouts: int | None
    missing_captures: tuple[str, ...] | None
    orphan_captures: tuple[str, ...] | None
    reasons: dict[str, int] | None
    findings: dict[str, int] | None
    calls: int | None
    n_calls: int | None
    chains: int | None
    roots: int | None
    quarantined_calls: int | None
    quarantined_fraction: Fraction
    empty_generation_calls: int | None
    unresolved_parent_calls: int | None
    parent_link_failures: dict[str, int] | None
    capture_incomplete: int | None
    terminal_attribution: TerminalCounts | None
    generated_tokens_captured: int | None
    generated_tokens_delivered: int | None
    delivered_fraction: Fraction
    delivered_fraction_mean: Fraction
    generated_tokens_sampled: int | None
    generated_tokens_trained: int | None
    generated_tokens_context: int | None
    generated_tokens_lost: int | None
    trained_fraction: Fraction
    lost_by_reason: dict[str, int] | None
    calls_per_rollout: Percentiles | None
    prompt_lengths: Percentiles | None
    generation_lengths: Percentiles | None
    single_call_rollouts: int | None
    single_call_fraction: Fraction
    tool_rollouts: int | None
    tool_single_call_fraction: Fraction
    zero_logprob_calls: int | None
    length_stopped_calls: int | None
    repeated_lines: int | None
    models: dict[str, int] | None
    raw_calls: int | None
    damaged_lines: int | None
    unidentified_lines: int | None
    error_categories: dict[str, int] | None
    calls_with_partial_usage: int | None
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    cached_tokens: int | None
    cache_creation_tokens: int | None
    latency_total_ms: float | None
    latency_ms: Percentiles | None
    latency_ttft_ms: Percentiles | None
    shared_seed_rollouts: int | None
    sampling: dict[str, dict[str, dict[str, int]]] | None


METRICS = HealthMetrics.__struct_fields__
"""The names of all metrics, in the order in which they are told."""

SUMS_OF_GYM = (
    "n_calls",
    "chains",
    "roots",
    "quarantined_calls",
    "empty_generation_calls",
    "unresolved_parent_calls",
    "generated_tokens_captured",
    "generated_tokens_delivered",
)
"""Those of NeMo Gym's metrics of a rollout that are summed up under their own names."""
