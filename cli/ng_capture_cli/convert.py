"""`ng-capture convert`: between the contracts around a rollout, every loss told."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ng_capture.contracts.choices import AtifVersion, Options, Profile, Thinking
from ng_capture.errors import SurroundingsError, UsageError
from ng_capture_cli import exits, options


class Subagents(StrEnum):
    """What becomes of embedded trajectories where the target has no place for them."""

    DROP = "drop"
    ROWS = "rows"


Sources = Annotated[
    list[str] | None,
    typer.Argument(metavar="SRC...", help="Files, folders, capture directories, or -.", show_default=False),
]


def command(
    sources: Sources = None,
    contract: Annotated[
        str | None,
        typer.Option(
            "--from", envvar="NG_CAPTURE_CONVERT_FROM", metavar="NAME", help="What SRC is (default: by content)."
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="NAME", help="What to write: `--list` has the names; of any log `capture`."),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT", help="A file, or a folder (DIR/) with a file each.")
    ] = "-",
    profile: Annotated[
        Profile,
        typer.Option("--profile", help="How Gym rows are made of ATIF: whole, as Harbor's mapping, or refused."),
    ] = Profile.NATIVE,
    think: Annotated[
        Thinking, typer.Option("--think", help="Think tags in texts: split in chat only, always, or never.")
    ] = Thinking.AUTO,
    split_think: Annotated[bool, typer.Option("--split-think", help="Same as --think split.")] = False,
    terminus: Annotated[
        bool, typer.Option("--terminus", help="Read the commands out of Terminus messages as tool calls.")
    ] = False,
    subagents: Annotated[
        Subagents, typer.Option("--subagents", help="Embedded trajectories as rows of their own.")
    ] = Subagents.DROP,
    metrics_only: Annotated[
        bool, typer.Option("--metrics-only", help="Also convert calls of which no text is known.")
    ] = False,
    keep_row_extras: Annotated[
        bool, typer.Option("--keep-row-extras", help="Keep fields of a row that the target has no place for.")
    ] = False,
    media_dir: Annotated[
        Path | None, typer.Option("--media-dir", metavar="DIR", help="Write images of data URLs there, beside OUT.")
    ] = None,
    inline_media: Annotated[
        bool, typer.Option("--inline-media", help="Put images that lie beside SRC into the output.")
    ] = False,
    atif_version: Annotated[
        AtifVersion | None, typer.Option("--atif-version", help="1.8 only where a sound asks for it, else 1.7.")
    ] = None,
    agent_name: Annotated[
        str | None, typer.Option("--agent-name", metavar="NAME", help="Where SRC names none.")
    ] = None,
    agent_version: Annotated[
        str | None, typer.Option("--agent-version", metavar="V", help="Where SRC names none.")
    ] = None,
    session_id: Annotated[
        str | None, typer.Option("--session-id", metavar="ID", help="The run that the trajectories belong to.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Write nothing that would lose more than a note.")] = False,
    loss_report: Annotated[
        Path | None, typer.Option("--loss-report", metavar="FILE", help="Write every loss there as JSON.")
    ] = None,
    listing: Annotated[
        bool, typer.Option("--list", help="Print the conversions (of --from, to --to) and what each may lose.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", envvar="NG_CAPTURE_CONVERT_JSON", help="With --list: as JSON.")
    ] = False,
    include: options.Include = None,
    exclude: options.Exclude = None,
    quiet: options.Quiet = False,
) -> int:
    """Write a rollout in another contract; what that cannot hold is told, never filled in.

    Losses do not change the exit code unless --strict is given. Exit code 1 if something was refused or damaged.
    """
    if listing:
        from ng_capture_cli.contracts import print_matrix

        print_matrix(as_json=as_json, source=contract, target=to)
        return exits.DONE
    if not sources or to is None:
        missing = "nothing to convert" if not sources else "--to NAME is wanted"
        raise UsageError(missing, hint="ng-capture convert --list")
    selection = options.selection(include, exclude)
    if to == "capture":
        from ng_capture_cli.convert_logs import convert_logs

        return convert_logs(sources, contract, output, selection, loss_report, quiet)
    from ng_capture.contracts.conversion import Conversion
    from ng_capture.contracts.recognition import recognise
    from ng_capture.contracts.registry import writer_of
    from ng_capture_cli.convert_output import Outputs
    from ng_capture_cli.convert_report import Report

    wanted = Options(
        profile=profile,
        thinking=Thinking.SPLIT if split_think else think,
        terminus=terminus,
        subagents=subagents is Subagents.ROWS,
        metrics_only=metrics_only,
        keep_row_extras=keep_row_extras,
        media_dir=media_dir,
        inline_media=inline_media,
        atif_version=atif_version,
        agent_name=agent_name,
        agent_version=agent_version,
        session_id=session_id,
        selection=selection,
    )
    writer = writer_of(to)
    recognition = recognise(sources, contract)
    report = Report(to, profile, loss_report)
    with Outputs(output, whole=writer.whole, sources=recognition.paths, loss_report=loss_report) as outputs:
        for each in recognition.sources:
            conversion = Conversion(each.reader, writer, wanted, strict, each.contract.writer is writer)
            try:
                for converted in conversion.convert(each.source):
                    report.add(each.contract.name, converted, outputs.take(converted))
            except SurroundingsError as error:
                report.fail(error)
    report.write()
    if not quiet:
        report.tell(output, recognition.passed_over)
    return report.exit_code
