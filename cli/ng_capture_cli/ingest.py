"""`ng-capture ingest`: raw calls, in whatever log, into a capture directory."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ng_capture.errors import UsageError
from ng_capture.files.names import is_rollout_id
from ng_capture.ingest.conflict import OnConflict
from ng_capture_cli import exits, options
from ng_capture_cli.terminal import Colors, tell_error


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
        str | None,
        typer.Option(
            "--from",
            envvar="NG_CAPTURE_INGEST_FROM",
            metavar="FORMAT",
            help="The format of the logs (default: by content).",
        ),
    ] = None,
    rollout_id: Annotated[
        str | None, typer.Option("--rollout-id", metavar="ID", help="The rollout of every call that names none.")
    ] = None,
    rollout_from: Annotated[
        str | None,
        typer.Option("--rollout-from", metavar="FIELD", help="The field that names a call's rollout (`metadata.run`)."),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="The logs are still written: leave a last line that is not whole yet.")
    ] = False,
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
        Format,
        typer.Option(
            "--format", "-f", envvar="NG_CAPTURE_INGEST_FORMAT", help="Text, one object a rollout, or one document."
        ),
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
    from ng_capture_cli.ingest_report import Report

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
    recognition = recognise(sources, log_format, rollout_from, live=live)
    ingestion = Ingestion(recognition, to, wanted)
    report = Report(ingestion.defects)
    form = Format.JSON if as_json else form
    rollouts = report.told(ingestion.write())
    if form is Format.TEXT:
        report.print_lines(rollouts, verbose, Colors(color, terminal=sys.stdout.isatty()))
    elif form is Format.JSONL:
        report.print_objects(rollouts)
    else:
        report.print_document(rollouts)
    for failure in report.unwritten:
        tell_error(f"{failure.rollout_id}: {failure.message}")
    if not quiet:
        report.tell(to, recognition.passed_over)
    if report.unwritten or report.lost:
        return exits.SURROUNDINGS
    return exits.FINDINGS if report.has_errors or not report.summary.rollouts else exits.DONE
