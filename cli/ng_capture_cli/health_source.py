"""Where `ng-capture health` takes rollouts from: captures that are judged now, or files that were judged before."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ng_capture.errors import UsageError
from ng_capture.files.listing import Listing, Selection, list_rollouts
from ng_capture.outputs.health.captures import Looking, Watch, health_of_captures
from ng_capture.outputs.health.saved import SavedFile, health_of_saved, is_saved
from ng_capture.outputs.receipt import receipt_place
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.verdicts.judging import Judging
from ng_capture_cli.options import check_output
from ng_capture_cli.summary import tell_rows
from ng_capture_cli.terminal import tell, tell_error

if TYPE_CHECKING:
    from ng_capture.outputs.verify import Unread
    from ng_capture.verdicts.health.rollout import RolloutHealth


class Source(Protocol):
    """Gives every rollout once, then tells what was wrong with the input beside the rollouts."""

    def rollouts(self) -> "Iterator[RolloutHealth | Unread]": ...

    def check_output(self, output: str, others: dict[str, str | Path | None]) -> None:
        """Refuse an output that would replace an input."""
        ...

    def tell_faults(self, quiet: bool) -> bool:
        """Name what could not be used; True if there was something."""
        ...


class Captures:
    """Capture directories and files, with finished rows where they are given."""

    def __init__(self, paths: list[str], selection: Selection, rows: str | None, looking: Looking, jobs: int) -> None:
        self._paths = paths
        self._selection = selection
        self._looking = looking
        self._jobs = jobs
        self._listing: Listing = list_rollouts(paths, selection)
        self._rows_path = rows
        self._rows = RowsFile(rows) if rows is not None else None
        self._watch = Watch()

    def rollouts(self) -> "Iterator[RolloutHealth | Unread]":
        if not self._looking.live:
            return health_of_captures(self._listing, self._rows, self._looking, self._jobs)
        # new rollouts and rows appear while they are watched
        self._listing = list_rollouts(self._paths, self._selection)
        self._rows = RowsFile(self._rows_path) if self._rows_path is not None else None
        return self._watch.look(self._listing, self._rows, self._looking)

    def check_output(self, output: str, others: dict[str, str | Path | None]) -> None:
        check_output(self._listing, output, others)

    def tell_faults(self, quiet: bool) -> bool:
        return tell_rows(self._rows, self._listing, quiet)


class Saved:
    """Files of verdicts or rebuilt rollouts."""

    def __init__(self, paths: list[str], selection: Selection) -> None:
        # a receipt beside its output tells of the same rollouts: the output stands for both
        receipts = {receipt_place(path) for path in paths}
        self._files = [SavedFile(path) for path in paths if path not in receipts]
        self._selection = selection

    def rollouts(self) -> "Iterator[RolloutHealth | Unread]":
        return health_of_saved(self._files, self._selection)

    def check_output(self, output: str, others: dict[str, str | Path | None]) -> None:
        inputs = {f"the input {file.path}": file.path for file in self._files}
        inputs |= {f"the receipt of {file.path}": receipt_place(file.path) for file in self._files}
        check_output(Listing(), output, {**others, **inputs})

    def tell_faults(self, quiet: bool) -> bool:
        for file in self._files:
            for fault in file.faults:
                tell_error(f"{fault.path}:{fault.line}: {fault.message}")
            if file.only_rows and not quiet:
                tell(f"{file.path}: no receipt that fits: what the rows do not say is unknown")
        return any(file.faults for file in self._files)


def open_source(paths: list[str], selection: Selection, rows: str | None, looking: Looking, jobs: int) -> Source:
    """The source that the paths name; raises UsageError where they are of both kinds, or options make no sense."""
    saved = [path for path in paths if is_saved(path)]
    if not saved:
        return Captures(paths, selection, rows, looking, jobs)
    if len(saved) < len(paths):
        raise UsageError(f"{saved[0]}: captures and files that were judged before cannot be added up")
    if rows is not None or looking != Looking(Judging()):
        judging = "--rollouts, --policy, --policy-model, --infer-links, --raw-only and --watch"
        raise UsageError(f"{saved[0]}: was judged before: {judging} are for captures")
    return Saved(paths, selection)
