"""`ng-capture rebuild --to llamafactory`: a directory that loads as a dataset, is proven, and frees what it covers."""

import json
from pathlib import Path

import pytest

from ng_capture import load
from ng_capture.errors import UsageError
from ng_capture.outputs.rebuilding import Shape
from ng_capture.outputs.shapes import SHAPES
from ng_capture.retention.receipts import read_coverage
from tests.support.command import Run, run
from tests.support.forge import Forge, write_rows
from tests.support.tables import change, read_rows, schema_of

TASKS = 6
SPLIT = ("--split-by", "group", "--val", "0.4")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    directory, rows = tmp_path / "store", []
    for task in range(TASKS):
        forge = Forge(f"{task}-0")
        scored = forge.root([1, 2 + task], [3, 11], id=f"{task}-a").then([4], [5], id=f"{task}-b")
        forge.write(directory)
        rows.append({**forge.row(scored, reward=1.0), "_ng_task_index": task})
    write_rows(tmp_path / "rows.jsonl", rows)
    return directory


def rebuild(store: Path, *options: object, out: str = "out", to: str = "llamafactory") -> Run:
    rows = ("--rollouts", store.parent / "rows.jsonl")
    return run("rebuild", store, *rows, "--to", to, "-o", f"{store.parent}/{out}", *options)


def prove(store: Path, out: object, *options: object) -> Run:
    return run("verify", "--export", out, store, "--rollouts", store.parent / "rows.jsonl", *options)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_rows_types_and_documents_are_those_that_every_version_of_datasets_loads(store: Path) -> None:
    assert rebuild(store).code == 0
    out = store.parent / "out"
    assert rebuild(store, out="out.jsonl", to="hf-labels").code == 0
    none = {"images": [], "videos": [], "audios": []}
    assert read_rows(out) == [{**row, **none} for row in read_rows(store.parent / "out.jsonl")]
    ids, mask, text = "list<item: int32>", "list<item: int8>", "list<item: string>"
    assert schema_of(out) == {
        "input_ids": ids,
        "attention_mask": mask,
        "labels": ids,
        **dict.fromkeys(none, text),
    }
    (data,) = out.glob("*.arrow")
    state = json.loads((out / "state.json").read_bytes())
    assert state["_data_files"] == [{"filename": data.name}] and state["_fingerprint"] in data.name
    features = json.loads((out / "dataset_info.json").read_bytes())["features"]
    assert features["labels"] == {"feature": {"dtype": "int32", "_type": "Value"}, "_type": "Sequence"}
    assert {each["_type"] for each in features.values()} == {"Sequence"}
    assert names(out) == {data.name, "state.json", "dataset_info.json"}


def test_a_directory_is_proven_and_loaded_and_its_receipt_covers(store: Path) -> None:
    # as a user names one
    assert rebuild(store, out="out/").code == 0
    out = store.parent / "out"
    for name in (out, f"{out}/"):
        assert prove(store, name).code == 0
    loaded = load(f"{out}/")
    assert loaded.shape is Shape.LLAMAFACTORY
    assert [row.loss_mask.tolist() for row in loaded] == [[0, 0, 1, 1, 0, 1]] * TASKS
    receipt = Path(f"{out}.receipt.json")
    SHAPES["receipt"].model_validate_json(receipt.read_bytes())
    assert set(read_coverage([str(receipt)]).rollouts) == {f"{task}-0" for task in range(TASKS)}
    change(out, lambda rows: rows[2]["input_ids"].__setitem__(0, 9))
    done = prove(store, out)
    assert done.code == 1 and f"{out}:3: I1: token 0: token 9, the captures have 1" in done.out
    assert not read_coverage([str(receipt)]).rollouts


def test_a_split_one_holds_train_and_validation_each_with_its_receipt(store: Path) -> None:
    assert rebuild(store, *SPLIT).code == 0
    out = store.parent / "out"
    receipts = {"train.receipt.json", "validation.receipt.json"}
    assert names(out) == {"train", "validation", "dataset_dict.json", *receipts}
    assert json.loads((out / "dataset_dict.json").read_bytes()) == {"splits": ["train", "validation"]}
    rows = [read_rows(out / half) for half in ("train", "validation")]
    assert all(rows) and sum(map(len, rows)) == TASKS
    assert rebuild(store, *SPLIT, out="out.jsonl", to="hf-labels").code == 0
    assert [len(each) for each in rows] == [
        len(read_rows(store.parent / f"out.{half}.jsonl")) for half in ("train", "val")
    ]
    with pytest.raises(UsageError, match="a split dataset"):
        load(out)
    assert len(list(load(out / "train"))) == len(rows[0])
    covered = read_coverage([str(out / name) for name in receipts]).rollouts
    assert set(covered) == {f"{task}-0" for task in range(TASKS)}


def test_a_split_one_is_proven_whole_or_by_halves(store: Path) -> None:
    rebuild(store, *SPLIT)
    out = store.parent / "out"
    assert prove(store, out).code == prove(store, out / "train").code == 0
    change(out / "validation", lambda rows: rows.append(rows[-1]))
    assert prove(store, out / "train").code == 0
    done = prove(store, out, "--json")
    assert done.code == 1 and {row["invariant"] for row in done.rows} == {"receipt", "I5"}
    rebuild(store, *SPLIT)
    (out / "dataset_dict.json").write_text('{"splits": ["train", "train"]}')
    done = prove(store, out)
    assert done.code == 1 and "dataset_dict.json is not what rebuild writes" in done.out
    done = prove(store, out, "--receipt", out / "train.receipt.json")
    assert done.code == 2 and "two receipts" in done.err


def test_the_next_run_replaces_rows_and_takes_the_old_ones_away(store: Path) -> None:
    out = store.parent / "out"
    rebuild(store, "--include", "0-0")
    before = contents(out)
    cached = out / "cache-0123.arrow"
    cached.write_bytes(b"what datasets computed")
    assert rebuild(store).code == 0
    assert len(list(out.glob("data-*.arrow"))) == 1 and len(read_rows(out)) == TASKS and cached.exists()
    assert rebuild(store, "--include", "0-0").code == 0
    assert contents(out) == {**before, cached.name: cached.read_bytes()}


@pytest.mark.parametrize("options", [(), SPLIT], ids=["undivided", "split"])
def test_the_same_inputs_give_the_same_bytes(store: Path, options: tuple[str, ...]) -> None:
    rebuild(store, *options)
    before = contents(store.parent / "out")
    rebuild(store, *options, "--jobs", "2", out="again")
    assert contents(store.parent / "again").keys() == before.keys()
    again = contents(store.parent / "again")
    receipts = {name for name in before if name.endswith("receipt.json")}
    assert {name: again[name] for name in before.keys() - receipts} == {
        name: before[name] for name in before.keys() - receipts
    }
    assert [again[name] for name in sorted(receipts)] == [before[name] for name in sorted(receipts)]


def test_nobody_s_directory_is_mixed_with_a_dataset(store: Path) -> None:
    out = store.parent / "out"
    for name, options, message in (
        ("notes.txt", (), "is no dataset"),
        ("notes.txt", SPLIT, "is no dataset"),
        ("dataset_dict.json", (), "holds a dataset that is split"),
        ("state.json", SPLIT, "holds a dataset that is undivided"),
    ):
        out.mkdir()
        (out / name).write_text("mine")
        done = rebuild(store, *options)
        assert done.code == 2 and message in done.err and "hint:" in done.err
        assert names(out) == {name} and not Path(f"{out}.receipt.json").exists()
        (out / name).unlink()
        out.rmdir()
    out.write_text("mine")
    done = rebuild(store)
    assert done.code == 2 and "is a file" in done.err and out.read_text() == "mine"


@pytest.mark.parametrize("options", [(), SPLIT], ids=["undivided", "split"])
def test_a_run_that_stops_leaves_what_was_there(store: Path, options: tuple[str, ...]) -> None:
    too_long = (*options, "--max-length", "4", "--on-overflow", "fail")
    before = contents(store.parent)
    assert rebuild(store, *too_long).code == 2
    assert contents(store.parent) == before and not (store.parent / "out").exists()
    rebuild(store, *options)
    before = contents(store.parent)
    assert rebuild(store, *too_long).code == 2 and contents(store.parent) == before
