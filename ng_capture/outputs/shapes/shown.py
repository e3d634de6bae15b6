"""What `show` and `explain` print as JSON (design.md, Command line)."""

from typing import Literal

from pydantic import ConfigDict, Field

from ng_capture.outputs.shapes.written import FindingShape, Verdict, Written

_NAMED = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class WindowShape(Written):
    """Ids around the first difference; they begin at `start` of their sequence."""

    start: int
    ids: list[int]
    text: str | None = Field(description="Null without a tokenizer.")


class BreakShape(Written):
    """A call whose prompt does not begin with what its parent held."""

    rollout_id: str
    call: str
    parent: str
    parent_named: bool = Field(description="The record names it; else it is presumed.")
    reason: str
    turn: int = Field(description="The call's number in its rollout, from 0.")
    model: str
    common_len: int = Field(description="How many ids are equal.")
    region: Literal["prompt", "generation"] = Field(description="Whose ids the first difference lies in: the parent's.")
    offset: int = Field(description="Ids into that region.")
    parent_prompt_len: int
    held_len: int
    new_len: int
    held: WindowShape
    new: WindowShape
    held_run: int = Field(description="Held ids that differ.")
    new_run: int = Field(description="Ids in their place.")
    held_meets: int | None = Field(description="From here on both go on alike; null where they do not.")
    new_meets: int | None
    texts_equal: bool | None = Field(description="Of the differing runs; null without a tokenizer.")
    fits: str | None = Field(description="Another call whose whole sequence the prompt begins with.")
    cause: str
    group: str
    confidence: Literal["likely", "open"]
    meaning: str
    remedy: str
    tokens_lost: dict[str, int] = Field(description="Trained tokens that this break alone costs, by policy.")


class UnlinkedShape(Written):
    """A call whose link failed although no prefix is broken."""

    call: str
    reason: str
    fits: str | None = Field(description="The call with whose whole sequence its prompt begins.")
    fits_len: int | None


class ExplainedRollout(Written):
    """`explain PATH ROLLOUT --json`."""

    model_config = _NAMED

    schema_name: Literal["ng-capture.explain/1"] = Field(alias="schema")
    rollout_id: str
    verdict: Verdict
    reasons: list[str]
    calls: int
    chains: int
    raw_only: bool = Field(description="The records were made of raw calls that are not ingested.")
    findings: list[FindingShape]
    breaks: list[BreakShape]
    unlinked: list[UnlinkedShape]


class CauseShape(Written):
    """The breaks of one cause."""

    cause: str
    group: str
    breaks: int
    likely: int
    rollouts: int
    tokens_lost: dict[str, int]
    example: str
    example_call: str
    remedy: str


class BreakSummaryShape(Written):
    """The breaks of a directory."""

    rollouts: int
    masked: int
    breaks: int
    by_cause: list[CauseShape]
    by_turn: dict[str, int]
    by_model: dict[str, int]


class ExplainedDirectory(Written):
    """`explain PATH --json`."""

    model_config = _NAMED

    schema_name: Literal["ng-capture.explain/1"] = Field(alias="schema")
    breaks: list[BreakShape]
    summary: BreakSummaryShape


class FeatureShape(Written):
    """One feature of a chat template."""

    name: str
    status: Literal["kept", "broken", "refused"]
    turn: int | None
    at: int | None = Field(description="The character of the first difference.")
    held: str | None
    new: str | None
    note: str | None


class ExplainedTemplate(Written):
    """`explain --template PLACE --json`."""

    model_config = _NAMED

    schema_name: Literal["ng-capture.template/1"] = Field(alias="schema")
    place: str
    keeps_prefixes: bool
    features: list[FeatureShape]


class RolloutLineShape(Written):
    """One rollout of a list."""

    rollout_id: str
    verdict: Verdict
    reasons: list[str]
    calls: int
    chains: int
    tokens: int
    trained: int
    reward: float | None
    models: list[str]
    raw_only: bool


class ShownList(Written):
    """`show PATH --json`."""

    model_config = _NAMED

    schema_name: Literal["ng-capture.show-list/1"] = Field(alias="schema")
    rollouts: list[RolloutLineShape]


class CallLineShape(Written):
    """One call of a tree."""

    number: int
    call: str
    chain: str
    mark: Literal["trained", "context", "retry", "left_out"]
    prompt: int | None
    new: int | None = Field(description="Tokens behind the parent's sequence; null where the link does not hold.")
    generated: int
    stop: str | None
    what: str | None
    note: str | None


class ShownRolloutTree(Written):
    """`show PATH ROLLOUT --json`."""

    model_config = _NAMED

    schema_name: Literal["ng-capture.show-rollout/1"] = Field(alias="schema")
    rollout_id: str
    verdict: Verdict
    reasons: list[str]
    calls: int
    chains: int
    reward: float | None
    models: list[str]
    raw_only: bool
    lines: list[CallLineShape]


class ToolCallShape(Written):
    """A tool that the model calls."""

    call_id: str
    name: str
    arguments: str


class MessageShape(Written):
    """One turn of a conversation (`show PATH ROLLOUT --text --json` prints one a line)."""

    role: str
    text: str
    reasoning: str
    tool_calls: list[ToolCallShape]
    call_id: str


class TokenSpanShape(Written):
    """Tokens of one kind (`show PATH ROLLOUT --tokens --json` prints one a line)."""

    row: int
    call: str
    kind: Literal["prompt", "interstitial", "trained", "context"]
    start: int
    ids: list[int]


class ShownCall(Written):
    """`show PATH ROLLOUT --call ID --json`."""

    model_config = _NAMED

    schema_name: Literal["ng-capture.show-call/1"] = Field(alias="schema")
    rollout_id: str
    call: str
    file: str
    line: int
    model: str
    response_id: str | None
    created_at: float
    parent: str | None
    parent_named: str | None
    parent_resolution: str | None
    weight_version: int | str | None
    stop: str | None
    prompt_token_ids: list[int] | None
    generation_token_ids: list[int] | None
    generation_log_probs: list[float] | None
    asked: list[MessageShape] | None
    answer: MessageShape | None
    findings: list[FindingShape]
