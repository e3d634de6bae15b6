"""What Gym's own export of rows to ATIF refuses, all of it at once (contracts.md 3.2, profile strict)."""

from collections.abc import Iterator

from ng_capture.contracts.dialects.fields import text_in
from ng_capture.contracts.episode import Json
from ng_capture.contracts.gym.export_items import Broken, Group, broken_groups, broken_items, groups_in, same
from ng_capture.contracts.gym.rules import fault
from ng_capture.contracts.gym.trajectory import CallRecord, Trajectory, TurnRecord, read_trajectory
from ng_capture.contracts.rules import Fault, pointer
from ng_capture.records.json_text import object_in
from ng_capture.records.usage import Usage, count

_AT = "/ng_trajectory"
_INCOMPLETE = frozenset(
    {
        *("aborted", "canceled", "cancelled", "content_filter", "failed", "incomplete", "length"),
        *("max_output_tokens", "max_tokens", "model_context_window_exceeded", "pause_turn", "refusal"),
        *("timed_out", "timeout"),
    }
)
_CALLED = frozenset({"tool_calls", "tool_use", "function_call"})
_SAID = frozenset({"stop", "end_turn", "stop_sequence"})
_PROOF = {
    ("chat", True): frozenset({"tool_calls", "function_call"}),
    ("chat", False): frozenset({"stop"}),
    ("messages", True): frozenset({"tool_use"}),
    ("messages", False): frozenset({"end_turn", "stop_sequence"}),
}


def export_faults(row: Json, version: str | None, line: int | None) -> Iterator[Fault]:
    """Every reason why Gym would not export a row; `version` is the agent's, which ATIF wants and a row never has."""
    for rule, message, path in _broken(row, version):
        yield fault(f"gym.export.{rule}", message, path, line)


def _broken(row: Json, version: str | None) -> Iterator[Broken]:
    if version is None or not version.strip():
        yield "identity", "no version of the agent: --agent-version", ""
    yield from _identity(row)
    trajectory = read_trajectory(row.get("ng_trajectory"))
    if trajectory is None or not _is_v1(trajectory.raw):
        yield "trajectory", "no trajectory of version 1.0", _AT
        return
    if trajectory.raw.get("gaps"):
        yield "gaps", "Gym could not see all of it", f"{_AT}/gaps"
    if len(trajectory.invocations) != 1:
        yield "invocations", f"{len(trajectory.invocations)} agents, not one", f"{_AT}/invocations"
        return
    root = trajectory.invocations[0]
    yield from _root(root.raw)
    path = f"{_AT}/invocations/0/conversation"
    yield from broken_items(root.raw.get("conversation"), path)
    groups = groups_in(root.raw.get("conversation"), path)
    yield from broken_groups(groups, trajectory.tools, root.invocation_id)
    if not groups:
        yield "turns", "no output of the agent", path
    yield from _turns(trajectory, groups)


def _identity(row: Json) -> Iterator[Broken]:
    for key in ("_ng_task_index", "_ng_rollout_index"):
        if count(row.get(key)) is None:
            yield "identity", "no whole number", pointer(key)
    agent = object_in(row.get("agent_ref"))
    if not (text_in(agent, "name") or "").strip():
        yield "identity", "no name of the agent", "/agent_ref"
    if agent.get("type") not in (None, "responses_api_agents"):
        yield "identity", f"of type {agent.get('type')}", "/agent_ref/type"


def _is_v1(value: Json) -> bool:
    named = (text_in(value, key) for key in ("task_id", "rollout_id"))
    return value.get("schema_version", "1.0") == "1.0" and all(name and name.strip() for name in named)


def _root(root: Json) -> Iterator[Broken]:
    path = f"{_AT}/invocations/0"
    if root.get("parent_invocation_id") is not None or root.get("spawned_by_tool_call_id") is not None:
        yield "invocations", "a sub-agent", path
    if root.get("status") != "completed":
        yield "invocations", f"{root.get('status', 'unknown')}, not completed", f"{path}/status"
    if root.get("error_type") is not None:
        yield "invocations", f"ended with {root['error_type']}", f"{path}/error_type"


def _turns(trajectory: Trajectory, groups: list[Group]) -> Iterator[Broken]:
    turns = trajectory.turns
    if len(turns) != len(groups):
        yield "turns", f"{len(turns)} turns for {len(groups)} answers", f"{_AT}/turns"
        return
    called, used = 0, set[int]()
    for at, (turn, group) in enumerate(zip(turns, groups, strict=True)):
        path = f"{_AT}/turns/{at}"
        called += len(group.calls)
        yield from _turn(turn, group, at, called, path)
        if turn.invocation_id != trajectory.invocations[0].invocation_id:
            yield "turns", "of another agent", f"{path}/invocation_id"
        record = _resolved(trajectory, turn)
        if record is None:
            yield "model_call", "not exactly one captured call", f"{path}/model_calls"
            continue
        if id(record) in used:
            yield "model_call", "another turn is of the same call", f"{path}/model_calls"
        used.add(id(record))
        yield from ((rule, message, path) for rule, message in _call(record, bool(group.calls)))


def _turn(turn: TurnRecord, group: Group, at: int, called: int, path: str) -> Iterator[Broken]:
    raw = turn.raw
    if turn.turn_no != at + 1:
        yield "turns", f"number {turn.turn_no} in place {at + 1}", f"{path}/turn_no"
    if raw.get("step_count") != called:
        yield "turns", f"{raw.get('step_count')} calls are counted, there are {called}", f"{path}/step_count"
    if turn.timestamp is None:
        yield "turns", "no timestamp", f"{path}/timestamp"
    copies = (("question", group.question), ("answer", group.answer), ("reasoning_content", group.reasoning or None))
    for key, items in copies:
        if not same(raw.get(key), items):
            yield "turns", "not what the conversation has", f"{path}/{key}"


def _resolved(trajectory: Trajectory, turn: TurnRecord) -> CallRecord | None:
    """The one call of a turn, if nothing contradicts that it is."""
    record = trajectory.call_of(turn.refs[0]) if len(turn.refs) == 1 else None
    if record is None:
        return None
    ref = turn.refs[0]
    conflict = (ref.response_id is not None and ref.response_id != record.ref.response_id) or (
        ref.model_ref is not None and ref.model_ref != record.ref.model_ref
    )
    return None if conflict else record


def _call(record: CallRecord, has_calls: bool) -> Iterator[tuple[str, str]]:
    call, told = record.call, object_in(record.raw.get("response_metadata"))
    if told.get("response_status") not in (None, "completed"):
        yield "model_call", f"{told['response_status']}, not completed"
    if record.failed:
        yield "model_call", f"failed: {call.error_category or call.status_code}"
    reason = call.finish_reason
    plain = reason.strip().lower() if reason is not None else None
    proof = _PROOF.get((call.dialect or "", has_calls))
    if plain in _INCOMPLETE:
        yield "finish", f"{reason}: the response is not complete"
    elif plain is not None and proof is not None and plain not in proof:
        yield "finish", f"{reason} does not prove a complete response of {call.dialect}"
    elif plain in (_SAID if has_calls else _CALLED):
        yield "finish", f"{reason} contradicts {'calls' if has_calls else 'a text'}"
    yield from (("usage", message) for message in _usage(call.usage))


def _usage(usage: Usage) -> Iterator[str]:
    parts = (usage.tokens_in, usage.tokens_out, usage.tokens_reasoning, usage.cached_tokens)
    total = usage.tokens_total
    if total is not None:
        if any(part is not None and part > total for part in parts):
            yield "a count is more than the total"
        elif not usage.partial and (usage.tokens_in or 0) + (usage.tokens_out or 0) > total:
            yield "prompt and completion are more than the total"
    if usage.cached_tokens is not None and usage.tokens_in is not None and usage.cached_tokens > usage.tokens_in:
        yield "more is cached than was asked"
    if None not in (usage.tokens_reasoning, usage.tokens_out) and parts[2] > parts[1]:  # type: ignore[operator]
        yield "more is reasoning than was generated"
