"""An exported file held against the captures it was made of (policies-and-exports.md 3, the invariants by number).

Its receipt says how it was made; the same is made again, and every row must be what comes out.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from struct import pack, unpack
from typing import Any

import msgspec

from ng_capture.errors import UsageError
from ng_capture.files.listing import Listing
from ng_capture.files.names import FileKind
from ng_capture.files.reading import CaptureFile
from ng_capture.outputs.chunks import joined
from ng_capture.outputs.dataset import faults_of
from ng_capture.outputs.documents import ReceiptFile, text_lines
from ng_capture.outputs.export.alignment import NOTHING, aligned
from ng_capture.outputs.export.choices import NO_CHOICE, Export
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import Arrays, Record
from ng_capture.outputs.export.reading import UNREADABLE, arrays_of
from ng_capture.outputs.export.text.differences import differences
from ng_capture.outputs.forms import Form, form_of
from ng_capture.outputs.parts import Part
from ng_capture.outputs.rebuild import Rebuilt, rebuild, unit_of
from ng_capture.outputs.rebuilding import Masked, Rebuild, Shape
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.outputs.verify import VerifyTask
from ng_capture.records.json_text import decode_json
from ng_capture.records.snapshot import InputFile
from ng_capture.verdicts.judging import Judging, Policy

_TOLERANCE = 1e-6
_SENTINEL = -9999.0
_SHOWN = 60
_TEXT = (Shape.MESSAGES, Shape.PAIRS)
_OF_THE_ROLLOUT = ("rollout_id", "_ng_rollout_id", "trajectory_ids", "trajectory_index", "n_trajectories", "row_weight")
_BROKEN_BY: Mapping[str, str] = {
    **dict.fromkeys(("reward", "score", "rewards", *_OF_THE_ROLLOUT), "I18"),
    **dict.fromkeys(("group_id", "uid", "group_index"), "I19"),
}
"""What another value in a field breaks; in any other it is I7."""
_MAY_CHANGE = frozenset({"tool_version", "sources"})
"""Fields that tell of the making: by another version, before the rollout was sealed."""


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


class _Entry(msgspec.Struct, frozen=True):
    rollout_id: str
    files: tuple[InputFile, ...]


def prove(output: str, receipt: str, listing: Listing, rows: RowsFile | None, jobs: int = 1) -> Iterator[Breach]:
    """Everything in a file that its captures do not bear out; nothing where it is what they make.

    Raises UsageError for a receipt that is none, and where finished rows are needed that were not given.
    """
    told = ReceiptFile(receipt)
    options = told.options(_Options)
    if options.rollouts is not None and rows is None:
        raise UsageError(f"{receipt}: made with the finished rows {options.rollouts.name}", hint="--rollouts FILE")
    for fault in _faults(output, told, options):
        yield Breach(None, None, "receipt", fault)
    how = Rebuild(
        shape=options.to,
        judging=Judging(options.policy, options.policy_model, options.infer_links),
        masked=options.masked,
        attach_calls=options.attach_calls,
        export=options.export,
    )
    changed = list[Breach]()
    results = _watched(rebuild(listing, rows, how, jobs, _wanted(options.part, how, told)), told, changed)
    made: Iterator[Any] = (decode_json(joined(line)).value for each in results for line in each.lines)
    if options.to is Shape.ROWS and form_of(output) is not Form.JSONL:
        from ng_capture.outputs.tables.columns import in_columns

        made = map(in_columns, made)
    yield from _compared(options.to, _records(output), made)
    yield from changed


def _faults(output: str, receipt: ReceiptFile, options: _Options) -> Iterator[str]:
    data = Path(output)
    if form_of(output) is Form.DIRECTORY:
        data /= Path(receipt.output.name).name
        half = None if options.part is None else options.part.half
        known = FORMATS.get(options.to.value)
        columns = {} if known is None else known.columns
        yield from faults_of(output, half, columns, data.name, receipt.output.sha256)
    if not receipt.describes(data):
        yield f"{data} is not what its receipt describes"


def _wanted(part: Part | None, how: Rebuild, receipt: ReceiptFile) -> Callable[[VerifyTask], bool] | None:
    """Which rollouts belong into this one of several files: those of its half, of a shard those that it tells of."""
    if part is None:
        return None
    told = None if part.shard is None else {entry.rollout_id for entry in receipt.rollouts(_Entry)}

    def is_wanted(job: VerifyTask) -> bool:
        return part.division.half(unit_of(job, how)) == part.half and (told is None or job.rollout_id in told)

    return is_wanted


def _watched(results: Iterable[Rebuilt], receipt: ReceiptFile, changed: list[Breach]) -> Iterator[Rebuilt]:
    """The same results; `changed` gets what the receipt tells otherwise of the captures they were made of."""
    told = {entry.rollout_id: _digests(entry.files) for entry in receipt.rollouts(_Entry)}
    for result in results:
        if result.receipt is not None:
            rollout_id = result.receipt.rollout_id
            there = _digests(result.receipt.files)
            if told.pop(rollout_id, there) != there:
                changed.append(
                    Breach(None, None, "receipt", f"{rollout_id}: its captures are not those of the receipt")
                )
        yield result
    for rollout_id, files in told.items():
        if files:
            changed.append(Breach(None, None, "receipt", f"{rollout_id}: its captures are not among the paths"))


def _digests(files: Iterable[InputFile]) -> frozenset[InputFile]:
    """All but the state, which may have been sealed since."""
    return frozenset(file for file in files if not file.name.endswith(f".{FileKind.STATE}"))


class _Damaged(msgspec.Struct, frozen=True):
    """What stands where a table cannot be read any further."""

    why: str


def _records(output: str) -> Iterator[object]:
    if form_of(output) is not Form.JSONL:
        from ng_capture.outputs.tables.reading import read_records

        try:
            yield from read_records(output)
        except UsageError as error:
            yield _Damaged(error.message)
        return
    with CaptureFile(output) as file:
        for line in text_lines(file.lines()):
            try:
                yield decode_json(line.data).value
            except ValueError:
                yield None


def _compared(shape: Shape, rows: Iterator[object], made: Iterator[object]) -> Iterator[Breach]:
    before: object = None
    index = 0
    for row, wanted in aligned(rows, made, lambda one, other: _alike(shape, one, other)):
        if isinstance(row, _Damaged):
            yield Breach(index, None, "I7", row.why)
            # what stands behind it is not known; what the captures are still is
            deque(made, maxlen=0)
            return
        if wanted is NOTHING:
            again = before is not None and _alike(shape, row, before)
            message = (
                "the row stands there twice: its tokens are trained twice" if again else "no capture makes this row"
            )
            yield Breach(index, None, "I5" if again else "I1", message)
        elif row is NOTHING:
            yield Breach(index, None, "I6", "a row is missing: what it trains is trained nowhere")
            continue
        elif not isinstance(row, dict) or not isinstance(wanted, dict):
            yield Breach(index, None, "I7", "no JSON object")
        elif shape in _TEXT:
            yield from (Breach(index, None, *told) for told in differences(row, wanted))
        elif wanted.get("mask_sample"):
            if row != wanted:
                yield Breach(index, None, "I3", "the row of a masked rollout is not the one that is delivered")
        else:
            yield from _of_row(shape, index, row, wanted)
        before = row
        index += 1


def _alike(shape: Shape, one: object, other: object) -> bool:
    """True for rows that are equal, or hold the same tokens and mask: a table spells the rest otherwise."""
    if one == other:
        return True
    try:
        here, there = arrays_of(shape, one), arrays_of(shape, other)  # type: ignore[arg-type]
    except UNREADABLE:
        return False
    return (here.tokens, here.loss_mask) == (there.tokens, there.loss_mask)


def _of_row(shape: Shape, index: int, row: Record, wanted: Record) -> Iterator[Breach]:
    try:
        found = arrays_of(shape, row)
    except UNREADABLE as error:
        yield Breach(index, None, "I7", f"no row of {shape.value}: {error!r}")
        return
    if not _are_numbers(found):
        yield Breach(index, None, "I7", f"no row of {shape.value}: something in its arrays is no number")
        return
    breaches = [*_own(index, found), *_against(index, found, arrays_of(shape, wanted))]
    yield from breaches
    if not breaches:
        yield from _other_fields(index, row, wanted)


def _are_numbers(found: Arrays) -> bool:
    whole = all(isinstance(each, int) for array in (found.tokens, found.loss_mask) for each in array)
    return whole and all(isinstance(each, int | float) for each in found.log_probs or ())


def _own(index: int, found: Arrays) -> Iterator[Breach]:
    """What a row shows by itself."""
    lengths = {
        len(found.tokens),
        len(found.loss_mask),
        len(found.tokens if found.log_probs is None else found.log_probs),
    }
    if len(lengths) > 1:
        yield Breach(index, None, "I7", f"arrays of {', '.join(map(str, sorted(lengths)))} entries")
    if 1 not in found.loss_mask:
        yield Breach(index, None, "I12", "no token carries loss")
    elif found.loss_mask[0]:
        yield Breach(index, 0, "I11", "nothing predicts the token at position 0")
    for position, (log_prob, mask) in enumerate(zip(found.log_probs or (), found.loss_mask, strict=False)):
        if mask and not (_SENTINEL < log_prob <= _TOLERANCE and math.isfinite(log_prob)):
            yield Breach(index, position, "I8", f"log probability {log_prob} of a trained token")
        elif not mask and log_prob != 0.0:
            yield Breach(index, position, "I9", f"log probability {log_prob} where nothing is trained")


def _against(index: int, found: Arrays, wanted: Arrays) -> Iterator[Breach]:
    """The first difference of each array from what the captures make of it."""
    place = _first(found.tokens, wanted.tokens)
    if place is not None:
        yield Breach(
            index, place, "I1", f"token {_at(found.tokens, place)}, the captures have {_at(wanted.tokens, place)}"
        )
        return
    place = _first(found.loss_mask, wanted.loss_mask)
    if place is not None and _at(found.loss_mask, place) == 1:
        yield Breach(index, place, "I3", "carries loss, and is not to be trained in this row")
    elif place is not None:
        yield Breach(index, place, "I6", "carries no loss, and would be trained in this row")
    if found.log_probs is not None and wanted.log_probs is not None:
        place = _first(_rounded(found.log_probs), _rounded(wanted.log_probs))
        if place is not None:
            held = f"{_at(found.log_probs, place)}, the captures have {_at(wanted.log_probs, place)}"
            yield Breach(index, place, "I32", f"log probability {held}")


def _other_fields(index: int, row: Record, wanted: Record) -> Iterator[Breach]:
    """Rewards, groups and whatever else a row tells."""
    for name in sorted((row.keys() | wanted.keys()) - _MAY_CHANGE):
        found, right = _comparable(row.get(name)), _comparable(wanted.get(name))
        # a value that is no number is not equal to itself
        if found != right and repr(found) != repr(right):
            message = f"{name} is {_shown(row.get(name))}, the captures make it {_shown(wanted.get(name))}"
            yield Breach(index, None, _BROKEN_BY.get(name, "I7"), message)


def _comparable(value: object) -> object:
    return _rounded(value) if isinstance(value, list) and all(isinstance(each, float) for each in value) else value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _first(found: Sequence[object], wanted: Sequence[object]) -> int | None:
    if found == wanted:
        return None
    pairs = zip_longest(found, wanted, fillvalue=NOTHING)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), None)


def _at(values: Sequence[object], place: int) -> object:
    return values[place] if place < len(values) else "none"


def _rounded(values: Sequence[float]) -> list[float]:
    """As 32-bit floats, which tables hold."""
    return [unpack("<f", pack("<f", value))[0] if abs(value) < 3e38 else value for value in values]
