"""`datasets` loads every file, with the types that the formats promise, whatever the values in it are."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict, List, Value, load_dataset, load_from_disk
from datasets.exceptions import DatasetGenerationError

from ng_capture import load
from ng_capture.errors import UsageError
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.export.formats.interface import Kind
from ng_capture.outputs.forms import Form
from tests.support.command import run
from tests.support.exported import in_float32
from tests.support.forge import Forge, write_rows
from tests.support.tables import FORMS, TABLES_WRITTEN, WRITTEN
from tests.trainers.captured import CAPTURED
from tests.trainers.conftest import Export

TYPES: dict[Kind, Any] = {
    "ids": List(Value("int32")),
    "mask": List(Value("int8")),
    "floats": List(Value("float32")),
    "text": Value("string"),
    "number": Value("float64"),
    "int": Value("int64"),
    "flag": Value("bool"),
}
LINES = [name for name, form in WRITTEN if form is Form.JSONL]
OURS: dict[str, Kind] = {"tokens": "ids", "loss_mask": "mask", "logprobs": "floats", "reward": "number"}


KINDS = {".jsonl": "json", ".parquet": "parquet", ".arrow": "arrow"}


def from_file(path: Path, **how: Any) -> Dataset:
    if path.is_dir():
        return load_from_disk(path)
    return load_dataset(KINDS[path.suffix], data_files=str(path), split="train", **how)


IN_PIECES = {"chunksize": 16_384}
"""Some hundred kilobytes are read as gigabytes are: the first piece says what the types are."""


def promised(name: str) -> dict[str, Any]:
    columns = FORMATS[name].columns if name in FORMATS else OURS
    return {column: TYPES[kind] for column, kind in columns.items() if isinstance(kind, str)}


@pytest.mark.parametrize("name", ["rollouts", "gym-response", *FORMS])
def test_every_file_loads_as_it_is(export: Export, name: str) -> None:
    assert len(from_file(export(name))) == len(CAPTURED)


@pytest.mark.parametrize(("name", "form"), TABLES_WRITTEN)
def test_a_table_keeps_its_types(export: Export, name: str, form: Form) -> None:
    found = from_file(export(name, ending=form)).features
    assert {column: found[column] for column in promised(name)} == promised(name)


@pytest.mark.parametrize(("name", "form"), WRITTEN)
def test_load_gives_the_types_of_the_format_for_lines_too(export: Export, name: str, form: Form) -> None:
    found = load(export(name, ending=form)).dataset()
    assert {column: found.features[column] for column in promised(name)} == promised(name)
    assert len(found) == len(CAPTURED)


@pytest.mark.parametrize(("name", "form"), TABLES_WRITTEN)
def test_lines_and_table_are_one_dataset(export: Export, name: str, form: Form) -> None:
    lines, table = load(export(name)).dataset(), load(export(name, ending=form)).dataset()
    assert lines.features == table.features
    assert lines[:] == table[:]


@pytest.mark.parametrize("name", [name for name, form in TABLES_WRITTEN if form is Form.ARROW])
def test_an_arrow_file_is_mapped_into_memory_and_copied_nowhere(export: Export, name: str) -> None:
    out = export(name, ending="arrow")
    for found in (Dataset.from_file(str(out)), load(out).dataset()):
        assert found.cache_files == [{"filename": str(out)}] and len(found) == len(CAPTURED)


def test_a_directory_loads_from_disk_with_the_columns_of_llamafactory(export: Export) -> None:
    out = export("llamafactory")
    found = load_from_disk(out)
    assert isinstance(found, Dataset) and found.features == promised("llamafactory") | dict.fromkeys(
        ("images", "videos", "audios"), List(Value("string"))
    )
    labels = load(export("hf-labels", ending="arrow")).dataset()
    assert found.select_columns(labels.column_names)[:] == labels[:]
    assert found["images"][:] == found["audios"][:] == [[]] * len(CAPTURED)


def test_a_split_directory_is_a_dataset_dict_whose_halves_hold_every_row_once(export: Export) -> None:
    """As LLaMA-Factory takes them: rows to train under `train`, rows to evaluate under `validation`."""
    found = load_from_disk(export("llamafactory", "--split-by", "group", "--val", "0.5"))
    assert isinstance(found, DatasetDict) and list(found) == ["train", "validation"]
    rows = [row["input_ids"] for half in found.values() for row in half]
    assert sorted(rows) == sorted(each.tokens for each in CAPTURED)
    assert found["train"].features == found["validation"].features


def test_what_datasets_computes_of_a_directory_is_computed_anew_when_its_rows_are_others(
    export: Export, tmp_path: Path
) -> None:
    def lengths(path: Path) -> list[int]:
        return list(load_from_disk(path).map(lambda row: {"length": len(row["input_ids"])})["length"])

    out = export("llamafactory")
    before = lengths(out)
    shutil.rmtree(out)
    assert lengths(export("llamafactory", "--max-length", "8")) == [length for length in before if length <= 8]


@pytest.mark.parametrize("advantage", ["none", "grpo"])
def test_a_datum_comes_back_as_its_line_tells_it(export: Export, advantage: str) -> None:
    out = export("tinker", "--advantage", advantage)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    rows = list(load(out).dataset())
    assert [row["model_input"] for row in rows] == [line["model_input"] for line in lines]
    for row, line in zip(rows, lines, strict=True):
        assert row["loss_fn_inputs"].keys() == line["loss_fn_inputs"].keys()


def test_a_file_that_has_changed_is_loaded_anew(export: Export) -> None:
    out = export("hf-labels")
    before = load(out).dataset()
    out.write_bytes(out.read_bytes().splitlines(keepends=True)[0])
    assert (len(before), len(load(out).dataset())) == (len(CAPTURED), 1)


def test_whole_responses_have_no_columns_of_fixed_types(export: Export) -> None:
    with pytest.raises(UsageError, match="no columns of fixed types"):
        load(export("gym-response")).dataset()


MANY = 1_000


@pytest.fixture(scope="module")
def whole_numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,000 rollouts with a reward of 0 and certain tokens, and one more whose numbers have fractions."""
    directory = tmp_path_factory.mktemp("many") / "store"
    rows = []
    for number in range(MANY + 1):
        forge = Forge(f"{number}-0")
        last = number == MANY
        call = forge.root([1], [2], id=str(number), generation_log_probs=[-0.5 if last else 0])
        forge.write(directory, state=False, intents=False)
        rows.append(forge.row(call, reward=0.25 if last else 0))
    write_rows(directory.parent / "rows.jsonl", rows)
    return directory


@pytest.mark.parametrize(
    ("name", "reward", "log_probs"),
    [
        ("rows", "reward", "logprobs"),
        ("trl-grpo", "reward", "logprobs"),
        ("verl", "score", "rollout_log_probs"),
        ("skyrl", "rewards", "rollout_logprobs"),
        ("slime", "reward", "rollout_log_probs"),
        ("prime-rl", "reward", "completion_logprobs"),
    ],
)
def test_floats_are_floats_where_a_thousand_of_them_are_whole(
    export: Export, whole_numbers: Path, name: str, reward: str, log_probs: str
) -> None:
    """The trap: a column that begins with integers, a piece of the file long, is one of integers."""
    out = export(name, source=whole_numbers)
    assert out.stat().st_size > 3 * IN_PIECES["chunksize"]
    found = from_file(out, **IN_PIECES)
    double = Value("float64")
    assert found.features[reward] in (double, List(double)) and found.features[log_probs] == List(double)
    last = found[MANY]
    assert last[reward] in (0.25, [0.25]) and last[log_probs][-1] == -0.5


def test_without_the_point_the_same_file_would_not_load(export: Export, whole_numbers: Path) -> None:
    """The trap itself, in `datasets`."""
    out = export("verl", source=whole_numbers)
    out.write_text(out.read_text().replace("0.0", "0"))
    with pytest.raises(DatasetGenerationError):
        from_file(out, **IN_PIECES)


def test_what_is_unknown_in_hundreds_of_rows_has_a_type_all_the_same(tmp_path: Path) -> None:
    """The trap: a column that begins with nulls, or with empty lists, has no type."""
    (tmp_path / "rows").mkdir()
    rows = []
    for number in range(300):
        forge = Forge(f"{number}-0")
        call = forge.root([1], [2], id=str(number), **({"weight_version": 4} if number == 299 else {}))
        forge.write(tmp_path / "store", state=False, intents=False)
        rows.append({**forge.row(call, reward=0.5), **({"_ng_task_index": 7} if number == 299 else {})})
    rows = [{key: value for key, value in row.items() if key != "_ng_task_index"} for row in rows[:-1]] + rows[-1:]
    write_rows(tmp_path / "rows.jsonl", rows)
    out = tmp_path / "out.jsonl"
    done = run("rebuild", tmp_path / "store", "--rollouts", tmp_path / "rows.jsonl", "--to", "slime", "-o", out)
    assert done.code == 0, done.err
    found = load(out).dataset()
    assert found.features["weight_versions"] == List(Value("string"))
    assert found.features["label"] == found.features["group_index"] == Value("string")
    assert found["weight_versions"][298:] == [[], ["4"]] and found["group_index"][298:] == [None, "7"]


def strict(line: str) -> Any:
    """The value; raises AssertionError for NaN and the infinities, and for a key that stands twice in one object."""

    def refused(constant: str) -> None:
        raise AssertionError(constant)

    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs), pairs
        return dict(pairs)

    return json.loads(line, parse_constant=refused, object_pairs_hook=object_of)


@pytest.fixture
def with_literals(tmp_path: Path) -> Path:
    """A good rollout, one with a log probability NaN, one with minus infinity, one with a reward NaN."""
    directory = tmp_path / "literals" / "store"
    rows = []
    for name, literal in (("1-0", None), ("2-0", b"NaN"), ("3-0", b"-Infinity"), ("4-0", None)):
        forge = Forge(name)
        call = forge.root([1, 2], [3, 4], id=name, generation_log_probs=[-0.123456789, -7.5e-7])
        forge.write(directory, state=False)
        if literal is not None:
            path = directory / f"{name}.tokens.jsonl"
            assert b"-7.5e-7" in path.read_bytes()
            path.write_bytes(path.read_bytes().replace(b"-7.5e-7", literal))
        rows.append(forge.row(call, reward=math.nan if name == "4-0" else 1.0))
    write_rows(directory.parent / "rows.jsonl", rows)
    return directory


@pytest.mark.parametrize("name", ["rollouts", "gym-response", *LINES])
def test_no_line_holds_nan_or_infinity_or_a_key_twice(with_literals: Path, tmp_path: Path, name: str) -> None:
    """The trap: they load as numbers, and are trained."""
    out = tmp_path / "out.jsonl"
    finished = with_literals.parent / "rows.jsonl"
    done = run("rebuild", with_literals, "--rollouts", finished, "--to", name, "-o", out)
    assert out.exists(), done.err
    for line in out.read_text().splitlines():
        strict(line)
    if name not in ("rollouts", "gym-response"):
        assert len(from_file(out)) >= 1
        for row in load(out):
            assert all(math.isfinite(value) for value in row.logprobs or [])


def test_log_probabilities_are_not_rounded_but_to_32_bits(with_literals: Path, tmp_path: Path) -> None:
    """The trap: a record that keeps four decimals. Small ones are written with an exponent, and are floats still."""
    told = []
    for ending in ("jsonl", "parquet"):
        out = tmp_path / f"out.{ending}"
        run("rebuild", with_literals, "--rollouts", with_literals.parent / "rows.jsonl", "--to", "rows", "-o", out)
        assert load(out).dataset()["logprobs"][0][2:] == [in_float32(-0.123456789), in_float32(-7.5e-7)]
        told.append(from_file(out)["logprobs"][0][2:])
    assert told == [[-0.123456789, -7.5e-7], [in_float32(-0.123456789), in_float32(-7.5e-7)]]


@pytest.mark.parametrize("name", ["rows", *FORMATS])
def test_no_row_is_longer_than_asked_for_or_trains_a_part_of_an_answer(export: Export, name: str) -> None:
    """The trap: a packer that cuts at its own length takes the last trained token away."""
    length = max(len(each.tokens) for each in CAPTURED) - 1
    rows = list(load(export(name, "--max-length", length, "--on-overflow", "cut-turn")))
    assert len(rows) == len(CAPTURED)
    for row, each in zip(rows, CAPTURED, strict=True):
        size = len(row.tokens)
        assert size <= length and row.loss_mask[-1] == 1
        assert size == len(each.tokens) or each.mask[size] == 0
        assert row.loss_mask.tolist() == each.mask[:size]
