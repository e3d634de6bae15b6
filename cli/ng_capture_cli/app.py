"""The commands and their names."""

from typing import Annotated

import typer

from ng_capture import __version__
from ng_capture_cli import (
    contracts,
    convert,
    exits,
    explain,
    formats,
    gc,
    health,
    ingest,
    reason,
    rebuild,
    schema,
    show,
    steps,
    trash,
    validate,
    verify,
)

app = typer.Typer(
    name="ng-capture",
    help="Turn capture files of LLM-agent rollouts into training data that can be trusted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"auto_envvar_prefix": "NG_CAPTURE", "help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"ng-capture {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, allow_from_autoenv=False, help="Print the version."
        ),
    ] = False,
) -> None:
    """Turn capture files of LLM-agent rollouts into training data that can be trusted."""


app.command("ingest")(exits.quietly(ingest.command))
app.command("verify")(exits.quietly(verify.command))
app.command("rebuild")(exits.quietly(rebuild.command))
app.command("explain")(exits.quietly(explain.command))
app.command("show")(exits.quietly(show.command))
app.command("steps")(exits.quietly(steps.command))
app.command("health")(exits.quietly(health.command))
app.command("gc")(exits.quietly(gc.command))
app.add_typer(trash.trash)
app.command("convert")(exits.quietly(convert.command))
app.command("validate")(exits.quietly(validate.command))
app.command("contracts")(exits.quietly(contracts.command))
app.command("formats")(exits.quietly(formats.command))
app.command("reason")(exits.quietly(reason.command))
app.command("schema")(exits.quietly(schema.command))
