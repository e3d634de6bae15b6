"""The turns of a row of text beside those that the captures hold."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from ng_capture.outputs.export.proof.fields import Difference, first_difference

TURNS = ("messages", "prompt", "chosen", "rejected")


def turn_differences(row: Mapping[str, object], wanted: Mapping[str, object]) -> Iterator[Difference]:
    """The first turn of each list that is another."""
    for name in TURNS:
        found, right = row.get(name), wanted.get(name)
        if isinstance(found, list) and isinstance(right, list) and first_difference(found, right) is not None:
            yield _of_turns(name, found, right)


def _of_turns(name: str, found: list[object], wanted: list[object]) -> Difference:
    place = first_difference(found, wanted)
    assert place is not None
    turn, right = list(zip_longest(found, wanted))[place]
    where = f"{name}[{place}]"
    if not isinstance(turn, dict) or not isinstance(right, dict):
        return Difference("I1", f"{where}: {len(found)} turns, the captures have {len(wanted)}")
    if first_difference([{**turn, "weight": None}], [{**right, "weight": None}]) is not None:
        return Difference("I1", f"{where} is not the turn that the captures hold")
    if turn.get("weight"):
        return Difference("I3", f"{where} carries loss, and is not to be trained")
    return Difference("I6", f"{where} carries no loss, and would be trained")
