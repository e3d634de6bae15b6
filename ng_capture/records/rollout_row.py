"""A finished rollout row: which rollout it is, and what it says about the scored call (capture-files.md 1.8 and 5)."""

import math
import re
from collections.abc import Mapping, Sequence

import msgspec

from ng_capture.records.json_text import decode_json, printable

# the correlation rule as Gym has it: one trailing line break slips through (case I08) and is refused by the store later
_EXPLICIT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\n?")


class BadRow(ValueError):
    """A row that names no rollout in a way that can be used."""


class Evidence(msgspec.Struct, frozen=True, eq=False):
    """What a finished row says about the call that was scored.

    `explicit`: a model-call id; `declared`: a response id that the harness names; `response`: the scored response.
    """

    explicit: str | None = None
    declared: str | None = None
    response: Mapping[str, object] | None = None

    @property
    def output(self) -> Sequence[Mapping[str, object]]:
        """The items of the scored response; what is no object among them is passed over, as Gym does."""
        output = self.response.get("output") if self.response else None
        return [item for item in output if isinstance(item, dict)] if isinstance(output, list) else []


NO_EVIDENCE = Evidence()


class RolloutRow(msgspec.Struct, frozen=True, eq=False):
    """One row of a rollouts file: `values` is the decoded object."""

    rollout_id: str | None
    evidence: Evidence
    values: Mapping[str, object]

    @property
    def carries_tokens(self) -> bool:
        """True if some output item already has generated token ids: such a row stays as it is (6.3)."""
        return any(item.get("generation_token_ids") for item in self.evidence.output)

    @property
    def reward(self) -> float | None:
        return number(self.values.get("reward"))

    @property
    def group_id(self) -> str | None:
        """The task, which all rollouts of one group share; None where the row names none."""
        value = self.values.get("_ng_task_index")
        return None if value is None else printable(str(value))


def decode_row(data: bytes) -> RolloutRow:
    """The row of one line; raises ValueError for a line that is no JSON object, BadRow for a malformed rollout id."""
    value, _ = decode_json(data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    response = value.get("response")
    return RolloutRow(
        rollout_id=rollout_id_of(value),
        evidence=Evidence(
            explicit=told_id(value.get("_ng_terminal_model_call_id")),
            declared=told_id(value.get("terminal_response_id")),
            response=response if isinstance(response, dict) and response else None,
        ),
        values=value,
    )


def rollout_id_of(row: Mapping[str, object]) -> str | None:
    """The rollout id that a row names, or None; raises BadRow for an id that cannot be one."""
    explicit = row.get("_ng_rollout_id")
    if explicit is not None:
        if not isinstance(explicit, str) or _EXPLICIT_ID.fullmatch(explicit) is None:
            raise BadRow(f"malformed rollout id: {explicit!r}")
        base = explicit
    else:
        task, rollout = row.get("_ng_task_index"), row.get("_ng_rollout_index")
        if task is None or rollout is None:
            return None
        base = printable(f"{task}-{rollout}")
    attempt = row.get("_ng_attempt_index")
    if attempt is None:
        return base
    try:
        number = int(attempt)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise BadRow(f"malformed attempt index: {attempt!r}") from None
    return f"{base}-a{number}" if number > 0 else base


def number(value: object) -> float | None:
    """The value if it is a number that a double can hold; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def told_id(value: object) -> str | None:
    """An id as Gym takes it, whatever its type; None for one that is empty."""
    return printable(str(value)) if value else None
