"""What is written: verdicts, rebuilt rows, training rows, receipts (design.md, Command line)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Verdict = Literal["trainable", "masked"]


class Written(BaseModel):
    """Something that is written whole: no other keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FindingShape(Written):
    """One fault: a name of the registry, its place, its numbers. What does not apply is left out."""

    reason: str
    severity: Literal["error", "warning", "info"]
    message: str
    file: str | None = None
    line: int | None = Field(None, description="From 1.")
    lines: list[int] | None = None
    byte: int | None = Field(None, description="Where the line begins in the uncompressed stream.")
    call: str | None = None
    calls: list[str] | None = None
    parent: str | None = None
    position: int | None = None
    first_difference: int | None = Field(None, description="Index into the parent's sequence.")
    expected: int | str | None = None
    found: int | float | str | None = None
    tokens: int | None = None
    logprobs: int | None = None
    choices: int | None = None
    usage: int | None = None
    ids: int | None = None
    count: int | None = None
    detail: str | None = None


class TerminalShape(Written):
    """Who was scored, with NeMo Gym's strings."""

    method: Literal["explicit", "declared", "response_id", "content_cumulative", "content_output", "item_ids", "none"]
    call_id: str | None
    reason: str
    chain: Literal["", "delivered", "broken", "not_captured", "error"]


class MetricsShape(Written):
    """NeMo Gym's metrics; a rollout without a chain has only the first two."""

    n_calls: int
    terminal_attribution: TerminalShape | None = None
    chains: int | None = None
    roots: int | None = None
    quarantined_calls: int | None = None
    quarantined_fraction: float | None = None
    delivered_fraction: float | None = None
    generated_tokens_captured: int | None = None
    generated_tokens_delivered: int | None = None
    parent_link_failures: dict[str, int] | None = None
    unresolved_parent_calls: int | None = None
    empty_generation_calls: int | None = None
    capture_incomplete: bool = False
    error: str | None = Field(None, description="Why there is no rebuilt response (rebuilt rows only).")


class ChainShape(Written):
    """Calls that extend one another token for token."""

    chain_id: str
    calls: list[str]


class AccountingShape(Written):
    """Generated tokens: trained + context + lost = captured."""

    captured: int
    trained: int
    context: int
    lost: dict[str, int]


class PlaceShape(Written):
    """Where a rollout stands in its run; the first attempt is 0."""

    task: str | None
    group: str | None
    attempt: int


class UsageShape(Written):
    """Sums of what the server reports, null where nothing does."""

    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    cached_tokens: int | None
    cache_creation_tokens: int | None


class SamplingShape(Written):
    """How many requests to a model asked for a value of a sampling parameter; null where they left it open."""

    model: str
    parameter: str
    value: str | None
    calls: int


class RawMeasuresShape(Written):
    """The raw calls of a rollout, each call id counted once; latencies in milliseconds."""

    calls: int
    repeated_lines: int
    damaged_lines: int
    unidentified_lines: int
    length_stopped_calls: int
    usage: UsageShape
    calls_with_partial_usage: int
    latencies: list[float]
    ttfts: list[float]
    error_categories: dict[str, int]
    sampling: list[SamplingShape]


class MeasuresShape(Written):
    """What health counts of a rollout beside its verdict."""

    place: PlaceShape
    calls: int = Field(description="Distinct calls with a token record or a raw call.")
    models: dict[str, int]
    prompt_lengths: list[int]
    generation_lengths: list[int]
    zero_logprob_calls: int
    repeated_lines: int
    tools: bool | None = Field(description="Some request, or the finished row, offered tools; null where not known.")
    unfinished: bool = Field(description="A call was announced or its line begun, and nothing says that it ended.")
    raw: RawMeasuresShape | None


class RolloutVerdict(Written):
    """One line of `verify -f jsonl`."""

    rollout_id: str
    directory: str | None
    verdict: Verdict
    reasons: list[str]
    deviation: str | None = Field(description="Why the verdict is not NeMo Gym 0.7.0's; null where it is.")
    findings: list[FindingShape]
    notes: list[str]
    metrics: MetricsShape
    terminal: TerminalShape | None
    chains: list[ChainShape]
    parents: dict[str, str | None]
    chain_verifies: bool
    quarantined: list[str]
    unresolved_parent_calls: list[str]
    empty_generation_calls: list[str]
    failed_calls: list[str]
    lost_calls: list[str]
    unidentified_marks: int
    delivered_calls: list[str]
    left_out_calls: list[str]
    truncated_calls: list[str] | None
    weight_versions: list[int | str]
    calls_read: int
    repeated_lines: int
    accounting: AccountingShape
    measures: MeasuresShape


class SummaryShape(Written):
    """Counts over rollouts; a retired one is neither trainable nor masked."""

    rollouts: int
    calls: int
    trainable: int
    masked: int
    retired: int
    reasons: dict[str, int]


class VerifyDocument(Written):
    """`verify -f json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_name: Literal["ng-capture.verify/1"] = Field(alias="schema")
    rollouts: list[RolloutVerdict]
    summary: SummaryShape


class RebuiltRow(BaseModel):
    """One row of `rebuild --to rollouts`: the finished row with its response rebuilt."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    response: dict[str, Any] | None = None
    ng_token_capture: MetricsShape | None = Field(None, alias="_ng_token_capture")
    ng_model_call_capture: dict[str, Any] | None = Field(None, description="With --attach-calls: attached-calls.")
    mask_sample: bool = False


class SpanShape(Written):
    """Tokens start..end of a row, and the call that they come from."""

    call_id: str
    kind: Literal["prompt", "gen"]
    start: int
    end: int
    call_offset: int
    weight_version: int | str | None
    model: str


class SourceShape(Written):
    """A file that a row was made of."""

    name: str
    sha256: str | None


class RowOfChain(Written):
    """One row of `rebuild --to rows`: tokens, loss_mask and logprobs of equal length, unshifted."""

    rollout_id: str
    group_id: str | None
    trajectory_index: int
    n_trajectories: int
    role: Literal["main", "branch", "root"]
    reward: float | None
    advantage: float | None
    calls: list[str]
    spans: list[SpanShape]
    policy: Literal["strict", "terminal", "all"]
    rollout_trainable_tokens: int
    row_weight: float = Field(description="Share of the rollout's trained tokens.")
    truncated: bool | None = Field(description="The last generation stopped at its limit; null where unknown.")
    finish_reasons: list[str | None]
    terminal: str | None = Field(description="The call that was scored.")
    accounting: AccountingShape
    sources: list[SourceShape]
    tool_version: str
    tokens: list[int]
    loss_mask: list[Literal[0, 1]]
    logprobs: list[float] = Field(description="0.0 where the mask is 0.")
    routed_experts: list[list[list[int]] | None] | None


class InputFileShape(Written):
    """A file as it was read."""

    name: str
    size: int
    sha256: str | None


class ExportShape(Written):
    """What was chosen about training rows."""

    max_length: int | None
    on_overflow: Literal["drop", "cut-turn", "cut", "fail"]
    mask_truncated: bool
    min_trainable: int
    reward: Literal["full", "share", "last"]
    reward_field: str | None
    group_by: str | None
    advantage: Literal["none", "grpo", "loo", "mean-centred"]
    weight: Literal["rollout", "token"]
    min_gap: float | None = None


class DivisionShape(Written):
    """How the output was divided."""

    val: float | None = Field(description="Share of the groups in the validation half.")
    shard_size: int | None = Field(description="Rows in a file; more where one rollout alone has more.")


class PartShape(Written):
    """Which of the files this is."""

    division: DivisionShape
    half: Literal["train", "val"] | None
    shard: int | None = Field(description="From 0.")


class ReceiptOptionsShape(Written):
    """The options that decide what is in the output."""

    to: Literal[
        "rollouts",
        "rows",
        "gym-response",
        "messages",
        "pairs",
        "hf-labels",
        "llamafactory",
        "tinker",
        "trl-grpo",
        "skyrl-sft",
        "skyrl",
        "verl",
        "slime",
        "prime-rl",
    ]
    policy: Literal["strict", "terminal", "all"]
    policy_model: str | None
    infer_links: bool
    masked: Literal["keep", "drop"]
    rollouts: InputFileShape | None
    attach_calls: bool = Field(False, description="Told only where it is so.")
    export: ExportShape | None = Field(None, description="Told only where something about rows was chosen.")
    part: PartShape | None = Field(None, description="Told only where the output is one of several files.")


class ReceiptRolloutShape(Written):
    """One rollout of a receipt; gc may delete only what is covered."""

    rollout_id: str
    directory: str | None
    files: list[InputFileShape]
    verdict: Verdict
    reasons: list[str]
    findings: list[FindingShape]
    rows: list[int]
    covered: bool
    snapshot_id: str | None
    version: int | None
    metrics: MetricsShape
    accounting: AccountingShape
    measures: MeasuresShape


class ReceiptOutputShape(Written):
    """The output file as it was written; of a directory its data file."""

    name: str
    size: int
    rows: int
    sha256: str


class ReceiptFile(Written):
    """`OUT.receipt.json`."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    schema_name: Literal["ng-capture.receipt/1"] = Field(alias="schema")
    tool_version: str
    options: ReceiptOptionsShape
    rollouts: list[ReceiptRolloutShape]
    output: ReceiptOutputShape
