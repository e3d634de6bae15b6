"""Ask the library about what a forge made: the judgement of a rollout and the training rows that come of it."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.training_rows import training_rows
from ng_capture.outputs.verify import VerifyTask, judge_task
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.judge import Judgement, Judging
from ng_capture.verdicts.policies import Policy
from tests.support.capture import Capture
from tests.support.forge import Files, Row, write_files


class Token(NamedTuple):
    """A token of a row that one of the row's calls generated: where it stands, whose it is, whether it carries loss."""

    at: int
    call: str
    offset: int
    trained: bool


def judged(directory: Path, row: Row | None = None, policy: Policy = Policy.TERMINAL, **how: Any) -> Judgement:
    """The judgement of rollout `r-1` of a capture directory, by the way that `verify` goes; `how` is for `Judging`."""
    files = list_rollouts([str(directory)]).get("r-1")
    data = None if row is None else json.dumps(row).encode()
    return judge_task(VerifyTask("r-1", files, data, Judging(policy, **how)))


def rows_of(judgement: Judgement, row: Row | None = None) -> list[Row]:
    """The training rows of a judgement, read back from the bytes that `rebuild --to rows` writes."""
    finished = None if row is None else decode_row(json.dumps(row).encode())
    return [json.loads(b"".join(made.as_json())) for made in training_rows(judgement, finished)]


def delivered(capture: Capture, policy: Policy, files: Files | None = None, **how: Any) -> tuple[Judgement, list[Row]]:
    """The judgement and the rows of a capture, or of the same capture in other files."""
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory), capture.files() if files is None else files)
        judgement = judged(Path(directory), capture.row, policy, **how)
    return judgement, rows_of(judgement, capture.row)


def generated(row: Row) -> Iterator[Token]:
    """The tokens of a row that its calls generated."""
    for span in row["spans"]:
        for at in range(span["start"], span["end"] if span["kind"] == "gen" else span["start"]):
            yield Token(at, span["call_id"], at - span["start"], bool(row["loss_mask"][at]))


def trained(rows: list[Row]) -> list[tuple[str, int]]:
    """Call and offset of every token with loss."""
    return [(token.call, token.offset) for row in rows for token in generated(row) if token.trained]
