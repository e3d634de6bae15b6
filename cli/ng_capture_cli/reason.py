"""`ng-capture reason`: what a reason means and what to do about it."""

from typing import Annotated

import typer

from ng_capture.errors import UsageError
from ng_capture.verdicts.reasons import CONSEQUENCES, REASONS
from ng_capture_cli import exits


def command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A reason, as verify prints it.")] = None,
) -> int:
    """Say what a reason means, what it does to a rollout, and what to do; without NAME, list all."""
    if name is None:
        width = max(map(len, REASONS))
        section = None
        for reason in REASONS.values():
            if reason.section != section:
                section = reason.section
                typer.echo(f"\n{section}")
            typer.echo(f"  {reason.name:<{width}}  {reason.severity:<7}  {reason.meaning}")
        return exits.DONE
    if name not in REASONS:
        raise UsageError(f"{name}: no such reason", hint="ng-capture reason")
    reason = REASONS[name]
    typer.echo(f"{reason.name} ({reason.severity})")
    typer.echo(f"  means      {reason.meaning}")
    typer.echo(f"  effect     {CONSEQUENCES[reason.severity]}")
    typer.echo(f"  what to do {reason.what_to_do}")
    return exits.DONE
