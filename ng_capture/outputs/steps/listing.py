"""The steps of many rollouts, one at a time, and their sums."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import RolloutFiles
from ng_capture.outputs.steps.reading import HowToRead
from ng_capture.outputs.steps.rollout import RolloutSteps, read_steps
from ng_capture.outputs.verify import Unread, VerifyTask
from ng_capture.outputs.work import in_order
from ng_capture.records.usage import UNKNOWN_USAGE, Usage, total_usage

STEPS_SCHEMA = "ng-capture.steps/1"


class StepsTask(msgspec.Struct, frozen=True, eq=False):
    """One rollout to read."""

    rollout_id: str
    files: RolloutFiles
    directory: str
    how: HowToRead


class StepsSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over rollouts, of what is known; null where nothing is."""

    rollouts: int
    with_calls: int
    num_calls: int
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None
    tokens_total: int | None
    cached_tokens: int | None
    cache_creation_tokens: int | None
    num_tool_calls: int
    failed_calls: int
    error_categories: dict[str, int]
    repeated_lines: int
    damaged_lines: int


def steps_of(tasks: Iterable[VerifyTask], how: HowToRead, jobs: int = 1) -> Iterator[RolloutSteps | Unread]:
    """The steps of every rollout that has files, in the order of the tasks."""
    return in_order(rollout_steps, _tasks(tasks, how), jobs)


def rollout_steps(task: StepsTask) -> RolloutSteps | Unread:
    """The steps of one rollout; one that cannot be read never stops the rest."""
    try:
        return read_steps(task.rollout_id, task.files, task.directory, task.how)
    except SurroundingsError as error:
        return Unread(task.rollout_id, error.message)


_SUMMED = ("num_calls", "num_tool_calls", "failed_calls")
_COUNTED = ("rollouts", "with_calls", *_SUMMED, "repeated_lines", "damaged_lines")


class StepsTally:
    """Adds up rollouts as they go by."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._categories: Counter[str] = Counter()
        self._usage = UNKNOWN_USAGE

    def add(self, rollout: RolloutSteps) -> None:
        """Count one."""
        self._counts.update(rollouts=1, with_calls=bool(rollout.steps))
        self._counts.update(repeated_lines=rollout.repeated_lines, damaged_lines=rollout.damaged_lines)
        self._counts.update({name: getattr(rollout.metrics, name) for name in _SUMMED})
        self._categories.update(rollout.metrics.error_categories)
        told = Usage(**{name: getattr(rollout.metrics, name) for name in Usage.__struct_fields__})
        self._usage = total_usage([self._usage, told])

    def summary(self) -> StepsSummary:
        """All sums."""
        counts = {name: self._counts[name] for name in _COUNTED}
        usage = msgspec.structs.asdict(self._usage)
        return StepsSummary(**counts, **usage, error_categories=dict(sorted(self._categories.items())))


def _tasks(tasks: Iterable[VerifyTask], how: HowToRead) -> Iterator[StepsTask]:
    for task in tasks:
        if task.files is not None and task.directory is not None:
            yield StepsTask(task.rollout_id, task.files, task.directory, how)
