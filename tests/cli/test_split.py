"""`ng-capture rebuild --split-by group --val FRACTION` and `--shard-size N`: several files, each whole, each proven."""

import json
from pathlib import Path
from typing import Any

import pytest

from ng_capture.outputs.parts import Division
from ng_capture.outputs.shapes import SHAPES
from ng_capture.retention.receipts import read_coverage
from tests.support.command import Run, run
from tests.support.forge import Forge, write_rows
from tests.support.tables import read_rows

Rows = list[Any]
TASKS, ATTEMPTS = 12, 3


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three attempts at each of twelve tasks; the first of each has a branch, the last of task 5 is broken."""
    directory, rows = tmp_path / "store", []
    for task in range(TASKS):
        for attempt in range(ATTEMPTS):
            forge = Forge(f"{task}-{attempt}")
            first = forge.root([1, 2], [3], id=f"{task}-{attempt}-a")
            scored = first.then([4], [5], id=f"{task}-{attempt}-b")
            if attempt == 0:
                first.then([9], [10], id=f"{task}-{attempt}-s")
            if (task, attempt) == (5, 2):
                scored.broken([1, 9, 9], [7], id="broken")
            forge.write(directory, raw=True)
            rows.append({**forge.row(forge.calls[1], reward=float(attempt)), "_ng_task_index": task})
            if (task, attempt) == (5, 2):
                rows[-1] = {**forge.row(forge.calls[-1], reward=0.0), "_ng_task_index": task}
    write_rows(tmp_path / "rows.jsonl", rows)
    return directory


def rebuild(store: Path, *options: object, out: str = "out.jsonl", to: str = "rows") -> Run:
    rows = ("--rollouts", store.parent / "rows.jsonl")
    return run("rebuild", store, *rows, "--to", to, "-o", store.parent / out, *options)


def names(store: Path) -> list[str]:
    known = {"rows.jsonl", "store"}
    return sorted(path.name for path in store.parent.iterdir() if path.name not in known)


def read(path: Path) -> Rows:
    return read_rows(path)


def prove(store: Path, out: Path, *options: object) -> Run:
    return run("verify", "--export", out, store, "--rollouts", store.parent / "rows.jsonl", *options)


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "arrow"])
def test_every_group_is_on_one_side_and_no_row_is_lost(store: Path, ending: str) -> None:
    split = ("--policy", "all", "--split-by", "group", "--val", "0.4")
    assert rebuild(store, *split, out=f"out.{ending}").code == 0
    files = [f"out.{half}.{ending}{end}" for half in ("train", "val") for end in ("", ".receipt.json")]
    assert names(store) == sorted(files)
    train, val = (read(store.parent / f"out.{half}.{ending}") for half in ("train", "val"))
    groups = [{row["group_id"] for row in rows} for rows in (train, val)]
    assert groups[0] and groups[1] and not groups[0] & groups[1]
    assert rebuild(store, "--policy", "all", out=f"whole.{ending}").code == 0
    whole = [row["calls"] for row in read(store.parent / f"whole.{ending}")]
    assert sorted(row["calls"] for row in [*train, *val]) == sorted(whole) and len(whole) == TASKS * (ATTEMPTS + 1) + 1


def test_a_group_stays_where_it_is_whatever_else_there_is(store: Path) -> None:
    split = ("--split-by", "group", "--val", "0.4")
    rebuild(store, *split)
    before = {row["group_id"] for row in read(store.parent / "out.val.jsonl")}
    rebuild(store, *split, "--exclude", "1-*", "--exclude", "2-*")
    after = {row["group_id"] for row in read(store.parent / "out.val.jsonl")}
    assert after == before - {"1", "2"}
    rebuild(store, "--split-by", "group", "--val", "0.6")
    assert {row["group_id"] for row in read(store.parent / "out.val.jsonl")} >= before


def test_the_share_is_met_over_many_groups() -> None:
    halves = [Division(val=0.1).half(f"task-{number}") for number in range(5000)]
    assert halves.count("val") == pytest.approx(500, rel=0.15)


def test_a_rollout_without_a_group_is_told_by_its_id(store: Path) -> None:
    rows = [{**row, "_ng_task_index": None} for row in read(store.parent / "rows.jsonl")]
    write_rows(store.parent / "rows.jsonl", rows)
    assert rebuild(store, "--split-by", "group", "--val", "0.5").code == 0
    for half in ("train", "val"):
        ids = [row["rollout_id"] for row in read(store.parent / f"out.{half}.jsonl")]
        assert ids and {Division(val=0.5).half(each) for each in ids} == {half}


@pytest.mark.parametrize("to", ["rollouts", "messages", "pairs", "gym-response", "hf-labels", "tinker"])
def test_every_format_can_be_split_and_proven(store: Path, to: str) -> None:
    assert rebuild(store, "--split-by", "group", "--val", "0.4", to=to).code == 0
    for half in ("train", "val"):
        out = store.parent / f"out.{half}.jsonl"
        assert read(out)
        assert prove(store, out).code == 0
        SHAPES["receipt"].model_validate_json(Path(f"{out}.receipt.json").read_bytes())
        assert prove(store, out.with_name("out.val.jsonl")).code == 0
        out.write_bytes(b"".join(out.read_bytes().splitlines(keepends=True)[1:]))
        done = prove(store, out, "--json")
        assert done.code == 1 and "I6" in {each["invariant"] for each in done.rows}


def test_a_half_in_which_nothing_falls_is_an_empty_file_with_its_receipt(store: Path) -> None:
    share = ("--split-by", "group", "--val", "0.000001")
    assert rebuild(store, *share).code == 0 and read(store.parent / "out.val.jsonl") == []
    assert prove(store, store.parent / "out.val.jsonl").code == 0


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "arrow"])
def test_shards_hold_so_many_rows_in_order_and_no_rollout_stands_in_two(store: Path, ending: str) -> None:
    assert rebuild(store, "--policy", "all", "--shard-size", "5", out=f"out.{ending}").code == 0
    shards = sorted(store.parent.glob(f"out-*.{ending}"))
    assert [shard.name for shard in shards] == [f"out-{number:05}.{ending}" for number in range(len(shards))]
    rows = [read(shard) for shard in shards]
    assert {len(each) for each in rows[:-1]} <= {4, 5}
    ids = [{row["rollout_id"] for row in each} for each in rows]
    assert sum(map(len, ids)) == len(set.union(*ids)) == TASKS * ATTEMPTS
    rebuild(store, "--policy", "all", out=f"whole.{ending}")
    assert [row["calls"] for each in rows for row in each] == [
        row["calls"] for row in read(store.parent / f"whole.{ending}")
    ]
    assert not (store.parent / f"out.{ending}").exists()


def test_a_rollout_with_more_rows_than_a_shard_has_one_of_its_own(store: Path) -> None:
    assert rebuild(store, "--policy", "all", "--shard-size", "1", "--include", "0-*").code == 0
    sizes = [len(read(path)) for path in sorted(store.parent.glob("out-*.jsonl"))]
    assert sizes == [2, 1, 1]


def test_every_shard_is_proven_and_what_is_changed_in_it_is_found(store: Path) -> None:
    rebuild(store, "--policy", "all", "--shard-size", "7", "--advantage", "grpo")
    shards = sorted(store.parent.glob("out-*.jsonl"))
    assert [prove(store, shard).code for shard in shards] == [0] * len(shards)
    rows = read(shards[1])
    rows[2]["tokens"][0] += 1
    write_rows(shards[1], rows)
    done = prove(store, shards[1], "--json")
    assert done.code == 1 and {(each["row"], each["invariant"]) for each in done.rows} == {(2, "I1"), (None, "receipt")}
    assert prove(store, shards[0]).code == 0


def test_a_rollout_is_covered_by_the_receipt_of_its_file_alone(store: Path) -> None:
    rebuild(store, "--shard-size", "10", "--split-by", "group", "--val", "0.4")
    told: dict[str, tuple[str, bool]] = {}
    for receipt in sorted(store.parent.glob("out.*.receipt.json")):
        document = json.loads(receipt.read_bytes())
        SHAPES["receipt"].model_validate(document)
        rows = read(receipt.with_name(document["output"]["name"]))
        for entry in document["rollouts"]:
            assert entry["rollout_id"] not in told
            told[entry["rollout_id"]] = (receipt.name, entry["covered"])
            assert [rows[place]["rollout_id"] for place in entry["rows"]] == [entry["rollout_id"]] * len(entry["rows"])
            assert entry["covered"] is bool(entry["rows"])
    assert len(told) == TASKS * ATTEMPTS and [name for name, (_, covered) in told.items() if not covered] == ["5-2"]
    one = store.parent / "out.train-00000.jsonl"
    covered = {name for name, (receipt, covered) in told.items() if covered and receipt.startswith(one.name)}
    assert set(read_coverage([f"{one}.receipt.json"]).rollouts) == covered
    one.write_bytes(one.read_bytes()[:-1])
    assert not read_coverage([f"{one}.receipt.json"]).rollouts


def test_shards_of_a_longer_run_go_with_their_receipts_and_nothing_else_does(store: Path) -> None:
    rebuild(store, "--shard-size", "5")
    before = len(list(store.parent.glob("out-*.jsonl")))
    stranger = store.parent / f"out-{before:05}.jsonl"
    stranger.write_text("mine\n")
    rebuild(store, "--shard-size", "20")
    assert [path.name for path in sorted(store.parent.glob("out-*.jsonl"))] == [
        "out-00000.jsonl",
        "out-00001.jsonl",
        stranger.name,
    ]
    assert len(list(store.parent.glob("out-*.receipt.json"))) == 2 and stranger.read_text() == "mine\n"


def test_where_the_run_stops_every_file_is_the_old_one(store: Path) -> None:
    rebuild(store, "--shard-size", "5")
    before = {name: (store.parent / name).read_bytes() for name in names(store)}
    # when the last rollout is met, all shards but one are complete
    forge = Forge("99-0")
    last = forge.root([1, 2, 3, 4, 5, 6, 7], [8], id="z")
    forge.write(store)
    rows = [*read(store.parent / "rows.jsonl"), forge.row(last)]
    write_rows(store.parent / "rows.jsonl", rows)
    done = rebuild(store, "--shard-size", "5", "--max-length", "6", "--on-overflow", "fail")
    assert done.code == 2 and "99-0: 8 tokens" in done.err
    assert {name: (store.parent / name).read_bytes() for name in names(store)} == before
    for ending in ("parquet", "arrow"):
        done = rebuild(store, "--shard-size", "5", "--max-length", "6", "--on-overflow", "fail", out=f"out.{ending}")
        assert done.code == 2 and "Exception" not in done.err and not list(store.parent.glob(f"*.{ending}"))


def test_processes_change_no_byte(store: Path) -> None:
    options = ("--shard-size", "5", "--split-by", "group", "--val", "0.4", "--policy", "all")
    rebuild(store, *options)
    before = {name: (store.parent / name).read_bytes() for name in names(store)}
    rebuild(store, *options, "--jobs", "2")
    assert {name: (store.parent / name).read_bytes() for name in names(store)} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--split-by", "group"), "--split-by and --val go together"),
        (("--val", "0.1"), "--split-by and --val go together"),
        (("--split-by", "group", "--val", "0"), "between 0 and 1"),
        (("--split-by", "group", "--val", "1"), "between 0 and 1"),
        (("--split-by", "group", "--val", "nan"), "between 0 and 1"),
        (("--split-by", "group", "--val", "0.1", "--receipt", "r.json"), "--receipt FILE is one"),
        (("--shard-size", "5", "--to", "pairs"), "a pair is of two rollouts"),
        (("--shard-size", "5", "--to", "rollouts"), "finished rows are one file"),
    ],
)
def test_what_makes_no_sense_is_wrong_use(store: Path, options: tuple[str, ...], message: str) -> None:
    done = rebuild(store, *options)
    assert done.code == 2 and message in done.err and "hint:" in done.err and names(store) == []


def test_several_files_do_not_go_through_a_pipe_and_groups_need_rows(store: Path) -> None:
    done = run("rebuild", store, "--to", "rows", "-o", "-", "--shard-size", "5")
    assert done.code == 2 and "standard output is one" in done.err
    done = run("rebuild", store, "--to", "rows", "-o", store.parent / "x", "--split-by", "group", "--val", "0.5")
    assert done.code == 2 and "hint: --rollouts FILE" in done.err


def test_no_file_replaces_one_that_is_read(store: Path) -> None:
    (store.parent / "rows.jsonl").rename(store.parent / "out-00001.jsonl")
    before = (store.parent / "out-00001.jsonl").read_bytes()
    rows = ("--rollouts", store.parent / "out-00001.jsonl")
    done = run("rebuild", store, *rows, "--to", "rows", "-o", store.parent / "out.jsonl", "--shard-size", "5")
    assert done.code == 2 and "would replace the finished rows" in done.err
    assert names(store) == ["out-00001.jsonl"] and (store.parent / "out-00001.jsonl").read_bytes() == before
