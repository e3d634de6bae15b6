"""What a run was asked for: rollout ids, or their number (reasons.md, `missing_captures` and `orphan_captures`)."""

from collections.abc import Iterable
from pathlib import Path

from ng_capture.errors import UsageError
from ng_capture.files.names import compression_of, is_rollout_id
from ng_capture.files.reading import CaptureFile
from ng_capture.natural_order import natural_key
from ng_capture.records.json_text import BOM, decode_json
from ng_capture.records.rollout_row import BadRow, rollout_id_of
from ng_capture.verdicts.health.measures import first_attempt_of
from ng_capture.verdicts.health.tally import Expected


class Expectation:
    """Sees every rollout that came, and tells what is missing and what nobody asked for.

    A later attempt (`<id>-a<n>`) stands for the rollout that was asked for.
    """

    def __init__(self, *, ids: frozenset[str] | None = None, number: int = 0) -> None:
        self._ids = ids
        self._number = number if ids is None else len(ids)
        self._captured: set[str] = set()
        self._seen: set[str] = set()

    def see(self, rollout_id: str, *, captured: bool) -> None:
        """Note a rollout; `captured` where something of its calls is there, or was handed off."""
        self._seen.add(rollout_id)
        if captured:
            self._captured.add(rollout_id)

    def absent(self) -> list[str]:
        """Ids asked for that nothing was seen of."""
        return _sorted((self._ids or frozenset()) - _with_first_attempts(self._seen))

    def unnamed(self) -> int:
        """How many were asked for, and did not come even by name."""
        return max(0, self._number - len(_first_attempts(self._seen))) if self._ids is None else 0

    def outcome(self) -> Expected:
        """What was asked for against what was captured."""
        if self._ids is None:
            short = self._number - len(_first_attempts(self._captured))
            return Expected(self._number, max(0, short), max(0, -short))
        missing = _sorted(self._ids - _with_first_attempts(self._captured))
        orphans = _sorted(
            name for name in self._captured if name not in self._ids and first_attempt_of(name) not in self._ids
        )
        return Expected(self._number, len(missing), len(orphans), tuple(missing), tuple(orphans))


def read_expected_ids(path: str) -> frozenset[str]:
    """The rollout ids of a file: rows that name one (`_ng_rollout_id`, or task and rollout index), or an id a line.

    Raises UsageError for a file that cannot be used so.
    """
    if not Path(path).is_file():
        raise UsageError(f"{path}: no such file of expected rollouts")
    ids: set[str] = set()
    with CaptureFile(path, compression_of(path)) as file:
        for line in file.lines():
            text = (line.data.removeprefix(BOM) if line.number == 1 else line.data).strip()
            if text:
                ids.add(_expected_id(text, f"{path}:{line.number}"))
    if not ids:
        raise UsageError(f"{path}: names no rollout")
    return frozenset(ids)


def _expected_id(text: bytes, place: str) -> str:
    try:
        if not text.startswith(b"{"):
            rollout_id: str | None = text.decode()
        else:
            row, _ = decode_json(text)
            assert isinstance(row, dict)
            rollout_id = rollout_id_of(row)
    except BadRow as error:
        raise UsageError(f"{place}: {error}") from error
    except ValueError as error:
        raise UsageError(f"{place}: neither a JSON object nor a rollout id") from error
    if rollout_id is None:
        raise UsageError(f"{place}: names no rollout", hint="--expect-rollouts N where only their number is known")
    if not is_rollout_id(rollout_id):
        raise UsageError(f"{place}: {rollout_id!r} is no rollout id")
    return rollout_id


def _first_attempts(ids: Iterable[str]) -> set[str]:
    return set(map(first_attempt_of, ids))


def _with_first_attempts(ids: set[str]) -> set[str]:
    return ids | _first_attempts(ids)


def _sorted(ids: Iterable[str]) -> list[str]:
    return sorted(ids, key=natural_key)
