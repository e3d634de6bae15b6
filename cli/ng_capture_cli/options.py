"""Options that several commands share."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ng_capture.tokenizer import Tokenizer

from ng_capture.errors import UsageError
from ng_capture.files.listing import Listing, Selection, list_rollouts
from ng_capture.files.names import parse_name
from ng_capture.verdicts.judging import Policy


class Color(StrEnum):
    """When to color the output."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH...", help="Capture directories, or files of single rollouts.", show_default=False),
]
FilesFrom = Annotated[
    Path | None, typer.Option("--files-from", metavar="FILE", help="Read more paths from FILE, one a line.")
]
Include = Annotated[
    list[str] | None, typer.Option("--include", metavar="ID", help="Only rollouts whose id matches (wildcards * ? []).")
]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="ID", help="Not the rollouts whose id matches.")
]
Rollouts = Annotated[
    str | None, typer.Option("--rollouts", metavar="FILE", help="Finished rows (JSONL) that say what was scored.")
]
ThePolicy = Annotated[Policy, typer.Option("--policy", help="Which chains are delivered.")]
PolicyModel = Annotated[
    str | None,
    typer.Option("--policy-model", metavar="NAME", help="The model that is trained; other models' calls are left out."),
]
InferLinks = Annotated[
    bool, typer.Option("--infer-links", help="Find parents by token ids where no record of a rollout has links.")
]
TheTokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer", metavar="PATH_OR_NAME", help="tokenizer.json(.gz), SentencePiece model, folder, or cached name."
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes; never changes a byte of the output.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary, no hints.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also print what is only noted (severity info).")]
TheColor = Annotated[Color, typer.Option("--color", help="When to color.")]


def check_output(listing: Listing, output: str, others: dict[str, str | Path | None]) -> None:
    """Refuse an output that would replace one of the files named in `others`, or a capture that is read."""
    if output == "-":
        return
    place = Path(output).resolve()
    for what, other in others.items():
        if other is not None and str(other) != "-" and Path(other).resolve() == place:
            raise UsageError(f"{output}: the output would replace {what}")
    name = parse_name(place.name)
    read = listing.get(name.rollout_id) if name is not None and name.rollout_id in listing else None
    if read is not None and Path(read.directory).resolve() == place.parent:
        raise UsageError(f"{output}: the output would replace a capture that is read")


def named_paths(paths: list[str] | None, files_from: Path | None, command: str) -> list[str]:
    """The paths of a command line; raises UsageError where it names none."""
    named = list(paths or [])
    if files_from is not None:
        try:
            named += [line for line in files_from.read_text("utf-8").splitlines() if line.strip()]
        except (OSError, ValueError) as error:
            raise UsageError(f"{files_from}: cannot be read as a list of paths: {error}") from error
    if not named:
        raise UsageError("no path given", hint=f"ng-capture {command} <capture directory>")
    return named


def selection(include: list[str] | None, exclude: list[str] | None) -> Selection:
    """Which rollout ids a command line asks for."""
    return Selection(tuple(include or ()), tuple(exclude or ()))


def load_tokenizer(place: str | None) -> "Tokenizer | None":
    """The tokenizer of a command line, None where it names none; raises UsageError where there is none."""
    if place is None:
        return None
    from ng_capture.tokenizer import load_tokenizer

    return load_tokenizer(place)


def find_rollouts(
    paths: list[str] | None, files_from: Path | None, include: list[str] | None, exclude: list[str] | None
) -> Listing:
    """The rollouts that a command line names; raises UsageError where it names no path, or one that is not there."""
    return list_rollouts(named_paths(paths, files_from, "verify"), selection(include, exclude))
