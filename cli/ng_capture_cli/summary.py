"""How findings and the last lines of a run read: counts, reasons, what to type next."""

from typing import TYPE_CHECKING

from ng_capture.files.listing import Listing
from ng_capture_cli.terminal import BOLD_RED, DIM, NO_COLORS, Colors, safe, tell, tell_error

if TYPE_CHECKING:
    from ng_capture.outputs.report import Summary
    from ng_capture.outputs.rows_file import RowsFile
    from ng_capture.verdicts.findings import Finding

_SHOWN = 5


def finding_line(rollout_id: str, finding: "Finding", colors: Colors = NO_COLORS) -> str:
    """`file:line: reason: message`."""
    place = safe(rollout_id if finding.file is None else finding.file)
    if finding.line is not None:
        place += f":{finding.line}"
    reason = colors.paint(finding.reason, BOLD_RED if finding.severity == "error" else DIM)
    return f"{place}: {reason}: {safe(finding.message)}"


def tell_rows(rows: "RowsFile | None", listing: Listing, quiet: bool) -> bool:
    """Name what is wrong between rows and captures; True if some line is broken or belongs to no rollout."""
    if rows is None:
        return False
    for fault in rows.faults:
        tell_error(f"{rows.path}:{fault.line}: {fault.message}")
    have = set(listing.ids)
    if not quiet:
        _tell_some("capture", "without a row", sorted(rollout_id for rollout_id in have if rollout_id not in rows))
        _tell_some(
            "row",
            "without a capture",
            sorted(name for name in rows.rollout_ids if name not in have and listing.asks_for(name)),
        )
    return bool(rows.faults)


def tell_summary(summary: "Summary") -> None:
    """How many rollouts, and why some are masked."""
    if not summary.rollouts:
        tell("no rollout found")
        return
    retired = f", {summary.retired:,} retired" if summary.retired else ""
    tell(
        f"{counted(summary.rollouts, 'rollout')}, {counted(summary.calls, 'call')}: "
        f"{summary.trainable:,} trainable, {summary.masked:,} masked{retired}."
    )
    if summary.reasons:
        tell("why masked: " + ", ".join(f"{reason} {count:,}" for reason, count in summary.reasons.items()))
        tell(f"hint: ng-capture reason {next(iter(summary.reasons))}")


def counted(count: int, one: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def _tell_some(one: str, lack: str, ids: list[str]) -> None:
    if ids:
        more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
        tell(f"{counted(len(ids), one)} {lack}: {', '.join(ids[:_SHOWN])}{more}")
