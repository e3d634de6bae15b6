"""Options of `ng-capture rebuild` that shape training rows, and what they may be asked for."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ng_capture.errors import UsageError
from ng_capture.outputs.export.choices import NO_CHOICE, AdvantageOf, Export, OnOverflow, RewardSplit, Weight
from ng_capture.outputs.forms import LINES, LINES_OR_TABLE, Form, form_to_write
from ng_capture.outputs.parts import Division
from ng_capture.outputs.rebuilding import ALIASES, Shape
from ng_capture.verdicts.judging import Policy

_OF_FILES = (".json", ".jsonl", ".parquet", ".arrow")

MaxLength = Annotated[int | None, typer.Option("--max-length", metavar="N", min=2, help="The most tokens of a row.")]
Overflow = Annotated[
    OnOverflow,
    typer.Option(
        "--on-overflow", help="A longer row is left out, cut behind its last whole call, cut, or stops the run."
    ),
]
MaskTruncated = Annotated[
    bool,
    typer.Option(
        "--mask-truncated",
        help="No loss on a last answer that stopped at its length limit.",
    ),
]
MinTrainable = Annotated[
    int,
    typer.Option(
        "--min-trainable",
        metavar="N",
        min=1,
        help="The fewest trained tokens of a row.",
    ),
]
Reward = Annotated[
    RewardSplit,
    typer.Option(
        "--reward", help="Of several rows of a rollout each has all of its reward, its share, or the last one all."
    ),
]
RewardField = Annotated[
    str | None,
    typer.Option(
        "--reward-field",
        metavar="PATH",
        help="Where a finished row has its reward (default: reward).",
    ),
]
GroupBy = Annotated[
    str | None,
    typer.Option(
        "--group-by", metavar="task|PATH", help="What makes a group: the task, or a field of the finished row."
    ),
]
Advantage = Annotated[
    AdvantageOf, typer.Option("--advantage", help="How advantages are made of the rewards of a group.")
]
RowWeight = Annotated[
    Weight, typer.Option("--weight", help="What counts once: a rollout, however many rows, or a token.")
]

MinGap = Annotated[
    float | None,
    typer.Option(
        "--min-gap", metavar="X", min=0.0, help="How far apart the rewards of a pair are at least (default: at all)."
    ),
]


class SplitBy(StrEnum):
    """What stays on one side of a split."""

    GROUP = "group"


Split = Annotated[
    SplitBy | None,
    typer.Option("--split-by", help="Write OUT.train and OUT.val, every group on one side, told by its name alone."),
]
Val = Annotated[
    float | None,
    typer.Option("--val", metavar="FRACTION", help="The share of groups in OUT.val, between 0 and 1."),
]
ShardSize = Annotated[
    int | None,
    typer.Option(
        "--shard-size", metavar="N", min=1, help="Write OUT-00000 and so on of N rows; a rollout stays in one file."
    ),
]


def division_of(split: SplitBy | None, val: float | None, shard_size: int | None) -> Division:
    """How the output is divided; raises UsageError for half of a choice."""
    if (split is None) != (val is None):
        raise UsageError("--split-by and --val go together", hint="--split-by group --val 0.1")
    if val is not None and not 0.0 < val < 1.0:
        raise UsageError(f"--val {val}: a share between 0 and 1 is wanted", hint="--val 0.1")
    return Division(val, shard_size)


def shape_named(name: str) -> Shape:
    """What is written under this name, or under that of a trainer; raises BadParameter."""
    try:
        return ALIASES.get(name) or Shape(name)
    except ValueError:
        known = ", ".join(map(repr, [*map(str, Shape), *ALIASES]))
        raise typer.BadParameter(f"{name!r} is not one of {known}.") from None


def forms_of(to: Shape) -> tuple[Form, ...]:
    """What a file of this format can be."""
    from ng_capture.outputs.export.formats import FORMATS

    known = FORMATS.get(to.value)
    if known is not None:
        return known.forms
    return LINES_OR_TABLE if to is Shape.ROWS else LINES


def form_of(to: Shape, output: str) -> Form:
    """The form that the name of the output asks for; raises UsageError where the format has another."""
    forms = forms_of(to)
    form = form_to_write(output, forms)
    if form is Form.DIRECTORY and (output == "-" or Path(output).suffix in _OF_FILES):
        hint = f"-o with the name of a directory; a file: --to {Shape.HF_LABELS.value} -o {output}"
        raise UsageError(f"{to.value} is a directory that datasets.load_from_disk loads, not {output}", hint=hint)
    if form not in forms:
        hint = f"ng-capture rebuild ... --to rows -o {output}"
        raise UsageError(f"{to.value} is JSONL: tables hold training rows of plain columns only", hint=hint)
    return form


def check_division(to: Shape, division: Division, output: str, receipt: str | None, *, with_rows: bool) -> None:
    """Raises UsageError for an output that cannot be divided so."""
    if division == Division():
        return
    if output == "-" or receipt is not None:
        what = "standard output" if output == "-" else "--receipt FILE"
        raise UsageError(f"several files are written, each with its receipt: {what} is one", hint="-o OUT")
    if division.val is not None and not with_rows:
        raise UsageError("groups stand in the finished rows", hint="--rollouts FILE")
    if division.shard_size is not None and to is Shape.LLAMAFACTORY:
        raise UsageError("--shard-size is for files: a dataset is one directory", hint="without it")
    if division.shard_size is not None and to in (Shape.ROLLOUTS, Shape.PAIRS):
        why = "finished rows are one file as they came" if to is Shape.ROLLOUTS else "a pair is of two rollouts"
        raise UsageError(f"--shard-size is for rows of single rollouts: {why}", hint="--to rows and the like")


def check_export(to: Shape, export: Export, division: Division, *, with_rows: bool) -> None:
    """Raises UsageError for choices that the format has no place for, or that nothing can answer."""
    if to is Shape.PAIRS and not with_rows:
        raise UsageError("pairs are made of groups and rewards: finished rows are needed", hint="--rollouts FILE")
    if export.min_gap is not None and to is not Shape.PAIRS:
        raise UsageError("--min-gap is about pairs", hint="--to pairs")
    if export.on_overflow is not OnOverflow.DROP and export.max_length is None:
        raise UsageError(f"--on-overflow {export.on_overflow.value}: no row is too long", hint="--max-length N")
    if division.val is not None:
        # whatever is written, groups tell into which half
        export = msgspec.structs.replace(export, group_by=None)
    if export != NO_CHOICE:
        _check_choices(to, export)
    asks_rows = export.reward_field or export.group_by or export.advantage is not AdvantageOf.NONE
    if asks_rows and not with_rows:
        raise UsageError("rewards and groups stand in the finished rows", hint="--rollouts FILE")
    if _needs_reward(to) and not with_rows:
        raise UsageError(f"{to.value} needs rewards: they stand in the finished rows", hint="--rollouts FILE")


def _check_choices(to: Shape, export: Export) -> None:
    """Raises UsageError for what is chosen and has no place in the format."""
    if to is Shape.ROLLOUTS:
        raise UsageError("finished rows are delivered as they are", hint="these options are for --to rows and the like")
    if to is Shape.GYM_RESPONSE and export != Export(reward=export.reward, reward_field=export.reward_field):
        message = "gym-response holds whole chains: nothing is cut, masked, grouped or weighed in it"
        raise UsageError(message, hint="--to rows and the like")
    if to in (Shape.MESSAGES, Shape.PAIRS):
        _check_text(to, export)
    _check_places(to, export)


def _needs_reward(to: Shape) -> bool:
    from ng_capture.outputs.export.formats import FORMATS

    known = FORMATS.get(to.value)
    return known is not None and known.needs_reward


def _check_places(to: Shape, export: Export) -> None:
    """Raises UsageError for what a row of a trainer's format has no place for."""
    from ng_capture.outputs.export.formats import FORMATS

    known = FORMATS.get(to.value)
    if known is None:
        return
    advantages = export.advantage is not AdvantageOf.NONE
    asked = {
        "reward": export.reward is not RewardSplit.FULL or export.reward_field is not None,
        "advantage": advantages,
        "weight": export.weight is not Weight.ROLLOUT,
        "group": export.group_by is not None and not advantages,
    }
    for name, is_asked in asked.items():
        if is_asked and name not in known.tells:
            raise UsageError(f"{to.value} has no place for {name}s", hint="--to rows has one for everything")
    if known.whole_reward and export.reward is RewardSplit.SHARE:
        message = f"{to.value}: its trainer takes a rollout's reward from the last row alone: shares would be lost"
        raise UsageError(message, hint="--reward full")


def _check_text(to: Shape, export: Export) -> None:
    """Raises UsageError for what nothing in a row of text can say."""
    if export.on_overflow in (OnOverflow.CUT, OnOverflow.CUT_TURN):
        raise UsageError(f"{to.value} holds whole conversations: nothing is cut", hint="--on-overflow drop")
    if export.advantage is not AdvantageOf.NONE:
        raise UsageError(f"{to.value} has no place for advantages", hint="--to rows, or --reward-field")
    pairs = Export(
        max_length=export.max_length,
        on_overflow=export.on_overflow,
        min_trainable=export.min_trainable,
        reward_field=export.reward_field,
        group_by=export.group_by,
        min_gap=export.min_gap,
    )
    if to is Shape.PAIRS and export != pairs:
        raise UsageError("a pair has no loss mask and no weight, and the rewards as they are", hint="--to messages")


def check_policy(to: Shape, policy: Policy) -> None:
    """Raises UsageError for a policy that gives more than the format takes."""
    if to is Shape.PAIRS and policy is Policy.ALL:
        raise UsageError("a pair holds one chain of each rollout", hint="--policy terminal")
