"""`ng-capture validate`: all faults of foreign documents at once."""

import sys
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from ng_capture.contracts.rules import Fault
from ng_capture.errors import UsageError
from ng_capture_cli import exits, options
from ng_capture_cli.convert_report import fault_line
from ng_capture_cli.output import Sink, open_sink
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import BOLD_RED, DIM, YELLOW, Colors, safe, tell

SCHEMA = "ng-capture.validation/1"
_STYLES = {"error": BOLD_RED, "warning": YELLOW, "info": DIM}


class Format(StrEnum):
    """How to print."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"


class ToldValidation(msgspec.Struct, frozen=True):
    """A document as it is printed; `valid` is false where one of its faults is an error."""

    source: str
    contract: str
    valid: bool
    faults: tuple[Fault, ...]


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
    from ng_capture.contracts.validation import validate

    if not files:
        raise UsageError("nothing to check", hint="ng-capture validate <file>")
    form = Format.JSON if as_json else form
    told = [_told(each.source, each.contract, each.faults) for each in validate(files, contract)]
    with open_sink(output) as sink:
        if form is Format.TEXT:
            _print_lines(told, sink, verbose, Colors(color, terminal=output == "-" and sys.stdout.isatty()))
        elif form is Format.JSONL:
            for each in told:
                sink.write(msgspec.json.encode(each) + b"\n")
        else:
            sink.write(msgspec.json.encode({"schema": SCHEMA, "documents": told}) + b"\n")
    if not quiet:
        _tell_summary(told)
    return exits.DONE if all(each.valid for each in told) else exits.FINDINGS


def _told(source: str, contract: str, faults: tuple[Fault, ...]) -> ToldValidation:
    return ToldValidation(source, contract, not any(fault.severity == "error" for fault in faults), faults)


def _print_lines(told: Iterable[ToldValidation], sink: Sink, verbose: bool, colors: Colors) -> None:
    for document in told:
        for fault in document.faults:
            if verbose or fault.severity != "info":
                severity = colors.paint(fault.severity, _STYLES[fault.severity])
                sink.write(f"{severity} {safe(fault_line(document.source, fault))}\n".encode())


def _tell_summary(told: list[ToldValidation]) -> None:
    counts = Counter(fault.severity for document in told for fault in document.faults)
    wrong = sum(not document.valid for document in told)
    of = ", ".join(f"{number:,} {name}" for name, number in sorted(Counter(each.contract for each in told).items()))
    tell(
        f"{counted(len(told), 'document')} ({of}): {counted(counts['error'], 'error')} in {wrong:,}, "
        f"{counted(counts['warning'], 'warning')}."
    )
