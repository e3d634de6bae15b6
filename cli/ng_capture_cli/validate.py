"""`ng-capture validate`: all faults of foreign documents at once."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from ng_capture.errors import UsageError
from ng_capture_cli import exits, options
from ng_capture_cli.output import open_sink
from ng_capture_cli.terminal import Colors


class Format(StrEnum):
    """How to print."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"


def command(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Files, folders, or - for standard input.", show_default=False),
    ] = None,
    contract: Annotated[
        str | None,
        typer.Option(
            "--as", envvar="NG_CAPTURE_VALIDATE_AS", metavar="NAME", help="What FILE shall be (default: by content)."
        ),
    ] = None,
    form: Annotated[
        Format,
        typer.Option(
            "--format", "-f", envvar="NG_CAPTURE_VALIDATE_FORMAT", help="Text, one object a file, or one document."
        ),
    ] = Format.TEXT,
    as_json: Annotated[
        bool, typer.Option("--json", envvar="NG_CAPTURE_VALIDATE_JSON", help="Same as --format json.")
    ] = False,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write there instead.")] = "-",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.TheColor = options.Color.AUTO,
) -> int:
    """Check documents of other contracts: every fault at once, with its place and rule.

    Writes nothing. Exit code 1 if one of them has an error; warnings alone are 0.
    """
    from ng_capture.contracts.recognition import recognise
    from ng_capture.contracts.validation import validate
    from ng_capture_cli.validate_report import print_document, print_lines, print_objects, tell_summary, told

    if not files:
        raise UsageError("nothing to check", hint="ng-capture validate <file>")
    form = Format.JSON if as_json else form
    recognition = recognise(files, contract)
    documents = list(map(told, validate(recognition)))
    with open_sink(output) as sink:
        if form is Format.TEXT:
            print_lines(documents, sink, verbose, Colors(color, terminal=output == "-" and sys.stdout.isatty()))
        elif form is Format.JSONL:
            print_objects(documents, sink)
        else:
            print_document(documents, sink)
    if not quiet:
        tell_summary(documents, recognition.passed_over)
    return exits.DONE if all(each.valid for each in documents) else exits.FINDINGS
