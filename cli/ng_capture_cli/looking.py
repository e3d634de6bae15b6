"""What `show` and `explain` look at: the rollouts of a path, one of them by its id, a call by how its id begins."""

import glob
from collections.abc import Iterable

from ng_capture.errors import UsageError
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.outputs.verify import VerifyTask, verify_tasks
from ng_capture.verdicts.judging import Judging
from ng_capture_cli import options

_SHOWN = 5


def find_tasks(
    path: str,
    rollout: str | None,
    rows: str | None,
    judging: Judging,
    include: list[str] | None,
    exclude: list[str] | None,
    output: str,
) -> Iterable[VerifyTask]:
    """The rollouts of a path, or the one that is named; raises UsageError where that is not there."""
    chosen = [glob.escape(rollout)] if rollout is not None else include
    listing = options.find_rollouts([path], None, chosen, exclude)
    options.check_output(listing, output, {"the finished rows": rows})
    tasks = verify_tasks(listing, RowsFile(rows) if rows is not None else None, judging)
    if rollout is None:
        return tasks
    found = [task for task in tasks if task.rollout_id == rollout]
    if not found:
        raise UsageError(f"{path}: no rollout {rollout}", hint=f"ng-capture show {path}")
    return found


def find_call(calls: Iterable[str], beginning: str) -> str:
    """The call whose id is this or begins so; raises UsageError where none does, or several do."""
    calls = list(calls)
    if beginning in calls:
        return beginning
    found = [call for call in calls if call.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"no call {beginning} in this rollout", hint="ng-capture show PATH ROLLOUT")
    message = f"{beginning} is the beginning of {len(found)} calls: {', '.join(found[:_SHOWN])}"
    raise UsageError(message, hint="ng-capture show PATH ROLLOUT")
