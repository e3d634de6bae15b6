"""`ng-capture health`: metrics over all rollouts, and gates for CI."""

import contextlib
import math
import sys
import time
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, NoReturn, Self

import msgspec
import typer

if TYPE_CHECKING:
    from ng_capture.files.listing import Selection
    from ng_capture.outputs.health.document import HealthDocument
    from ng_capture.outputs.health.junit import JUnitReport
    from ng_capture.outputs.health.run import Question
    from ng_capture.outputs.health.table import RolloutTable
    from ng_capture.outputs.verify import Unread
    from ng_capture.verdicts.health.rollout import RolloutHealth
    from ng_capture_cli.health_source import Source

from ng_capture.errors import SurroundingsError, UsageError
from ng_capture.files.names import shown
from ng_capture.outputs.health.by import By
from ng_capture.verdicts.judging import Judging, Policy
from ng_capture_cli import exits, options
from ng_capture_cli.output import Sink, open_sink
from ng_capture_cli.terminal import Colors, safe, tell, tell_error

_CLEAR = "\x1b[H\x1b[2J"
_SHOWN = 5
_MOST = 1_000_000_000


class Format(StrEnum):
    """How to print."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"
    GITHUB = "github"
    JUNIT = "junit"
    PROMETHEUS = "prometheus"


Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Capture directories or files; or rebuilt rollouts, receipts, saved verdicts (- is standard input).",
        show_default=False,
    ),
]
TheFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        "-f",
        envvar="NG_CAPTURE_HEALTH_FORMAT",
        help="A screen, one document, a job summary, annotations, a test report, or gauges.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", envvar="NG_CAPTURE_HEALTH_JSON", help="Same as --format json.")]
RawOnly = Annotated[
    bool, typer.Option("--raw-only", help="No tokens are wanted: only .capture.jsonl counts, and nothing is judged.")
]
TheBreakdown = Annotated[By | None, typer.Option("--by", help="The same metrics for each part of the run.")]
Expect = Annotated[
    str | None,
    typer.Option("--expect", metavar="FILE", help="Rollouts asked for: rows (JSONL), or one id a line."),
]
ExpectRollouts = Annotated[
    int | None,
    typer.Option("--expect-rollouts", metavar="N", min=1, max=_MOST, help="How many rollouts were asked for."),
]
MaxMaskFraction = Annotated[
    float | None,
    typer.Option("--max-mask-fraction", metavar="X", min=0, max=1, help="Fail above this share of masked rollouts."),
]
MinSamples = Annotated[
    int | None,
    typer.Option(
        "--min-samples",
        metavar="N",
        min=0,
        help="Judge no gate below N rollouts with a verdict (default: 50 for --max-mask-fraction, as NeMo Gym).",
        show_default=False,
    ),
]
Minima = Annotated[
    list[str] | None,
    typer.Option(
        "--min", envvar="NG_CAPTURE_HEALTH_MIN", metavar="METRIC=X", help="Fail where a metric is below X, or unknown."
    ),
]
Maxima = Annotated[
    list[str] | None,
    typer.Option(
        "--max", envvar="NG_CAPTURE_HEALTH_MAX", metavar="METRIC=X", help="Fail where a metric is above X, or unknown."
    ),
]
Baseline = Annotated[
    str | None, typer.Option("--baseline", metavar="FILE", help="An earlier run: its health -f json, for --max-drop.")
]
MaxDrops = Annotated[
    list[str] | None,
    typer.Option(
        "--max-drop",
        envvar="NG_CAPTURE_HEALTH_MAX_DROP",
        metavar="METRIC=X",
        help="Fail where a metric is more than X below the baseline's.",
    ),
]
Csv = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Also write a table, one row per rollout.")]
Parquet = Annotated[Path | None, typer.Option("--parquet", metavar="FILE", help="The same table as Parquet.")]
Watch = Annotated[
    float | None,
    typer.Option("--watch", metavar="SECONDS", min=0.1, max=86_400, help="Look again and again at a live directory."),
]


def command(
    paths: Paths = None,
    rollouts: options.Rollouts = None,
    policy: options.ThePolicy = Policy.TERMINAL,
    policy_model: options.PolicyModel = None,
    infer_links: options.InferLinks = False,
    raw_only: RawOnly = False,
    by: TheBreakdown = None,
    expect: Expect = None,
    expect_rollouts: ExpectRollouts = None,
    max_mask_fraction: MaxMaskFraction = None,
    min_samples: MinSamples = None,
    minima: Minima = None,
    maxima: Maxima = None,
    baseline: Baseline = None,
    max_drops: MaxDrops = None,
    form: TheFormat = Format.TEXT,
    as_json: AsJson = False,
    output: Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Write there instead.")] = "-",
    csv: Csv = None,
    parquet: Parquet = None,
    watch: Watch = None,
    files_from: options.FilesFrom = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    jobs: options.Jobs = 1,
    quiet: options.Quiet = False,
    color: options.TheColor = options.Color.AUTO,
) -> int:
    """Say what share of what was sampled reaches the trainer, why the rest does not, and whether that is acceptable.

    Exit code 1 if a gate or check failed: an empty directory is never healthy.
    """
    from ng_capture.outputs.health.captures import Looking
    from ng_capture.outputs.health.run import Question
    from ng_capture.verdicts.health.gates import Bound
    from ng_capture_cli.health_source import open_source
    from ng_capture_cli.limits import limits, read_baseline

    form = Format.JSON if as_json else form
    if (max_drops is None) != (baseline is None):
        raise UsageError(
            "--baseline and --max-drop go together", hint="--baseline FILE --max-drop trained_fraction=0.02"
        )
    if watch is not None and not math.isfinite(watch):
        raise UsageError(f"--watch {watch}: a number of seconds is wanted")
    if watch is not None and (form is not Format.TEXT or output != "-" or csv or parquet):
        raise UsageError("--watch draws a screen and writes nothing")
    named = options.named_paths(paths, files_from, "health")
    selection = options.selection(include, exclude)
    question = Question(
        paths=tuple(map(shown, named)),
        gates=limits(max_mask_fraction, min_samples, {Bound.MIN: minima, Bound.MAX: maxima, Bound.MAX_DROP: max_drops}),
        baseline=read_baseline(baseline) if baseline is not None else None,
        expected_ids=_expected_ids(expect, expect_rollouts, selection),
        expected_number=expect_rollouts,
        by=by,
        raw_only=raw_only,
    )
    looking = Looking(Judging(policy, policy_model, infer_links), raw_only=raw_only, live=watch is not None)
    source = open_source(named, selection, rollouts, looking, jobs)
    inputs = {"the finished rows": rollouts, "the list of paths": files_from, "the expected rollouts": expect}
    outputs = {name: str(place) for name, place in (("-o", output), ("--csv", csv), ("--parquet", parquet)) if place}
    for name, place in outputs.items():
        others = {f"what {other} writes": path for other, path in outputs.items() if other != name}
        source.check_output(place, {**inputs, "the baseline": baseline, **others})
    colors = Colors(color, terminal=output == "-" and sys.stdout is not None and sys.stdout.isatty())
    if watch is not None:
        _keep_watching(source, question, watch, colors)
    with _Writers(form, csv, parquet) as writers, open_sink(output) as sink:
        document = writers.check(source, question)
        writers.write(document, sink, colors)
    faulty = source.tell_faults(quiet)
    for message in writers.unread:
        tell_error(message)
    if not quiet:
        _tell_outcome(document, form, output)
    if writers.unread:
        return exits.SURROUNDINGS
    return exits.FINDINGS if document.failed_checks or faulty else exits.DONE


def _expected_ids(expect: str | None, number: int | None, selection: "Selection") -> frozenset[str] | None:
    from ng_capture.outputs.health.expectation import read_expected_ids

    if expect is None:
        return None
    if number is not None:
        raise UsageError("--expect and --expect-rollouts: give one of them")
    return frozenset(filter(selection.takes, read_expected_ids(expect)))


def _keep_watching(source: "Source", question: "Question", seconds: float, colors: Colors) -> NoReturn:
    """Draw the screen anew until the user has seen enough."""
    from ng_capture.outputs.health.run import check_health
    from ng_capture_cli.health_screen import screen

    terminal = sys.stdout is not None and sys.stdout.isatty()
    with open_sink("-") as sink:
        while True:
            try:
                drawn = screen(check_health(source.rollouts(), question, lambda _: None), colors)
            except (SurroundingsError, UsageError) as error:
                # whoever writes there may have it back in a moment
                drawn = f"{safe(error.message)}\n"
            sink.write(
                f"{_CLEAR if terminal else ''}{drawn}  {time.strftime('%H:%M:%S')}, every {seconds:g} s\n".encode()
            )
            sys.stdout.flush()
            time.sleep(seconds)


class _Writers:
    """What is written of a run: the report in its format, and the tables per rollout."""

    def __init__(self, form: Format, csv: Path | None, parquet: Path | None) -> None:
        self.unread: list[str] = []
        self._form = form
        self._places = (csv, parquet)
        self._tables: list[RolloutTable] = []
        self._junit: JUnitReport | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            if any(self._places):
                from ng_capture.outputs.health.table import RolloutTable

                for place, is_parquet in zip(self._places, (False, True), strict=True):
                    if place is not None:
                        self._tables.append(opening.enter_context(RolloutTable(place, parquet=is_parquet)))
            if self._form is Format.JUNIT:
                from ng_capture.outputs.health.junit import JUnitReport

                self._junit = opening.enter_context(JUnitReport())
            self._stack = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def check(self, source: "Source", question: "Question") -> "HealthDocument":
        """Look at every rollout."""
        from ng_capture.outputs.health.run import check_health

        return check_health(source.rollouts(), question, self._see)

    def _see(self, rollout: "RolloutHealth | Unread") -> None:
        from ng_capture.outputs.verify import Unread

        if self._junit is not None:
            self._junit.add(rollout)
        if isinstance(rollout, Unread):
            self.unread.append(rollout.message)
            return
        for table in self._tables:
            table.add(rollout)

    def write(self, document: "HealthDocument", sink: Sink, colors: Colors) -> None:
        """The report."""
        if self._junit is not None:
            self._junit.write(document, sink)
        elif self._form is Format.TEXT:
            from ng_capture_cli.health_screen import screen

            sink.write(screen(document, colors).encode())
        elif self._form is Format.JSON:
            sink.write(msgspec.json.encode(document) + b"\n")
        elif self._form is Format.MARKDOWN:
            from ng_capture.outputs.health.markdown import markdown

            sink.write(markdown(document).encode())
        elif self._form is Format.GITHUB:
            from ng_capture.outputs.health.github import github

            sink.write(github(document).encode())
        else:
            from ng_capture.outputs.health.prometheus import prometheus

            sink.write(prometheus(document, time.time()))


def _tell_outcome(document: "HealthDocument", form: Format, output: str) -> None:
    """Failed checks, where they do not stand on the screen already; and the next command."""
    if not document.metrics.rollouts:
        tell("no rollout found")
    for check in document.failed if form is not Format.TEXT or output != "-" else ():
        examples = f" ({', '.join(check.rollouts[:_SHOWN])})" if check.rollouts else ""
        tell(f"FAIL {check.name}: {check.message}{examples}")
    reasons = document.metrics.reasons
    if reasons:
        tell(f"hint: ng-capture reason {next(iter(reasons))}")
