"""`ng-capture contracts`: the map of contracts; and the matrix of conversions that `convert --list` prints."""

import sys
import textwrap
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer

from ng_capture_cli import exits


class Pair(msgspec.Struct, frozen=True):
    """A conversion that is there, and the losses that it may report."""

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    losses: list[str] = msgspec.field(name="may_report")


def command(
    as_json: Annotated[
        bool, typer.Option("--json", envvar="NG_CAPTURE_CONTRACTS_JSON", help="The conversions, one object each.")
    ] = False,
) -> int:
    """Print the map of contracts: what each is authoritative for, how they join, what each conversion loses."""
    if as_json:
        print_matrix(as_json=True)
        return exits.DONE
    from ng_capture.contracts.map import page

    sys.stdout.write(page())
    return exits.DONE


def print_matrix(*, as_json: bool, source: str | None = None, target: str | None = None) -> None:
    """Every conversion with its losses, or those from `source` and to `target`; raises UsageError for unknown names."""
    from ng_capture.contracts.registry import matrix, reader_of, writer_of

    if source is not None:
        reader_of(source)
    if target is not None:
        writer_of(target)
    for one, other, codes in matrix():
        if source in (None, one.name) and target in (None, other.name):
            pair = Pair(one.name, other.name, sorted(codes))
            if as_json:
                sys.stdout.buffer.write(msgspec.json.encode(pair) + b"\n")
            else:
                sys.stdout.write("\n".join(_told(pair)) + "\n")


def _told(pair: Pair) -> Iterator[str]:
    """The pair, and under it a paragraph for each severity, the worst first."""
    from ng_capture.contracts.losses import LOSS_CODES, SEVERITIES

    yield f"{pair.source} -> {pair.target}"
    for severity in SEVERITIES:
        codes = ", ".join(code for code in pair.losses if LOSS_CODES[code].severity == severity)
        if codes:
            yield textwrap.fill(f"  {severity:<12}{codes}", 100, subsequent_indent=" " * 14, break_long_words=False)
