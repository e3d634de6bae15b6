"""Pairs are read again where they are written: what changed in between is never written as it was."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ng_capture.errors import SurroundingsError
from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.export.text.pairs import paired
from ng_capture.outputs.pairing import candidate_of, make_pair, placed
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.verify import VerifyTask, judge_task
from ng_capture.verdicts.judging import Judging
from tests.support.forge import Forge, canonical
from tests.support.raw_calls import chat_call, says, user, write_capture

HOW = Rebuild(Shape.PAIRS, Judging())


@pytest.fixture
def tasks(tmp_path: Path) -> dict[str, VerifyTask]:
    """Two attempts at one task."""
    rows = {}
    for rollout_id, reward in (("7-0", 0.0), ("7-1", 1.0)):
        forge = Forge(rollout_id)
        forge.root([1], [2], id=rollout_id)
        forge.write(tmp_path)
        write_capture(tmp_path, rollout_id, [chat_call(rollout_id, [user("x")], says(f"try {rollout_id}"))])
        rows[rollout_id] = canonical(forge.row(reward=reward))
    listing = list_rollouts([str(tmp_path)])
    return {name: VerifyTask(name, listing.get(name), row, HOW.judging) for name, row in rows.items()}


def make(tasks: dict[str, VerifyTask], rollout_id: str, change: Callable[[], None] = lambda: None) -> list[bytes]:
    """The lines written at this rollout, with something changed after the pairs were found."""
    pairing = paired([found for job in tasks.values() if (found := candidate_of(job, HOW)) is not None], None)
    change()
    job = tasks[rollout_id]
    made = make_pair(judge_task(job), job, HOW, placed(pairing, job, tasks.__getitem__))
    return [chunk for line in made.lines for chunk in line if isinstance(chunk, bytes)]


def test_a_pair_is_written_once_at_the_first_of_both(tasks: dict[str, VerifyTask]) -> None:
    assert len(make(tasks, "7-0")) == 1 and make(tasks, "7-1") == []


def test_a_side_that_is_none_any_more_stops_the_pair(tasks: dict[str, VerifyTask], tmp_path: Path) -> None:
    def broken() -> None:
        (tmp_path / "7-0.tokens.jsonl").write_bytes(b"{torn\n")

    with pytest.raises(SurroundingsError, match="7-0: changed while it was read"):
        make(tasks, "7-0", broken)


def test_a_partner_that_was_asked_something_else_meanwhile_stops_the_pair(
    tasks: dict[str, VerifyTask], tmp_path: Path
) -> None:
    def asked_otherwise() -> None:
        write_capture(tmp_path, "7-1", [chat_call("7-1", [user("y")], says("try"))])

    with pytest.raises(SurroundingsError, match="7-1: changed while it was read"):
        make(tasks, "7-0", asked_otherwise)


def test_a_rollout_that_cannot_be_read_stands_in_no_pair(tasks: dict[str, VerifyTask], tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    assert candidate_of(tasks["7-0"], HOW) is None
