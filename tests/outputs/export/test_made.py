"""What becomes of the tokens of one rollout: in its rows, or left out with a reason."""

import pytest

from ng_capture.outputs.export.choices import AdvantageOf, Export, OnOverflow
from ng_capture.outputs.export.made import Made, make
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.records.json_text import decode_json
from ng_capture.records.rollout_row import decode_row
from ng_capture.verdicts.judge import Judgement
from ng_capture.verdicts.judging import Judging, Policy
from tests.support.forge import Forge
from tests.support.judging import judged


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory) -> Judgement:
    """A shared first turn and two ends: 5 tokens that may be trained, of 7 and 5 tokens in the rows."""
    store = tmp_path_factory.mktemp("fork")
    forge = Forge("r-1")
    first = forge.root([1, 2], [3], id="a")
    first.then([4], [5, 6, 7], id="b")
    first.then([9], [10], id="s")
    forge.write(store)
    return judged(store, policy=Policy.ALL)


def made(judgement: Judgement, shape: Shape, export: Export, data: bytes = b'{"reward":1,"_ng_task_index":7}') -> Made:
    return make(judgement, decode_row(data), data, Rebuild(shape, Judging(Policy.ALL), export=export), None)


@pytest.mark.parametrize(
    "export",
    [
        Export(),
        Export(max_length=5),
        Export(max_length=6, on_overflow=OnOverflow.CUT),
        Export(max_length=6, on_overflow=OnOverflow.CUT_TURN),
        Export(max_length=6, on_overflow=OnOverflow.CUT, mask_truncated=True),
        Export(min_trainable=2),
    ],
)
def test_what_a_verdict_trains_is_trained_in_rows_or_left_out_with_a_reason(fork: Judgement, export: Export) -> None:
    found = made(fork, Shape.ROWS, export)
    assert found.trained is not None
    assert found.trained + sum(found.untrained.values()) == fork.accounting.trained == 5
    rows = [decode_json(b"".join(line)).value for line in found.lines]
    for row in rows:
        assert isinstance(row, dict)
        account = row["accounting"]
        assert account["captured"] == account["trained"] + account["context"] + sum(account["lost"].values())
        assert account["trained"] == found.trained


def test_an_answer_that_was_masked_is_context_in_the_account_of_its_rows(fork: Judgement) -> None:
    export = Export(max_length=6, on_overflow=OnOverflow.CUT, mask_truncated=True)
    found = made(fork, Shape.ROWS, export)
    assert found.untrained == {"over_max_length": 1, "length_stopped": 2}
    row = decode_json(b"".join(found.lines[0])).value
    assert isinstance(row, dict)
    assert row["accounting"] == {"captured": 5, "trained": 2, "context": 2, "lost": {"over_max_length": 1}}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"reward":1}', "group_missing"),
        (b'{"_ng_task_index":7}', "reward_missing"),
        (b'{"reward":1,"_ng_task_index":7}', "advantage_missing"),
    ],
)
def test_why_there_is_no_advantage_is_told(fork: Judgement, data: bytes, reason: str) -> None:
    found = made(fork, Shape.TINKER, Export(advantage=AdvantageOf.LOO), data)
    assert (found.lines, {each.reason for each in found.left_out}) == ([], {reason})
    assert found.untrained == {reason: 5}
