"""`ng-capture gc`: free disks of captures that a durable output covers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ng_capture.retention.asking import Permission

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import parse_name
from ng_capture_cli import options
from ng_capture_cli.quantities import number_of_bytes, patience, seconds
from ng_capture_cli.terminal import tell_error

Directory = Annotated[str | None, typer.Argument(metavar="DIR", help="A capture directory.", show_default=False)]
DeliveredTo = Annotated[
    list[str] | None,
    typer.Option("--delivered-to", metavar="RECEIPT", help="What this receipt covers may go; can be given again."),
]
OlderThan = Annotated[
    str | None, typer.Option("--older-than", metavar="AGE", help="Only what was last written so long ago (14d, 12h).")
]
Rollout = Annotated[
    list[str] | None,
    typer.Option("--rollout", metavar="ID", help="Only these rollouts; without --older-than whatever their age."),
]
WithoutReceipt = Annotated[
    bool, typer.Option("--without-receipt", help="Let trainable rollouts that no receipt names go by age alone.")
]
IncludeMasked = Annotated[bool, typer.Option("--include-masked", help="Let masked rollouts go, once you know why.")]
MaskedOlderThan = Annotated[
    str | None, typer.Option("--masked-older-than", metavar="AGE", help="Their own age (default: --older-than).")
]
TombstoneAge = Annotated[
    str | None, typer.Option("--tombstone-age", metavar="AGE", help="Remove retired tombstones of this age.")
]
TrashGrace = Annotated[str, typer.Option("--trash-grace", metavar="AGE", help="Purge what was in the trash so long.")]
MaxBytes = Annotated[
    str | None,
    typer.Option("--max-bytes", metavar="SIZE", help="Trash the oldest that may go until the rest fits (500GB)."),
]
LockTimeout = Annotated[
    float, typer.Option("--lock-timeout", metavar="SECONDS", min=0, help="How long to wait for a rollout's lock.")
]
Wait = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for another gc to end.")
]


def command(
    directory: Directory = None,
    delivered_to: DeliveredTo = None,
    older_than: OlderThan = None,
    rollout: Rollout = None,
    without_receipt: WithoutReceipt = False,
    include_masked: IncludeMasked = False,
    masked_older_than: MaskedOlderThan = None,
    tombstone_age: TombstoneAge = None,
    trash_grace: TrashGrace = "7d",
    max_bytes: MaxBytes = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", envvar="NG_CAPTURE_GC_JSON", help="One object a rollout.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; without a terminal nothing is asked.")] = False,
    prometheus: Annotated[Path | None, typer.Option("--prometheus", metavar="FILE", help="Also write gauges.")] = None,
    lock_timeout: LockTimeout = 0.0,
    wait: Wait = 0.0,
    allow_network_fs: Annotated[
        bool, typer.Option("--allow-network-fs", help="Work on a network file system, whose locks prove nothing.")
    ] = False,
    quiet: options.Quiet = False,
) -> int:
    """Move captures that a receipt covers into the trash of their directory, and purge the trash after a grace period.

    Nothing goes without a receipt unless it is asked for by name. `ng-capture trash` looks, brings back, empties.
    """
    from ng_capture.retention.clean import Cleaning
    from ng_capture.retention.receipts import read_coverage

    if directory is None:
        raise UsageError("no directory given", hint="ng-capture gc <capture directory> --older-than 14d --dry-run")
    permission = _permission(
        older_than, rollout, without_receipt, include_masked, masked_older_than, tombstone_age, max_bytes
    )
    grace = seconds(trash_grace, "--trash-grace")
    patience(lock_timeout, "--lock-timeout")
    _check_directory(directory, allow_network_fs)
    coverage = read_coverage(delivered_to or ())
    for note in coverage.notes:
        tell_error(note)
    if prometheus is not None:
        _check_gauges(prometheus, directory, delivered_to or (), dry_run)
    listing = options.find_rollouts([directory], None, rollout if max_bytes is None else None, None)
    for name in sorted(set(rollout or ()) - set(listing.ids)):
        tell_error(f"{directory}: no rollout {name}")
    from ng_capture_cli.gc_run import Stop, Wanted, carry_out, show_plan

    if dry_run:
        cleaning = Cleaning(directory, listing, permission, coverage, patience=lock_timeout)
        return show_plan(cleaning, grace, as_json)
    from ng_capture.retention.holder import only_one

    with only_one(directory, patience(wait, "--wait")), Stop() as stop:
        cleaning = Cleaning(directory, listing, permission, coverage, patience=lock_timeout, stopped=stop.asked)
        return carry_out(cleaning, Wanted(directory, grace, as_json, yes, prometheus, quiet), stop)


def _permission(
    older_than: str | None,
    ids: list[str] | None,
    without_receipt: bool,
    include_masked: bool,
    masked_older_than: str | None,
    tombstone_age: str | None,
    max_bytes: str | None,
) -> "Permission":
    from ng_capture.retention.asking import Permission

    if older_than is None and not ids:
        raise UsageError(
            "--older-than or --rollout is wanted: nothing goes by itself", hint="--older-than 14d --dry-run"
        )
    if masked_older_than is not None and not include_masked:
        raise UsageError("--masked-older-than is about --include-masked")
    age = seconds(older_than, "--older-than") if older_than is not None else None
    masked_age = seconds(masked_older_than, "--masked-older-than") if masked_older_than is not None else age
    return Permission(
        older_than=age,
        ids=frozenset(ids) if ids else None,
        without_receipt=without_receipt,
        include_masked=include_masked,
        masked_older_than=masked_age,
        tombstone_age=seconds(tombstone_age, "--tombstone-age") if tombstone_age is not None else None,
        max_bytes=number_of_bytes(max_bytes, "--max-bytes") if max_bytes is not None else None,
    )


def _check_directory(directory: str, allow_network_fs: bool) -> None:
    """Refuse what is no directory, and a file system whose locks other machines need not see."""
    from ng_capture.retention.surroundings import mount_of

    if not directory or not Path(directory).is_dir():
        raise UsageError(f"{directory}: no such directory")
    mount = mount_of(directory)
    if mount is not None and mount.network and not allow_network_fs:
        message = f"{directory}: lies on {mount.kind} ({mount.place}): its locks exclude no writer on another machine"
        raise SurroundingsError(message, hint="run gc on the machine that writes, or --allow-network-fs")


def _check_gauges(place: Path, directory: str, receipts: Sequence[str], dry_run: bool) -> None:
    """Refuse a file of gauges that cannot be written, or that would replace a capture or a receipt."""
    if dry_run:
        raise UsageError("--prometheus tells what a run did: it takes no --dry-run")
    if place.is_dir() or not place.parent.is_dir():
        raise UsageError(f"{place}: is a directory" if place.is_dir() else f"{place.parent}: no such directory")
    here = place.resolve()
    if here.parent == Path(directory).resolve() and parse_name(here.name) is not None:
        raise UsageError(f"{place}: the gauges would replace a capture")
    if here in (Path(receipt).resolve() for receipt in receipts):
        raise UsageError(f"{place}: the gauges would replace a receipt")
