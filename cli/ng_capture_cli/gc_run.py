"""What a run of `ng-capture gc` prints, asks and tells: its plan, a line for all that went, one line for the log."""

import signal
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import msgspec

from ng_capture.files.names import shown
from ng_capture.retention.clean import Cleaning
from ng_capture.retention.execute import Carried
from ng_capture.retention.plan import PlannedRollout
from ng_capture_cli import exits
from ng_capture_cli.output import StandardOutput
from ng_capture_cli.quantities import in_bytes
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import can_ask, confirmed, safe, tell, tell_error

_TERMINATED = 128 + signal.SIGTERM
_TEMPORARY = "a temporary file that its writer left"


class Wanted(msgspec.Struct, frozen=True):
    """What a run is asked for apart from what may go; `grace` in seconds."""

    directory: str
    grace: float
    as_json: bool
    yes: bool
    prometheus: Path | None
    quiet: bool


class Stop:
    """SIGTERM ends the run behind the rollout that is being moved, not inside it."""

    def __init__(self) -> None:
        self._asked = False
        self._before: object = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGTERM, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)  # type: ignore[arg-type]

    def _ask(self, *_: object) -> None:
        self._asked = True

    def asked(self) -> bool:
        return self._asked


class Rows(StandardOutput):
    """A line for each rollout and file."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def tell(self, name: str, action: str, reason: str | None, why: str, size: int | None) -> None:
        if self._as_json:
            told = {"rollout_id": shown(name), "action": action, "reason": reason, "why": shown(why), "bytes": size}
            self.write(msgspec.json.encode(told) + b"\n")
            return
        word = f"{action}: {reason}" if reason is not None else action
        amount = f" ({in_bytes(size)})" if size is not None else ""
        self.write(f"{safe(name)}: {word}: {safe(why)}{amount}\n".encode())


def show_plan(cleaning: Cleaning, grace: float, as_json: bool) -> int:
    """What a run would do; changes nothing."""
    rows, failed = Rows(as_json=as_json), False
    for each in cleaning.plan():
        failed = failed or each.reason == "not_removable"
        rows.tell(each.rollout_id, each.action, each.reason, each.why, each.size)
    for name in cleaning.temporary_files():
        rows.tell(name, "remove", None, _TEMPORARY, None)
    for plan in cleaning.old_plans(grace):
        rows.tell(plan.name, "purge", None, "a plan of the trash past its grace", None)
    rows.end()
    if cleaning.over:
        tell(f"{in_bytes(cleaning.over)} over the budget, even then")
    return exits.SURROUNDINGS if failed or cleaning.over or rows.lost else exits.DONE


def carry_out(cleaning: Cleaning, wanted: Wanted, stop: Stop) -> int:
    """One run, from the question to the line in the log."""
    begun = time.monotonic()
    planned: Iterable[PlannedRollout] = cleaning.plan()
    if not wanted.yes and can_ask():
        planned = list(planned)
        if not _agreed(planned, wanted.directory):
            return exits.DONE
    counts: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    rows = Rows(as_json=wanted.as_json)
    # the old trash first: what it frees may be what the rest needs
    problems = _empty(cleaning, wanted, counts, rows)
    for each in cleaning.carry_out(planned):
        _count(each, counts, kept)
        if each.failed:
            tell_error(f"{each.rollout_id}: {each.why}")
        rows.tell(each.rollout_id, each.done, each.reason, each.why, each.size)
    if not wanted.grace and not stop.asked():
        problems |= _empty(cleaning, wanted, counts, rows)
    for problem in sorted(problems):
        tell_error(problem)
    counts["failed"] += len(problems)
    rows.end()
    if not wanted.quiet:
        tell(_log_line(wanted.directory, counts, kept, cleaning.over, time.monotonic() - begun))
    if wanted.prometheus is not None:
        from ng_capture.files.writing import replace_file
        from ng_capture.retention.gauges import gauges

        replace_file(wanted.prometheus, gauges(counts, kept, cleaning.over, time.time()))
    if stop.asked():
        return _TERMINATED
    return exits.SURROUNDINGS if counts["failed"] or cleaning.over or rows.lost else exits.DONE


def _agreed(planned: Iterable[PlannedRollout], directory: str) -> bool:
    actions = Counter(each.action for each in planned)
    asked = []
    if actions["trash"]:
        asked.append(f"Move {counted(actions['trash'], 'rollout')} of {directory} to its trash")
    if actions["purge"]:
        asked.append(f"delete {counted(actions['purge'], 'tombstone')} for good")
    return not asked or confirmed(f"{' and '.join(asked)}?")


def _empty(cleaning: Cleaning, wanted: Wanted, counts: Counter[str], rows: Rows) -> frozenset[str]:
    """Left-over temporary files, and what was in the trash long enough; gives what could not be deleted, and why."""
    for name in cleaning.temporary_files() if wanted.as_json else ():
        rows.tell(name, "removed", None, _TEMPORARY, None)
    temporary, plans = cleaning.remove_temporary_files(), cleaning.purge_trash(wanted.grace)
    counts["temporary"] += temporary.number
    counts["plans"] += plans.number
    return frozenset((*temporary.problems, *plans.problems))


def _count(each: Carried, counts: Counter[str], kept: Counter[str]) -> None:
    counts[each.done] += 1
    counts["failed"] += each.failed
    if each.done == "kept":
        kept[each.reason or ""] += 1
    else:
        counts["bytes"] += each.size


def _log_line(directory: str, counts: Counter[str], kept: Counter[str], over: int | None, took: float) -> str:
    """One line for the log of a cron job."""
    why = ", ".join(f"{reason} {number:,}" for reason, number in kept.most_common())
    parts = [
        f"{counts['trashed']:,} trashed, {counts['purged']:,} purged ({in_bytes(counts['bytes'])})",
        f"{counts['kept']:,} kept{f' ({why})' if why else ''}",
        f"{counted(counts['temporary'], 'temporary file')}, {counted(counts['plans'], 'plan')} of the trash deleted",
        f"{counts['failed']:,} failed",
    ]
    if over:
        parts.append(f"still {in_bytes(over)} over its budget")
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} gc {directory}: {'; '.join(parts)}; {took:.1f} s"
