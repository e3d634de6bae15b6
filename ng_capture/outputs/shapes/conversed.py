"""The published shapes of rows of text: `rebuild --to messages` and `--to pairs`."""

from typing import Literal

from pydantic import Field

from ng_capture.outputs.shapes.written import Written


class CalledFunctionShape(Written):
    """The function that is called."""

    name: str
    arguments: str = Field(description="JSON text as the model spelled it.")


class ChatToolCallShape(Written):
    """A tool that the model calls."""

    id: str
    type: Literal["function"]
    function: CalledFunctionShape


class ChatMessageShape(Written):
    """One turn; what does not apply is absent."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    reasoning_content: str | None = None
    tool_calls: list[ChatToolCallShape] | None = None
    tool_call_id: str | None = None


class WeightedMessageShape(ChatMessageShape):
    """One turn of a row of messages."""

    weight: Literal[0, 1] | None = Field(
        None, description="Only of the assistant: 1 where the policy is trained on it."
    )


class RowOfMessages(Written):
    """One row of `rebuild --to messages`: the conversation of a delivered chain."""

    messages: list[WeightedMessageShape]
    tools: str | None = Field(description="JSON text of the tools that the last request offered.")
    rollout_id: str
    group_id: str | None
    reward: float | None
    trajectory_index: int
    n_trajectories: int
    row_weight: float = Field(description="Share of the rollout's trained tokens.")
    call_id: str = Field(description="The call whose request and answer these are.")


class PreferencePair(Written):
    """One row of `rebuild --to pairs`: the best and the worst verified rollout of a group."""

    prompt: list[ChatMessageShape] = Field(description="What was asked before the first answer, the same of both.")
    chosen: list[ChatMessageShape]
    rejected: list[ChatMessageShape]
    tools: str | None = Field(description="JSON text of the tools that both were offered.")
    chosen_reward: float
    rejected_reward: float
    group_id: str
    chosen_rollout_id: str
    rejected_rollout_id: str
