"""A turn to a step; what a step has no field for becomes a note (contracts.md 3.4 and 3.5)."""

import msgspec

from ng_capture.contracts.atif.draft import Draft
from ng_capture.contracts.atif.metrics import are_placeholder, are_sound, write_metrics
from ng_capture.contracts.atif.notes import ARRAYS, KEY, METRICS, ItemNotes, StepNotes, TokenNotes, sealed
from ng_capture.contracts.atif.read_step import COPIED_NAMES, INSTRUCTIONS, noted_arrays, noted_metrics
from ng_capture.contracts.atif.schema import OBJECTS
from ng_capture.contracts.atif.times import moment
from ng_capture.contracts.atif.write_tools import write_calls, write_results
from ng_capture.contracts.atif.write_words import COMPACTION, Noted, item_of, write_message, write_reasoning
from ng_capture.contracts.episode import Json, ModelCall, Role, Tokens, Turn
from ng_capture.contracts.times import timestamp_of
from ng_capture.records.json_text import object_in

_SIDES = {Role.USER: "user", Role.ASSISTANT: "agent"}
_MANAGED = {"context_management": {"type": "compaction", "boundary": "replace"}}


def write_step(turn: Turn, number: int, draft: Draft, path: str) -> dict[str, object]:
    """The step of a turn; `path` is its pointer in the document."""
    made = _by_model(turn, draft, path) if turn.role == Role.ASSISTANT else _by_others(turn, draft, path)
    told = (
        _time(turn, draft, path),
        _role(turn, draft, path),
        write_message(turn, draft, f"{path}/message"),
        made,
    )
    members = {"step_id": number} | {key: value for each in told for key, value in each.members.items()}
    notes = {key: value for each in told for key, value in each.notes.items()}
    if turn.copied:
        members["is_copied_context"] = True
    if turn.model_calls is not None:
        # a call that left metrics or reasoning was made, whatever the count says: it may not stand beside them
        denied = turn.model_calls == 0 and ("metrics" in members or "reasoning_content" in members)
        (notes if denied else members)["model_calls" if denied else "llm_call_count"] = turn.model_calls
    extra = sealed(_extra(turn, draft), _step_notes(turn, notes))
    if extra is not None:
        members["extra"] = extra
    return {name: members[name] for name in OBJECTS["step"] if name in members}


def _by_model(turn: Turn, draft: Draft, path: str) -> Noted:
    """What only an agent's step has."""
    call = turn.call or ModelCall()
    reasoning = write_reasoning(turn, draft, f"{path}/reasoning_content")
    calls = write_calls(turn, draft, path)
    results = write_results(turn, calls, draft, path)
    members: dict[str, object] = {
        "model_name": call.model,
        "reasoning_effort": turn.reasoning_effort,
        "tool_calls": calls or None,
        "observation": {"results": results} if results else None,
        "metrics": _metrics(turn, draft, f"{path}/metrics") or None,
    }
    return Noted({**_known(members), **reasoning.members}, {**reasoning.notes, **_call_notes(call)})


def _by_others(turn: Turn, draft: Draft, path: str) -> Noted:
    """What the step of another side has: results alone; nobody reads a turn with more."""
    if turn.thoughts or turn.calls or turn.call is not None or turn.reasoning_effort is not None:
        draft.lose("step_fields_dropped", path, f"what only a model does, on a turn of the {turn.role}")
    results = write_results(turn, [], draft, path)
    return Noted({"observation": {"results": results}} if results else {})


def _time(turn: Turn, draft: Draft, path: str) -> Noted:
    """The time of a turn: its own, or when its call was complete; one that is spelled otherwise is noted."""
    told = turn.timestamp
    if told is None and turn.call is not None and turn.call.completed_at is not None and not draft.same:
        told = timestamp_of(turn.call.completed_at)
    if told is None:
        return Noted({})
    if moment(told) is not None:
        return Noted({"timestamp": told})
    draft.lose("timestamps_dropped", f"{path}/timestamp", "not spelled as ISO 8601 says")
    return Noted({}, {"timestamp": told})


def _role(turn: Turn, draft: Draft, path: str) -> Noted:
    members = {"source": _SIDES.get(turn.role, "system")}
    if turn.role == Role.DEVELOPER:
        draft.lose("developer_role", path)
    if turn.role in (Role.DEVELOPER, Role.EVENT):
        return Noted(members, {"role": turn.role.value})
    if _is_instructions(turn):
        draft.lose("instructions_as_system", path)
    return Noted(members)


def _is_instructions(turn: Turn) -> bool:
    return turn.role == Role.SYSTEM and (turn.extra or {}).get("role") == INSTRUCTIONS


def _extra(turn: Turn, draft: Draft) -> Json | None:
    """The extra of a step: of a turn's own extra, what readers of items keep there goes to the notes."""
    item = item_of(turn)
    extra = dict(turn.extra or {})
    if item is not None and item.kind == COMPACTION:
        extra = {**_MANAGED, **extra}
    noted = dict(object_in(extra.get(KEY)))
    for name in COPIED_NAMES if _is_instructions(turn) else COPIED_NAMES[1:]:
        if name in extra and (not draft.same or (name in noted and noted[name] == extra[name])):
            noted[name] = extra.pop(name)
    if turn.call is not None and not draft.same:
        noted |= _kept(turn.call, turn.copied)
    if noted:
        extra[KEY] = noted
    return None if turn.extra is None and not extra else extra


def _step_notes(turn: Turn, notes: dict[str, object]) -> StepNotes:
    message = notes.pop("message_item", turn.item)
    items = msgspec.convert({"message": message, "reasoning": notes.pop("reasoning_items", ())}, ItemNotes)
    return msgspec.convert({**notes, "items": None if items == ItemNotes() else items}, StepNotes)


def _call_notes(call: ModelCall) -> dict[str, object]:
    """What is known of a call and has no place in a step (contracts.md 3.5, 4)."""
    return _known(
        {
            "model_call_id": call.call_id,
            "call_index": call.index,
            "response_id": call.response_id,
            "model_server": call.server,
            "dialect": call.dialect,
            "finish_reason": call.finish_reason,
            "status_code": call.status_code,
            "error_category": call.error_category,
            "started_at": call.started_at,
            "completed_at": call.completed_at,
            "latency_total_ms": call.latency_ms,
            "latency_ttft_ms": call.latency_ttft_ms,
            "record": None if call.record is None else dict(call.record),
        }
    )


def _metrics(turn: Turn, draft: Draft, path: str) -> dict[str, object]:
    """The metrics of a step, without tokens that do not fit each other; a copied step has none (3.4, 1 and 6)."""
    call = turn.call or ModelCall()
    if draft.same:
        # what stood in the notes of the document that was read stays there
        tokens = None if call.tokens == noted_arrays(turn.extra) else call.tokens
        metrics = write_metrics(call, tokens)
        return {} if metrics == noted_metrics(turn.extra) else metrics
    if call.tokens is not None and not _may_stand(call.tokens):
        draft.lose("tokens_placeholder" if are_placeholder(call.tokens) else "tokens_incomplete", path)
    return {} if turn.copied else write_metrics(call, _standing(call))


def _kept(call: ModelCall, copied: bool) -> dict[str, object]:
    """What may not stand in metrics, for the notes."""
    tokens = _standing(call)
    arrays = {} if tokens == call.tokens or call.tokens is None else {ARRAYS: msgspec.to_builtins(_arrays(call.tokens))}
    metrics = write_metrics(call, tokens) if copied else {}
    return {**arrays, METRICS: metrics} if metrics else arrays


def _standing(call: ModelCall) -> Tokens | None:
    return call.tokens if call.tokens is not None and _may_stand(call.tokens) else None


def _may_stand(tokens: Tokens) -> bool:
    return are_sound(tokens) and not are_placeholder(tokens)


def _arrays(tokens: Tokens) -> TokenNotes:
    lists = {name: getattr(tokens, name) for name in ("prompt_ids", "completion_ids", "log_probs")}
    told = {name: None if values is None else list(values) for name, values in lists.items()}
    return TokenNotes(**told, routed_experts=tokens.routed_experts)


def _known(members: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in members.items() if value is not None}
