"""`ng-capture verify --export`: whatever is changed in an exported file is found, with its row, place and invariant."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest

from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.rebuilding import Shape
from tests.support.command import Run, run
from tests.support.forge import Forge, write_rows

Rows = list[dict[str, Any]]
ARRAYS = {
    "rows": ("tokens", "loss_mask", "logprobs"),
    "hf-labels": ("input_ids", "labels", None),
    "trl-grpo": ("completion_ids", "env_mask", "logprobs"),
    "skyrl-sft": ("input_ids", "loss_mask", None),
    "skyrl": ("response_ids", "loss_masks", "rollout_logprobs"),
    "verl": ("responses", "response_mask", "rollout_log_probs"),
    "slime": ("tokens", "loss_mask", "rollout_log_probs"),
}
"""Where a format keeps ids, mask and log probabilities, the last two beside the end of the first."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    directory = tmp_path / "store"
    rows = []
    for name, reward, first in (("7-0", 1.0, 1), ("7-1", 0.25, 21)):
        forge = Forge(name)
        last = forge.root([first, 2], [3, 11], id=f"{name}-a").then([4], [5, 6], id=f"{name}-b")
        forge.write(directory, raw=True)
        rows.append({**forge.row(last, reward=reward), "_ng_task_index": 7})
    write_rows(tmp_path / "rows.jsonl", rows)
    return directory


def exported(store: Path, name: str, *options: object, ending: str = "jsonl") -> Path:
    out = store.parent / f"out.{ending}"
    done = run("rebuild", store, "--rollouts", store.parent / "rows.jsonl", "--to", name, "-o", out, *options)
    assert done.code == 0, done.err
    return out


def prove(store: Path, out: Path, *options: object) -> Run:
    return run("verify", "--export", out, store, "--rollouts", store.parent / "rows.jsonl", *options)


def lines(out: Path) -> Rows:
    return [json.loads(line) for line in out.read_text().splitlines()]


def change(out: Path, how: Callable[[Rows], None]) -> None:
    rows = lines(out)
    how(rows)
    out.write_text("".join(json.dumps(row) + "\n" for row in rows))


def broken(done: Run) -> set[str]:
    """The invariants that were named, beside the digest of the receipt."""
    assert done.code == 1, done
    return {row["invariant"] for row in done.rows} - {"receipt"}


@pytest.mark.parametrize("name", [shape.value for shape in Shape])
def test_what_rebuild_wrote_is_proven(store: Path, name: str) -> None:
    done = prove(store, exported(store, name))
    assert (done.code, done.out) == (0, "") and "every row is what its captures make" in done.err


@pytest.mark.parametrize("name", ["rows", *(name for name, each in FORMATS.items() if each.tables)])
def test_a_table_is_proven_too(store: Path, name: str) -> None:
    out = exported(store, name, ending="parquet")
    assert prove(store, out).code == 0


@pytest.mark.parametrize("name", ARRAYS)
def test_one_id_is_found_with_its_place(store: Path, name: str) -> None:
    out, (ids, _, _) = exported(store, name), ARRAYS[name]

    def other(rows: Rows) -> None:
        rows[1][ids][-1] += 1

    change(out, other)
    done = prove(store, out, "--json")
    assert broken(done) >= {"I1"} if name != "hf-labels" else broken(done)
    assert {(row["row"], row["position"]) for row in done.rows if row["invariant"] == "I1"} == {(1, 6)}


@pytest.mark.parametrize("name", ARRAYS)
def test_one_mask_bit_is_found_either_way(store: Path, name: str) -> None:
    _, mask, _ = ARRAYS[name]
    lost, gained = (-100, 4) if name == "hf-labels" else (0, 1)
    # the last token is trained, the one before its call's answer is not
    for place, value, invariant in ((-1, lost, "I6"), (-3, gained, "I3")):
        out = exported(store, name)

        def flip(rows: Rows, place: int = place, value: int = value) -> None:
            rows[0][mask][place] = value

        change(out, flip)
        assert invariant in broken(prove(store, out, "--json"))


@pytest.mark.parametrize("name", [name for name, (_, _, log_probs) in ARRAYS.items() if log_probs])
@pytest.mark.parametrize(("value", "invariant"), [(-0.125, "I32"), (0.5, "I8"), (-9999.0, "I8")])
def test_one_log_probability_is_found(store: Path, name: str, value: float, invariant: str) -> None:
    out, log_probs = exported(store, name), ARRAYS[name][2]

    def other(rows: Rows) -> None:
        rows[0][str(log_probs)][-1] = value

    change(out, other)
    assert invariant in broken(prove(store, out, "--json"))


@pytest.mark.parametrize("name", [shape.value for shape in Shape])
def test_a_row_that_stands_there_twice_or_not_at_all_is_found(store: Path, name: str) -> None:
    out = exported(store, name)
    change(out, lambda rows: rows.insert(1, rows[0]))
    done = prove(store, out, "--json")
    assert broken(done) == {"I5"} and {row["row"] for row in done.rows if row["invariant"] == "I5"} == {1}
    out = exported(store, name)
    change(out, lambda rows: rows.__delitem__(0))
    assert broken(prove(store, out, "--json")) == {"I6"}


def test_another_reward_or_group_is_found(store: Path) -> None:
    for field, invariant in (("score", "I18"), ("uid", "I19"), ("rollout_id", "I18")):
        out = exported(store, "verl")
        change(out, lambda rows, field=field: rows[1].update({field: "x"}))  # type: ignore[misc]
        assert broken(prove(store, out, "--json")) == {invariant}


def test_arrays_of_unequal_length_are_named(store: Path) -> None:
    out = exported(store, "rows")
    change(out, lambda rows: rows[0]["logprobs"].pop())
    assert "I7" in broken(prove(store, out, "--json"))


def test_a_line_that_is_no_row_is_named(store: Path) -> None:
    out = exported(store, "verl")
    out.write_text(out.read_text() + "nothing\n")
    assert broken(prove(store, out, "--json")) == {"I1"}
    change(out := exported(store, "verl"), lambda rows: rows.__setitem__(0, {"prompts": 5}))
    assert broken(prove(store, out, "--json")) == {"I7"}


def test_a_changed_table_is_found(store: Path) -> None:
    out = exported(store, "verl", ending="parquet")
    table = polars.read_parquet(out)
    table.with_columns(responses=polars.col("responses").list.eval(polars.element() + 1)).write_parquet(out)
    assert broken(prove(store, out, "--json")) == {"I1"}


def test_a_row_that_stands_twice_in_a_table_shifts_no_other(store: Path) -> None:
    out = exported(store, "rows", ending="parquet")
    table = polars.read_parquet(out)
    polars.concat([table[:1], table]).write_parquet(out)
    done = prove(store, out, "--json")
    assert broken(done) == {"I5"} and sum(row["invariant"] == "I5" for row in done.rows) == 1


def test_captures_that_are_others_are_named(store: Path) -> None:
    out = exported(store, "rows")
    (store / "7-0.tokens.jsonl").unlink()
    done = prove(store, out)
    assert done.code == 1 and "receipt: 7-0: its captures are not those of the receipt" in done.out
    plain = store.parent / "plain.jsonl"
    assert run("rebuild", store, "--to", "rows", "-o", plain).code == 0
    for path in store.glob("7-1.*"):
        path.unlink()
    assert "receipt: 7-1: its captures are not among the paths" in run("verify", "--export", plain, store).out


def test_an_output_that_is_not_its_receipts_is_named_though_its_rows_are_right(store: Path) -> None:
    out = exported(store, "rows")
    out.write_bytes(out.read_bytes() + b"\n")
    done = prove(store, out)
    assert done.code == 1 and "is not what its receipt describes" in done.out


def test_the_choices_are_those_of_the_receipt(store: Path) -> None:
    out = exported(store, "rows", "--max-length", "6", "--on-overflow", "cut", "--advantage", "loo", "--policy", "all")
    assert prove(store, out).code == 0


def test_wrong_use_says_what_is_wanted(store: Path) -> None:
    out = exported(store, "rows")
    done = run("verify", "--export", out, store)
    assert done.code == 2 and "made with the finished rows rows.jsonl" in done.err
    assert run("verify", "--export", store.parent / "none", store).code == 2
    Path(f"{out}.receipt.json").unlink()
    assert "no such receipt" in prove(store, out).err
