"""verifiers v1 `traces.jsonl`: a tree of messages, each with the ids that it adds (ingest.md 2, rank 3).

A sampled node is a call: its prompt is what stands on the path before it and, of its own ids, what was not sampled.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ng_capture.ingest.raw import RawExchange, RolloutClaim
from ng_capture.ingest.sources.bodies import Body, exchange
from ng_capture.ingest.sources.fields import milliseconds_between, seconds_of, text_of
from ng_capture.ingest.sources.head import Head
from ng_capture.ingest.sources.interface import LogFormat, Reading, one_by_one
from ng_capture.ingest.sources.lines import JsonLine, json_lines
from ng_capture.ingest.sources.opening import SourceFile
from ng_capture.ingest.sources.rollouts import field_claims, named
from ng_capture.records.defects import Defect
from ng_capture.records.json_text import object_in, objects_in


class _Path(msgspec.Struct, frozen=True):
    """Numbers of the nodes from a root to a node, the node included; `whole` is False for a link that leads nowhere."""

    nodes: tuple[int, ...]
    whole: bool


def _recognises(head: Head) -> bool:
    return (head.has("nodes") and head.has_any("nodes.message", "nodes.token_ids", "task")) or head.has_any(
        "traces.nodes"
    )


def _read(file: SourceFile) -> Iterator[Reading]:
    for line in json_lines(file):
        if isinstance(line, Defect):
            yield line
            continue
        episode = objects_in(line.value.get("traces")) if "traces" in line.value else [line.value]
        for trace in episode:
            yield from _calls(line, trace)


def _calls(line: JsonLine, trace: Mapping[str, object]) -> Iterator[Reading]:
    listed = trace.get("nodes")
    nodes = [object_in(node) for node in listed] if isinstance(listed, list) else []
    made = {call["node"]: call for call in objects_in(trace.get("calls")) if isinstance(call.get("node"), int)}
    for number, node in enumerate(nodes):
        if not _is_sampled(node):
            continue
        path = _path(nodes, number)
        if path.whole:
            yield _exchange(line, trace, nodes, path, object_in(made.get(number)))
        else:
            detail = "the path to its root leads nowhere"
            place = Defect(reason="parent_missing", file=line.file, line=line.number, byte=line.byte)
            yield place.at(call=_name(number), parent=str(nodes[path.nodes[0]].get("parent"))[:40], detail=detail)


def _exchange(
    line: JsonLine,
    trace: Mapping[str, object],
    nodes: Sequence[Mapping[str, object]],
    path: _Path,
    call: Mapping[str, object],
) -> RawExchange:
    before, node = [nodes[number] for number in path.nodes[:-1]], nodes[path.nodes[-1]]
    parent = next((number for number in reversed(path.nodes[:-1]) if _is_sampled(nodes[number])), None)
    time = object_in(call.get("time"))
    started, ended = seconds_of(time, "start"), seconds_of(time, "end") or seconds_of(node, "timestamp")
    message = {**object_in(node.get("message")), **_tokens(before, node)}
    choice = {"index": 0, "message": message, "finish_reason": node.get("finish_reason") or call.get("finish_reason")}
    model = text_of(call, "model")
    request: dict[str, object] = {"model": model, "messages": [object_in(each.get("message")) for each in before]}
    return exchange(
        line,
        Body({**request, **object_in(call.get("sampling")), **_tools(nodes[path.nodes[0]], trace)}),
        Body({"model": model, "choices": [choice]}),
        [*field_claims(trace), *(RolloutClaim("field", told) for told in named(trace.get("id")))],
        call_id=_name(path.nodes[-1]),
        dialect="chat",
        started_at=started,
        completed_at=ended,
        latency_ms=milliseconds_between(started, ended),
        parent_call_id=None if parent is None else _name(parent),
    )


def _is_sampled(node: Mapping[str, object]) -> bool:
    """True for what a model call made; earlier versions say so in the mask alone."""
    mask = node.get("mask")
    return node.get("sampled", isinstance(mask, list) and True in mask) is True


def _path(nodes: Sequence[Mapping[str, object]], number: int) -> _Path:
    """The way from the root to a node; a node stands behind its parent, so a link forwards leads nowhere."""
    backwards = [number]
    while (parent := nodes[backwards[-1]].get("parent")) is not None:
        if type(parent) is not int or not 0 <= parent < backwards[-1]:
            return _Path(tuple(reversed(backwards)), False)
        backwards.append(parent)
    return _Path(tuple(reversed(backwards)), True)


def _tokens(before: Sequence[Mapping[str, object]], node: Mapping[str, object]) -> Mapping[str, object]:
    """The token fields of a call; none where a list is missing, or where what was sampled is not the node's end."""
    ids, mask = node.get("token_ids"), node.get("mask")
    if not isinstance(ids, list) or not isinstance(mask, list) or len(ids) != len(mask) or not ids:
        return {}
    prompt: list[object] = []
    for each in before:
        told = each.get("token_ids")
        if not isinstance(told, list):
            return {}
        prompt += told
    start = mask.index(True) if True in mask else len(mask)
    if not all(value is True for value in mask[start:]) or any(value is not False for value in mask[:start]):
        return {}
    return {
        "prompt_token_ids": prompt + ids[:start],
        "generation_token_ids": ids[start:],
        "generation_log_probs": node.get("logprobs"),
    }


def _tools(root: Mapping[str, object], trace: Mapping[str, object]) -> Mapping[str, object]:
    tools = root.get("tools") or trace.get("tools")
    return {"tools": tools} if tools else {}


def _name(number: int) -> str:
    return f"node-{number}"


VERIFIERS = LogFormat("verifiers", _recognises, one_by_one(_read))
