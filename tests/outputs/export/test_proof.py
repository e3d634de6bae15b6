"""Whatever is changed in an exported file is found, with its row, place and invariant, in each form of each format."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.export.proof import Breach, prove
from ng_capture.outputs.forms import Form
from ng_capture.outputs.rebuild import rebuild
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.outputs.writer import RebuildWriter, described
from ng_capture.verdicts.judging import Judging
from tests.support.forge import Forge, write_rows
from tests.support.tables import WRITTEN, Rows, change, named, pieces_of, read_rows

ARRAYS = {
    "rows": ("tokens", "loss_mask", "logprobs"),
    "hf-labels": ("input_ids", "labels", None),
    "llamafactory": ("input_ids", "labels", None),
    "trl-grpo": ("completion_ids", "env_mask", "logprobs"),
    "skyrl-sft": ("input_ids", "loss_mask", None),
    "skyrl": ("response_ids", "loss_masks", "rollout_logprobs"),
    "verl": ("responses", "response_mask", "rollout_log_probs"),
    "slime": ("tokens", "loss_mask", "rollout_log_probs"),
    "prime-rl": ("completion_ids", "completion_mask", "completion_logprobs"),
}
"""Where a format keeps ids, mask and log probabilities, the last two beside the end of the first."""
LABELS = ("hf-labels", "llamafactory")
FLAT = [(name, form) for name, form in WRITTEN if name in ARRAYS]

Exported = Callable[[str, Form], Path]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("proof") / "store"
    rows = []
    for name, reward, first in (("7-0", 1.0, 1), ("7-1", 0.25, 21)):
        forge = Forge(name)
        last = forge.root([first, 2], [3, 11], id=f"{name}-a").then([4], [5, 6], id=f"{name}-b")
        forge.write(directory)
        rows.append({**forge.row(last, reward=reward), "_ng_task_index": 7})
    write_rows(directory.parent / "rows.jsonl", rows)
    return directory


@pytest.fixture
def exported(store: Path, tmp_path: Path) -> Exported:
    """Writes the store as a format, each time in a directory of its own."""

    def write(name: str, form: Form) -> Path:
        directory = tmp_path / str(len(list(tmp_path.iterdir())))
        directory.mkdir()
        return written(store, name, form, named(directory, form))

    return write


def written(store: Path, name: str, form: Form, out: Path) -> Path:
    rows = RowsFile(str(store.parent / "rows.jsonl"))
    how = Rebuild(Shape(name), Judging(), form=form)
    with RebuildWriter(str(out), None, how, described(rows)) as writer:
        writer.write_all(rebuild(list_rollouts([str(store)]), rows, how))
    return out


def breaches(store: Path, out: Path) -> list[Breach]:
    rows = RowsFile(str(store.parent / "rows.jsonl"))
    return list(prove(str(out), f"{out}.receipt.json", list_rollouts([str(store)]), rows))


def broken(store: Path, out: Path) -> set[str]:
    """The invariants that are named, beside the digest of the receipt, which always is."""
    found = {breach.invariant for breach in breaches(store, out)}
    assert "receipt" in found
    return found - {"receipt"}


@pytest.mark.parametrize(("name", "form"), WRITTEN)
def test_what_was_written_is_proven(store: Path, exported: Exported, name: str, form: Form) -> None:
    out = exported(name, form)
    assert len(read_rows(out)) == 2
    assert breaches(store, out) == []


@pytest.mark.parametrize(("name", "form"), FLAT)
def test_one_id_is_found_with_its_place(store: Path, exported: Exported, name: str, form: Form) -> None:
    out, (ids, _, _) = exported(name, form), ARRAYS[name]

    def other(rows: Rows) -> None:
        rows[1][ids][-1] += 1

    change(out, other)
    found = [(each.row, each.position) for each in breaches(store, out) if each.invariant == "I1"]
    assert found == [(1, 6)]


@pytest.mark.parametrize(("name", "form"), FLAT)
def test_one_mask_bit_is_found_either_way(store: Path, exported: Exported, name: str, form: Form) -> None:
    lost, gained = (-100, 4) if name in LABELS else (False, True)
    # the last token is trained, the one before its call's answer is not
    for place, value, invariant in ((-1, lost, "I6"), (-3, gained, "I3")):
        out = exported(name, form)

        def flip(rows: Rows, place: int = place, value: int = value) -> None:
            rows[0][ARRAYS[name][1]][place] = int(value) if name != "prime-rl" else bool(value)

        change(out, flip)
        assert invariant in broken(store, out)


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, form in FLAT if ARRAYS[name][2]])
def test_one_log_probability_is_found(store: Path, exported: Exported, name: str, form: Form) -> None:
    for value, invariant in ((-0.125, "I32"), (0.5, "I8"), (-9999.0, "I8"), (float("-inf"), "I8")):
        if value == float("-inf") and form is Form.JSONL:
            continue
        out = exported(name, form)

        def other(rows: Rows, value: float = value) -> None:
            rows[0][str(ARRAYS[name][2])][-1] = value

        change(out, other)
        assert invariant in broken(store, out)


@pytest.mark.parametrize(("name", "form"), WRITTEN)
def test_a_row_that_stands_there_twice_or_not_at_all_is_found(
    store: Path, exported: Exported, name: str, form: Form
) -> None:
    change(out := exported(name, form), lambda rows: rows.insert(1, rows[0]))
    assert broken(store, out) == {"I5"}
    assert {each.row for each in breaches(store, out) if each.invariant == "I5"} == {1}
    change(out := exported(name, form), lambda rows: rows.__delitem__(0))
    assert broken(store, out) == {"I6"}


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, form in FLAT if name in ("verl", "trl-grpo")])
def test_another_reward_group_or_rollout_is_found(store: Path, exported: Exported, name: str, form: Form) -> None:
    reward, group = ("score", "uid") if name == "verl" else ("reward", "group_id")
    for field, value, invariant in ((reward, 0.5, "I18"), (group, "x", "I19"), ("rollout_id", "x", "I18")):
        change(out := exported(name, form), lambda rows, told={field: value}: rows[1].update(told))  # type: ignore[misc]
        assert broken(store, out) == {invariant}


@pytest.mark.parametrize("name", ["rollouts", "gym-response", "rows", "verl"])
def test_a_token_that_nothing_predicts_is_no_breach_of_what_carries_it(tmp_path: Path, name: str) -> None:
    """A first call without a prompt: items tell its generation whole (case T35)."""
    forge = Forge("r-1")
    forge.root([], [3, 4]).then([5], [6])
    forge.write(tmp_path / "store")
    write_rows(tmp_path / "rows.jsonl", [forge.row(forge.calls[-1], reward=1.0)])
    assert breaches(tmp_path / "store", written(tmp_path / "store", name, Form.JSONL, tmp_path / "out.jsonl")) == []


@pytest.mark.parametrize("form", [Form.JSONL, Form.PARQUET, Form.ARROW])
def test_arrays_of_unequal_length_are_named(store: Path, exported: Exported, form: Form) -> None:
    change(out := exported("rows", form), lambda rows: rows[0]["logprobs"].pop())
    assert "I7" in broken(store, out)


def _path(row: dict[str, Any], *keys: str | int) -> Any:
    for key in keys:
        row = row[key]  # type: ignore[index]
    return row


@pytest.mark.parametrize(
    ("name", "keys", "place", "value"),
    [
        ("hf-labels", ("labels",), -1, 7),
        ("hf-labels", ("attention_mask",), 0, 0),
        ("tinker", ("model_input", "chunks", 0, "tokens"), 3, 7),
        ("tinker", ("loss_fn_inputs", "target_tokens", "data"), 3, 7),
        ("tinker", ("loss_fn_inputs", "weights", "data"), 3, 1.0),
        ("prime-rl", ("prompt_mask",), 0, True),
        ("gym-response", ("response", "output", 0, "prompt_token_ids"), 0, 7),
        ("gym-response", ("response", "output", 0, "generation_token_ids"), 0, 7),
        ("gym-response", ("response", "output", 0, "generation_log_probs"), 0, -7.0),
        ("rollouts", ("response", "output", -1, "prompt_token_ids"), 0, 7),
    ],
)
def test_what_a_format_tells_twice_cannot_differ(
    store: Path, exported: Exported, name: str, keys: tuple[str | int, ...], place: int, value: object
) -> None:
    out = exported(name, Form.JSONL)
    change(out, lambda rows: _path(rows[1], *keys).__setitem__(place, value))
    assert broken(store, out) & {"I1", "I3", "I7", "I32"}


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, form in FLAT if form is Form.JSONL])
def test_what_is_no_number_is_named(store: Path, exported: Exported, name: str, form: Form) -> None:
    for column in filter(None, ARRAYS[name]):
        for other in ("x", None, [1]):
            out = exported(name, form)

            def spoil(rows: Rows, column: str = column, other: object = other) -> None:
                rows[0][column][-1] = other

            change(out, spoil)
            assert broken(store, out) & {"I7", "I1", "I6"}


@pytest.mark.parametrize("form", [Form.PARQUET, Form.ARROW])
def test_where_a_table_is_cut_it_says_so_and_no_more(store: Path, exported: Exported, form: Form) -> None:
    out = exported("verl", form)
    out.write_bytes(out.read_bytes()[:-12])
    (receipt, cut) = breaches(store, out)
    assert (receipt.invariant, cut.invariant) == ("receipt", "I7") and str(out) in cut.message


def test_a_stream_that_was_cut_between_its_batches_is_no_shorter_table(store: Path, exported: Exported) -> None:
    """Eight bytes tell the end of a stream; readers take one without them for one that ends where it was cut."""
    out = exported("verl", Form.ARROW)
    out.write_bytes(out.read_bytes()[:-8])
    assert "it was cut" in breaches(store, out)[-1].message


def test_of_a_directory_every_document_counts(store: Path, exported: Exported) -> None:
    for name in ("state.json", "dataset_info.json"):
        for other in (b"", b"{}"):
            document = exported("llamafactory", Form.DIRECTORY) / name
            document.write_bytes(other)
            found = [each.message for each in breaches(store, document.parent)]
            assert f"{document} is not what rebuild writes" in found


def test_a_directory_whose_state_names_its_rows_twice_trains_them_twice(store: Path, exported: Exported) -> None:
    out = exported("llamafactory", Form.DIRECTORY)
    (data,) = out.glob("data-*.arrow")
    shutil.copy(data, out / "more.arrow")
    state = out / "state.json"
    state.write_text(state.read_text().replace(f'"{data.name}"', f'"{data.name}"}}, {{"filename": "more.arrow"'))
    assert len(breaches(store, out)) == 3 and broken(store, out) == {"I1"}


@pytest.mark.parametrize(
    ("name", "form"), [("rows", Form.ARROW), ("rows", Form.PARQUET), ("llamafactory", Form.DIRECTORY)]
)
def test_whatever_byte_is_changed_is_found_and_never_more_than_told(
    store: Path, tmp_path_factory: pytest.TempPathFactory, name: str, form: Form
) -> None:
    """Damage of a table is no crash: of the process, or of the command."""
    out = written(store, name, form, named(tmp_path_factory.mktemp("struck"), form))
    files = {path: path.read_bytes() for path in pieces_of(out)}
    places = [(path, place) for path, data in files.items() for place in range(len(data))]

    @given(st.sampled_from(places), st.integers(1, 255))
    def strike(at: tuple[Path, int], change: int) -> None:
        path, place = at
        data = bytearray(files[path])
        data[place] ^= change
        path.write_bytes(data)
        try:
            assert breaches(store, out)
        finally:
            path.write_bytes(files[path])

    strike()
