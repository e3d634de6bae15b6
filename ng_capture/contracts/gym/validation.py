"""All faults of a file of rows at once."""

from collections.abc import Iterator

from ng_capture.contracts.documents import values_in
from ng_capture.contracts.episode import Json
from ng_capture.contracts.gym.row_checks import broken_row
from ng_capture.contracts.gym.rules import fault
from ng_capture.contracts.gym.trajectory_checks import broken_trajectory
from ng_capture.contracts.rules import Fault
from ng_capture.contracts.sources import Source
from ng_capture.records.rollout_row import BadRow, rollout_id_of


def validate_rows(source: Source) -> Iterator[Fault]:
    """Every fault with its line, and its pointer in the row."""
    lines = dict[str, int | None]()
    for found in values_in(source, "gym"):
        yield from found.faults
        if any(each.rule == "gym.json.syntax" for each in found.faults):
            continue
        if not isinstance(found.value, dict):
            yield fault("gym.row.type", "a row is a JSON object", line=found.line)
            continue
        for rule, message, path in (*broken_row(found.value), *broken_trajectory(found.value)):
            yield fault(f"gym.{rule}", message, path, found.line)
        named = _rollout_id(found.value)
        if named is not None and named in lines:
            yield fault("gym.row.repeated", f"{named} is also in line {lines[named]}", line=found.line)
        elif named is not None:
            lines[named] = found.line


def _rollout_id(row: Json) -> str | None:
    try:
        return rollout_id_of(row)
    except BadRow:
        return None
