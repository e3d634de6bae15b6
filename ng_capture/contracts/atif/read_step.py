"""A step of a document without errors to a turn, what ng-capture noted of it included."""

import msgspec

from ng_capture.contracts.atif.arguments import arguments_text
from ng_capture.contracts.atif.content import read_content
from ng_capture.contracts.atif.metrics import read_metrics
from ng_capture.contracts.atif.notes import (
    ARRAYS,
    KEY,
    METRICS,
    CallNotes,
    ItemNotes,
    ReasoningNote,
    ResultNotes,
    StepNotes,
    TokenNotes,
    opened,
)
from ng_capture.contracts.atif.place import Place, text_at, whole
from ng_capture.contracts.atif.shape import check_object
from ng_capture.contracts.episode import (
    Content,
    Json,
    ModelCall,
    Opaque,
    Role,
    SubagentRef,
    Thought,
    Tokens,
    ToolCall,
    ToolResult,
    Turn,
)
from ng_capture.contracts.rules import has_errors
from ng_capture.contracts.sources import Source
from ng_capture.records.json_text import decode_exact, object_in, objects_in

_SIDES = {"system": Role.SYSTEM, "user": Role.USER, "agent": Role.ASSISTANT}
INSTRUCTIONS = "instructions"
COPIED_NAMES = ("role", "messages", "tokens")
"""What readers keep in the extra of a turn: that it is the instructions, several messages, several tokens."""


def read_step(step: Json, place: str, images: Source | None) -> Turn:
    """The turn of a step; `place` is its pointer, images beside `images`, if it is given, become data URLs."""
    notes, extra = opened(step.get("extra"), StepNotes)
    observation = object_in(step.get("observation"))
    thoughts = _thoughts(text_at(step, "reasoning_content"), notes)
    calls = tuple(_call(call) for call in objects_in(step.get("tool_calls")))
    results = tuple(_result(result, images) for result in objects_in(observation.get("results")))
    turn = Turn(
        role=_role(step, notes),
        content=read_content(step.get("message"), notes.parts, images),
        thoughts=thoughts,
        calls=calls,
        results=results,
        call=_model_call(step, notes, extra),
        copied=step.get("is_copied_context") is True,
        model_calls=_first(whole(step.get("llm_call_count")), notes.model_calls),
        timestamp=text_at(step, "timestamp") or notes.timestamp,
        reasoning_effort=_effort(step.get("reasoning_effort")),
        item=None if notes.items is None or notes.item_kind is not None else notes.items.message,
        extra=_extra(extra, _role(step, notes), notes),
        place=place,
    )
    return msgspec.structs.replace(turn, content=_said(turn, notes))


def is_silent(turn: Turn) -> bool:
    """True for a turn whose empty message is none: ATIF wants one of every step, and the turn has something else."""
    return turn.role == Role.ASSISTANT and bool(turn.thoughts or turn.calls or turn.results)


def _said(turn: Turn, notes: StepNotes) -> Content | None:
    """What was said: an empty message is none where the step has something else, unless the notes say otherwise."""
    if notes.item_kind is not None:
        return _item(turn, notes)
    if turn.content != "":
        return turn.content
    there = not is_silent(turn) if notes.empty_message is None else notes.empty_message
    return "" if there else None


def _item(turn: Turn, notes: StepNotes) -> Content | None:
    """The item of another kind that a step carries as JSON."""
    kind = notes.item_kind or ""
    if notes.items is not None and notes.items.message is not None:
        return (Opaque(kind, notes.items.message),)
    try:
        value = decode_exact(str(turn.content).encode()) if isinstance(turn.content, str) else None
    except ValueError:
        value = None
    return (Opaque(kind, value),) if isinstance(value, dict) else turn.content


def _role(step: Json, notes: StepNotes) -> Role:
    side = _SIDES[str(step.get("source"))]
    return Role(notes.role) if side == Role.SYSTEM and notes.role in ("developer", "event") else side


def _extra(extra: Json | None, side: Role, notes: StepNotes) -> Json | None:
    """The extra of a turn: of our notes those that are told in the extra of turns everywhere stand in it, too."""
    told = dict(object_in(None if extra is None else extra.get(KEY)))
    if notes.role == INSTRUCTIONS and side == Role.SYSTEM:
        told["role"] = INSTRUCTIONS
    copied = {name: told[name] for name in COPIED_NAMES if name in told and name not in (extra or {})}
    return {**(extra or {}), **copied, KEY: told} if copied else extra


def _thoughts(text: str | None, notes: StepNotes) -> tuple[Thought, ...]:
    """The reasoning of a step in its pieces, where they still are those of its text."""
    items = (notes.items or ItemNotes()).reasoning
    single = len(notes.reasoning) == 1 and not notes.reasoning[0].summary and not notes.reasoning[0].content
    if text is not None and (single or not notes.reasoning):
        thoughts = [_piece(notes.reasoning[0] if single else ReasoningNote(), text)]
    else:
        thoughts = [_piece(note, None) for note in notes.reasoning]
        texts = [each for thought in thoughts for each in thought.texts]
        if text != ("\n".join(texts) if texts else None):
            thoughts = [] if text is None else [Thought(summary=(text,))]
    if len(items) != len(thoughts):
        return tuple(thoughts)
    return tuple(msgspec.structs.replace(each, item=item) for each, item in zip(thoughts, items, strict=True))


def _piece(note: ReasoningNote, text: str | None) -> Thought:
    summary, content = note.summary, note.content
    if text is not None:
        summary, content = ((), (text,)) if note.form == "content" else ((text,), ())
    return Thought(summary, content, note.encrypted, note.signature, note.redacted)


def _call(call: Json) -> ToolCall:
    notes, extra = opened(call.get("extra"), CallNotes)
    return ToolCall(
        call_id=None if notes.id_unknown else text_at(call, "tool_call_id"),
        name=str(call.get("function_name")),
        arguments=arguments_text(object_in(call.get("arguments")), notes.arguments_raw),
        kind=notes.kind or "function",
        item=notes.item,
        extra=extra,
    )


def _result(result: Json, images: Source | None) -> ToolResult:
    notes, extra = opened(result.get("extra"), ResultNotes)
    call_id = text_at(result, "source_call_id")
    return ToolResult(
        call_id=notes.call_id if call_id is None else call_id,
        content=read_content(result.get("content"), notes.parts, images),
        is_error=notes.is_error,
        subagents=tuple(map(_reference, objects_in(result.get("subagent_trajectory_ref")))),
        item=notes.item,
        extra=extra,
    )


def _reference(value: Json) -> SubagentRef:
    extra = value.get("extra")
    return SubagentRef(
        trajectory_id=text_at(value, "trajectory_id"),
        path=text_at(value, "trajectory_path"),
        session_id=text_at(value, "session_id"),
        extra=extra if isinstance(extra, dict) else None,
    )


def noted_arrays(extra: Json | None) -> Tokens | None:
    """Token arrays that are noted since they may not stand in metrics; the notes stay, for who writes them again."""
    told = object_in(None if extra is None else extra.get(KEY)).get(ARRAYS)
    try:
        notes = None if told is None else msgspec.convert(told, TokenNotes, strict=True)
    except msgspec.ValidationError:
        return None
    return None if notes is None else Tokens(**msgspec.structs.asdict(notes))


def noted_metrics(extra: Json | None) -> Json:
    """The metrics of a copied step, which are noted; the notes stay, for who writes them again."""
    told = object_in(None if extra is None else extra.get(KEY)).get(METRICS)
    return {} if told is None or has_errors(check_object(told, "metrics", Place())) else object_in(told)


def _model_call(step: Json, notes: StepNotes, extra: Json | None) -> ModelCall | None:
    """What is known of the call that made a step; None where that is nothing."""
    metrics = read_metrics(object_in(step.get("metrics")) or noted_metrics(extra))
    call = msgspec.structs.replace(
        metrics,
        call_id=notes.model_call_id,
        index=notes.call_index,
        response_id=notes.response_id,
        model=text_at(step, "model_name"),
        server=notes.model_server,
        dialect=notes.dialect,
        finish_reason=notes.finish_reason,
        status_code=notes.status_code,
        error_category=notes.error_category,
        started_at=notes.started_at,
        completed_at=notes.completed_at,
        latency_ms=notes.latency_total_ms,
        latency_ttft_ms=notes.latency_ttft_ms,
        tokens=metrics.tokens or noted_arrays(extra),
        record=notes.record,
    )
    return None if call == ModelCall() else call


def _effort(value: object) -> str | float | None:
    return value if isinstance(value, str | float) or type(value) is int else None


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
