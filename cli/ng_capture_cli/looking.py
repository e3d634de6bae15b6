"""What `show` and `explain` look at: the rollouts of a path, one of them by its id, a call by how its id begins."""

import glob
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ng_capture.errors import UsageError
from ng_capture.files.listing import Listing
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.outputs.verify import VerifyTask, verify_tasks
from ng_capture.tokenizer import Tokenizer
from ng_capture.verdicts.judging import Judging
from ng_capture_cli import options
from ng_capture_cli.summary import counted, tell_rows
from ng_capture_cli.terminal import tell

_SHOWN = 5


class Found(msgspec.Struct, frozen=True):
    """The rollouts to look at, where they lie, and the finished rows that came with them."""

    tasks: Iterable[VerifyTask]
    listing: Listing
    rows: RowsFile | None

    def tell_rows(self, quiet: bool) -> bool:
        """Name what is wrong between rows and captures; True if some line is broken or belongs to no rollout."""
        return tell_rows(self.rows, self.listing, quiet)


def find_tasks(
    path: str,
    rollout: str | None,
    rows: str | None,
    judging: Judging,
    include: list[str] | None,
    exclude: list[str] | None,
    output: str,
    tokenizer: str | None,
) -> Found:
    """The rollouts of a path, or the one that is named; raises UsageError where that is not there."""
    chosen = [glob.escape(rollout)] if rollout is not None else include
    listing = options.find_rollouts([path], None, chosen, exclude)
    options.check_output(listing, output, {"the finished rows": rows, **model_files("the tokenizer", tokenizer)})
    finished = RowsFile(rows) if rows is not None else None
    tasks: Iterable[VerifyTask] = verify_tasks(listing, finished, judging)
    if rollout is not None:
        tasks = [task for task in tasks if task.rollout_id == rollout]
        if not tasks:
            raise UsageError(f"{path}: no rollout {rollout}", hint=f"ng-capture show {path}")
    return Found(tasks, listing, finished)


def model_files(what: str, place: str | None) -> dict[str, str | Path | None]:
    """The files of a tokenizer or template by what they are, for `options.check_output`."""
    if place is None or not Path(place).is_dir():
        return {what: place}
    return {f"{what} ({each.name})": each for each in Path(place).iterdir()}


def tell_foreign_ids(tokenizer: Tokenizer | None) -> None:
    """Say so where ids were met that the tokenizer has not: it is another model's."""
    if tokenizer is not None and tokenizer.unknown:
        tell(
            f"{counted(len(tokenizer.unknown), 'id')} not in the tokenizer's vocabulary (the least: "
            f"{min(tokenizer.unknown)}); is it the tokenizer of the policy?"
        )


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
