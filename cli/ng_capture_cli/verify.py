"""`ng-capture verify`: judge every rollout; one line per finding."""

import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from ng_capture.outputs.report import RolloutReport, Tally
    from ng_capture.outputs.verify import Unread

from ng_capture.errors import UsageError
from ng_capture.verdicts.judging import Judging, Policy
from ng_capture_cli import exits, options
from ng_capture_cli.export_proof import print_proof
from ng_capture_cli.output import Sink, open_sink
from ng_capture_cli.summary import finding_line, tell_rows, tell_summary
from ng_capture_cli.terminal import Colors, tell_error


class Format(StrEnum):
    """How to print."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"


TheFormat = Annotated[
    Format,
    typer.Option(
        "--format", "-f", envvar="NG_CAPTURE_VERIFY_FORMAT", help="Text, one object a rollout, or one document."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", envvar="NG_CAPTURE_VERIFY_JSON", help="Same as --format json.")]


def command(
    paths: options.Paths = None,
    rollouts: options.Rollouts = None,
    policy: options.ThePolicy = Policy.TERMINAL,
    policy_model: options.PolicyModel = None,
    infer_links: options.InferLinks = False,
    form: TheFormat = Format.TEXT,
    as_json: AsJson = False,
    export: Annotated[
        str | None,
        typer.Option(
            "--export",
            metavar="FILE",
            help="Prove what rebuild wrote against these captures, as its receipt says it was made.",
        ),
    ] = None,
    receipt: Annotated[
        str | None, typer.Option("--receipt", metavar="FILE", help="Its receipt (default FILE.receipt.json).")
    ] = None,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write there instead.")] = "-",
    files_from: options.FilesFrom = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    jobs: options.Jobs = 1,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.TheColor = options.Color.AUTO,
) -> int:
    """Judge every rollout: which may a trainer trust, and why not the others.

    Prints one line per finding and writes nothing anywhere. Exit code 1 if some rollout is masked.
    """
    from ng_capture.outputs.report import Tally
    from ng_capture.outputs.rows_file import RowsFile
    from ng_capture.outputs.verify import Unread, verify

    listing = options.find_rollouts(paths, files_from, include, exclude)
    read = {"the finished rows": rollouts, "the list of paths": files_from}
    options.check_output(listing, output, {**read, "what is proven": export, "the receipt": receipt})
    if export is not None:
        in_json = as_json or form is not Format.TEXT
        return print_proof(export, receipt, listing, rollouts, jobs, output=output, as_json=in_json, quiet=quiet)
    if receipt is not None:
        raise UsageError("--receipt is that of an exported file", hint="--export FILE")
    rows = RowsFile(rollouts) if rollouts is not None else None
    tally, unread = Tally(), list[Unread]()
    results = verify(listing, rows, Judging(policy, policy_model, infer_links), jobs)
    reports = tally.watch(_readable(results, unread))
    form = Format.JSON if as_json else form
    with open_sink(output) as sink:
        if form is Format.TEXT:
            colors = Colors(color, terminal=output == "-" and sys.stdout.isatty())
            _print_findings(reports, sink, verbose, colors)
        elif form is Format.JSONL:
            for report in reports:
                sink.write(msgspec.json.encode(report) + b"\n")
        else:
            _print_document(reports, tally, sink)
    summary = tally.summary()
    faulty = tell_rows(rows, listing, quiet)
    for failure in unread:
        tell_error(failure.message)
    if not quiet:
        tell_summary(summary)
    if unread:
        return exits.SURROUNDINGS
    return exits.FINDINGS if summary.masked or faulty or not summary.rollouts else exits.DONE


def _readable(results: "Iterable[RolloutReport | Unread]", unread: "list[Unread]") -> "Iterator[RolloutReport]":
    from ng_capture.outputs.verify import Unread

    for result in results:
        if isinstance(result, Unread):
            unread.append(result)
        else:
            yield result


def _print_findings(reports: "Iterable[RolloutReport]", sink: Sink, verbose: bool, colors: Colors) -> None:
    for report in reports:
        for finding in report.findings:
            if verbose or finding.severity != "info":
                sink.write(finding_line(report.rollout_id, finding, colors).encode() + b"\n")


def _print_document(reports: "Iterable[RolloutReport]", tally: "Tally", sink: Sink) -> None:
    """One JSON document, written as the reports come: the summary stands last."""
    from ng_capture.outputs.report import REPORT_SCHEMA

    sink.write(b'{"schema":%b,"rollouts":[' % msgspec.json.encode(REPORT_SCHEMA))
    for number, report in enumerate(reports):
        sink.write((b",\n" if number else b"\n") + msgspec.json.encode(report))
    sink.write(b'\n],"summary":%b}\n' % msgspec.json.encode(tally.summary()))
