"""`ng-capture rebuild --to pairs`: the best and the worst verified rollout of each group, for offline DPO."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.outputs.shapes import SHAPES
from tests.support.command import Run, run
from tests.support.forge import Forge, Row, write_rows
from tests.support.raw_calls import chat_call, says, system, user, write_capture

Rows = list[Any]


class Run7:
    """A run of tasks: each attempt asks the same and answers with its id."""

    def __init__(self, directory: Path) -> None:
        self.store, self.rows = directory / "store", directory / "rows.jsonl"
        self._rows: Rows = []

    def attempt(
        self, rollout_id: str, reward: float | None, *, asked: str = "x", raw: bool = True, **values: Any
    ) -> None:
        forge = Forge(rollout_id)
        last = forge.root([1, 2], [3], id=f"{rollout_id}-a").then([4], [5], id=f"{rollout_id}-b")
        forge.write(self.store)
        if raw:
            first = [system("Be kind."), user(asked)]
            answer = says(f"try {rollout_id}")
            again = [*first, answer, user("sure?")]
            talk = [
                chat_call(f"{rollout_id}-a", first, answer),
                chat_call(f"{rollout_id}-b", again, says(f"yes {rollout_id}")),
            ]
            write_capture(self.store, rollout_id, talk)
        row: Row = {**forge.row(last, reward=reward), "_ng_task_index": int(rollout_id.split("-")[0]), **values}
        self.write_row(row)

    def masked(self, rollout_id: str, reward: float) -> None:
        forge = Forge(rollout_id)
        forge.root([1, 2], [3], id="a").broken([1, 9, 9, 4], [5], id="b")
        forge.write(self.store, raw=True)
        self.write_row({**forge.row(forge.calls[-1], reward=reward), "_ng_task_index": int(rollout_id.split("-")[0])})

    def write_row(self, row: Row) -> None:
        self._rows.append(row)
        write_rows(self.rows, self._rows)

    @property
    def out(self) -> Path:
        return self.store.parent / "out.jsonl"

    def rebuild(self, *options: object) -> Run:
        return run("rebuild", self.store, "--rollouts", self.rows, "--to", "pairs", "-o", self.out, *options)

    def pairs(self, *options: object) -> Rows:
        done = self.rebuild(*options)
        assert done.code == 0, done.err
        rows = [json.loads(line) for line in self.out.read_text().splitlines()]
        for row in rows:
            SHAPES["preference-pair"].model_validate(row)
        return rows

    def receipt(self) -> dict[str, tuple[bool, list[int]]]:
        told = json.loads(Path(f"{self.out}.receipt.json").read_bytes())
        return {entry["rollout_id"]: (entry["covered"], entry["rows"]) for entry in told["rollouts"]}


@pytest.fixture
def seven(tmp_path: Path) -> Run7:
    return Run7(tmp_path)


def sides(rows: Rows) -> list[tuple[str, str]]:
    return [(row["chosen_rollout_id"], row["rejected_rollout_id"]) for row in rows]


def test_a_pair_is_the_best_and_the_worst_verified_rollout(seven: Run7) -> None:
    seven.masked("7-0", 9.0)
    for rollout_id, reward in (("7-1", 0.25), ("7-2", 1.0), ("7-3", -1.0)):
        seven.attempt(rollout_id, reward)
    seven.masked("7-4", -9.0)
    (row,) = seven.pairs()
    assert row == {
        "prompt": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "x"}],
        "chosen": [
            {"role": "assistant", "content": "try 7-2"},
            {"role": "user", "content": "sure?"},
            {"role": "assistant", "content": "yes 7-2"},
        ],
        "rejected": [
            {"role": "assistant", "content": "try 7-3"},
            {"role": "user", "content": "sure?"},
            {"role": "assistant", "content": "yes 7-3"},
        ],
        "tools": None,
        "chosen_reward": 1.0,
        "rejected_reward": -1.0,
        "group_id": "7",
        "chosen_rollout_id": "7-2",
        "rejected_rollout_id": "7-3",
    }


def test_what_stands_in_a_pair_is_covered_and_nothing_else(seven: Run7) -> None:
    """Also where the pairs of two groups lie across one another."""
    for rollout_id, reward, group in (("1-0", 1.0, "a"), ("2-0", 0.0, "b"), ("3-0", 0.0, "a"), ("4-0", 1.0, "b")):
        seven.attempt(rollout_id, reward, group=group)
    seven.attempt("5-0", 0.5, group="a")
    rows = seven.pairs("--group-by", "group")
    assert sides(rows) == [("1-0", "3-0"), ("4-0", "2-0")]
    covered = {"1-0": (True, [0]), "2-0": (True, [1]), "3-0": (True, [0]), "4-0": (True, [1]), "5-0": (False, [])}
    assert seven.receipt() == covered
    assert run("verify", "--export", seven.out, seven.store, "--rollouts", seven.rows).code == 0


def test_equal_rewards_are_settled_by_the_natural_order_of_the_ids(seven: Run7) -> None:
    for rollout_id, reward in (("7-10", 1.0), ("7-9", 0.0), ("7-2", 1.0), ("7-30", 0.0)):
        seven.attempt(rollout_id, reward)
    assert sides(seven.pairs()) == [("7-2", "7-9")]


def test_rewards_that_are_not_far_enough_apart_make_no_pair(seven: Run7) -> None:
    for rollout_id, reward in (("7-0", 0.3), ("7-1", 0.1), ("8-0", 1.0), ("8-1", 1.0), ("9-0", 1.0)):
        seven.attempt(rollout_id, reward)
    done = seven.rebuild()
    assert done.code == 0 and "rows left out: reward_gap_small 2" in done.err
    assert sides(seven.pairs("--min-gap", "0.2")) == sides(seven.pairs("--min-gap", "0")) == [("7-0", "7-1")]
    assert seven.pairs("--min-gap", "0.25") == []
    assert all(covered is False for covered, _ in seven.receipt().values())


def test_a_group_that_was_asked_two_things_has_no_pair(seven: Run7) -> None:
    seven.attempt("7-0", 1.0)
    seven.attempt("7-1", 0.0, asked="x, it is Monday")
    done = seven.rebuild()
    assert done.code == 0 and seven.out.read_bytes() == b"" and "rows left out: prompts_differ 1" in done.err


def test_what_has_no_text_no_group_or_no_reward_is_in_no_pair(seven: Run7) -> None:
    seven.attempt("7-0", 9.0, raw=False)
    seven.attempt("7-1", 1.0)
    seven.attempt("7-2", 0.0)
    seven.attempt("7-3", None)
    seven.attempt("7-4", -1.0, _ng_task_index=None)
    done = seven.rebuild()
    assert sides(seven.pairs()) == [("7-1", "7-2")]
    for reason in ("messages_missing 1", "group_missing 1", "reward_missing 1"):
        assert reason in done.err


def test_the_reward_may_stand_in_any_field(seven: Run7) -> None:
    seven.attempt("7-0", 1.0, judged={"score": 0})
    seven.attempt("7-1", 0.0, judged={"score": 5})
    assert sides(seven.pairs("--reward-field", "judged.score")) == [("7-1", "7-0")]


def test_processes_and_the_order_of_the_rows_change_no_byte(seven: Run7) -> None:
    for number in range(4):
        seven.attempt(f"7-{number}", float(number % 2))
        seven.attempt(f"8-{number}", float(number))
    seven.pairs()
    before = seven.out.read_bytes()
    seven.pairs("--jobs", "2")
    assert seven.out.read_bytes() == before
    write_rows(seven.rows, [json.loads(line) for line in reversed(seven.rows.read_text().splitlines())])
    seven.pairs()
    assert seven.out.read_bytes() == before


def test_a_dry_run_counts_pairs_and_what_they_train(seven: Run7) -> None:
    for number in range(3):
        seven.attempt(f"7-{number}", float(number))
    done = run("rebuild", seven.store, "--rollouts", seven.rows, "--to", "pairs", "--dry-run")
    told = {line.rsplit(None, 1)[0].strip(): int(line.rsplit(None, 1)[1]) for line in done.out.splitlines()}
    assert (told["trained"], told["rows"], told["trained in rows"]) == (6, 1, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--policy", "all"), "one chain of each rollout"),
        (("--mask-truncated",), "no loss mask"),
        (("--weight", "token"), "no weight"),
        (("--reward", "share"), "the rewards as they are"),
        (("--advantage", "loo"), "no place for advantages"),
        (("--max-length", "9", "--on-overflow", "cut-turn"), "nothing is cut"),
    ],
)
def test_what_makes_no_sense_is_wrong_use(seven: Run7, options: tuple[str, ...], message: str) -> None:
    seven.attempt("7-0", 1.0)
    done = seven.rebuild(*options)
    assert done.code == 2 and message in done.err and "hint:" in done.err and not seven.out.exists()


def test_pairs_need_the_finished_rows(seven: Run7) -> None:
    seven.attempt("7-0", 1.0)
    done = run("rebuild", seven.store, "--to", "pairs", "-o", seven.out)
    assert done.code == 2 and "hint: --rollouts FILE" in done.err


@pytest.mark.parametrize(
    ("spoil", "invariant"),
    [
        (lambda row: row["prompt"][0].update(content="Be rude."), "I1"),
        (lambda row: row["chosen"][0].update(content="other"), "I1"),
        (lambda row: row["rejected"].pop(), "I1"),
        (lambda row: row.update(chosen_reward=2.0), "I18"),
        (lambda row: row.update(group_id="8"), "I19"),
    ],
)
def test_whatever_is_changed_is_found(seven: Run7, spoil: Any, invariant: str) -> None:
    seven.attempt("7-0", 1.0)
    seven.attempt("7-1", 0.0)
    (row,) = seven.pairs()
    spoil(row)
    seven.out.write_text(json.dumps(row) + "\n")
    done = run("verify", "--export", seven.out, seven.store, "--rollouts", seven.rows, "--json")
    assert done.code == 1 and {each["invariant"] for each in done.rows} == {invariant, "receipt"}


def test_a_row_that_is_too_long_stops_the_run_where_that_is_asked_for(seven: Run7) -> None:
    seven.attempt("7-0", 1.0)
    seven.attempt("7-1", 0.0)
    for options in (("--to", "pairs"), ("--to", "rows", "--advantage", "grpo")):
        told = ("--max-length", "3", "--on-overflow", "fail", "-o", seven.out)
        done = run("rebuild", seven.store, "--rollouts", seven.rows, *options, *told)
        assert done.code == 2 and "7-0: 5 tokens, at most 3" in done.err
