"""Which turn a call belongs to (contracts.md 5.3)."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ng_capture.ingest.messages import request_messages
from ng_capture.outputs.steps.turn_rule import TurnRule
from ng_capture.records.json_text import object_in

_USER = "user"
# the request goes on with what the server keeps: how many turns that holds is not known here
_HELD_ELSEWHERE = ("previous_response_id", "conversation")


class Asked(msgspec.Struct, frozen=True):
    """The turns of a request, as hashes: comparing them is all that counting turns needs.

    `users` are its user messages, `opening` the turns before the first of them, `whole` tells that all of the
    conversation is there.
    """

    users: tuple[int, ...]
    opening: tuple[int, ...]
    whole: bool


def asked_in(request: object, rule: TurnRule) -> Asked | None:
    """What a request tells of turns; None for one that cannot be read."""
    if not isinstance(request, dict):
        return None
    place = "messages" if "messages" in request else "input"
    turns = request.get(place)
    if isinstance(turns, str):
        turns = [{"role": _USER, "content": turns}]
    if not isinstance(turns, list):
        return None
    try:
        return _asked(request, place, turns, rule)
    except RecursionError:
        return None


def turn_indexes(calls: Sequence[Asked | None], rule: TurnRule) -> list[int | None]:
    """The turn of every call, from 0; null where it is not known."""
    return _preview(calls) if rule is TurnRule.PREVIEW else [_in_its_conversation(call, calls) for call in calls]


def _asked(request: Mapping[str, object], place: str, turns: Sequence[object], rule: TurnRule) -> Asked:
    users = [number for number, turn in enumerate(turns) if _counts(turn, rule)]
    opening = request_messages({**request, place: turns[: users[0]] if users else turns})
    return Asked(
        users=tuple(hash(_text_of(turns[number])) for number in users),
        opening=tuple(map(hash, opening)),
        whole=not any(request.get(key) for key in _HELD_ELSEWHERE),
    )


def _counts(turn: object, rule: TurnRule) -> bool:
    """True for what a user says; results of tools alone are a user message for the preview only."""
    if object_in(turn).get("role") != _USER:
        return False
    blocks = object_in(turn).get("content")
    only_results = isinstance(blocks, list) and bool(blocks) and all(map(_is_result, blocks))
    return rule is TurnRule.PREVIEW or not only_results


def _is_result(block: object) -> bool:
    return object_in(block).get("type") == "tool_result"


def _text_of(turn: object) -> str:
    """The text of a user message, empty where it holds results of tools only."""
    return "".join(each.text for each in request_messages({"messages": [turn]}) if each.role == _USER)


def _in_its_conversation(call: Asked | None, calls: Iterable[Asked | None]) -> int | None:
    """The number of user messages before the answer, less one; results of tools are none.

    A request resends its conversation, so this is the rule of contracts.md 5.3 along a chain of calls that extend one
    another. Before the first user message the turn is 0 if some call that goes on with the same turns has one.
    """
    if call is None or not call.whole:
        return None
    if call.users:
        return len(call.users) - 1
    return 0 if any(other is not None and _goes_on(other, call) for other in calls) else None


def _goes_on(other: Asked, call: Asked) -> bool:
    return bool(other.users) and other.opening[: len(call.opening)] == call.opening


def _preview(calls: Sequence[Asked | None]) -> list[int | None]:
    """One list of user messages for all calls, which each must extend; else no call has a turn."""
    held: tuple[int, ...] = ()
    turn, turns = -1, list[int | None]()
    for call in calls:
        if call is None or (call.users and call.users[: len(held)] != held):
            return [None] * len(calls)
        if call.users:
            turn, held = turn + len(call.users) - len(held), call.users
        turns.append(max(turn, 0))
    return turns if held else [None] * len(calls)
