"""What a row of text has that its captures do not bear out, by the number of the invariant that it breaks."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest

TURNS = ("messages", "prompt", "chosen", "rejected")
_INVARIANTS = {"group_id": "I19", "tools": "I29"}
_FIELDS = "I18"
_SHOWN = 60


def differences(row: Mapping[str, object], wanted: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Invariant and message, the first turn of each list and every other field."""
    for name in sorted({*row, *wanted}):
        found, right = row.get(name), wanted.get(name)
        if found == right:
            continue
        if name in TURNS and isinstance(found, list) and isinstance(right, list):
            yield _of_turns(name, found, right)
        else:
            message = f"{name} is {_shown(found)}, the captures make it {_shown(right)}"
            yield _INVARIANTS.get(name, "I1" if name in TURNS else _FIELDS), message


def _of_turns(name: str, found: list[object], wanted: list[object]) -> tuple[str, str]:
    pairs = enumerate(zip_longest(found, wanted))
    place, turn, right = next((place, turn, right) for place, (turn, right) in pairs if turn != right)
    at = f"{name}[{place}]"
    if not isinstance(turn, dict) or not isinstance(right, dict):
        return "I1", f"{at}: {len(found)} turns, the captures have {len(wanted)}"
    if {**turn, "weight": None} != {**right, "weight": None}:
        return "I1", f"{at} is not the turn that the captures hold"
    if turn.get("weight"):
        return "I3", f"{at} carries loss, and is not to be trained"
    return "I6", f"{at} carries no loss, and would be trained"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
