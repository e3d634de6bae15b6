"""One cleaning run over a directory: what may go goes to the trash, what was there long enough is purged."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import Listing
from ng_capture.files.writing import discard
from ng_capture.retention.asking import Permission
from ng_capture.retention.execute import Carried, Executor
from ng_capture.retention.halfway import half_moved, half_moved_of
from ng_capture.retention.plan import PlannedRollout, Planner
from ng_capture.retention.receipts import Coverage
from ng_capture.retention.restore import purge
from ng_capture.retention.surroundings import file_system_now
from ng_capture.retention.trash import TEMPORARY, TrashPlan, plans_of

Item = TypeVar("Item")


class Removed(msgspec.Struct, frozen=True):
    """How many were removed, and why the others were not; one that cannot be removed never stops the rest."""

    number: int
    problems: tuple[str, ...]


class Cleaning:
    """One run; `stopped` is asked between two rollouts, so that the current one is always finished."""

    def __init__(
        self,
        directory: str,
        listing: Listing,
        permission: Permission,
        coverage: Coverage,
        *,
        patience: float = 0.0,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._directory = directory
        self._listing = listing
        self._permission = permission
        self._patience = patience
        self._stopped = stopped
        self._over: int | None = None
        self.now = file_system_now(directory)
        self._planner = Planner(listing, permission, coverage, self.now, half_moved(directory), waits=patience > 0)

    @property
    def over(self) -> int | None:
        """By how many bytes the directory does not fit its budget; None where it has none, or nothing is planned."""
        return None if self._over is None else max(0, self._over)

    def plan(self) -> Iterator[PlannedRollout]:
        """What would be done, in the order in which it would be; changes nothing."""
        return self._planner.plan() if self._permission.max_bytes is None else self._oldest_first()

    def _oldest_first(self) -> Iterator[PlannedRollout]:
        """The oldest that may go until the directory fits; what lies in the trash counts no more."""
        assert self._permission.max_bytes is not None
        sizes = sorted(self._sizes())
        self._over = sum(size for _, _, size in sizes) - self._permission.max_bytes
        for _, rollout_id, _ in sizes:
            if self._permission.ids is not None and rollout_id not in self._permission.ids:
                continue
            planned = self._planner.decide(self._listing.get(rollout_id))
            if planned.action == "trash" and planned.half_moved is None and self._over <= 0:
                why = "the directory fits without it, and what goes is older"
                planned = msgspec.structs.replace(planned, action="keep", reason="young", why=why)
            elif planned.action != "keep":
                self._over -= planned.size
            yield planned

    def _sizes(self) -> Iterator[tuple[float, str, int]]:
        """Time, id and bytes of every rollout."""
        for files in self._listing:
            found = [status for name in files.names if (status := _status(files.path(name))) is not None]
            if found:
                newest = max(status.st_mtime for status in found)
                yield newest, files.rollout_id, sum(status.st_size for status in found)

    def carry_out(self, planned: Iterable[PlannedRollout]) -> Iterator[Carried]:
        """Do it."""
        executor = Executor(self._directory, patience=self._patience)
        for each in planned:
            if self._stopped():
                return
            carried = executor.carry_out(each, self._listing.get(each.rollout_id))
            if self._over is not None and each.action != "keep" and carried.done == "kept":
                self._over += each.size
            yield carried

    def temporary_files(self) -> list[str]:
        """Left-over temporary files of writers that are old enough."""
        found = []
        with os.scandir(self._directory) as entries:
            for entry in entries:
                if TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    status = _status(entry.path)
                    # its writer may have given it its name meanwhile
                    if status is not None and self.now - status.st_mtime >= self._permission.temporary_age:
                        found.append(entry.name)
        return sorted(found)

    def remove_temporary_files(self) -> Removed:
        """Delete them."""
        return _each(self.temporary_files(), lambda name: discard(Path(self._directory, name)))

    def old_plans(self, grace: float) -> list[TrashPlan]:
        """The plans that have been in the trash for so long, and wait for nothing."""
        plans = plans_of(self._directory)
        return [plan for plan in plans if self.now - plan.made_at >= grace and not any(half_moved_of(plan))]

    def purge_trash(self, grace: float) -> Removed:
        """Delete them."""
        return _each(self.old_plans(grace), purge)


def _each(items: Iterable[Item], remove: Callable[[Item], object]) -> Removed:
    done, problems = 0, []
    for item in items:
        try:
            remove(item)
        except SurroundingsError as error:
            problems.append(error.message)
        else:
            done += 1
    return Removed(done, tuple(problems))


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
