"""Files that are cut, struck or another's, and receipts that tell otherwise: found, and never a crash."""

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.export.proof.prove import prove
from ng_capture.outputs.forms import Form
from ng_capture.outputs.rows_file import RowsFile
from tests.support.forge import Forge, write_rows
from tests.support.proving import ARRAYS, FLAT, Exported, breaches, broken, written
from tests.support.tables import Rows, change, named, pieces_of, read_rows


def test_a_row_of_another_format_is_no_row(store: Path, exported: Exported) -> None:
    change(out := exported("verl", Form.JSONL), lambda rows: rows[0].pop("responses"))
    (first, *_) = [each for each in breaches(store, out) if each.row == 0]
    assert first.invariant == "I7" and "no row of verl" in first.message


def test_a_finished_row_that_came_with_tokens_is_delivered_as_it_is_whatever_they_are(tmp_path: Path) -> None:
    forge = Forge("r")
    forge.root([1, 2], [3])
    forge.write(tmp_path / "store")
    item = {"type": "message", "generation_token_ids": [3], "generation_log_probs": [-0.5]}
    write_rows(tmp_path / "rows.jsonl", [{"_ng_rollout_id": "r", "response": {"output": [item]}}])
    out = written(tmp_path / "store", "rollouts", Form.JSONL, tmp_path / "out.jsonl")
    assert breaches(tmp_path / "store", out) == []
    change(out, lambda rows: rows[0]["response"]["output"][0].update(generation_token_ids=[4]))
    assert broken(tmp_path / "store", out) == {"I2"}


def test_other_finished_rows_than_those_of_the_receipt_are_named(store: Path, exported: Exported) -> None:
    out = exported("verl", Form.JSONL)
    other = out.parent / "rows.jsonl"
    write_rows(other, [{**row, "note": "x"} for row in read_rows(store.parent / "rows.jsonl")])
    found = list(prove(str(out), f"{out}.receipt.json", list_rollouts([str(store)]), RowsFile(str(other))))
    assert [each.message for each in found] == [f"{other} is not the file of finished rows that the receipt tells of"]


@pytest.mark.parametrize(
    ("told", "other"),
    [
        ('"covered":true', '"covered":false'),
        ('"rows":[0]', '"rows":[1]'),
        ('"verdict":"trainable"', '"verdict":"masked"'),
        ('"trained":4', '"trained":5'),
        ('"rows":2,', '"rows":3,'),
    ],
)
def test_a_receipt_that_tells_otherwise_of_a_rollout_is_named(
    store: Path, exported: Exported, told: str, other: str
) -> None:
    """What it covers may be deleted."""
    out = exported("rows", Form.JSONL)
    receipt = Path(f"{out}.receipt.json")
    text = receipt.read_text()
    assert told in text
    receipt.write_text(text.replace(told, other, 1))
    (found,) = breaches(store, out)
    assert found.invariant == "receipt"


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, form in FLAT if form is Form.JSONL])
def test_what_is_no_number_is_named(store: Path, exported: Exported, name: str, form: Form) -> None:
    for column in filter(None, ARRAYS[name]):
        for other in ("x", None, [1]):
            out = exported(name, form)

            def spoil(rows: Rows, column: str = column, other: object = other) -> None:
                rows[0][column][-1] = other

            change(out, spoil)
            assert broken(store, out) & {"I7", "I1", "I6", "I8", "I27"}


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
    assert [each.row for each in breaches(store, out) if each.invariant == "I5"] == [2, 3]
    assert broken(store, out) == {"I5"}


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
