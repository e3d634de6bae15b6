"""`ng-capture gc`: free disks of captures that a durable output covers."""

import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from ng_capture.retention.asking import Permission
    from ng_capture.retention.clean import Cleaning
    from ng_capture.retention.plan import PlannedRollout

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import shown
from ng_capture_cli import exits, options
from ng_capture_cli.quantities import in_bytes, number_of_bytes, seconds
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import can_ask, confirmed, safe, tell, tell_error

_TERMINATED = 128 + signal.SIGTERM

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
    typer.Option("--rollout", metavar="ID", help="Only these rollouts; then their age does not matter."),
]
WithoutReceipt = Annotated[
    bool, typer.Option("--without-receipt", help="Let trainable rollouts go by age alone, covered or not.")
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
    as_json: Annotated[bool, typer.Option("--json", help="One object a rollout.")] = False,
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
    _check_directory(directory, allow_network_fs)
    coverage = read_coverage(delivered_to or ())
    for note in coverage.notes:
        tell_error(note)
    if prometheus is not None and not prometheus.parent.is_dir():
        raise UsageError(f"{prometheus.parent}: no such directory")
    listing = options.find_rollouts([directory], None, rollout if max_bytes is None else None, None)
    for name in sorted(set(rollout or ()) - set(listing.ids)):
        tell_error(f"{directory}: no rollout {name}")
    stop = _Stop()
    if dry_run:
        cleaning = Cleaning(directory, listing, permission, coverage)
        _print_plan(cleaning.plan(), as_json)
        for name in cleaning.temporary_files():
            _print_temporary(name, as_json)
        return exits.DONE
    from ng_capture.retention.holder import only_one

    with only_one(directory, wait), stop:
        cleaning = Cleaning(directory, listing, permission, coverage, patience=lock_timeout, stopped=stop.asked)
        return _run(cleaning, grace, as_json, yes, prometheus, directory, quiet, stop)


class _Stop:
    """SIGTERM ends the run behind the rollout that is being moved, not inside it."""

    def __init__(self) -> None:
        self._asked = False
        self._before: object = None

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGTERM, self._ask)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGTERM, self._before)  # type: ignore[arg-type]

    def _ask(self, *_: object) -> None:
        self._asked = True

    def asked(self) -> bool:
        return self._asked


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

    if not Path(directory).is_dir():
        raise UsageError(f"{directory}: no such directory")
    mount = mount_of(directory)
    if mount is not None and mount.network and not allow_network_fs:
        message = f"{directory}: lies on {mount.kind} ({mount.place}): its locks exclude no writer on another machine"
        raise SurroundingsError(message, hint="run gc on the machine that writes, or --allow-network-fs")


def _print_plan(planned: "Iterable[PlannedRollout]", as_json: bool) -> None:
    for each in planned:
        _print(each.rollout_id, each.action, each.reason, each.why, each.size, as_json)


def _print_temporary(name: str, as_json: bool) -> None:
    _print(name, "remove", None, "a temporary file that its writer left", None, as_json)


def _print(name: str, action: str, reason: str | None, why: str, size: int | None, as_json: bool) -> None:
    if as_json:
        told = {"rollout_id": shown(name), "action": action, "reason": reason, "why": why, "bytes": size}
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        return
    word = f"{action}: {reason}" if reason is not None else action
    amount = f" ({in_bytes(size)})" if size is not None else ""
    sys.stdout.buffer.write(f"{safe(name)}: {word}: {safe(why)}{amount}\n".encode())


def _run(
    cleaning: "Cleaning",
    grace: float,
    as_json: bool,
    yes: bool,
    prometheus: Path | None,
    directory: str,
    quiet: bool,
    stop: _Stop,
) -> int:
    begun = time.monotonic()
    planned: Iterable[PlannedRollout] = cleaning.plan()
    if not yes and can_ask():
        planned = list(planned)
        going = sum(each.action != "keep" for each in planned)
        if going and not confirmed(f"Move {counted(going, 'rollout')} of {directory} to its trash?"):
            return exits.DONE
    kept: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for each in cleaning.carry_out(planned):
        counts[each.done] += 1
        counts["failed"] += each.failed
        if each.done == "kept":
            kept[each.reason or ""] += 1
        else:
            counts["bytes"] += each.size
        if each.failed:
            tell_error(f"{each.rollout_id}: {each.why}")
        _print(each.rollout_id, each.done, each.reason, each.why, each.size, as_json)
    if not stop.asked():
        temporary, plans = cleaning.remove_temporary_files(), cleaning.purge_trash(grace)
        counts.update(temporary=temporary.number, plans=plans.number)
        for problem in (*temporary.problems, *plans.problems):
            counts["failed"] += 1
            tell_error(problem)
    if prometheus is not None:
        from ng_capture.files.writing import replace_file
        from ng_capture.retention.gauges import gauges

        replace_file(prometheus, gauges(counts, kept, cleaning.over, time.time()))
    if not quiet:
        tell(_log_line(directory, counts, kept, cleaning.over, time.monotonic() - begun))
    if stop.asked():
        return _TERMINATED
    return exits.SURROUNDINGS if counts["failed"] or cleaning.over else exits.DONE


def _log_line(directory: str, counts: Counter[str], kept: Counter[str], over: int | None, took: float) -> str:
    """One line for the log of a cron job."""
    why = ", ".join(f"{reason} {number:,}" for reason, number in kept.most_common())
    parts = [
        f"{counts['trashed']:,} trashed, {counts['purged']:,} purged ({in_bytes(counts['bytes'])})",
        f"{counts['kept']:,} kept{f' ({why})' if why else ''}",
        f"{counts['temporary']:,} temporary files, {counts['plans']:,} plans of the trash deleted",
        f"{counts['failed']:,} failed",
    ]
    if over:
        parts.append(f"still {in_bytes(over)} over its budget")
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} gc {directory}: {'; '.join(parts)}; {took:.1f} s"
