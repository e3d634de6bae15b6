"""What is read: the files of a capture directory and finished rows (capture-files.md 1, 2, 7)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

TokenId = int
_KEEPS_UNKNOWN = ConfigDict(extra="allow", frozen=True)


class TokenLine(BaseModel):
    """One line of `<rollout id>.tokens.jsonl`: a captured call with its exact ids and log probabilities."""

    model_config = _KEEPS_UNKNOWN

    schema_version: Literal[1] = 1
    rollout_id: str
    model_call_id: str = Field(description="Unique in the rollout.")
    model: str = ""
    prompt_token_ids: list[TokenId] = Field(
        description="The whole prompt, or what follows the parent's sequence where prompt_is_delta. 0 to 2^31 - 1."
    )
    generation_token_ids: list[TokenId] = Field(description="What the policy sampled. 0 to 2^31 - 1.")
    generation_log_probs: list[float] = Field(description="One per generated token, natural logarithm, at most 1e-6.")
    routed_experts: str | list[list[list[int]]] | None = Field(
        None, description="`nrlre1:<dtype>:<TxLxK>:<base64>` or nested lists: one row per token."
    )
    output_items: list[dict[str, Any]] = Field(default=[], description="The response's items, token fields removed.")
    token_item_index: int | None = Field(None, description="The item that carried the arrays.")
    response_id: str | None = None
    created_at: float = Field(0.0, description="Unix seconds when the response was complete.")
    parent_call_id: str | None = None
    cum_len: int | None = Field(None, description="Length of full prompt and generation.")
    digest: str | None = Field(None, description="Digest of full prompt and generation (SHA-256, lowercase hex).")
    parent_resolution: Literal["root", "resolved", "unresolved"] | None = None
    parent_resolution_reason: str = ""
    continuation_fingerprint: str = ""
    continuation_context_len: int = 0
    continuation_context_digest: str = ""
    fingerprint_version: int | None = None
    prompt_is_delta: bool = False
    prefix_requested: bool = False
    prefix_supplied: bool = False
    weight_version: int | str | None = Field(None, description="The weights that sampled the generation.")


class StoreStateFile(BaseModel):
    """`<rollout id>.tokens.state.json`: the life of a rollout's capture."""

    model_config = _KEEPS_UNKNOWN

    frozen: bool = False
    retired: bool = False
    incomplete: bool = False
    snapshot_id: str = ""
    version: int = 0
    entry_digests: dict[str, str] = Field(default={}, description="Model-call id -> SHA-256 of its line.")
    indexed_size: int = Field(0, description="Bytes of the records that entry_digests covers.")


class RawCallLine(BaseModel):
    """One line of `<rollout id>.capture.jsonl`: a whole request and response."""

    model_config = _KEEPS_UNKNOWN

    model_call_id: str
    dialect: Literal["responses", "chat", "messages"] | None = None
    model_ref: dict[str, Any] | None = None
    started_at: float | None = Field(None, description="Unix seconds.")
    completed_at: float | None = Field(None, description="Unix seconds.")
    latency_ms: float | None = None
    latency_ttft_ms: float | None = None
    status_code: int | None = None
    error_category: str | None = None
    request: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    request_raw: str | None = None
    response_raw: str | None = None


class FinishedRow(BaseModel):
    """One finished rollout as a harness leaves it (`--rollouts`); every other key is passed on untouched."""

    model_config = ConfigDict(extra="allow", frozen=True, populate_by_name=True)

    ng_rollout_id: str | None = Field(None, alias="_ng_rollout_id")
    ng_task_index: int | str | None = Field(None, alias="_ng_task_index")
    ng_rollout_index: int | str | None = Field(None, alias="_ng_rollout_index")
    ng_attempt_index: int | None = Field(None, alias="_ng_attempt_index")
    ng_terminal_model_call_id: str | None = Field(
        None, alias="_ng_terminal_model_call_id", description="The call that was scored."
    )
    terminal_response_id: str | None = Field(None, description="The response id that was scored.")
    reward: float | None = None
    response: dict[str, Any] | None = Field(None, description="The scored response (OpenAI Responses).")
