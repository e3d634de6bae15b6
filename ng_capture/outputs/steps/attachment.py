"""`ng_model_call_capture`: the model calls of a rollout folded into its finished row (capture-files.md 7.4)."""

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, UnsetType

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import RolloutFiles
from ng_capture.outputs.steps.model_call import ModelCall
from ng_capture.outputs.steps.reading import HowToRead, ReadCall, once_each, read_calls
from ng_capture.outputs.steps.rollout import RAW_KINDS, Gap, gaps_of
from ng_capture.outputs.steps.totals import CallMetrics, metrics_of
from ng_capture.records.snapshot import Snapshot
from ng_capture.store.snapshot import read_snapshot


class Attachment(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What NeMo Gym attaches to a row; no member `gaps` where there is none."""

    rollout_id: str
    metrics: CallMetrics
    calls: tuple[ModelCall, ...]
    gaps: tuple[Gap, ...] | UnsetType = UNSET


def attachment(rollout_id: str, files: RolloutFiles | None, snapshot: Snapshot | None = None) -> bytes:
    """The attachment of a rollout as JSON; `snapshot` is an earlier reading of its files.

    What the machine cannot read is a gap here: the row goes out with what is known.
    """
    try:
        snapshot = _snapshot(rollout_id, files) if snapshot is None else snapshot
        calls = [] if files is None else once_each(read_calls(files, snapshot, HowToRead()))
        gaps = gaps_of(files, snapshot, len(calls))
        return _encoded(rollout_id, calls, gaps)
    except SurroundingsError:
        return _encoded(rollout_id, [], [Gap("model_call_capture_unreadable")])


def _snapshot(rollout_id: str, files: RolloutFiles | None) -> Snapshot:
    return Snapshot(rollout_id=rollout_id) if files is None else read_snapshot(files.only(RAW_KINDS))


def _encoded(rollout_id: str, calls: list[ReadCall], gaps: Iterable[Gap]) -> bytes:
    found = tuple(gaps)
    made = Attachment(
        rollout_id=rollout_id,
        metrics=metrics_of(calls),
        calls=tuple(read.call for read in calls),
        gaps=found or UNSET,
    )
    return msgspec.json.encode(made)
