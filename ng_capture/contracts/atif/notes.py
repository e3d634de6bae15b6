"""What ng-capture adds to an ATIF document, under `extra.ng_capture`: all that the document has no field for."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ng_capture.contracts.episode import Json, Thought

KEY = "ng_capture"
ARRAYS = "token_arrays"
METRICS = "metrics"
"""The metrics of a copied step, which has none, so that nobody counts or trains on them twice (contracts.md 3.4, 1)."""
Number = int | float
Object = dict[str, Any]


class PartNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a content whose place a placeholder holds: an image, a sound, or the JSON of a part of another kind."""

    index: int
    kind: str
    source: str | None = None
    media_type: str | None = None
    duration: Number | None = None
    value: Object | None = None


class ReasoningNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One piece of reasoning; a single text is not repeated here, `form` tells which of the two it was."""

    summary: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    form: str | None = None
    encrypted: str | None = None
    signature: str | None = None
    redacted: bool = False


class ItemNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """The items of a step as they stood, without their texts: ids, states, annotations."""

    message: Object | None = None
    reasoning: tuple[Object | None, ...] = ()


class TokenNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Token arrays that cannot stand in metrics since one is missing, or does not fit; under `token_arrays`.

    All or none stand in metrics: readers there are fill a missing one with nothing (contracts.md 3.1).
    """

    prompt_ids: list[Any] | None = None
    completion_ids: list[Any] | None = None
    log_probs: list[Any] | None = None
    routed_experts: Any = None


class StepNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a step: its side where ATIF has none such, its words and reasoning, and the call that made it (3.5, 4)."""

    role: str | None = None
    empty_message: bool | None = None
    item_kind: str | None = None
    parts: tuple[PartNote, ...] = ()
    reasoning: tuple[ReasoningNote, ...] = ()
    items: ItemNotes | None = None
    timestamp: str | None = None
    model_call_id: str | None = None
    call_index: int | None = None
    response_id: str | None = None
    model_server: str | None = None
    dialect: str | None = None
    finish_reason: str | None = None
    status_code: int | None = None
    error_category: str | None = None
    started_at: Number | None = None
    completed_at: Number | None = None
    latency_total_ms: Number | None = None
    latency_ttft_ms: Number | None = None
    model_calls: int | None = None
    record: Object | None = None


class CallNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a tool call: the text that the model wrote where JSON says it otherwise, the kind of call, its item."""

    arguments_raw: str | None = None
    id_unknown: bool = False
    kind: str | None = None
    item: Object | None = None


class ResultNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a result: the call that it names where that is not in the step, whether the tool failed, its item."""

    call_id: str | None = None
    is_error: bool | None = None
    parts: tuple[PartNote, ...] = ()
    item: Object | None = None


class ToolNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool in its own spelling; without a value it is the next of `tool_definitions`, respelled."""

    dialect: str
    value: Object | None = None
    function: bool = True


class AgentNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of an agent: which of its fields nobody knows, and its tools where they are not all in the form of ATIF."""

    unknown: tuple[str, ...] = ()
    tools: tuple[ToolNote, ...] | None = None


class RootNotes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Of a document: its rollout (3.4, 11), the parameters of its requests, the envelope of its response.

    `omitted` are the answers of calls that make no step, as steps (3.5, 5).
    """

    rollout: Object | None = None
    request: Object | None = None
    response: Object | None = None
    omitted: list[Any] | None = None


N = TypeVar("N", bound=msgspec.Struct)


def opened(extra: object, kind: type[N]) -> tuple[N, Json | None]:
    """The notes of an extra, and the extra without them; notes that cannot be read stay in it, as any others do."""
    if not isinstance(extra, dict):
        return kind(), None
    told = extra.get(KEY)
    if not isinstance(told, dict) or not told:
        return kind(), extra
    try:
        notes = msgspec.convert(told, kind, strict=True)
    except msgspec.ValidationError:
        return kind(), extra
    known = kind.__struct_fields__
    left = {key: value for key, value in told.items() if key not in known}
    rest = {key: value for key, value in extra.items() if key != KEY}
    return notes, ({**rest, KEY: left} if left else rest) or None


def sealed(extra: Mapping[str, object] | None, notes: msgspec.Struct) -> dict[str, object] | None:
    """An extra with notes beside those that it has; None where there is neither."""
    told = msgspec.to_builtins(notes)
    if not told:
        return None if extra is None else dict(extra)
    known = (extra or {}).get(KEY)
    rest = {key: value for key, value in (extra or {}).items() if key != KEY}
    return {**rest, KEY: {**told, **(known if isinstance(known, dict) else {})}}


def reasoning_notes(thoughts: tuple[Thought, ...]) -> tuple[ReasoningNote, ...]:
    """What reasoning_content alone does not tell of some thoughts; nothing where it tells it all."""
    if len(thoughts) == 1 and len(thoughts[0].summary) + len(thoughts[0].content) == 1:
        thought = thoughts[0]
        form = "content" if thought.content else None
        note = ReasoningNote((), (), form, thought.encrypted, thought.signature, thought.redacted)
        return () if note == ReasoningNote() else (note,)
    return tuple(
        ReasoningNote(each.summary, each.content, None, each.encrypted, each.signature, each.redacted)
        for each in thoughts
    )
