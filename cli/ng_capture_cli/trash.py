"""`ng-capture trash`: look into the trash of a capture directory, bring rollouts back, empty it."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from ng_capture.retention.trash import TrashPlan

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture_cli import exits
from ng_capture_cli.quantities import in_bytes, seconds
from ng_capture_cli.summary import counted
from ng_capture_cli.terminal import confirmed, safe, tell, tell_error

trash = typer.Typer(
    name="trash",
    help="Look into the trash of a capture directory, bring rollouts back, empty it.",
    no_args_is_help=True,
)

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The capture directory.")]
AsJson = Annotated[bool, typer.Option("--json", envvar="NG_CAPTURE_TRASH_LS_JSON", help="One object a rollout.")]
LockTimeout = Annotated[
    float, typer.Option("--lock-timeout", metavar="SECONDS", min=0, help="How long to wait for a lock.")
]


def list_trash(directory: Directory, as_json: AsJson = False) -> int:
    """List what lies in the trash."""
    problems = 0
    for plan in _plans(directory):
        try:
            rollouts = plan.rollouts()
        except SurroundingsError as error:
            problems += 1
            tell_error(error.message)
            continue
        for rollout in filter(plan.holds, rollouts):
            size = sum(file.size for file in rollout.files) + (rollout.state.size if rollout.state else 0)
            if as_json:
                told = {"plan": plan.name, "rollout_id": rollout.rollout_id, "why": rollout.why, "bytes": size}
                sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
            else:
                line = f"{plan.name}  {safe(rollout.rollout_id)}  {in_bytes(size)}  {safe(rollout.why)}\n"
                sys.stdout.buffer.write(line.encode())
    return exits.SURROUNDINGS if problems else exits.DONE


def restore_from_trash(
    directory: Directory,
    names: Annotated[list[str], typer.Argument(metavar="ROLLOUT...", help="Rollout ids, or names of plans.")],
    lock_timeout: LockTimeout = 10.0,
) -> int:
    """Bring rollouts back as they were: the same bytes, the same times, writable again."""
    from ng_capture.retention.holder import only_one
    from ng_capture.retention.restore import restore

    found, problems = set[str](), 0
    _check(directory)
    with only_one(directory, lock_timeout):
        for plan in reversed(_plans(directory)):
            for rollout in plan.rollouts():
                wanted = {rollout.rollout_id, plan.name} & set(names)
                known = rollout.rollout_id in found
                found |= wanted
                if not wanted or known:
                    continue
                found.add(rollout.rollout_id)
                result = restore(plan, rollout, patience=lock_timeout)
                if result.problem is not None:
                    problems += 1
                    tell_error(f"{result.rollout_id}: stays in the trash: {result.problem}")
                else:
                    sys.stdout.buffer.write(f"{safe(result.rollout_id)}: restored from {plan.name}\n".encode())
    missing = [name for name in names if name not in found]
    if missing:
        message, hint = f"{directory}: not in its trash: {', '.join(missing)}", f"ng-capture trash ls {directory}"
        if not found:
            raise UsageError(message, hint=hint)
        tell_error(message, hint)
    return exits.SURROUNDINGS if problems or missing else exits.DONE


def purge_trash(
    directory: Directory,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Only plans of this age (default: all of them).")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; without a terminal nothing is asked.")] = False,
) -> int:
    """Delete what lies in the trash for good."""
    from ng_capture.retention.holder import only_one
    from ng_capture.retention.restore import purge
    from ng_capture.retention.surroundings import file_system_now

    _check(directory)
    age = seconds(older_than, "--older-than") if older_than is not None else -math.inf
    with only_one(directory, 0.0):
        now = file_system_now(directory)
        plans = [plan for plan in _plans(directory) if now - plan.made_at >= age]
        if plans and not yes and not confirmed(f"Delete {counted(len(plans), 'plan')} of {directory} for good?"):
            return exits.DONE
        freed, problems = 0, 0
        for plan in plans:
            try:
                freed += purge(plan)
            except SurroundingsError as error:
                problems += 1
                tell_error(error.message, error.hint)
    tell(f"{counted(len(plans) - problems, 'plan')} deleted, {in_bytes(freed)} freed")
    return exits.SURROUNDINGS if problems else exits.DONE


def _plans(directory: str) -> "list[TrashPlan]":
    from ng_capture.retention.trash import plans_of

    _check(directory)
    return list(plans_of(directory))


def _check(directory: str) -> None:
    if not directory or not Path(directory).is_dir():
        raise UsageError(f"{directory}: no such directory")


trash.command("ls")(exits.quietly(list_trash))
trash.command("restore")(exits.quietly(restore_from_trash))
trash.command("purge")(exits.quietly(purge_trash))
