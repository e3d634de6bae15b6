"""`ng-capture verify --export` as a user runs it; what it finds in rows is in tests/outputs/export/test_proof.py."""

from pathlib import Path

import pytest

from ng_capture.outputs.rebuilding import Shape
from tests.support.command import Run, run
from tests.support.forge import Forge, write_rows
from tests.support.tables import change


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
    out = store.parent / ("out" if name == "llamafactory" else f"out.{ending}")
    done = run("rebuild", store, "--rollouts", store.parent / "rows.jsonl", "--to", name, "-o", out, *options)
    assert done.code == 0, done.err
    return out


def prove(store: Path, out: Path, *options: object) -> Run:
    return run("verify", "--export", out, store, "--rollouts", store.parent / "rows.jsonl", *options)


def broken(done: Run) -> set[str]:
    """The invariants that were named, beside the digest of the receipt."""
    assert done.code == 1, done
    return {row["invariant"] for row in done.rows} - {"receipt"}


@pytest.mark.parametrize("name", [shape.value for shape in Shape])
def test_what_rebuild_wrote_is_proven(store: Path, name: str) -> None:
    done = prove(store, exported(store, name))
    assert (done.code, done.out) == (0, "") and "every row is what its captures make" in done.err


def test_a_line_that_is_no_row_is_named(store: Path) -> None:
    out = exported(store, "verl")
    out.write_text(out.read_text() + "nothing\n")
    assert broken(prove(store, out, "--json")) == {"I1"}
    change(out := exported(store, "verl"), lambda rows: rows.__setitem__(0, {"prompts": 5}))
    assert broken(prove(store, out, "--json")) == {"I7"}


@pytest.mark.parametrize("name", [shape.value for shape in Shape])
def test_a_row_that_stands_there_twice_or_not_at_all_is_found(store: Path, name: str) -> None:
    out = exported(store, name)
    change(out, lambda rows: rows.insert(1, rows[0]))
    done = prove(store, out, "--json")
    assert broken(done) == {"I5"} and {row["row"] for row in done.rows if row["invariant"] == "I5"} == {1}
    out = exported(store, name)
    change(out, lambda rows: rows.__delitem__(0))
    assert broken(prove(store, out, "--json")) == {"I6"}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_damaged_table_is_a_finding_with_its_place(store: Path, ending: str) -> None:
    out = exported(store, "verl", ending=ending)
    out.write_bytes(out.read_bytes()[:-20])
    done = prove(store, out)
    assert done.code == 1 and f"{out}:1: I7: {out}: no " in done.out and "Traceback" not in done.err


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
