"""Calls of tools and what came back, as a step has them (contracts.md 3.4, 4, 5 and 12)."""

from collections.abc import Iterator

from ng_capture.contracts.atif.arguments import arguments_object
from ng_capture.contracts.atif.content import write_content
from ng_capture.contracts.atif.draft import Draft
from ng_capture.contracts.atif.notes import CallNotes, PartNote, ResultNotes, sealed
from ng_capture.contracts.episode import Json, SubagentRef, Text, ToolCall, ToolResult, Turn
from ng_capture.contracts.identity import made_id

_FUNCTION = "function"


def write_calls(turn: Turn, draft: Draft, path: str) -> list[Json]:
    """The calls of a turn; what is no function of a client is one here all the same, with its item in the notes."""
    return [_call(call, draft, f"{path}/tool_calls/{at}") for at, call in enumerate(turn.calls)]


def write_results(turn: Turn, calls: list[Json], draft: Draft, path: str) -> list[Json]:
    """The results of a turn, linked to the calls of its step."""
    ids = {call["tool_call_id"] for call in calls}
    return [_result(result, ids, draft, f"{path}/observation/results/{at}") for at, result in enumerate(turn.results)]


def _call(call: ToolCall, draft: Draft, path: str) -> Json:
    arguments = arguments_object(call.arguments)
    if arguments.wrapped:
        draft.lose("arguments_not_object", f"{path}/arguments")
    if call.kind != _FUNCTION:
        draft.lose("item_type_mapped", path, call.kind)
    call_id = call.call_id
    if call_id is None:
        draft.lose("call_id_unknown", f"{path}/tool_call_id")
        call_id = made_id("call_", path, call.name, call.arguments)
    notes = CallNotes(
        arguments_raw=arguments.raw,
        id_unknown=call.call_id is None,
        kind=None if call.kind == _FUNCTION else call.kind,
        item=None if call.item is None else dict(call.item),
    )
    told = {"tool_call_id": call_id, "function_name": call.name, "arguments": arguments.value}
    extra = sealed(call.extra, notes)
    return told if extra is None else {**told, "extra": extra}


def _result(result: ToolResult, ids: set[object], draft: Draft, path: str) -> Json:
    linked = result.call_id in ids
    told: dict[str, object] = {"source_call_id": result.call_id} if linked else {}
    content, parts = result.content, tuple[PartNote, ...]()
    if content is not None:
        if not draft.same and not isinstance(content, str) and len(content) == 1 and isinstance(content[0], Text):
            draft.lose("parts_flattened", f"{path}/content")
            content = content[0].text
        told["content"], parts = write_content(content, draft, f"{path}/content")
    if result.subagents:
        told["subagent_trajectory_ref"] = list(_references(result, draft, f"{path}/subagent_trajectory_ref"))
    notes = ResultNotes(
        call_id=None if linked else result.call_id,
        is_error=result.is_error,
        parts=parts,
        item=None if result.item is None else dict(result.item),
    )
    extra = sealed(result.extra, notes)
    return told if extra is None else {**told, "extra": extra}


def _references(result: ToolResult, draft: Draft, path: str) -> Iterator[Json]:
    for at, reference in enumerate(result.subagents):
        yield _reference(reference, draft, f"{path}/{at}")


def _reference(reference: SubagentRef, draft: Draft, path: str) -> Json:
    """A reference; to v1.6 the session alone named a sub-agent, and now its own id has that place."""
    name = reference.trajectory_id
    if name is None and reference.path is None and reference.session_id is not None:
        draft.lose("subagent_by_session", path)
        name = reference.session_id
    members = {
        "trajectory_id": name,
        "trajectory_path": reference.path,
        "session_id": reference.session_id,
        "extra": reference.extra,
    }
    return {key: value for key, value in members.items() if value is not None}
