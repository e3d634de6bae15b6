"""`ng_capture.load`: exported files as typed rows, without any library of a trainer."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ng_capture import load
from ng_capture.errors import UsageError
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.forms import Form
from ng_capture.outputs.rebuilding import Shape
from ng_capture.replay import Replay
from tests.support.command import run
from tests.support.exported import in_float32
from tests.support.forge import Forge, write_rows
from tests.support.tables import TABLES, TABLES_WRITTEN, Rows, change, table_of


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two attempts at task 7; the first forks, has two weight versions, and one mask bit of its tail is 0."""
    directory = tmp_path / "store"
    fork = Forge("7-0")
    first = fork.root([1, 2], [3, 4], id="a")
    scored = first.then([5], [6], id="b", weight_version=3)
    first.then([9], [10], id="s")
    other = Forge("7-1")
    answer = other.root([1, 2], [6, 7], id="c")
    for forge in (fork, other):
        forge.write(directory)
    rows = [fork.row(scored, reward=1), other.row(answer, reward=0)]
    write_rows(tmp_path / "rows.jsonl", [{**row, "_ng_task_index": 7} for row in rows])
    return directory


ENDINGS = ["jsonl", "parquet", "arrow"]


def exported(store: Path, name: str, *options: object, ending: str = "jsonl") -> Path:
    out = store.parent / ("out" if name == "llamafactory" else f"out.{ending}")
    done = run("rebuild", store, "--rollouts", store.parent / "rows.jsonl", "--to", name, "-o", out, *options)
    assert done.code == 0, done.err
    return out


def told(path: Path) -> list[tuple[list[int], list[int], list[float] | None]]:
    return [
        (row.tokens.tolist(), row.loss_mask.tolist(), None if row.logprobs is None else row.logprobs.tolist())
        for row in load(path)
    ]


@pytest.mark.parametrize("name", ["rows", "gym-response", *FORMATS])
def test_a_row_of_any_format_has_the_arrays_that_were_captured(store: Path, name: str) -> None:
    out = exported(store, name)
    assert load(out).shape is Shape(name)
    captured = [
        ([1, 2, 3, 4, 5, 6], [0, 0, 1, 1, 0, 1], [0.0, 0.0, -0.25, -0.25 - 1 / 4096, 0.0, -0.5]),
        ([1, 2, 6, 7], [0, 0, 1, 1], [0.0, 0.0, -0.25, -0.25 - 1 / 4096]),
    ]
    for found, (tokens, mask, log_probs) in zip(told(out), captured, strict=True):
        assert found[:2] == (tokens, mask)
        assert found[2] is None or found[2] == log_probs


@pytest.mark.parametrize(("name", "form"), TABLES_WRITTEN)
def test_a_table_and_lines_load_alike(store: Path, name: str, form: Form) -> None:
    lines = exported(store, name, "--policy", "all")
    table = exported(store, name, "--policy", "all", ending=form)
    assert told(table) == told(lines)
    assert load(table).shape is load(lines).shape


def test_the_types_of_a_row_are_those_that_trainers_take(store: Path) -> None:
    for ending in ENDINGS:
        (row, *_) = load(exported(store, "rows", ending=ending))
        assert row.logprobs is not None
        assert (row.tokens.format, row.loss_mask.format, row.logprobs.format) == ("i", "b", "f")


def test_the_other_fields_of_a_row_are_there_by_their_own_names(store: Path) -> None:
    for ending in ENDINGS:
        (row, *_) = load(exported(store, "rows", ending=ending))
        assert (row.fields["rollout_id"], row.fields["group_id"], row.fields["reward"]) == ("7-0", "7", 1.0)
        assert row.fields["accounting"]["lost"] == {"off_path": 1}
        assert [span["call_id"] for span in row.fields["spans"]] == ["a", "a", "b", "b"]


@pytest.mark.parametrize("ending", TABLES)
def test_the_arrays_of_a_table_are_views_of_its_memory_and_outlive_the_next_rows(store: Path, ending: str) -> None:
    rows = list(load(exported(store, "rows", ending=ending)))
    assert all(row.tokens.obj.__class__.__module__.startswith("pyarrow") for row in rows)
    assert [row.tokens.tolist() for row in rows] == [[1, 2, 3, 4, 5, 6], [1, 2, 6, 7]]


def test_a_table_of_many_batches_keeps_rows_and_arrays_together(tmp_path: Path) -> None:
    rows = []
    for number in range(150):
        forge = Forge(f"{number:03}-0")
        call = forge.root([1] * (1 + number % 7), [2] * (1 + number % 5), id=str(number))
        forge.write(tmp_path / "store", state=False, intents=False)
        rows.append({**forge.row(call, reward=number), "_ng_task_index": 7})
    write_rows(tmp_path / "rows.jsonl", rows)
    for name, ending in product(("rows", "trl-grpo"), TABLES):
        found = list(load(exported(tmp_path / "store", name, ending=ending)))
        assert [row.fields["reward"] for row in found] == list(range(150))
        for number, row in enumerate(found):
            prompt, generated = 1 + number % 7, 1 + number % 5
            assert row.tokens.tolist() == [1] * prompt + [2] * generated
            assert row.loss_mask.tolist() == [0] * prompt + [1] * generated


def test_log_probabilities_come_back_as_the_32_bit_floats_that_tables_hold(tmp_path: Path) -> None:
    forge = Forge("r-1")
    odd = -0.1234567890123
    forge.root([1], [2], id="a", generation_log_probs=[odd])
    forge.write(tmp_path / "store")
    write_rows(tmp_path / "rows.jsonl", [forge.row()])
    for ending in ENDINGS:
        (row,) = load(exported(tmp_path / "store", "rows", ending=ending))
        assert row.logprobs is not None and row.logprobs[1] == in_float32(odd)
        assert row.logprobs[1] != odd


def test_a_datum_that_samples_a_certain_token_still_trains_it(tmp_path: Path) -> None:
    rows = []
    for name, reward in (("7-0", 1.0), ("7-1", 0.0)):
        forge = Forge(name)
        call = forge.root([1], [2], id=name, generation_log_probs=[0.0])
        forge.write(tmp_path / "store")
        rows.append({**forge.row(call, reward=reward), "_ng_task_index": 7})
    write_rows(tmp_path / "rows.jsonl", rows)
    out = exported(tmp_path / "store", "tinker", "--advantage", "grpo")
    assert [mask for _, mask, _ in told(out)] == [[0, 1], [0, 1]]


def test_a_file_of_finished_rows_gives_those_that_may_be_trained(tmp_path: Path) -> None:
    good, masked = Forge("7-0"), Forge("7-1")
    good.root([1, 2], [3], id="a")
    masked.root([1, 2], [3], id="d").broken([1, 9, 9, 4], [5], id="e")
    for forge in (good, masked):
        forge.write(tmp_path / "store")
    write_rows(tmp_path / "rows.jsonl", [forge.row(forge.calls[-1]) for forge in (good, masked)])
    out = exported(tmp_path / "store", "rollouts")
    assert len(out.read_text().splitlines()) == 2
    assert told(out) == [([1, 2, 3], [0, 0, 1], [0.0, 0.0, -0.25])]


def test_what_others_wrote_between_the_answers_of_a_finished_row_is_no_token_of_it(tmp_path: Path) -> None:
    first = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}
    second = {"prompt_token_ids": [1, 2, 3, 4], "generation_token_ids": [5], "generation_log_probs": [-0.25]}
    output = [{"type": "reasoning"}, first, {"type": "function_call_output", "output": "x"}, second]
    rows = [{"_ng_rollout_id": "7-0", "response": {"output": each}} for each in (output, [])]
    write_rows(tmp_path / "out.jsonl", rows)
    assert told(tmp_path / "out.jsonl") == [
        ([1, 2, 3, 4, 5], [0, 0, 1, 0, 1], [0.0, 0.0, -0.5, 0.0, -0.25]),
        ([], [], []),
    ]


def test_a_file_is_read_anew_each_time(store: Path) -> None:
    loaded = load(exported(store, "rows"))
    assert len(list(loaded)) == len(list(loaded)) == 2


def test_compressed_lines_load_too(store: Path) -> None:
    out = exported(store, "hf-labels")
    packed = out.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(out.read_bytes()))
    assert told(packed) == told(out)
    packed.write_bytes(gzip.compress(out.read_bytes())[:-12])
    with pytest.raises(UsageError, match="damaged or cut"):
        told(packed)


def test_an_empty_file_has_no_rows_and_no_format(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    loaded = load(tmp_path / "empty.jsonl")
    assert loaded.shape is None and list(loaded) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"text": "hello"}\n', "no format has the columns text"),
        (b"{torn\n", "bad.jsonl:1: no JSON"),
        (b"[1]\n", "bad.jsonl:1: no JSON object"),
        (b'{"input_ids": [1, 2], "loss_mask": [1]}\n', "row 0 is no row of skyrl-sft"),
        (b'{"input_ids": [1, 4294967296], "loss_mask": [0, 1]}\n', "row 0 is no row of skyrl-sft"),
        (b'{"input_ids": [1, null], "loss_mask": [0, 1]}\n', "row 0 is no row of skyrl-sft"),
        (b'{"input_ids": [1, 2], "loss_mask": [0, 1]}\n{"input_ids": [1]}\n', "row 1 is no row of skyrl-sft"),
    ],
)
def test_what_no_format_has_is_wrong_use_with_its_place(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(data)
    with pytest.raises(UsageError) as error:
        list(load(path))
    assert message in error.value.message


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("bad.parquet", b"PAR1", "no Parquet file"),
        ("bad.arrow", b"", "no Arrow stream"),
        ("bad.arrow", b"ARROW1\0\0", "no Arrow stream"),
    ],
)
def test_what_is_no_table_is_wrong_use(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=message):
        load(tmp_path / name)


def test_a_stream_without_its_end_is_not_taken_for_a_shorter_one(store: Path) -> None:
    out = exported(store, "rows", ending="arrow")
    out.write_bytes(out.read_bytes()[:-8])
    with pytest.raises(UsageError, match="it was cut"):
        list(load(out))


@pytest.mark.parametrize("ending", TABLES)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: rows[1]["tokens"].append(None),
        lambda rows: rows[1]["tokens"].append(7),
        lambda rows: rows[1].update(loss_mask=None),
        lambda rows: rows[1].update(accounting=None),
    ],
    ids=["a null among ids", "another length", "no mask", "no accounting"],
)
def test_a_row_of_a_table_that_is_none_is_wrong_use(store: Path, ending: str, spoil: Callable[[Rows], None]) -> None:
    change(out := exported(store, "rows", ending=ending), spoil)
    with pytest.raises(UsageError, match=r"row 1 is no row of rows|null where a number belongs"):
        list(load(out))


@pytest.mark.parametrize("ending", TABLES)
def test_a_table_of_other_types_is_not_taken_for_one_of_these(store: Path, ending: str) -> None:
    """A loss mask of 32 bits holds the same numbers, and is read by no trainer as bytes."""
    table = table_of(out := exported(store, "skyrl-sft", ending=ending))
    other = table.set_column(1, "loss_mask", table["loss_mask"].cast(pa.list_(pa.int32())))
    if ending == "parquet":
        pq.write_table(other, out)
    else:
        with pa.OSFile(str(out), "wb") as sink, pa.ipc.new_stream(sink, other.schema) as stream:
            stream.write_table(other)
    with pytest.raises(UsageError, match="columns of other types: i, i"):
        list(load(out))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (None, "No such file"),
        (b"{}", "KeyError"),
        (b"[]", "TypeError"),
        (b"\xff", "UnicodeDecodeError"),
        (b'{"_data_files": []}', "no data file"),
    ],
)
def test_a_directory_that_is_no_dataset_is_wrong_use(tmp_path: Path, state: bytes | None, message: str) -> None:
    if state is not None:
        (tmp_path / "state.json").write_bytes(state)
    with pytest.raises(UsageError, match=f"no dataset: state.json: .*{message}"):
        load(tmp_path)


@pytest.mark.parametrize("library", ["datasets", "torch"])
def test_a_library_that_is_not_there_is_named_with_the_command_that_installs_it(
    store: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    loaded = load(exported(store, "rows"))
    with pytest.raises(UsageError) as error:
        loaded.dataset() if library == "datasets" else loaded.tensors()
    assert (error.value.message, error.value.hint) == (f"{library} is not installed", f"pip install {library}")


def test_importing_the_package_loads_none_of_it() -> None:
    code = "import sys; import ng_capture; print([name for name in sys.modules if name.startswith('ng_capture.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


def test_lines_load_without_the_columnar_library(store: Path) -> None:
    out = str(exported(store, "rows"))
    code = f"import sys, ng_capture; list(ng_capture.load({out!r})); print('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"


def test_a_datum_says_what_tiles_its_input_and_its_targets(store: Path) -> None:
    """Runs as tinker-cookbook produces them (policies-and-exports.md 4.1)."""
    (first, *_) = load(exported(store, "tinker"))
    runs = first.fields["provenance"]

    def tiles(name: str) -> list[tuple[Any, ...]]:
        return [(run["kind"], run["sequence_id"], run["offset"], run["length"]) for run in runs[name]]

    assert tiles("model_input_spans") == [("prompt", "a", 0, 2), ("sampled", "a", 0, 2), ("prompt", "b", 4, 1)]
    assert tiles("loss_fn_input_spans") == [
        ("prompt", "a", 1, 1),
        ("sampled", "a", 0, 2),
        ("prompt", "b", 4, 1),
        ("sampled", "b", 0, 1),
    ]


@pytest.mark.parametrize("name", ["tinker", "prime-rl"])
def test_a_row_without_an_advantage_is_no_row_among_those_that_have_one(store: Path, name: str) -> None:
    """As a row of SFT it would be trained as if it were the best of its group."""
    out = store.parent / "out.jsonl"
    rows = [json.loads(line) for line in (store.parent / "rows.jsonl").read_text().splitlines()]
    write_rows(store.parent / "rows.jsonl", [rows[0], {**rows[1], "_ng_task_index": 8}])
    options = ("--rollouts", store.parent / "rows.jsonl", "--to", name, "-o", out, "--advantage", "grpo")
    done = run("rebuild", store, *options)
    assert "rows left out: advantage_missing 2" in done.err
    assert out.read_text() == ""


def test_a_replay_serves_each_group_whole_and_in_order(store: Path) -> None:
    for ending in ENDINGS:
        replay = Replay(exported(store, "trl-grpo", ending=ending), group_size=2)
        assert replay.prompts == [{"prompt": "7"}] and replay.longest == 4
        served = replay.rollouts(["7", "7"])
        assert served["prompt_ids"] == [[1, 2], [1, 2]]
        assert served["completion_ids"] == [[3, 4, 5, 6], [6, 7]]
        assert served["env_mask"] == [[1, 1, 0, 1], [1, 1]]
        assert served["logprobs"][0] == [-0.25, -0.25 - 1 / 4096, 0.0, -0.5]
        assert replay.reward(**served) == [1.0, 0.0]


def test_a_replay_takes_no_group_of_another_size(store: Path) -> None:
    out = exported(store, "trl-grpo")
    with pytest.raises(UsageError, match="1 of 1 groups have not 4 rollouts: 7 2"):
        Replay(out, group_size=4)
    replay = Replay(out, group_size=4, uneven="drop")
    assert (replay.prompts, replay.dropped) == ([], {"7": 2})


def test_a_replay_serves_no_part_of_a_group(store: Path) -> None:
    with pytest.raises(UsageError, match="group 7 is asked for 1 times"):
        Replay(exported(store, "trl-grpo"), group_size=2).rollouts(["7"])


def test_a_replay_serves_no_trainer_of_other_groups(store: Path) -> None:
    replay = Replay(exported(store, "trl-grpo"), group_size=2)
    assert len(replay.rollouts(["7", "7"], SimpleNamespace(num_generations=2))["prompt_ids"]) == 2
    with pytest.raises(UsageError, match="the trainer's groups are 4 rollouts, those of the file 2") as error:
        replay.rollouts(["7"] * 4, SimpleNamespace(num_generations=4))
    assert error.value.hint == "num_generations=2"


def test_a_replay_takes_no_rollout_of_several_rows(store: Path) -> None:
    """TRL would count each of them in the mean of the group."""
    with pytest.raises(UsageError, match="rollout 7-0 has 2 rows"):
        Replay(exported(store, "trl-grpo", "--policy", "all"), group_size=2)


def test_a_replayed_completion_ends_with_a_trained_token(store: Path) -> None:
    """TRL would call one that ends in what a tool said cut off."""
    out = exported(store, "trl-grpo", "--max-length", "5", "--on-overflow", "cut")
    assert next(row.tokens.tolist() for row in load(out)) == [1, 2, 3, 4, 5]
    served = Replay(out, group_size=2).rollouts(["7", "7"])
    assert (served["completion_ids"][0], served["env_mask"][0]) == ([3, 4], [1, 1])


def test_a_replay_takes_its_own_format_only(store: Path) -> None:
    with pytest.raises(UsageError, match="a file of verl"):
        Replay(exported(store, "verl"), group_size=2)


def test_a_replay_takes_no_rollout_that_trains_nothing(store: Path) -> None:
    out = exported(store, "trl-grpo")
    out.write_text(out.read_text().replace('"env_mask":[1,1]', '"env_mask":[0,0]'))
    with pytest.raises(UsageError, match="rollout 7-1 trains no token"):
        Replay(out, group_size=2)


def test_a_replay_takes_no_rollout_without_a_group(store: Path) -> None:
    with pytest.raises(UsageError, match="belongs to no group"):
        Replay(exported(store, "trl-grpo", "--group-by", "nothing"), group_size=2)
