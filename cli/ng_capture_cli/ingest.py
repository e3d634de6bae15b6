"""`ng-capture ingest`: raw calls, in whatever log, into a capture directory."""

import sys
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from ng_capture.ingest.ingest import IngestedRollout
    from ng_capture.records.defects import Defect

from ng_capture.errors import UsageError
from ng_capture.files.names import is_rollout_id
from ng_capture.ingest.store import OnConflict
from ng_capture_cli import exits, options
from ng_capture_cli.summary import counted, finding_line
from ng_capture_cli.terminal import Colors, tell

SCHEMA = "ng-capture.ingest/1"


class Format(StrEnum):
    """How to print."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"


class LogProbs(StrEnum):
    """What the log probabilities are, as the operator knows of the server."""

    RAW = "raw"
    PROCESSED = "processed"
    SAME = "same"
    UNKNOWN = "unknown"


Sources = Annotated[
    list[str] | None,
    typer.Argument(metavar="SRC...", help="Logs: files, folders, or - for standard input.", show_default=False),
]


def command(
    sources: Sources = None,
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="The capture directory; made where it is not there.")
    ] = None,
    log_format: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="The format of the logs (default: by content).")
    ] = None,
    rollout_id: Annotated[
        str | None, typer.Option("--rollout-id", metavar="ID", help="The rollout of every call that names none.")
    ] = None,
    rollout_from: Annotated[
        str | None,
        typer.Option("--rollout-from", metavar="FIELD", help="The field that names a call's rollout (`metadata.run`)."),
    ] = None,
    on_conflict: Annotated[
        OnConflict,
        typer.Option(
            "--on-conflict",
            help="Where DIR holds other tokens of a call: leave its rollout alone, keep what is there, or mask it.",
        ),
    ] = OnConflict.FAIL,
    delta: Annotated[
        bool, typer.Option("--delta", help="Store of a prompt only what its parent's record does not hold.")
    ] = False,
    log_probs: Annotated[
        LogProbs | None,
        typer.Option("--log-probs", help="What the log probabilities are (default: as far as requests tell)."),
    ] = None,
    form: Annotated[
        Format, typer.Option("--format", "-f", help="Text, one object a rollout, or one document.")
    ] = Format.TEXT,
    as_json: Annotated[
        bool, typer.Option("--json", envvar="NG_CAPTURE_INGEST_JSON", help="Same as --format json.")
    ] = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.TheColor = options.Color.AUTO,
) -> int:
    """Read the calls that any engine, proxy or harness logged, and write the token records that all else works on.

    Nothing is tokenised, filled, cut or guessed. The same source twice adds nothing. Exit code 1 if something was wrong
    with a source or a call.
    """
    from ng_capture.ingest.ingest import Ingestion, Wanted
    from ng_capture.ingest.sources.recognise import recognise

    if not sources or to is None:
        missing = "no log given" if not sources else "--to DIR is wanted"
        raise UsageError(missing, hint="ng-capture ingest <logs> --to <capture directory>")
    if to.exists() and not to.is_dir():
        raise UsageError(f"{to}: is no directory")
    if rollout_id is not None and not is_rollout_id(rollout_id):
        raise UsageError(f"--rollout-id {rollout_id}: is no rollout id", hint="[A-Za-z0-9][A-Za-z0-9._-]*")
    wanted = Wanted(
        rollout_id=rollout_id,
        on_conflict=on_conflict,
        delta=delta,
        log_probs_kind=None if log_probs is None else log_probs.value,
    )
    recognition = recognise(sources, log_format, rollout_from)
    ingestion = Ingestion(recognition, to, wanted)
    tally = _Tally()
    form = Format.JSON if as_json else form
    rollouts = tally.watch(ingestion.write())
    if form is Format.TEXT:
        _print_findings(ingestion.defects, rollouts, verbose, Colors(color, terminal=sys.stdout.isatty()))
    elif form is Format.JSONL:
        for rollout in rollouts:
            sys.stdout.buffer.write(msgspec.json.encode(rollout) + b"\n")
        for defect in ingestion.defects:
            sys.stdout.buffer.write(msgspec.json.encode({"defect": defect}) + b"\n")
    else:
        _print_document(ingestion.defects, rollouts)
    if not quiet:
        tally.tell(to, recognition.passed_over)
    return exits.FINDINGS if tally.errors or _is_error(ingestion.defects) or not tally.rollouts else exits.DONE


def _is_error(defects: "Iterable[Defect]") -> bool:
    from ng_capture.verdicts.reasons import severity_of

    return any(severity_of(defect.reason) == "error" for defect in defects)


class _Tally:
    """What a run did, counted as its rollouts come."""

    def __init__(self) -> None:
        self.rollouts = 0
        self.errors = 0
        self._actions: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()

    def watch(self, rollouts: "Iterable[IngestedRollout]") -> "Iterable[IngestedRollout]":
        for rollout in rollouts:
            self.rollouts += 1
            self.errors += _is_error(rollout.defects)
            self._actions.update(call.action for call in rollout.calls)
            self._reasons.update(defect.reason for defect in rollout.defects)
            yield rollout

    def tell(self, to: Path, passed_over: Iterable[str]) -> None:
        """The last lines of a run."""
        actions, over = self._actions, list(passed_over)
        parts = [
            f"{actions['added']:,} added",
            f"{actions['there']:,} there already",
            f"{actions['left_out']:,} without a record",
        ]
        if actions["refused"]:
            parts.append(f"{actions['refused']:,} refused")
        if over:
            tell(f"{counted(len(over), 'file')} passed over, no log that is known: {', '.join(over[:3])}")
        calls = counted(sum(actions.values()), "call")
        tell(f"{counted(self.rollouts, 'rollout')}, {calls}: {', '.join(parts)}.")
        if self._reasons:
            tell("found: " + ", ".join(f"{reason} {count:,}" for reason, count in self._reasons.most_common()))
        if self.rollouts:
            tell(f"hint: ng-capture verify {to}")


def _print_findings(
    defects: "Iterable[Defect]", rollouts: "Iterable[IngestedRollout]", verbose: bool, colors: Colors
) -> None:
    from ng_capture.verdicts.findings import find

    def tell_all(place: str, found: "Iterable[Defect]") -> None:
        for defect in found:
            finding = find(defect)
            if verbose or finding.severity != "info":
                sys.stdout.buffer.write(finding_line(place, finding, colors).encode() + b"\n")

    tell_all("ingest", defects)
    for rollout in rollouts:
        tell_all(rollout.rollout_id, rollout.defects)


def _print_document(defects: "Iterable[Defect]", rollouts: "Iterable[IngestedRollout]") -> None:
    """One JSON document, written as the rollouts come."""
    write = sys.stdout.buffer.write
    write(b'{"schema":%b,"defects":%b,"rollouts":[' % (msgspec.json.encode(SCHEMA), msgspec.json.encode(list(defects))))
    for number, rollout in enumerate(rollouts):
        write((b",\n" if number else b"\n") + msgspec.json.encode(rollout))
    write(b"\n]}\n")
