"""What Gym's export refuses in the conversation of a trajectory (contracts.md 3.2): what ATIF would change or drop."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ng_capture.contracts.dialects.fields import text_in
from ng_capture.contracts.episode import Json
from ng_capture.contracts.items.tokens import TOKEN_FIELDS
from ng_capture.contracts.rules import pointer
from ng_capture.records.json_text import object_in, objects_in

Broken = tuple[str, str, str]
"""A rule, what breaks it, and where in the row."""

_FIELDS: dict[str, frozenset[str]] = {
    "assistant": frozenset({"id", "content", "role", "status", "type", "phase"}),
    "message": frozenset({"content", "role", "status", "type", "phase"}),
    "reasoning": frozenset({"id", "summary", "type", "encrypted_content", "content"}),
    "function_call": frozenset({"arguments", "call_id", "name", "type", "id", "status", "namespace"}),
    "function_call_output": frozenset({"call_id", "output", "type", "id", "status"}),
}
_PARTS = {
    "input_text": frozenset({"type", "text"}),
    "output_text": frozenset({"type", "text", "annotations", "logprobs"}),
}


class Group(msgspec.Struct, frozen=True):
    """What one turn of the agent is in a conversation: what came before, its reasoning, its answer, its calls."""

    question: tuple[Json, ...]
    reasoning: tuple[Json, ...]
    answer: tuple[Json, ...]
    results: tuple[Json, ...]
    path: str

    @property
    def calls(self) -> list[Json]:
        return [item for item in self.answer if item.get("type") == "function_call"]


def groups_in(conversation: object, path: str) -> list[Group]:
    """The turns of a conversation: reasoning, then calls with their results or one message."""
    items = [object_in(item) for item in conversation] if isinstance(conversation, list) else []
    groups, at = list[Group](), 0
    while at < len(items):
        if _is_asked(items[at]):
            at += 1
            continue
        start, reasoning = at, _run(items, at, "reasoning")
        calls = _run(items, at + len(reasoning), "function_call")
        at += len(reasoning) + len(calls)
        results = _run(items, at, "function_call_output")
        answer = calls or items[at : at + 1]
        at += len(results) if calls else 1
        found = (tuple(items[:start]), tuple(reasoning), tuple(answer), tuple(results if calls else ()))
        groups.append(Group(*found, f"{path}{pointer(start)}"))
    return groups


def _is_asked(item: Json) -> bool:
    return item.get("type") == "message" and item.get("role") != "assistant"


def _run(items: list[Json], start: int, kind: str) -> list[Json]:
    """The items of a kind from there on."""
    end = start
    while end < len(items) and items[end].get("type") == kind:
        end += 1
    return items[start:end]


def broken_items(conversation: object, path: str) -> Iterator[Broken]:
    """The rules that single items break."""
    if not isinstance(conversation, list):
        return
    saw_agent = False
    for at, value in enumerate(conversation):
        item, place = object_in(value), f"{path}{pointer(at)}"
        yield from _item(item, place)
        if _is_asked(item):
            if item.get("role") == "developer":
                yield "role", "a developer's message", f"{place}/role"
            if saw_agent:
                yield "later_turn", f"a message of the {item.get('role')} after output", place
        else:
            saw_agent = True


def _item(item: Json, place: str) -> Iterator[Broken]:
    kind = item.get("type")
    held = sorted(set(TOKEN_FIELDS) & item.keys())
    if held:
        yield "tokens", ", ".join(held), place
    if kind not in ("message", "reasoning", "function_call", "function_call_output"):
        yield "item", f"an item of type {kind}", f"{place}/type"
        return
    fields = _FIELDS["assistant" if item.get("role") == "assistant" else str(kind)]
    unknown = sorted(item.keys() - fields - set(TOKEN_FIELDS))
    if unknown:
        yield "field", f"{', '.join(unknown)} would be dropped", place
    for key in ("phase", "namespace"):
        if item.get(key) is not None:
            yield "field", f"{key} has no place", f"{place}/{key}"
    status = item.get("status")
    if status is not None and status != "completed":
        yield "status", f"{status}, not completed", f"{place}/status"
    match kind:
        case "message":
            yield from _content(item.get("content"), f"{place}/content")
        case "function_call_output":
            yield from _content(item.get("output"), f"{place}/output")
        case "function_call":
            yield from _call(item, place)


def _content(content: object, place: str) -> Iterator[Broken]:
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield "content", "neither a text nor parts", place
        return
    for at, value in enumerate(content):
        part, here = object_in(value), f"{place}{pointer(at)}"
        allowed = _PARTS.get(str(part.get("type")))
        if allowed is None or not isinstance(part.get("text"), str):
            yield "content", f"a part of type {part.get('type')} that is no text", here
            continue
        if part.keys() - allowed:
            yield "field", f"{', '.join(sorted(part.keys() - allowed))} would be dropped", here
        if part.get("annotations") or part.get("logprobs"):
            yield "content", "annotations or log probabilities have no place", here


def _call(item: Json, place: str) -> Iterator[Broken]:
    for key in ("call_id", "name"):
        value = item.get(key)
        if not isinstance(value, str) or not value.strip():
            yield "call", f"no {key}", f"{place}/{key}"
    arguments = item.get("arguments")
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        yield "arguments", "no JSON object", f"{place}/arguments"


def broken_groups(groups: list[Group], tools: Mapping[str, Json], invocation_id: str | None) -> Iterator[Broken]:
    """The rules that the turns of a conversation break, and the records of its tools."""
    seen = set[str]()
    for group in groups:
        yield from _reasoning(group)
        if not group.answer:
            yield "reasoning", "no answer follows", group.path
        elif not group.calls and not _is_message(group.answer[0]):
            yield "item", "neither calls nor a message", group.path
        called = [text_in(call, "call_id") or "" for call in group.calls]
        for call_id in called:
            if call_id in seen or called.count(call_id) > 1:
                yield "call", f"{call_id} again", group.path
        seen |= set(called)
        answered = [text_in(result, "call_id") or "" for result in group.results]
        if sorted(answered) != sorted(set(called)):
            yield "result", f"results of {sorted(answered)} for calls {sorted(called)}", group.path
        outputs = dict(zip(answered, group.results, strict=True))
        for call in group.calls:
            yield from _record(call, outputs, tools, invocation_id, group.path)
    unused = sorted(tools.keys() - seen)
    if unused:
        yield "tool_record", f"nothing called {', '.join(unused)}", "/ng_trajectory/tool_calls"


def _is_message(item: Json) -> bool:
    return item.get("type") == "message"


def _reasoning(group: Group) -> Iterator[Broken]:
    pieces = 0
    for item in group.reasoning:
        content, summary = list(objects_in(item.get("content"))), list(objects_in(item.get("summary")))
        if item.get("encrypted_content") is not None:
            yield "reasoning", "encrypted", group.path
        elif content and summary:
            yield "reasoning", "content and summary: one of them would be dropped", group.path
        elif not content and not summary:
            yield "reasoning", "empty", group.path
        pieces += len(content or summary)
    if pieces > 1:
        yield "reasoning", f"{pieces} pieces would become one", group.path


def _record(
    call: Json, outputs: Mapping[str, Json], tools: Mapping[str, Json], invocation_id: str | None, path: str
) -> Iterator[Broken]:
    """The rules that the record of a tool breaks."""
    call_id = text_in(call, "call_id") or ""
    record = tools.get(call_id)
    if record is None:
        yield "tool_record", f"none of {call_id}", path
        return
    if record.get("invocation_id") != invocation_id:
        yield "tool_record", f"{call_id} belongs to another invocation", path
    if record.get("status") != "completed" or record.get("error_type") is not None:
        yield "tool_record", f"{call_id} is {record.get('status')}, not completed", path
    if record.get("tool_name") not in (None, call.get("name")):
        yield "tool_record", f"{call_id} is of {record.get('tool_name')}", path
    output = outputs.get(call_id)
    if output is not None and record.get("output") is not None and not same(record["output"], output.get("output")):
        yield "tool_record", f"{call_id} has another output", path


def same(one: Any, other: Any) -> bool:
    """True for values that say the same: nulls say nothing, 1 is not true."""
    return json.dumps(_bare(one), sort_keys=True) == json.dumps(_bare(other), sort_keys=True)


def _bare(value: object) -> object:
    if isinstance(value, dict):
        return {key: _bare(member) for key, member in value.items() if member is not None}
    return [_bare(member) for member in value] if isinstance(value, list | tuple) else value
