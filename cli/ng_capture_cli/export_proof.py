"""`ng-capture verify --export`: what an exported file has that its captures do not bear out."""

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from ng_capture.outputs.export.proof import Breach

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
    from ng_capture.outputs.dataset import halves_of
    from ng_capture.outputs.export.proof import prove
    from ng_capture.outputs.receipt import receipt_place
    from ng_capture.outputs.rows_file import RowsFile

    # a directory may be named with a slash behind it
    export = str(Path(export))
    if not Path(export).exists():
        raise UsageError(f"{export}: no such file")
    parts = halves_of(export) or [export]
    if receipt is not None and parts != [export]:
        raise UsageError("a split dataset has two receipts: --receipt FILE is one", hint=f"--export {parts[0]}")
    places = [receipt if receipt is not None else receipt_place(part) for part in parts]
    for place in places:
        if not Path(place).is_file():
            raise UsageError(f"{place}: no such receipt", hint="it stands beside what rebuild wrote, or --receipt FILE")
    rows = RowsFile(rollouts) if rollouts is not None else None
    broken: Counter[str] = Counter()
    for part, place in zip(parts, places, strict=True):
        for breach in prove(part, place, listing, rows, jobs):
            broken[breach.invariant] += 1
            _print(part, breach, as_json=as_json)
    if not quiet:
        if broken:
            names = ", ".join(f"{name} {count:,}" for name, count in sorted(broken.items()))
            tell(f"{export}: {counted(broken.total(), 'breach')}: {names}".replace("breachs", "breaches"))
        else:
            tell(f"{export}: every row is what its captures make")
    return exits.FINDINGS if broken else exits.DONE


def _print(export: str, breach: "Breach", *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(breach) + b"\n")
        return
    row = "" if breach.row is None else f":{breach.row + 1}"
    position = "" if breach.position is None else f"token {breach.position}: "
    sys.stdout.buffer.write(f"{safe(export)}{row}: {breach.invariant}: {position}{safe(breach.message)}\n".encode())
