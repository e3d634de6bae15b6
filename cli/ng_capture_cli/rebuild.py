"""`ng-capture rebuild`: token-bearing rollouts or training rows, and the receipt that covers them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ng_capture.outputs.rebuild import Rebuilt
    from ng_capture.outputs.receipt import ReceiptRollout
    from ng_capture.outputs.report import Tally
    from ng_capture.outputs.rows_file import RowsFile

from ng_capture.errors import UsageError
from ng_capture.files.listing import Listing
from ng_capture.outputs.export.choices import AdvantageOf, Export, OnOverflow, RewardSplit, Weight
from ng_capture.outputs.forms import Form
from ng_capture.outputs.parts import Division
from ng_capture.outputs.rebuilding import Masked, Rebuild, Shape
from ng_capture.verdicts.judging import Judging, Policy
from ng_capture_cli import exits, export_options, options
from ng_capture_cli.accounts import Accounts
from ng_capture_cli.output import refuse_compressed
from ng_capture_cli.summary import counted, finding_line, tell_rows, tell_summary
from ng_capture_cli.terminal import tell, tell_error

_SHOWN = 20


def command(
    paths: options.Paths = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="OUT", help="JSONL; .parquet and .arrow are what they say; - pipes."),
    ] = None,
    rollouts: options.Rollouts = None,
    to: Annotated[
        Shape,
        typer.Option(
            "--to",
            parser=export_options.shape_named,
            metavar="FORMAT",
            help="Finished rows, one training row per chain (`rows`), or a format of `formats`.",
        ),
    ] = Shape.ROLLOUTS,
    policy: options.ThePolicy = Policy.TERMINAL,
    policy_model: options.PolicyModel = None,
    infer_links: options.InferLinks = False,
    masked: Annotated[Masked, typer.Option("--masked", help="Keep masked rollouts as rows that say so, or not.")] = (
        Masked.KEEP
    ),
    attach_calls: Annotated[
        bool, typer.Option("--attach-calls", help="Fold the model calls of .capture.jsonl into each finished row.")
    ] = False,
    seal: Annotated[bool, typer.Option("--seal", help="Freeze each undamaged rollout first, under its lock.")] = False,
    receipt: Annotated[
        str | None, typer.Option("--receipt", metavar="FILE", help="Where the receipt goes (default OUT.receipt.json).")
    ] = None,
    max_length: export_options.MaxLength = None,
    on_overflow: export_options.Overflow = OnOverflow.DROP,
    mask_truncated: export_options.MaskTruncated = False,
    min_trainable: export_options.MinTrainable = 1,
    reward: export_options.Reward = RewardSplit.FULL,
    reward_field: export_options.RewardField = None,
    group_by: export_options.GroupBy = None,
    advantage: export_options.Advantage = AdvantageOf.NONE,
    weight: export_options.RowWeight = Weight.ROLLOUT,
    min_gap: export_options.MinGap = None,
    split_by: export_options.Split = None,
    val: export_options.Val = None,
    shard_size: export_options.ShardSize = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would become of every token.")] = False,
    files_from: options.FilesFrom = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    jobs: options.Jobs = 1,
    quiet: options.Quiet = False,
) -> int:
    """Rebuild what can be trusted; masked rollouts stay visible and are never trained.

    Writes OUT whole or not at all, then OUT.receipt.json. Exit code 1 if no rollout is trainable.
    """
    from ng_capture.outputs.dividing import DividedWriter
    from ng_capture.outputs.rebuild import rebuild
    from ng_capture.outputs.report import Tally
    from ng_capture.outputs.rows_file import RowsFile
    from ng_capture.outputs.writer import RebuildWriter, described

    export = Export(
        max_length=max_length,
        on_overflow=on_overflow,
        mask_truncated=mask_truncated,
        min_trainable=min_trainable,
        reward=reward,
        reward_field=reward_field,
        group_by=group_by,
        advantage=advantage,
        weight=weight,
        min_gap=min_gap,
    )
    division = export_options.division_of(split_by, val, shard_size)
    output = _checked_output(output, receipt, dry_run=dry_run, seal=seal)
    if attach_calls and to is not Shape.ROLLOUTS:
        raise UsageError("--attach-calls: training rows hold no calls", hint="ng-capture steps PATH -f jsonl")
    form = Form.JSONL if dry_run else export_options.form_of(to, output)
    if form is Form.DIRECTORY:
        # it may be named with a slash behind it
        output = str(Path(output))
    export_options.check_export(to, export, division, with_rows=rollouts is not None)
    export_options.check_policy(to, policy)
    if not dry_run:
        export_options.check_division(to, division, output, receipt, with_rows=rollouts is not None)
    listing = options.find_rollouts(paths, files_from, include, exclude)
    inputs = {"the finished rows": rollouts, "the list of paths": files_from}
    options.check_output(listing, output, {**inputs, "the receipt": receipt})
    options.check_output(listing, receipt or "-", inputs)
    rows = RowsFile(rollouts) if rollouts is not None else None
    how = Rebuild(
        shape=to,
        judging=Judging(policy, policy_model, infer_links),
        masked=masked,
        sealing=seal,
        attach_calls=attach_calls,
        export=export,
        form=form,
    )
    tally = Tally()
    watch = _Watch(tally, quiet=quiet)
    results = watch.over(rebuild(listing, rows, how, jobs))
    if dry_run:
        accounts = Accounts()
        accounts.print_all(results)
        return _ended(watch, tally, rows, listing, quiet)
    if division == Division():
        with RebuildWriter(output, receipt, how, described(rows)) as writer:
            writer.write_all(results)
        written = [(output, writer.rows, writer.size)]
    else:

        def check(name: str) -> None:
            options.check_output(listing, name, inputs)

        with DividedWriter(output, how, described(rows), division, check) as parts:
            parts.write_all(results)
        written = parts.written
    code = _ended(watch, tally, rows, listing, quiet)
    if not quiet and output != "-":
        for name, count, size in written:
            tell(f"wrote {counted(count, 'row')}, {counted(size, 'byte')} to {name}")
    return code


def _ended(watch: "_Watch", tally: "Tally", rows: "RowsFile | None", listing: Listing, quiet: bool) -> int:
    """Tell how it went; gives the exit code."""
    for failure in watch.failures:
        tell_error(failure)
    faulty = tell_rows(rows, listing, quiet)
    summary = tally.summary()
    if not quiet:
        tell_summary(summary)
        if watch.left_out:
            reasons = watch.left_out.most_common()
            tell(f"rows left out: {', '.join(f'{reason} {count:,}' for reason, count in reasons)}")
            tell(f"hint: ng-capture reason {reasons[0][0]}")
        if watch.ungrouped:
            tell(f"rows without a group: {watch.ungrouped:,}; a trainer may compare them with one another")
            tell("hint: --group-by FIELD, of the finished rows")
    if watch.failures:
        return exits.SURROUNDINGS
    return exits.FINDINGS if faulty or not summary.trainable else exits.DONE


def _checked_output(output: str | None, receipt: str | None, *, dry_run: bool, seal: bool) -> str:
    if dry_run and (output is not None or receipt is not None or seal):
        message = "--dry-run writes nothing: it takes no -o, no --receipt and no --seal"
        raise UsageError(message, hint="ng-capture rebuild <capture directory> --dry-run")
    if not dry_run and output is None:
        raise UsageError("-o OUT is wanted", hint="ng-capture rebuild <capture directory> -o OUT")
    if output is not None:
        refuse_compressed(output)
    return output or "-"


class _Watch:
    """Counts what goes by, and tells as it happens what masks a rollout: the first findings, then how many more."""

    def __init__(self, tally: "Tally", *, quiet: bool) -> None:
        self.failures: list[str] = []
        self._tally = tally
        self.left_out: Counter[str] = Counter()
        self.ungrouped = 0
        self._quiet = quiet
        self._findings = 0

    def over(self, results: "Iterable[Rebuilt]") -> "Iterator[Rebuilt]":
        """The same results."""
        for result in results:
            if result.failure is not None:
                self.failures.append(result.failure)
            self.left_out.update(each.reason for each in result.left_out)
            self.ungrouped += result.ungrouped
            if result.notice is not None:
                tell(result.notice)
            if result.receipt is not None:
                self._tally.add(result.receipt.verdict, result.receipt.reasons, result.calls)
                self._tell(result.receipt)
            yield result
        if self._findings > _SHOWN and not self._quiet:
            tell(f"... and {self._findings - _SHOWN:,} more findings: see ng-capture verify")

    def _tell(self, rollout: "ReceiptRollout") -> None:
        for finding in rollout.findings if rollout.verdict == "masked" else ():
            if finding.severity == "error":
                self._findings += 1
                if self._findings <= _SHOWN and not self._quiet:
                    tell(finding_line(rollout.rollout_id, finding))
