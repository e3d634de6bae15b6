"""`ng-capture steps`: the raw model calls of rollouts, normalised, with their totals."""

import shutil
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from ng_capture.outputs.steps.listing import StepsTally
    from ng_capture.outputs.steps.rollout import RolloutSteps
    from ng_capture.outputs.verify import Unread

from ng_capture.errors import UsageError
from ng_capture.outputs.steps.turn_rule import TurnRule
from ng_capture.verdicts.judging import Judging
from ng_capture_cli import exits, options
from ng_capture_cli.output import Sink, open_sink
from ng_capture_cli.summary import finding_line
from ng_capture_cli.terminal import Colors, tell, tell_error

_WIDTH = 120
_SHOWN = 20


class Format(StrEnum):
    """How to print."""

    TEXT = "text"
    JSONL = "jsonl"
    JSON = "json"


ThePath = Annotated[str | None, typer.Argument(metavar="PATH", help="A capture directory or file.", show_default=False)]
RolloutId = Annotated[
    str | None, typer.Argument(metavar="ROLLOUT", help="A rollout id; without it, all.", show_default=False)
]
TheFormat = Annotated[
    Format,
    typer.Option(
        "--format", "-f", envvar="NG_CAPTURE_STEPS_FORMAT", help="A table, one object a rollout, or one document."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", envvar="NG_CAPTURE_STEPS_JSON", help="Same as --format json.")]
TheTurnRule = Annotated[
    TurnRule,
    typer.Option("--turn-rule", help="Count turns in the conversation of each call, or as NeMo Gym's preview did."),
]
Payloads = Annotated[
    bool, typer.Option("--payloads", help="Keep requests and responses in every step (json and jsonl).")
]


def command(
    path: ThePath = None,
    rollout: RolloutId = None,
    form: TheFormat = Format.TEXT,
    as_json: AsJson = False,
    turn_rule: TheTurnRule = TurnRule.CHAIN,
    payloads: Payloads = False,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write there instead.")] = "-",
    include: options.Include = None,
    exclude: options.Exclude = None,
    jobs: options.Jobs = 1,
    quiet: options.Quiet = False,
    color: options.TheColor = options.Color.AUTO,
) -> int:
    """Show the raw model calls of .capture.jsonl: tokens, cache, latency, errors, tools, turns; no tokens needed.

    Without ROLLOUT a line of totals for each rollout. Exit code 1 if a line could not be read or no call is there.
    """
    if path is None:
        raise UsageError("no path given", hint="ng-capture steps <capture directory> [ROLLOUT]")
    form = Format.JSON if as_json else form
    if payloads and form is Format.TEXT:
        raise UsageError("--payloads: a table holds no requests", hint="ng-capture steps PATH --payloads -f jsonl")
    from ng_capture.outputs.steps.listing import StepsTally, steps_of
    from ng_capture.outputs.steps.reading import HowToRead
    from ng_capture_cli.looking import find_tasks

    found = find_tasks(path, rollout, None, Judging(), include, exclude, output, None)
    watch = _Watch(StepsTally())
    results = watch.over(steps_of(found.tasks, HowToRead(payloads, turn_rule), jobs))
    with open_sink(output) as sink:
        if form is Format.JSON:
            _print_document(results, watch.tally, sink)
        elif form is Format.JSONL:
            for steps in results:
                sink.write(msgspec.json.encode(steps) + b"\n")
        else:
            colors = Colors(color, terminal=output == "-" and sys.stdout is not None and sys.stdout.isatty())
            _print_table(results, None if rollout is not None else found.listing.ids, sink, colors)
    watch.tell(quiet=quiet, sums=rollout is None or form is not Format.TEXT)
    return watch.code


class _Watch:
    """Counts what goes by, and keeps what must be told: what could not be read, the first findings."""

    def __init__(self, tally: "StepsTally") -> None:
        self.tally = tally
        self._unread: list[str] = []
        self._findings: list[str] = []
        self._found = 0
        self._complete = True

    def over(self, results: "Iterable[RolloutSteps | Unread]") -> "Iterator[RolloutSteps]":
        """The rollouts that could be read."""
        from ng_capture.outputs.verify import Unread

        for result in results:
            if isinstance(result, Unread):
                self._unread.append(result.message)
                continue
            self.tally.add(result)
            self._note(result)
            yield result

    @property
    def code(self) -> int:
        if self._unread:
            return exits.SURROUNDINGS
        return exits.DONE if self._complete and self.tally.summary().num_calls else exits.FINDINGS

    def tell(self, *, quiet: bool, sums: bool) -> None:
        """Faults always; sums and hints unless they are not wanted."""
        for line in self._findings:
            tell(line)
        if self._found > _SHOWN:
            tell(f"... and {self._found - _SHOWN:,} more findings: see -f json")
        for message in self._unread:
            tell_error(message)
        if not quiet:
            from ng_capture_cli.steps_screen import summary_lines

            for line in summary_lines(self.tally.summary(), sums=sums):
                tell(line)

    def _note(self, rollout: "RolloutSteps") -> None:
        self._complete = self._complete and rollout.complete
        for finding in rollout.findings:
            if finding.severity != "info":
                self._found += 1
                if self._found <= _SHOWN:
                    self._findings.append(finding_line(rollout.rollout_id, finding))


def _print_table(rollouts: "Iterable[RolloutSteps]", listed: Iterable[str] | None, sink: Sink, colors: Colors) -> None:
    """The rollouts of a list by their ids, or the calls of the one that was named."""
    from ng_capture_cli.steps_screen import rollout_lines, step_lines

    width = shutil.get_terminal_size((_WIDTH, 24)).columns
    if listed is not None:
        lines = rollout_lines(rollouts, listed, width, colors)
    else:
        lines = (line for steps in rollouts for line in step_lines(steps, width, colors))
    for line in lines:
        sink.write(f"{line}\n".encode())


def _print_document(rollouts: "Iterable[RolloutSteps]", tally: "StepsTally", sink: Sink) -> None:
    """One JSON document, written as the rollouts come: the summary stands last."""
    from ng_capture.outputs.steps.listing import STEPS_SCHEMA

    sink.write(b'{"schema":%b,"rollouts":[' % msgspec.json.encode(STEPS_SCHEMA))
    for number, rollout in enumerate(rollouts):
        sink.write((b",\n" if number else b"\n") + msgspec.json.encode(rollout))
    sink.write(b'\n],"summary":%b}\n' % msgspec.json.encode(tally.summary()))
