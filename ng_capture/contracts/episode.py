"""The one form that every contract is read into and written from (contracts.md 3.3)."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from ng_capture.contracts.losses import Loss
from ng_capture.records.json_text import decode_exact
from ng_capture.records.usage import UNKNOWN_USAGE, Usage

Json = Mapping[str, object]
"""A decoded JSON object that is passed on as it stands."""


class Role(StrEnum):
    """Who speaks in a turn; a developer's turn is told apart from a system's until a contract has no place for it.

    An event is what a runtime noted beside the conversation, which no model read: a system step in ATIF, and in no
    request or training text (loss `mark_dropped`; contracts.md 3.7).
    """

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    EVENT = "event"


class Text(msgspec.Struct, frozen=True, tag="text"):
    """A part of plain text."""

    text: str


class Media(msgspec.Struct, frozen=True, tag="media"):
    """An image or a sound: `source` is a path, an address or a data URL; seconds where a sound's length is known."""

    kind: str
    source: str
    media_type: str | None = None
    duration: float | None = None


class Opaque(msgspec.Struct, frozen=True, tag="opaque"):
    """A part that has no place of its own: the JSON of its contract, whole."""

    kind: str
    value: Json


Part = Text | Media | Opaque
Content = str | tuple[Part, ...]
"""What is said: a plain text, or parts; the two are never exchanged, since trainers render them differently."""


class Thought(msgspec.Struct, frozen=True):
    """One reasoning item or thinking block.

    `summary` and `content` are its texts in order; `encrypted` what only the provider reads, `signature` the proof that
    Messages wants back, `redacted` that the provider hid the text. `item` is the item as it stood, without its texts.
    """

    summary: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    encrypted: str | None = None
    signature: str | None = None
    redacted: bool = False
    item: Json | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """What can be read: the content where there is one, else the summary (contracts.md 3.4, 3)."""
        return self.content or self.summary


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the model called.

    `arguments` is the text that the model wrote, whatever it is; `kind` is `function`, or the item type of another kind
    of call. `item` is the item as it stood, without name, id and arguments; `extra` what an ATIF document adds.
    """

    call_id: str | None
    name: str
    arguments: str
    kind: str = "function"
    item: Json | None = None
    extra: Json | None = None

    @property
    def value(self) -> object:
        """The arguments decoded, numbers kept exactly; raises ValueError where they are no JSON."""
        return decode_exact(self.arguments.encode("utf-8", "surrogatepass"))


class SubagentRef(msgspec.Struct, frozen=True):
    """Where the trajectory of a sub-agent is: in this document by id, or in a file."""

    trajectory_id: str | None = None
    path: str | None = None
    session_id: str | None = None
    extra: Json | None = None


class ToolResult(msgspec.Struct, frozen=True):
    """What came back for a call; `call_id` is None where the contract does not say for which."""

    call_id: str | None
    content: Content | None
    is_error: bool | None = None
    subagents: tuple[SubagentRef, ...] = ()
    item: Json | None = None
    extra: Json | None = None


class Tokens(msgspec.Struct, frozen=True):
    """The exact ids of a call, as they stand in the contract; what it does not hold is None, nothing is filled in."""

    prompt_ids: Sequence[int] | None = None
    completion_ids: Sequence[int] | None = None
    log_probs: Sequence[float] | None = None
    routed_experts: object | None = None

    @property
    def complete(self) -> bool:
        """True where all three are there and every generated token has its log probability."""
        return (
            self.prompt_ids is not None
            and bool(self.completion_ids)
            and self.log_probs is not None
            and self.completion_ids is not None
            and len(self.completion_ids) == len(self.log_probs)
        )


class ModelCall(msgspec.Struct, frozen=True):
    """What is known of the call that made a turn. Times in seconds since 1970, latencies in milliseconds.

    `index` is the call's place among those of its rollout, from 0. `usage` counts cached tokens among the prompt's,
    once (contracts.md 9.7); `usage_extra` holds the counts that have no name of ours. `record` holds the fields of the
    call's token record other than its tokens. `error_category` says why there was no good answer (5.2).
    """

    call_id: str | None = None
    index: int | None = None
    response_id: str | None = None
    model: str | None = None
    server: str | None = None
    dialect: str | None = None
    finish_reason: str | None = None
    status_code: int | None = None
    error_category: str | None = None
    started_at: float | None = None
    completed_at: float | None = None
    latency_ms: float | None = None
    latency_ttft_ms: float | None = None
    usage: Usage = UNKNOWN_USAGE
    usage_extra: Json | None = None
    cost_usd: float | None = None
    tokens: Tokens | None = None
    record: Json | None = None


class Turn(msgspec.Struct, frozen=True):
    """What one side said at once: for the model its thoughts, words and calls, with the results that came back.

    `content` is None where nothing was said, "" where an empty message was. `copied` tells that the turn is history
    that another call made: never output, never counted. `model_calls` is how many calls made the turn, None where
    nobody knows. `timestamp` is as the contract spells it. `item` is the message item as it stood, without its texts.
    `place` is a JSON pointer into the source.
    """

    role: Role
    content: Content | None = None
    thoughts: tuple[Thought, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    call: ModelCall | None = None
    copied: bool = False
    model_calls: int | None = None
    timestamp: str | None = None
    reasoning_effort: str | float | None = None
    item: Json | None = None
    extra: Json | None = None
    place: str = ""

    @property
    def fresh(self) -> bool:
        """True for what the model of this episode wrote in it."""
        return self.role == Role.ASSISTANT and not self.copied


class Tool(msgspec.Struct, frozen=True):
    """A tool that was offered: `value` as the dialect spells it; `function` is false for one that the server runs."""

    name: str | None
    value: Json
    dialect: str
    function: bool = True


class Agent(msgspec.Struct, frozen=True):
    """Who acted; unknown is None."""

    name: str | None = None
    version: str | None = None
    model: str | None = None
    tools: tuple[Tool, ...] | None = None
    extra: Json | None = None


class Totals(msgspec.Struct, frozen=True):
    """Sums as the contract gives them: they may count sub-agents, and calls that no turn shows."""

    usage: Usage = UNKNOWN_USAGE
    cost_usd: float | None = None
    steps: int | None = None
    extra: Json | None = None


class Thread(msgspec.Struct, frozen=True):
    """One agent's turns, root to end, and the threads of the agents that it called.

    `trajectory_id` names the document, `session_id` the run (two threads may share it). `continued` names the file that
    goes on.
    """

    turns: tuple[Turn, ...]
    agent: Agent = Agent()
    trajectory_id: str | None = None
    session_id: str | None = None
    totals: Totals | None = None
    notes: str | None = None
    continued: str | None = None
    subagents: tuple["Thread", ...] = ()
    extra: Json | None = None


class Episode(msgspec.Struct, frozen=True):
    """One rollout in no contract's words.

    `request` holds the parameters of the first request other than its turns and tools; `response` what a Responses
    envelope says besides its output, usage and model; `row` the other fields of a finished row, reward among them.
    `truncated` tells that the rollout was stopped before its end. `version` is the contract's, as the document names
    it. `blanks` are members of the document that say nothing (null, nothing in them, false) by JSON pointer, for who
    writes the same contract again. `losses` are those of reading it, for a document that tells of its own conversion.
    `omitted` are the answers of calls that make no step: failed, or made again.
    """

    contract: str
    main: Thread
    rollout_id: str | None = None
    reward: float | None = None
    request: Json | None = None
    response: Json | None = None
    row: Json | None = None
    truncated: bool | None = None
    version: str | None = None
    blanks: Json | None = None
    losses: tuple[Loss, ...] = ()
    omitted: tuple[Turn, ...] = ()
