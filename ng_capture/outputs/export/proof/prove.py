"""An exported file held against the captures it was made of (policies-and-exports.md 3, the invariants by number).

Its receipt says how it was made; the same is made again, and every row must be what comes out.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from pathlib import Path

import msgspec

from ng_capture.errors import UsageError
from ng_capture.files.listing import Listing
from ng_capture.files.reading import CaptureFile
from ng_capture.outputs.chunks import joined
from ng_capture.outputs.dataset import faults_of
from ng_capture.outputs.documents import ReceiptFile, text_lines
from ng_capture.outputs.export.choices import NO_CHOICE, Export
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import Record
from ng_capture.outputs.export.proof.alignment import Alignment, RowKey, align, row_key
from ng_capture.outputs.export.proof.belonging import Entries, Entry
from ng_capture.outputs.export.proof.comparison import row_differences
from ng_capture.outputs.export.proof.invariants import RECEIPT
from ng_capture.outputs.forms import Form, form_of
from ng_capture.outputs.parts import Part
from ng_capture.outputs.rebuild import Rebuilt, rebuild
from ng_capture.outputs.rebuilding import Masked, Rebuild, Shape
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.outputs.writer import described
from ng_capture.records.json_text import decode_json
from ng_capture.records.snapshot import InputFile
from ng_capture.verdicts.judging import Judging, Policy


class Breach(msgspec.Struct, frozen=True):
    """What a row breaks: an invariant by its number, at a token where it has a place; `row` counts from 0.

    `invariant` is `receipt` for what a receipt, its output and the captures contradict each other in.
    """

    row: int | None
    position: int | None
    invariant: str
    message: str


class _Options(msgspec.Struct, frozen=True):
    to: Shape
    policy: Policy
    policy_model: str | None
    infer_links: bool
    masked: Masked
    rollouts: InputFile | None
    attach_calls: bool = False
    export: Export = NO_CHOICE
    part: Part | None = None


class _Wanted(msgspec.Struct, frozen=True):
    """A row that the file should hold, and the rollout it is of."""

    row: Record
    rollout_id: str


def prove(output: str, receipt: str, listing: Listing, rows: RowsFile | None, jobs: int = 1) -> Iterator[Breach]:
    """Everything in a file that its captures do not bear out; nothing where it is what they make.

    Only the rollouts that the receipt tells of are asked for. Raises UsageError for a receipt that is none, and where
    finished rows are needed that were not given.
    """
    told = ReceiptFile(receipt)
    options = told.options(_Options)
    if options.rollouts is None:
        rows = None
    elif rows is None:
        raise UsageError(f"{receipt}: made with the finished rows {options.rollouts.name}", hint="--rollouts FILE")
    elif (there := described(rows)) is None or there.sha256 != options.rollouts.sha256:
        yield _of_receipt(f"{rows.path} is not the file of finished rows that the receipt tells of")
    yield from map(_of_receipt, _faults(output, told, options))
    making = _Making(told, options, listing, rows, jobs, table=form_of(output) is not Form.JSONL)
    entries = Entries(told, options.part)
    owners: list[str] = []
    wanted: list[RowKey] = []
    for each in making.rows(entries):
        owners.append(each.rollout_id)
        wanted.append(row_key(options.to, each.row))
    found, damage = _found(options.to, output)
    if damage is not None or [key.whole for key in found] != [key.whole for key in wanted]:
        alignment = align(found, wanted)
        if damage is not None:
            alignment = alignment.until(len(found))
        yield from _compared(output, making, alignment, owners)
    if damage is not None:
        yield Breach(len(found), None, "I7", damage)
    yield from map(_of_receipt, entries.contradictions())


def _faults(output: str, receipt: ReceiptFile, options: _Options) -> Iterator[str]:
    """What beside its rows is not as the receipt tells it."""
    data = Path(output)
    if form_of(output) is Form.DIRECTORY:
        data /= Path(receipt.output.name).name
        half = None if options.part is None else options.part.half
        known = FORMATS.get(options.to.value)
        columns = {} if known is None else known.columns
        yield from faults_of(output, half, columns, data.name, receipt.output.sha256)
    if not receipt.describes(data):
        yield f"{data} is not what its receipt describes"


def _of_receipt(message: str) -> Breach:
    return Breach(None, None, RECEIPT, message)


class _Making:
    """Makes the rows again as the receipt says."""

    def __init__(
        self,
        receipt: ReceiptFile,
        options: _Options,
        listing: Listing,
        rows: RowsFile | None,
        jobs: int,
        *,
        table: bool,
    ) -> None:
        self.shape = options.to
        self._table = table
        self._jobs = jobs
        self._rows = rows
        self._told = {entry.rollout_id: entry.files for entry in receipt.rollouts(Entry)}
        self._tool_version = receipt.tool_version
        # what else lies there now had no vote; the group of a rollout may have stood in several shards
        in_shards = options.part is not None and options.part.shard is not None
        self._listing = listing if in_shards else listing.only(self._told)
        self._how = Rebuild(
            shape=options.to,
            judging=Judging(options.policy, options.policy_model, options.infer_links),
            masked=options.masked,
            attach_calls=options.attach_calls,
            export=options.export,
        )

    def rows(self, entries: "Entries | None" = None) -> Iterator[_Wanted]:
        """Every row that the file should hold; `entries` gets to see what they were made of."""
        results: Iterable[Rebuilt] = rebuild(
            self._listing,
            self._rows,
            self._how,
            self._jobs,
            lambda job: not job.rollout_id or job.rollout_id in self._told,
        )
        for result in results if entries is None else entries.watch(results):
            rollout_id = result.unit if result.receipt is None else result.receipt.rollout_id
            for line in result.lines:
                row = decode_json(joined(line)).value
                assert isinstance(row, dict)
                yield _Wanted(self._as_stored(self._as_then(row, rollout_id)), rollout_id)

    def _as_then(self, row: Record, rollout_id: str) -> Record:
        """A neutral row tells of its making: by which version, of which state; the rollout may be sealed since."""
        if self.shape is not Shape.ROWS:
            return row
        sources = [{"name": file.name, "sha256": file.sha256} for file in self._told[rollout_id]]
        return {**row, "sources": sources, "tool_version": self._tool_version}

    def _as_stored(self, row: Record) -> Record:
        if not self._table:
            return row
        from ng_capture.outputs.tables.columns import as_stored

        return as_stored(self.shape, row)


def _found(shape: Shape, output: str) -> tuple[list[RowKey], str | None]:
    """The keys of the rows that can be read, and why those behind them cannot."""
    keys: list[RowKey] = []
    try:
        # those before the damage are kept
        keys.extend(row_key(shape, row) for row in _records(output))
    except UsageError as error:
        return keys, error.message
    return keys, None


def _records(output: str) -> Iterator[object]:
    """The rows of a file; None for a line that is no JSON. Raises UsageError for a table that is damaged."""
    if form_of(output) is not Form.JSONL:
        from ng_capture.outputs.tables.reading import read_records

        yield from read_records(output)
        return
    with CaptureFile(output) as file:
        for line in text_lines(file.lines()):
            try:
                yield decode_json(line.data).value
            except ValueError:
                yield None


def _compared(output: str, making: _Making, alignment: Alignment, owners: list[str]) -> Iterator[Breach]:
    """What is told of a row stands in the order of the rows."""
    misplaced = sorted(_misplaced(alignment, owners), key=_row)
    yield from merge(misplaced, _different(output, making, alignment.pairs), key=_row)


def _row(breach: Breach) -> int:
    return breach.row or 0


def _different(output: str, making: _Making, pairs: Iterable[tuple[int, int]]) -> Iterator[Breach]:
    rows, made = enumerate(_records(output)), enumerate(making.rows())
    for here, there in pairs:
        row = next(row for place, row in rows if place == here)
        wanted = next(each.row for place, each in made if place == there)
        for each in row_differences(making.shape, row, wanted):
            yield Breach(here, each.position, each.invariant, each.message)


def _misplaced(alignment: Alignment, owners: list[str]) -> Iterator[Breach]:
    for row in alignment.repeated:
        yield Breach(row, None, "I5", "the row stands there twice: its tokens are trained twice")
    for row in alignment.strange:
        yield Breach(row, None, "I1", "no capture makes this row")
    for row in alignment.moved:
        yield Breach(row, None, "I20", "the row stands elsewhere than the captures make it")
    for row, wanted in alignment.missing:
        message = f"a row of {owners[wanted]} is missing: what it trains is trained nowhere"
        yield Breach(row, None, "I6", message)
