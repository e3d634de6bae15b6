"""The invariants of policies-and-exports.md 3, by number, in every format, whatever was captured and chosen.

Those of a capture before it is exported (I1 to I6, I22 to I24) also: `tests/test_truth.py`, of rows.
"""

import math
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ng_capture.outputs.chunks import joined
from ng_capture.outputs.export.choices import Export, OnOverflow
from ng_capture.outputs.export.cutting import TooLong
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import Arrays
from ng_capture.outputs.export.made import Made, make
from ng_capture.outputs.export.reading import arrays_of
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.records.json_text import decode_json
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.capture import Capture
from tests.support.forge import Forge, canonical, write_files
from tests.support.judging import judged
from tests.support.strategies import captures

NAMES = ["rows", *FORMATS]
ROW = {"_ng_rollout_id": "r-1", "_ng_task_index": 7, "reward": 0.5}
choices = st.builds(
    Export,
    max_length=st.none() | st.integers(2, 12),
    on_overflow=st.sampled_from([OnOverflow.DROP, OnOverflow.CUT, OnOverflow.CUT_TURN]),
    mask_truncated=st.booleans(),
)


class Exported(NamedTuple):
    """The rows of a rollout as they are written, their arrays, and what is told of them."""

    records: list[dict[str, Any]]
    arrays: list[Arrays]
    made: Made


def exported(capture: Capture, name: str, policy: Policy, export: Export, advantage: float | None = None) -> Exported:
    data = canonical(ROW | (capture.row or {}) | {"reward": 0.5})
    with tempfile.TemporaryDirectory() as directory:
        write_files(Path(directory), capture.files())
        judgement = judged(Path(directory), capture.row, policy)
    made = make(judgement, decode_row(data), data, Rebuild(Shape(name), Judging(policy), export=export), advantage)
    records: list[Any] = [decode_json(joined(line)).value for line in made.lines]
    return Exported(records, [arrays_of(Shape(name), record) for record in records], made)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(
    capture=captures("call end"), policy=st.sampled_from(Policy), export=choices, advantage=st.none() | st.just(-0.5)
)
def test_the_arrays_of_every_row_keep_the_invariants(
    name: str, capture: Capture, policy: Policy, export: Export, advantage: float | None
) -> None:
    found = exported(capture, name, policy, export, advantage)
    trained: Counter[tuple[int, ...]] = Counter()
    for row in found.arrays:
        log_probs = [-1.0] * len(row.tokens) if row.log_probs is None else row.log_probs
        assert len(row.tokens) == len(row.loss_mask) == len(log_probs), "I7"
        assert set(row.loss_mask) <= {0, 1} and sum(row.loss_mask) >= 1, "I12"
        assert row.loss_mask[0] == 0, "I11"
        assert all(type(token) is int and 0 <= token < 2**31 for token in row.tokens), "I27"
        if export.max_length is not None:
            assert len(row.tokens) <= export.max_length
        for at, bit in enumerate(row.loss_mask):
            if bit:
                assert math.isfinite(log_probs[at]) and -9999 < log_probs[at] <= 1e-6, "I8"
                trained[tuple(row.tokens[: at + 1])] += 1
            elif row.log_probs is not None:
                assert log_probs[at] == 0.0, "I9"
    # two samples of one prompt may be the same tokens
    sampled = Counter(
        (*call.prompt, *call.generation[: at + 1]) for call in capture.forge.calls for at in range(len(call.generation))
    )
    assert trained <= sampled, "I3, I4, I5"
    judged_trained = found.made.trained or 0
    assert judged_trained == sum(trained.values()), "I6: what is told is what is there"


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(capture=captures("call end"))
def test_what_a_verdict_trains_is_trained_or_counted_by_its_reason(name: str, capture: Capture) -> None:
    """I6, in every format."""
    whole = exported(capture, name, Policy.ALL, Export()).made
    short = exported(capture, name, Policy.ALL, Export(max_length=5, on_overflow=OnOverflow.CUT)).made
    assert (short.trained or 0) + sum(short.untrained.values()) == (whole.trained or 0) + sum(whole.untrained.values())


@pytest.mark.parametrize(
    "name", sorted(name for name in NAMES if name in ("rows", "skyrl", "verl", "slime", "trl-grpo"))
)
@settings(max_examples=25, deadline=None)
@given(capture=captures("call"))
def test_the_rows_of_a_rollout_name_it_and_its_reward_and_stand_in_order(name: str, capture: Capture) -> None:
    """I18, I20."""
    told = [row.get("metadata", row) | row for row in exported(capture, name, Policy.ALL, Export()).records]
    assert {row.get("rollout_id") or row["trajectory_ids"] for row in told} <= {"r-1"}
    assert [row["trajectory_index"] for row in told] == list(range(len(told)))
    assert {row["n_trajectories"] for row in told} <= {len(told)}
    if name == "skyrl":
        # the reward of a rollout lies on the last token of its last row (`whole_reward`)
        assert [row["is_last_step"] for row in told] == [*[False] * (len(told) - 1), *[True] * bool(told)]
    else:
        assert {row["score"] if name == "verl" else row["reward"] for row in told} <= {0.5}


def made_of(tmp_path: Path, forge: Forge, name: str, export: Export) -> list[Arrays]:
    """The rows of a forge under `terminal`, with its raw calls beside it."""
    forge.write(tmp_path, raw=True)
    data = canonical(forge.row(forge.calls[-1]))
    made = make(judged(tmp_path), decode_row(data), data, Rebuild(Shape(name), Judging(), export=export), None)
    return [arrays_of(Shape(name), decode_json(joined(line)).value) for line in made.lines]  # type: ignore[arg-type]


STOP, NEWLINE = 99, 10


@pytest.mark.parametrize("name", NAMES)
def test_the_stop_that_was_sampled_is_trained_and_what_the_template_adds_is_not(tmp_path: Path, name: str) -> None:
    """I13, I14: the stop of a call stands once, and belongs to it."""
    forge = Forge()
    first = forge.root([1, 2], [3, STOP])
    # this one was cut off at its stop: the template closes the turn
    second = first.then([NEWLINE, 4], [5])
    second.then([STOP, NEWLINE, 6], [7, STOP])
    (row,) = made_of(tmp_path, forge, name, Export())
    assert row.tokens == [1, 2, 3, STOP, NEWLINE, 4, 5, STOP, NEWLINE, 6, 7, STOP]
    assert row.loss_mask == [0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_cut_between_calls_or_inside_one_as_it_was_asked(tmp_path: Path, name: str) -> None:
    """I30: case T41, in every format."""
    forge = Forge()
    forge.root([1, 2], [3]).then([4, 5, 6], [7, 8]).then([9], [10])
    cut = made_of(tmp_path, forge, name, Export(max_length=7, on_overflow=OnOverflow.CUT))
    assert [(row.tokens, row.loss_mask) for row in cut] == [([1, 2, 3, 4, 5, 6, 7], [0, 0, 1, 0, 0, 0, 1])]
    turn = made_of(tmp_path, forge, name, Export(max_length=7, on_overflow=OnOverflow.CUT_TURN))
    assert [(row.tokens, row.loss_mask) for row in turn] == [([1, 2, 3], [0, 0, 1])]
    assert made_of(tmp_path, forge, name, Export(max_length=7)) == []
    assert made_of(tmp_path, forge, name, Export(max_length=2, on_overflow=OnOverflow.CUT)) == []
    with pytest.raises(TooLong):
        made_of(tmp_path, forge, name, Export(max_length=7, on_overflow=OnOverflow.FAIL))
