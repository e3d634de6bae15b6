"""`ng-capture verify --export`: what an exported file has that its captures do not bear out."""

import sys
from collections import Counter
from pathlib import Path

import msgspec

from ng_capture.errors import UsageError
from ng_capture.files.listing import Listing
from ng_capture_cli import exits
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import safe, tell


def print_proof(
    export: str,
    receipt: str | None,
    listing: Listing,
    rollouts: str | None,
    jobs: int,
    *,
    as_json: bool,
    quiet: bool,
) -> int:
    """One line for each broken invariant; gives the exit code."""
    from ng_capture.outputs.export.proof import prove
    from ng_capture.outputs.receipt import receipt_place
    from ng_capture.outputs.rows_file import RowsFile

    if not Path(export).is_file():
        raise UsageError(f"{export}: no such file")
    place = receipt if receipt is not None else receipt_place(export)
    if not Path(place).is_file():
        raise UsageError(f"{place}: no such receipt", hint="it stands beside what rebuild wrote, or --receipt FILE")
    rows = RowsFile(rollouts) if rollouts is not None else None
    broken: Counter[str] = Counter()
    for breach in prove(export, place, listing, rows, jobs):
        broken[breach.invariant] += 1
        if as_json:
            sys.stdout.buffer.write(msgspec.json.encode(breach) + b"\n")
            continue
        row = "" if breach.row is None else f":{breach.row + 1}"
        position = "" if breach.position is None else f"token {breach.position}: "
        sys.stdout.buffer.write(f"{safe(export)}{row}: {breach.invariant}: {position}{safe(breach.message)}\n".encode())
    if not quiet:
        if broken:
            names = ", ".join(f"{name} {count:,}" for name, count in sorted(broken.items()))
            tell(f"{export}: {counted(broken.total(), 'breach')}: {names}".replace("breachs", "breaches"))
        else:
            tell(f"{export}: every row is what its captures make")
    return exits.FINDINGS if broken else exits.DONE
