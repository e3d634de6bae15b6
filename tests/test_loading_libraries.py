"""`ng_capture.load` as `datasets` and torch are given it; the libraries themselves: `tests/trainers`."""

import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from ng_capture import load
from ng_capture.errors import UsageError
from ng_capture.outputs.export.formats import FORMATS
from ng_capture.outputs.forms import Form
from tests.support.command import run
from tests.support.forge import Forge, write_rows
from tests.support.stand_ins import DATASETS, TORCH
from tests.support.tables import TABLES, TABLES_WRITTEN, named

Export = Callable[..., Path]


@pytest.fixture(autouse=True)
def libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", DATASETS)
    monkeypatch.setitem(sys.modules, "torch", TORCH)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two attempts at task 7, the first of two weight versions and of two chains."""
    directory = tmp_path_factory.mktemp("captured") / "store"
    first, second = Forge("7-0"), Forge("7-1")
    shared = first.root([1, 2], [3, 4], id="a")
    scored = shared.then([5], [6], id="b", weight_version=3)
    shared.then([9], [10], id="s")
    answer = second.root([1, 2], [6, 7], id="c")
    rows = []
    for forge, call, reward in ((first, scored, 1), (second, answer, 0)):
        forge.write(directory)
        rows.append({**forge.row(call, reward=reward), "_ng_task_index": 7})
    write_rows(directory.parent / "rows.jsonl", rows)
    return directory


@pytest.fixture
def export(store: Path, tmp_path: Path) -> Export:
    def exported(name: str, *options: object, form: Form = Form.JSONL) -> Path:
        out = named(tmp_path, form)
        rows = store.parent / "rows.jsonl"
        done = run("rebuild", store, "--rollouts", rows, "--to", name, "--policy", "all", "-o", out, *options)
        assert done.code == 0, done.err
        return out

    return exported


@pytest.mark.parametrize(("name", "form"), TABLES_WRITTEN)
def test_lines_and_table_are_one_dataset(export: Export, name: str, form: Form) -> None:
    lines, table = load(export(name)).dataset(), load(export(name, form=form)).dataset()
    assert lines.schema.equals(table.schema) and lines.to_pylist() == table.to_pylist()
    assert lines.num_rows == 3


def test_a_directory_is_one_too(export: Export) -> None:
    found = load(export("llamafactory", form=Form.DIRECTORY)).dataset()
    assert found.column("input_ids").to_pylist()[0] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("advantage", "held"), [("none", ["weights"]), ("grpo", ["logprobs", "advantages"])])
def test_a_datum_has_the_tensors_of_its_kind_and_no_empty_ones(export: Export, advantage: str, held: list[str]) -> None:
    """A key that its trainer does not know, even as null, is one too many."""
    found = load(export("tinker", "--advantage", advantage)).dataset()
    inputs = found.schema.field("loss_fn_inputs").type
    assert sorted(field.name for field in inputs) == sorted(["target_tokens", *held])
    assert all(inputs.field(name).type.field("data").type == pa.list_(pa.float32()) for name in held)


def test_rows_without_columns_of_fixed_types_are_no_dataset(export: Export, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    for path in (export("gym-response"), tmp_path / "empty.jsonl"):
        with pytest.raises(UsageError, match="no columns of fixed types") as error:
            load(path).dataset()
        assert error.value.hint == "ng-capture rebuild ... --to rows"


@pytest.mark.parametrize(
    ("name", "form"), [*((name, Form.JSONL) for name in ("rows", *FORMATS) if name != "llamafactory"), *TABLES_WRITTEN]
)
def test_tensors_have_the_types_of_trainers_and_the_values_of_the_row(export: Export, name: str, form: Form) -> None:
    out = export(name, form=form)
    for tensors, row in zip(load(out).tensors(), load(out), strict=True):
        wanted = {"tokens": row.tokens, "loss_mask": row.loss_mask, "logprobs": row.logprobs}
        assert tensors == {key: view for key, view in wanted.items() if view is not None}
        assert [tensor.format for tensor in tensors.values()] == ["i", "b", "f"][: len(tensors)]


@pytest.mark.parametrize("form", TABLES)
def test_tensors_of_a_table_share_its_memory(export: Export, form: Form) -> None:
    for tensors in load(export("rows", form=form)).tensors():
        assert all(type(tensor.obj).__module__.startswith("pyarrow") for tensor in tensors.values())
