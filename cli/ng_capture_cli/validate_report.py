"""What `validate` prints: a line for each fault, or its documents as data."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ng_capture.contracts.rules import Fault, has_errors
from ng_capture.contracts.validation import Validated
from ng_capture_cli.convert_report import fault_line, tell_passed_over
from ng_capture_cli.output import Sink
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import BOLD_RED, DIM, YELLOW, Colors, safe, tell

SCHEMA = "ng-capture.validation/1"
_STYLES = {"error": BOLD_RED, "warning": YELLOW, "info": DIM}


class ToldValidation(msgspec.Struct, frozen=True):
    """A document as it is printed; `valid` is false where one of its faults is an error."""

    source: str
    contract: str
    valid: bool
    faults: tuple[Fault, ...]


def told(validated: Validated) -> ToldValidation:
    """A document with its verdict."""
    return ToldValidation(validated.source, validated.contract, not has_errors(validated.faults), validated.faults)


def print_lines(told: Iterable[ToldValidation], sink: Sink, verbose: bool, colors: Colors) -> None:
    """A line for each fault; what is only noted where it is asked for."""
    for document in told:
        for fault in document.faults:
            if verbose or fault.severity != "info":
                severity = colors.paint(fault.severity, _STYLES[fault.severity])
                sink.write(f"{severity} {safe(fault_line(document.source, fault))}\n".encode())


def print_objects(told: Iterable[ToldValidation], sink: Sink) -> None:
    """An object for each document."""
    for each in told:
        sink.write(msgspec.json.encode(each) + b"\n")


def print_document(told: list[ToldValidation], sink: Sink) -> None:
    """One document of all of them."""
    sink.write(msgspec.json.encode({"schema": SCHEMA, "documents": told}) + b"\n")


def tell_summary(told: list[ToldValidation], passed_over: Sequence[str]) -> None:
    """How many documents of what kind, and how many faults; then what was passed over."""
    counts = Counter(fault.severity for document in told for fault in document.faults)
    wrong = sum(not document.valid for document in told)
    kinds = Counter(each.contract for each in told)
    of = ", ".join(f"{number:,} {name}" for name, number in sorted(kinds.items()))
    tell(
        f"{counted(len(told), 'document')} ({of}): {counted(counts['error'], 'error')} in {wrong:,}, "
        f"{counted(counts['warning'], 'warning')}."
    )
    if "unknown" in kinds:
        tell("hint: --as NAME says what it is")
    tell_passed_over(passed_over)
