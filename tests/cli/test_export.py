"""`ng-capture rebuild --to FORMAT` and `ng-capture formats` as a user runs them."""

import json
from pathlib import Path

import polars
import pytest

from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.forms import Form
from ng_capture.outputs.rebuilding import Shape
from ng_capture.outputs.shapes import SHAPES
from tests.support.command import Run, run
from tests.support.exported import recovered
from tests.support.forge import Forge, write_rows
from tests.support.tables import TABLES_WRITTEN, Rows, read_rows


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three attempts at task 7: one that forks, one that failed, one masked; and a rollout without a reward."""
    directory = tmp_path / "store"
    fork = Forge("7-0")
    first = fork.root([1, 2], [3], id="a")
    scored = first.then([4], [5], id="b")
    first.then([9], [10], id="s")
    failed = Forge("7-1")
    answer = failed.root([1, 2], [6, 7], id="c")
    masked = Forge("7-2")
    masked.root([1, 2], [3], id="d").broken([1, 9, 9, 4], [5], id="e")
    silent = Forge("8-0")
    last = silent.root([1], [2], id="f")
    for forge in (fork, failed, masked, silent):
        forge.write(directory, raw=True)
    rows = [fork.row(scored, reward=1.0), failed.row(answer, reward=0.0), masked.row(masked.calls[-1], reward=1.0)]
    tasks = [{**row, "_ng_task_index": 7, "meta": {"score": 2.5}} for row in rows]
    unrewarded = {key: value for key, value in silent.row(last).items() if key != "reward"}
    write_rows(tmp_path / "rows.jsonl", [*tasks, unrewarded])
    return directory


def rebuild(store: Path, *options: object) -> Run:
    return run("rebuild", store, "--rollouts", store.parent / "rows.jsonl", *options)


def rows_of(store: Path, name: str, *options: object) -> Rows:
    out = store.parent / ("out" if name == "llamafactory" else "out.jsonl")
    done = rebuild(store, "--to", name, "-o", out, *options)
    assert done.code == 0, done.err
    return read_rows(out)


@pytest.mark.parametrize("name", ["rows", *FORMATS])
def test_every_format_holds_the_chains_of_the_trainable_rollouts(store: Path, name: str) -> None:
    rows = [recovered(name, row) for row in rows_of(store, name, "--policy", "all", "--min-trainable", "1")]
    tokens = [[1, 2, 3, 4, 5], [1, 2, 3, 9, 10], [1, 2, 6, 7], [1, 2, 3], [1, 9, 9, 4, 5], [1, 2]]
    rewarded = FORMATS[name].needs_reward if name in FORMATS else False
    found = sorted(row.tokens for row in rows)
    assert found == sorted(tokens[:-1] if rewarded else tokens)
    assert all(row.log_probs is None or len(row.log_probs) == len(row.tokens) for row in rows)


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, form in TABLES_WRITTEN if name != "rows"])
def test_a_table_holds_what_the_lines_hold_with_fixed_types(store: Path, name: str, form: Form) -> None:
    lines = rows_of(store, name, "--policy", "all")
    out = store.parent / f"out.{form}"
    assert rebuild(store, "--to", name, "--policy", "all", "-o", out).code == 0
    table = polars.read_parquet(out) if form is Form.PARQUET else polars.read_ipc_stream(out)
    assert [recovered(name, row)[:2] for row in table.rows(named=True)] == [recovered(name, row)[:2] for row in lines]
    types = {"ids": polars.List(polars.Int32), "mask": polars.List(polars.Int8), "floats": polars.List(polars.Float32)}
    told = {
        column: types[kind] for column, kind in FORMATS[name].columns.items() if isinstance(kind, str) and kind in types
    }
    assert {column: table.schema[column] for column in told} == told


def test_floats_are_written_with_a_point(store: Path) -> None:
    """A column of integer zeros would be one of integers for a loader that looks at the first rows."""
    out = store.parent / "out.jsonl"
    rebuild(store, "--to", "verl", "-o", out)
    assert '"score":0.0' in out.read_text() or '"score":1.0' in out.read_text()
    assert "NaN" not in out.read_text()


def test_a_rollout_without_a_reward_is_left_out_where_one_is_needed_and_not_covered(store: Path) -> None:
    out = store.parent / "out.jsonl"
    done = rebuild(store, "--to", "trl-grpo", "-o", out)
    assert done.code == 0 and "rows left out: reward_missing 1\nhint: ng-capture reason reward_missing" in done.err
    receipt = json.loads((store.parent / "out.jsonl.receipt.json").read_bytes())
    covered = {entry["rollout_id"]: entry["covered"] for entry in receipt["rollouts"]}
    assert covered["7-1"] and not covered["8-0"] and not covered["7-2"]


def test_the_masked_rollout_has_no_vote_in_its_group(store: Path) -> None:
    rows = rows_of(store, "rows", "--advantage", "mean-centred")
    told = {row["rollout_id"]: row["advantage"] for row in rows}
    assert told == {"7-0": 0.5, "7-1": -0.5, "8-0": None}


def test_every_row_of_a_rollout_knows_its_part(store: Path) -> None:
    rows = [row for row in rows_of(store, "rows", "--policy", "all", "--reward", "share") if row["rollout_id"] == "7-0"]
    assert [row["row_weight"] for row in rows] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert sum(row["reward"] for row in rows) == pytest.approx(1.0)


def test_reward_and_group_may_stand_in_any_field(store: Path) -> None:
    rows = rows_of(store, "verl", "--reward-field", "meta.score", "--group-by", "meta.score")
    assert {(row["score"], row["uid"]) for row in rows} == {(2.5, "2.5")}


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("verl", ("--group-by", "none"), 2),
        ("rows", ("--group-by", "none"), 3),
        ("verl", (), 0),
        ("rows", (), 0),
        ("hf-labels", (), 0),
    ],
)
def test_rows_that_name_no_group_are_told_where_groups_matter(
    store: Path, name: str, options: tuple[str, ...], told: int
) -> None:
    """I19: whoever compares by groups would take them for one."""
    done = rebuild(store, "--to", name, "-o", store.parent / "out.jsonl", *options)
    assert done.code == 0 and ("rows without a group" in done.err) is bool(told)
    assert not told or f"rows without a group: {told}; " in done.err


def test_rows_that_are_too_long_are_left_out_cut_or_stop_the_run(store: Path) -> None:
    out = store.parent / "out.jsonl"
    assert [row["tokens"] for row in rows_of(store, "rows", "--max-length", "4")] == [[1, 2, 6, 7], [1, 2]]
    cut = rows_of(store, "rows", "--max-length", "4", "--on-overflow", "cut-turn")
    assert [row["tokens"] for row in cut] == [[1, 2, 3], [1, 2, 6, 7], [1, 2]]
    before = out.read_bytes()
    done = rebuild(store, "--to", "rows", "-o", out, "--max-length", "4", "--on-overflow", "fail")
    assert done.code == 2 and "7-0: 5 tokens, at most 4" in done.err and "hint:" in done.err
    assert out.read_bytes() == before


def test_a_finished_row_per_chain_is_what_a_converter_takes(store: Path) -> None:
    rows = [row for row in rows_of(store, "gym-response", "--policy", "all") if row["_ng_rollout_id"] == "7-0"]
    assert [(row["trajectory_index"], row["n_trajectories"], row["mask_sample"]) for row in rows] == [
        (0, 2, False),
        (1, 2, False),
    ]
    items = [item for item in rows[0]["response"]["output"] if "generation_token_ids" in item]
    assert [item["generation_token_ids"] for item in items] == [[3], [5]]
    assert items[1]["prompt_token_ids"] == [*items[0]["prompt_token_ids"], 3, 4]


def test_a_dry_run_writes_nothing_and_accounts_for_every_token(store: Path) -> None:
    before = sorted(path.name for path in store.parent.iterdir())
    done = rebuild(store, "--to", "rows", "--policy", "all", "--dry-run", "--max-length", "4")
    told = {line.rsplit(None, 1)[0].strip(): int(line.rsplit(None, 1)[1]) for line in done.out.splitlines()}
    assert done.code == 0
    assert told["captured"] == told["trained"] + told["context"] + sum(
        count for name, count in told.items() if name.startswith("lost:")
    )
    assert (told["rows"], told["trained in rows"], told["left out: over_max_length"]) == (3, 4, 4)
    assert told["trained"] == told["trained in rows"] + told["left out: over_max_length"]
    assert sorted(path.name for path in store.parent.iterdir()) == before


def test_the_receipt_tells_what_was_chosen_and_keeps_its_shape(store: Path) -> None:
    rows_of(store, "hf-labels", "--max-length", "4", "--mask-truncated")
    data = (store.parent / "out.jsonl.receipt.json").read_bytes()
    SHAPES["receipt"].model_validate_json(data)
    options = json.loads(data)["options"]
    assert (options["to"], options["export"]["max_length"], options["export"]["mask_truncated"]) == (
        "hf-labels",
        4,
        True,
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_change_no_byte(store: Path, jobs: int) -> None:
    out = store.parent / f"out-{jobs}.jsonl"
    assert rebuild(store, "--to", "tinker", "--advantage", "loo", "--jobs", jobs, "-o", out).code == 0
    rows = rows_of(store, "tinker", "--advantage", "loo")
    assert [json.loads(line) for line in out.read_text().splitlines()] == rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-length", "5", "-o", "x.jsonl"), "finished rows are delivered as they are"),
        (("--to", "gym-response", "--max-length", "5", "-o", "x.jsonl"), "nothing is cut"),
        (("--to", "gym-response", "--group-by", "task", "-o", "x.jsonl"), "nothing is cut, masked, grouped"),
        (("--to", "rows", "--on-overflow", "cut", "-o", "x.jsonl"), "--on-overflow cut: no row is too long"),
        (("--to", "hf-labels", "--reward", "last", "-o", "x.jsonl"), "hf-labels has no place for rewards"),
        (("--to", "skyrl-sft", "--advantage", "loo", "-o", "x.jsonl"), "skyrl-sft has no place for advantages"),
        (("--to", "llamafactory", "--weight", "token", "-o", "x"), "llamafactory has no place for weights"),
        (("--to", "prime-rl", "--group-by", "task", "-o", "x.jsonl"), "prime-rl has no place for groups"),
        (("--to", "skyrl", "--reward", "share", "-o", "x.jsonl"), "from the last row alone"),
        (("--to", "rows", "-o", "x.jsonl.gz"), "hint: -o x.jsonl, or -o - and a pipe"),
        (("--to", "rows", "--dry-run", "--receipt", "x.json"), "no --receipt and no --seal"),
        (("--to", "rows", "--dry-run", "--seal"), "no --receipt and no --seal"),
        (("--to", "slime", "-o", "x.parquet"), "slime is JSONL"),
        (("--to", "tinker", "-o", "x.arrow"), "tinker is JSONL"),
        (("--to", "rollouts", "-o", "x.arrow"), "rollouts is JSONL"),
        (("--to", "llamafactory", "-o", "x.arrow"), "llamafactory is a directory"),
        (("--to", "llamafactory", "-o", "-"), "llamafactory is a directory"),
        (("--to", "llamafactory", "-o", "x", "--shard-size", "5"), "a dataset is one directory"),
        (("--to", "llamafactory", "-o", "none/x"), "none: no such directory"),
        (("--to", "rows", "--dry-run", "-o", "x.jsonl"), "it takes no -o"),
        (("--to", "rows"), "-o OUT is wanted"),
        (("--to", "rows", "--max-length", "1", "-o", "x.jsonl"), "--max-length"),
    ],
)
def test_what_makes_no_sense_is_wrong_use(store: Path, options: tuple[str, ...], message: str) -> None:
    done = run("rebuild", store, *options, cwd=store.parent)
    assert done.code == 2 and message in done.err
    assert not list(store.parent.glob("x.*"))


@pytest.mark.parametrize("name", ["messages", "trl-grpo", "tinker", "pairs"])
def test_in_whatever_format_a_dry_run_says_what_becomes_of_every_token(store: Path, name: str) -> None:
    choices = {"tinker": ("--advantage", "loo"), "messages": ("--max-length", "3")}.get(name, ())
    done = rebuild(store, "--to", name, "--dry-run", *choices)
    told = {line.rsplit(None, 1)[0].strip(): int(line.rsplit(None, 1)[1]) for line in done.out.splitlines()}
    left_out = sum(count for each, count in told.items() if each.startswith("left out:"))
    assert told["trained"] == told["trained in rows"] + left_out
    assert left_out


def test_groups_tell_the_halves_of_a_format_that_has_no_place_for_them(store: Path) -> None:
    out = store.parent / "out.jsonl"
    halves = ("--split-by", "group", "--val", "0.5", "--group-by", "meta.score")
    assert rebuild(store, "--to", "hf-labels", "-o", out, *halves).code == 0
    assert sorted(path.name for path in store.parent.glob("out.*.jsonl")) == ["out.train.jsonl", "out.val.jsonl"]


@pytest.mark.parametrize("name", ["trl-grpo", "verl", "skyrl", "slime", "prime-rl"])
def test_a_format_that_needs_rewards_needs_the_finished_rows(store: Path, name: str) -> None:
    """Without them not one row could be written."""
    done = run("rebuild", store, "--to", name, "-o", store.parent / "x.jsonl")
    assert done.code == 2 and f"{name} needs rewards" in done.err and "hint: --rollouts FILE" in done.err
    assert not list(store.parent.glob("x.*"))


def test_groups_need_the_finished_rows(store: Path) -> None:
    done = run("rebuild", store, "--to", "rows", "--advantage", "grpo", "-o", store.parent / "x.jsonl")
    assert done.code == 2 and "hint: --rollouts FILE" in done.err


def test_a_format_goes_by_the_names_of_the_trainers_that_load_it(store: Path) -> None:
    (aliases,) = (row["aliases"] for row in run("formats", "--json").rows if row["aliases"])
    assert aliases == ["trl-sft", "axolotl", "unsloth"]
    written = set()
    for name in ("hf-labels", *aliases):
        assert run("rebuild", store, "--to", name, "-o", store.parent / f"{name}.jsonl").code == 0
        written.add((store.parent / f"{name}.jsonl").read_bytes())
    assert len(written) == 1
    done = run("rebuild", store, "--to", "axolotel", "-o", store.parent / "x.jsonl")
    assert done.code == 2 and "'axolotel' is not one of 'rollouts', 'rows'" in done.err


def test_formats_lists_all_that_can_be_asked_for(store: Path) -> None:
    rows = run("formats", "--json").rows
    assert [row["name"] for row in rows] == [shape.value for shape in Shape]
    text = run("formats").out
    assert all(shape.value in text for shape in Shape)
    told = {row["name"]: row["files"] for row in rows}
    assert told["rows"] == told["hf-labels"] == ["jsonl", "parquet", "arrow"]
    assert (told["tinker"], told["llamafactory"]) == (["jsonl"], ["directory"])
