"""What `ingest` prints of what it read and wrote."""

from typing import Literal

from pydantic import Field

from ng_capture.outputs.shapes.written import FindingShape, Written


class IngestedCallShape(Written):
    """A call and what became of it."""

    call_id: str
    file: str
    line: int
    action: Literal["added", "there", "left_out", "refused"] = Field(
        description="A new record; the record that was there; no record could be made; the rollout took none."
    )
    trainable: bool = Field(description="Judged by itself: whether its chain holds is for verify to say.")
    parent_call_id: str | None
    parent_resolution: Literal["root", "resolved", "unresolved"]
    parent_resolution_reason: Literal[
        "", "no_match", "ambiguous", "lookup_error", "resolver_unavailable", "not_attempted"
    ]
    how: Literal["recorded", "conversation", "presumed", "prefix"] | None = Field(
        description="How the parent was found: told by the source, by the answer that is sent again, presumed where "
        "history was edited, by the tokens alone."
    )
    prompt_tokens: int | None
    generated_tokens: int | None
    origin: str | None = Field(description="The spelling that the tokens were read from.")
    log_probs_kind: Literal["raw", "processed", "same", "unknown"] | None
    problems: list[str]
    missing: list[str] = Field(description="The token fields that a call with partial_tokens lacks.")
    warnings: list[str]


class IngestedRolloutShape(Written):
    """One line of `ingest -f jsonl`."""

    rollout_id: str | None = Field(description="Null for what was wrong with the sources and belongs to no rollout.")
    calls: list[IngestedCallShape]
    findings: list[FindingShape]


class IngestSummaryShape(Written):
    """Counts of a run."""

    rollouts: int
    calls: int
    added: int
    there: int
    left_out: int
    refused: int
    reasons: dict[str, int]


class IngestDocument(Written):
    """`ingest -f json`."""

    schema_: Literal["ng-capture.ingest/1"] = Field(alias="schema")
    findings: list[FindingShape]
    rollouts: list[IngestedRolloutShape]
    summary: IngestSummaryShape
