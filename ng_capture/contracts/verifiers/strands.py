"""The turns of a branch: its nodes as messages of Chat Completions, with the calls that made them (contracts.md 6)."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.contracts.dialects.chat import CHAT
from ng_capture.contracts.dialects.fields import others
from ng_capture.contracts.episode import Json, ModelCall, Role, Turn
from ng_capture.contracts.interface import Options
from ng_capture.contracts.losses import Loss
from ng_capture.contracts.times import timestamp_of
from ng_capture.contracts.verifiers.branches import Branch
from ng_capture.contracts.verifiers.calls import model_call, rest_of
from ng_capture.contracts.verifiers.nodes import Node, Tree, tokens_of
from ng_capture.records.json_text import object_in, objects_in

_MESSAGE = re.compile(r"/messages/(\d+)", re.ASCII)


class Spoken(msgspec.Struct, frozen=True):
    """A turn and the node that it is of; the results on it are of later nodes."""

    node: int
    turn: Turn


class Strand(msgspec.Struct, frozen=True):
    """A branch with its turns."""

    branch: Branch
    turns: tuple[Spoken, ...]
    losses: tuple[Loss, ...]


def strand_of(branch: Branch, tree: Tree, calls: Mapping[int, Json], place: str, options: Options) -> Strand:
    """The turns of a branch; what a later branch holds too is history here. `place` is the pointer to the trace."""
    nodes = [tree.nodes[at] for at in branch.path]
    asked = CHAT.asked({"messages": [_message(node.message) for node in nodes]}, options)

    def moved(path: str) -> str:
        return f"{place}/nodes/{branch.path[_number(path)]}/message{_MESSAGE.sub('', path, count=1)}"

    told, losses = list[Spoken](), list[Loss]()
    for turn in asked.turns:
        number = _number(turn.place)
        at, node = branch.path[number], nodes[number]
        turn = msgspec.structs.replace(turn, timestamp=_spelled(node), place=moved(turn.place), extra=_extra(node))
        if turn.role == Role.ASSISTANT and node.sampled and at in branch.own:
            turn, lost = _made(turn, nodes[: number + 1], calls.get(at))
            losses += lost
        elif turn.copied:
            losses.append(Loss("copied_context", turn.place))
        told.append(Spoken(at, turn))
    for loss in asked.losses:
        if branch.path[_number(loss.path)] in branch.own:
            losses.append(msgspec.structs.replace(loss, path=moved(loss.path)))
    return Strand(branch, tuple(told), tuple(losses))


def _made(turn: Turn, nodes: Sequence[Node], call: Json | None) -> tuple[Turn, list[Loss]]:
    """The turn as the model made it, with its ids and its call."""
    tokens, losses = tokens_of(nodes), list[Loss]()
    if tokens is None and (nodes[-1].token_ids or not nodes[-1].fits):
        losses.append(Loss("tokens_incomplete", turn.place, detail="its ids are not one run behind a known prompt"))
    if tokens is not None and tokens.log_probs:
        losses.append(Loss("logprobs_rounded", turn.place))
    if _hides(nodes[-1].message):
        losses.append(Loss("reasoning_encrypted_opaque", turn.place))
    made = model_call(call, tokens) if call is not None else ModelCall(tokens=tokens)
    extra = _with(turn.extra, call=rest_of(call) if call is not None else None)
    return msgspec.structs.replace(turn, call=made, copied=False, model_calls=1, extra=extra), losses


def _message(message: Json) -> Json:
    """A message as chat has it: a call of a custom tool has its input in an object of its own."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [_custom(call) if _is_custom(call) else call for call in calls]}


def _is_custom(call: object) -> bool:
    return object_in(call).get("type") == "custom" and "custom" not in object_in(call)


def _custom(call: Json) -> Json:
    told = {"name": call.get("name"), "input": call.get("arguments")}
    return {**(others(call, "name", "arguments") or {}), "custom": told}


def _hides(message: Json) -> bool:
    """True where something is kept that only its provider reads."""
    return any(item.get("encrypted_content") or item.get("data") for item in objects_in(message.get("provider_state")))


def _extra(node: Node) -> Json | None:
    links = [{"node": link.node, "type": link.kind} for link in node.links]
    return _with(None, semantic_parents=links or None)


def _with(extra: Json | None, **told: object) -> Json | None:
    """An extra with what the record says beside the conversation, under our name."""
    added = {key: value for key, value in told.items() if value is not None}
    before = object_in(object_in((extra or {}).get("ng_capture")).get("verifiers"))
    return {"ng_capture": {"verifiers": {**before, **added}}} if added or before else extra


def _spelled(node: Node) -> str | None:
    return timestamp_of(node.timestamp) if node.timestamp is not None else None


def _number(path: str) -> int:
    """Which message a place is in."""
    found = _MESSAGE.match(path)
    return int(found[1]) if found else 0
