"""`ng-capture rebuild` as a user runs it."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import polars
import pytest

from ng_capture.outputs.shapes import SHAPES
from tests.support.command import run
from tests.support.forge import Forge, write_rows

Rows = list[dict[str, Any]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A healthy rollout of two chains whose answer is named by its row, and one that lost a call."""
    directory = tmp_path / "store"
    forge = Forge("0-0")
    first = forge.root([1, 2], [3], id="a")
    scored = first.then([4], [5], id="b")
    first.then([6], [7, 8], id="s")
    forge.write(directory, raw=True)
    lost = Forge("0-1")
    answer = lost.root([1], [2], id="c")
    lost.write(directory)
    (directory / "0-1.tokens.intents").write_bytes(b"c\nlost\n")
    write_rows(tmp_path / "rows.jsonl", [forge.row(scored, reward=0.5), lost.row(answer)])
    return directory


def lines(path: Path) -> Rows:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rebuilt(store: Path, *options: object, name: str = "out.jsonl") -> Path:
    out = store.parent / name
    done = run("rebuild", store, "--rollouts", store.parent / "rows.jsonl", "-o", out, *options)
    assert done.code == 0, done.err
    return out


def test_a_finished_row_gets_the_tokens_of_the_scored_chain(store: Path) -> None:
    row, masked = lines(rebuilt(store))
    first, second = row["response"]["output"]
    assert (first["prompt_token_ids"], first["generation_token_ids"]) == ([1, 2], [3])
    assert (second["prompt_token_ids"], second["generation_token_ids"]) == ([1, 2, 3, 4], [5])
    assert row["reward"] == 0.5 and "mask_sample" not in row
    assert masked["mask_sample"] is True and masked["_ng_token_capture"]["capture_incomplete"] is True


def test_masked_rows_can_be_dropped(store: Path) -> None:
    assert [row["_ng_rollout_id"] for row in lines(rebuilt(store, "--masked", "drop"))] == ["0-0"]


def test_without_finished_rows_there_is_one_row_around_each_response(store: Path) -> None:
    out = store.parent / "out.jsonl"
    assert run("rebuild", store, "-o", out, "--policy", "all").code == 0
    # one row per chain, and the masked rollout's
    assert [row["_ng_rollout_id"] for row in lines(out)] == ["0-0", "0-0", "0-1"]
    assert lines(out)[0]["response"]["id"] == "proj-0-0"


def test_a_training_row_holds_one_chain_with_its_spans(store: Path) -> None:
    (row,) = lines(rebuilt(store, "--to", "rows"))
    assert row["tokens"] == [1, 2, 3, 4, 5]
    assert row["loss_mask"] == [0, 0, 1, 0, 1]
    assert [value != 0.0 for value in row["logprobs"]] == [False, False, True, False, True]
    spans = [(span["call_id"], span["kind"], span["start"], span["end"], span["call_offset"]) for span in row["spans"]]
    assert spans == [("a", "prompt", 0, 2, 0), ("a", "gen", 2, 3, 0), ("b", "prompt", 3, 4, 3), ("b", "gen", 4, 5, 0)]
    assert (row["reward"], row["terminal"], row["role"]) == (0.5, "b", "main")
    assert row["accounting"] == {"captured": 4, "trained": 2, "context": 0, "lost": {"off_path": 2}}


def test_policy_all_trains_a_shared_answer_once(store: Path) -> None:
    main, branch = lines(rebuilt(store, "--to", "rows", "--policy", "all"))
    assert (main["loss_mask"], branch["loss_mask"]) == ([0, 0, 1, 0, 1], [0, 0, 0, 0, 1, 1])
    assert (main["role"], branch["role"]) == ("main", "branch")
    assert (main["row_weight"], branch["row_weight"]) == (0.5, 0.5)


READERS = {"parquet": polars.read_parquet, "arrow": polars.read_ipc_stream}


@pytest.mark.parametrize("ending", READERS)
def test_a_table_holds_what_the_lines_hold(store: Path, ending: str) -> None:
    options = ("--to", "rows", "--policy", "all")
    table = READERS[ending](rebuilt(store, *options, name=f"out.{ending}"))
    for row, line in zip(table.iter_rows(named=True), lines(rebuilt(store, *options)), strict=True):
        assert row["tokens"] == line["tokens"] and row["loss_mask"] == line["loss_mask"]
        assert row["logprobs"] == pytest.approx(line["logprobs"], rel=1e-6)
        assert row["spans"] == line["spans"] and row["calls"] == line["calls"]
        assert (row["reward"], row["truncated"]) == (line["reward"], line["truncated"])


@pytest.mark.parametrize("ending", READERS)
def test_a_table_without_rows_has_the_same_columns(store: Path, ending: str) -> None:
    out = store.parent / f"none.{ending}"
    assert run("rebuild", store, "--include", "0-1", "--to", "rows", "-o", out).code == 1
    full = READERS[ending](rebuilt(store, "--to", "rows", name=f"out.{ending}"))
    assert READERS[ending](out).schema == full.schema


def test_what_is_written_has_the_published_shapes(store: Path) -> None:
    for line in rebuilt(store).read_text().splitlines():
        SHAPES["rebuilt-row"].model_validate_json(line)
    for line in rebuilt(store, "--to", "rows").read_text().splitlines():
        SHAPES["training-row"].model_validate_json(line)
    SHAPES["receipt"].model_validate_json((store.parent / "out.jsonl.receipt.json").read_text())


def test_the_receipt_has_the_digests_of_inputs_and_output(store: Path) -> None:
    out = rebuilt(store)
    receipt = json.loads(Path(f"{out}.receipt.json").read_text())
    assert receipt["output"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert receipt["output"]["size"] == out.stat().st_size
    good, lost = receipt["rollouts"]
    for file in good["files"]:
        assert file["sha256"] == hashlib.sha256((store / file["name"]).read_bytes()).hexdigest()
    assert (good["rows"], good["covered"]) == ([0], True)
    assert (lost["rows"], lost["covered"], lost["reasons"]) == ([1], False, ["capture_incomplete"])


def test_the_same_inputs_give_the_same_bytes(store: Path) -> None:
    first = rebuilt(store)
    before = [first.read_bytes(), Path(f"{first}.receipt.json").read_bytes()]
    again = rebuilt(store, "--jobs", "2")
    assert [again.read_bytes(), Path(f"{again}.receipt.json").read_bytes()] == before


def test_standard_output_has_no_receipt_unless_one_is_named(store: Path) -> None:
    done = run("rebuild", store, "--to", "rows", "--policy", "all", "-o", "-", cwd=store.parent)
    assert len(done.rows) == 2
    assert not list(store.parent.glob("*receipt*"))
    named = store.parent / "r.json"
    run("rebuild", store, "--to", "rows", "-o", "-", "--receipt", named)
    assert json.loads(named.read_text())["schema"] == "ng-capture.receipt/1"


def test_a_row_that_carries_tokens_stays_as_it_is(store: Path) -> None:
    rows = store.parent / "rows.jsonl"
    line = '{"_ng_rollout_id": "0-0",  "x": 1.10, "response": {"output": [{"generation_token_ids": [9]}]}}'
    rows.write_text(line + "\n")
    assert rebuilt(store, "--policy", "all").read_text() == line + "\n"


def test_rows_without_a_usable_id_are_masked_not_dropped(store: Path) -> None:
    rows = store.parent / "rows.jsonl"
    rows.write_text('{"_ng_rollout_id":"0-0"}\n{"reward":1.0}\n{"_ng_rollout_id":"-x"}\n{"_ng_rollout_id":"7-7"}\n')
    out = store.parent / "out.jsonl"
    assert run("rebuild", store, "--rollouts", rows, "--policy", "all", "-o", out).code == 1
    good, branch, without, malformed, absent = lines(out)
    assert "mask_sample" not in good and "mask_sample" not in branch
    assert (without["mask_sample"], without["_ng_token_capture"]["error"]) == (True, "no capture key")
    assert malformed["_ng_token_capture"]["error"] == "malformed rollout id: '-x'"
    assert absent["_ng_token_capture"] == {"n_calls": 0, "error": "capture contains no token records"}


def test_nothing_trainable_is_code_1(store: Path) -> None:
    assert run("rebuild", store, "--include", "0-1", "-o", store.parent / "out.jsonl").code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-o", "nowhere/out.jsonl"], 2, "nowhere: no such directory"),
        (["-o", "store"], 2, "store: is a directory"),
        (["-o", "out.parquet"], 2, "rollouts is JSONL"),
        (["--to", "rows", "-o", "-", "--policy", "none"], 2, ""),
        (["-o", "rows.jsonl", "--rollouts", "rows.jsonl"], 2, "would replace"),
        ([], 2, ""),
    ],
)
def test_wrong_use_writes_nothing(store: Path, arguments: list[str], code: int, message: str) -> None:
    before = sorted(store.parent.rglob("*"))
    done = run("rebuild", "store", *arguments, cwd=store.parent)
    assert done.code == code
    assert message in done.err and "Traceback" not in done.err
    assert sorted(store.parent.rglob("*")) == before


def test_an_old_receipt_never_stands_beside_another_output(store: Path) -> None:
    out = rebuilt(store)
    first = Path(f"{out}.receipt.json").read_text()
    rebuilt(store, "--masked", "drop")
    assert Path(f"{out}.receipt.json").read_text() != first


def test_sealing_freezes_what_is_whole_and_names_the_rest(store: Path) -> None:
    path = store / "0-1.tokens.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    done = run("rebuild", store, "-o", store.parent / "out.jsonl", "--seal", "--policy", "all")
    assert "0-1: not sealed: line 1 has no line break" in done.err
    state = json.loads((store / "0-0.tokens.state.json").read_text())
    receipt = json.loads((store.parent / "out.jsonl.receipt.json").read_text())["rollouts"]
    assert state["frozen"] is True
    assert (receipt[0]["snapshot_id"], receipt[0]["version"]) == (state["snapshot_id"], state["version"])
    assert receipt[1]["snapshot_id"] is None


def test_a_call_that_may_not_be_trained_carries_no_tokens(tmp_path: Path) -> None:
    forge = Forge("0-0")
    first = forge.root([1], [2], id="a", generation_log_probs=[0.5])
    first.then([3], [4], id="b")
    forge.write(tmp_path / "store")
    out = tmp_path / "out.jsonl"
    assert run("rebuild", tmp_path / "store", "-o", out, "--policy", "all").code == 0
    context, trained = lines(out)[0]["response"]["output"]
    assert "generation_token_ids" not in context
    assert (trained["prompt_token_ids"], trained["generation_token_ids"]) == ([1, 2, 3], [4])


def test_a_rollout_that_fails_never_takes_the_others_with_it(tmp_path: Path) -> None:
    for name in ("r-0", "r-1", "r-2"):
        forge = Forge(name)
        forge.root([1], [2, 3], id="a", **({"generation_log_probs": [-0.5]} if name == "r-1" else {}))
        forge.write(tmp_path / "store")
    state = tmp_path / "store" / "r-1.tokens.state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "retired": True}))
    out = tmp_path / "out.jsonl"
    assert run("rebuild", tmp_path / "store", "-o", out).code == 0
    good, retired, last = lines(out)
    assert retired["_ng_token_capture"]["error"] == "RuntimeError: Token capture for rollout r-1 is retired"
    assert [row.get("mask_sample") for row in (good, retired, last)] == [None, True, None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.jsonl", "--receipt", "x.jsonl"], "would replace the receipt"),
        (["-o", "x.jsonl", "--receipt", "rows.jsonl", "--rollouts", "rows.jsonl"], "would replace the finished rows"),
        (["-o", "store/0-0.tokens.jsonl"], "would replace a capture that is read"),
        (["-o", "pipe"], "is no regular file"),
    ],
)
def test_an_output_never_replaces_what_it_is_made_of(store: Path, arguments: list[str], message: str) -> None:
    os.mkfifo(store.parent / "pipe")
    before = {path: path.lstat().st_mtime_ns for path in store.parent.rglob("*")}
    done = run("rebuild", "store", *arguments, cwd=store.parent)
    assert (done.code, message in done.err) == (2, True)
    assert {path: path.lstat().st_mtime_ns for path in store.parent.rglob("*")} == before


def test_a_link_stays_and_what_it_leads_to_is_replaced(store: Path) -> None:
    (store.parent / "real.jsonl").write_text("old")
    (store.parent / "link.jsonl").symlink_to("real.jsonl")
    rebuilt(store, name="link.jsonl")
    assert (store.parent / "link.jsonl").is_symlink()
    assert len(lines(store.parent / "real.jsonl")) == 2


def test_chosen_ids_choose_rows_too(store: Path) -> None:
    assert [row["_ng_rollout_id"] for row in lines(rebuilt(store, "--include", "0-0"))] == ["0-0"]


def test_a_receipt_of_standard_output_describes_it(store: Path) -> None:
    named = store.parent / "r.json"
    done = run("rebuild", store, "-o", "-", "--receipt", named)
    output = json.loads(named.read_text())["output"]
    assert output["sha256"] == hashlib.sha256(done.out.encode()).hexdigest()
    assert (output["size"], output["rows"]) == (len(done.out.encode()), 2)
