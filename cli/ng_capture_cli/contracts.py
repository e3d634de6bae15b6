"""`ng-capture contracts`: the map of contracts; and the matrix of conversions that `convert --list` prints."""

import sys
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


def print_matrix(*, as_json: bool) -> None:
    """Every conversion with its losses."""
    from ng_capture.contracts.registry import matrix

    pairs = [Pair(source.name, target.name, sorted(codes)) for source, target, codes in matrix()]
    if as_json:
        for pair in pairs:
            sys.stdout.buffer.write(msgspec.json.encode(pair) + b"\n")
        return
    for pair in pairs:
        sys.stdout.write(f"{pair.source:>10} -> {pair.target:<10} {', '.join(pair.losses) or 'nothing lost'}\n")
