"""Whatever is changed in an exported file is found, with its row, place and invariant, in each form of each format."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ng_capture.files.listing import list_rollouts
from ng_capture.outputs.export.choices import AdvantageOf, Export
from ng_capture.outputs.forms import Form
from ng_capture.outputs.parts import Division, Half, Part
from ng_capture.outputs.rebuild import rebuild
from ng_capture.outputs.rebuilding import Rebuild, Shape
from ng_capture.outputs.rows_file import RowsFile
from ng_capture.outputs.writer import RebuildWriter, described
from ng_capture.verdicts.judging import Judging
from tests.support.forge import Forge, write_rows
from tests.support.proving import ARRAYS, FLAT, LABELS, LINES_ONLY, Exported, breaches, broken, written
from tests.support.tables import WRITTEN, Rows, change, named, read_rows


@pytest.mark.parametrize(("name", "form"), [*WRITTEN, *((name, Form.JSONL) for name in LINES_ONLY)])
def test_what_was_written_is_proven(store: Path, exported: Exported, name: str, form: Form) -> None:
    out = exported(name, form)
    assert len(read_rows(out)) == (1 if name == "pairs" else 2)
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
    ("name", "keys", "place", "value", "invariant"),
    [
        ("hf-labels", ("labels",), -1, 7, "I1"),
        ("hf-labels", ("attention_mask",), 0, 0, "I31"),
        ("tinker", ("model_input", "chunks", 0, "tokens"), 3, 7, "I1"),
        ("tinker", ("loss_fn_inputs", "target_tokens", "data"), 3, 7, "I1"),
        ("tinker", ("loss_fn_inputs", "weights", "data"), 3, 1.0, "I3"),
        ("tinker", ("loss_fn_inputs", "weights", "data"), 2, 0.5, "I18"),
        ("tinker", ("loss_fn_inputs", "weights", "shape"), 0, 9, "I7"),
        ("prime-rl", ("prompt_mask",), 0, True, "I3"),
        ("gym-response", ("response", "output", 0, "prompt_token_ids"), 0, 7, "I2"),
        ("gym-response", ("response", "output", 0, "generation_token_ids"), 0, 7, "I2"),
        ("gym-response", ("response", "output", 0, "generation_log_probs"), 0, -7.0, "I32"),
        ("rollouts", ("response", "output", -1, "prompt_token_ids"), 0, 7, "I1"),
        ("rows", ("loss_mask",), slice(0, 1), [], "I7"),
        ("rows", ("logprobs",), 0, -0.5, "I9"),
        ("trl-grpo", ("logprobs",), 2, -0.5, "I9"),
        ("rows", ("tokens",), 0, 2**31, "I27"),
        ("rows", ("tokens",), 0, -1, "I27"),
        ("rows", ("routed_experts",), 0, [[8]], "I28"),
        ("rows", (), "routed_experts", None, "I28"),
        ("rows", ("spans",), slice(-1, None), [], "I1"),
        ("rows", ("spans",), 0, {}, "I1"),
        ("rows", ("spans", 0), "call_id", "other", "I1"),
        ("rows", ("spans", 1), "weight_version", 9, "I17"),
        ("rows", ("spans", 1), "model", "other", "I16"),
        ("rows", ("calls",), 1, "other", "I1"),
        ("rows", ("accounting",), "trained", 9, "I6"),
        ("rows", ("accounting", "lost"), "over_max_length", 9, "I6"),
        ("rows", ("finish_reasons",), 0, "length", "I15"),
        ("rows", (), "truncated", True, "I15"),
        ("rows", (), "row_weight", 0.5, "I18"),
        ("rows", (), "advantage", 0.5, "I19"),
        ("rows", (), "terminal", "7-1-a", "I21"),
        ("rows", (), "policy", "all", "I32"),
        ("rows", (), "more", 1, "I32"),
        ("rows", ("sources", 0), "sha256", "0", "I32"),
        ("rows", (), "tool_version", "0.0.1", "I32"),
        ("slime", (), "status", "truncated", "I15"),
        ("slime", (), "weight_versions", ["9"], "I17"),
        ("slime", ("metadata", "spans", 1), "weight_version", "9", "I17"),
        ("skyrl", (), "is_last_step", False, "I20"),
        ("skyrl", ("rewards",), 0, 0.5, "I18"),
        ("gym-response", (), "agent", "other", "I32"),
        ("messages", ("messages", 0), "content", "other", "I1"),
        ("messages", ("messages", -1), "weight", 0, "I6"),
        ("messages", ("messages", 0), "weight", 1, "I3"),
        ("messages", ("messages",), 0, "no turn", "I1"),
        ("messages", (), "messages", "no turns", "I1"),
        ("messages", (), "reward", 0.5, "I18"),
        ("messages", (), "tools", [], "I29"),
    ],
)
def test_whatever_a_row_tells_is_held_against_the_captures(
    store: Path,
    exported: Exported,
    name: str,
    keys: tuple[str | int, ...],
    place: int | str | slice,
    value: object,
    invariant: str,
) -> None:
    out = exported(name, Form.JSONL)
    change(out, lambda rows: _path(rows[1], *keys).__setitem__(place, value))
    assert {each.row for each in breaches(store, out)} == {None, 1}
    assert invariant in broken(store, out)


@pytest.mark.parametrize(
    ("keys", "place", "value", "invariant"),
    [
        (("loss_fn_inputs", "logprobs", "data"), -1, -0.125, "I32"),
        (("loss_fn_inputs", "logprobs", "data"), 0, -0.5, "I9"),
        (("loss_fn_inputs", "advantages", "data"), -1, 2.0, "I19"),
        (("loss_fn_inputs", "advantages", "data"), -1, 0.0, "I19"),
        (("loss_fn_inputs", "advantages", "data"), 0, 1.0, "I3"),
        (("loss_fn_inputs", "target_tokens", "data"), -1, 7, "I1"),
        (("provenance", "loss_mask"), -1, 0, "I3"),
    ],
)
def test_a_datum_of_rl_is_held_against_the_captures_and_its_group(
    store: Path, tmp_path: Path, keys: tuple[str | int, ...], place: int, value: float, invariant: str
) -> None:
    out, rows = tmp_path / "out.jsonl", RowsFile(str(store.parent / "rows.jsonl"))
    how = Rebuild(Shape.TINKER, Judging(), export=Export(advantage=AdvantageOf.GRPO))
    with RebuildWriter(str(out), None, how, described(rows)) as writer:
        writer.write_all(rebuild(list_rollouts([str(store)]), rows, how))
    assert breaches(store, out) == []
    change(out, lambda rows: _path(rows[1], *keys).__setitem__(place, value))
    assert {each.row for each in breaches(store, out)} == {None, 1}
    assert invariant in broken(store, out)


@pytest.mark.parametrize(("name", "form"), WRITTEN)
def test_a_field_that_is_missing_is_found(store: Path, exported: Exported, name: str, form: Form) -> None:
    for field in read_rows(exported(name, form))[0]:
        if form is Form.JSONL:
            change(out := exported(name, form), lambda rows, field=field: rows[0].pop(field))  # type: ignore[misc]
            assert broken(store, out), field


def test_a_value_of_another_type_is_another_value(store: Path, exported: Exported) -> None:
    for column, other in (("reward", 1), ("trajectory_index", 0.0), ("loss_mask", None), ("truncated", 0)):
        out = exported("rows", Form.JSONL)

        def spell(rows: Rows, column: str = column, other: object = other) -> None:
            rows[0][column] = [float(bit) for bit in rows[0]["loss_mask"]] if column == "loss_mask" else other

        change(out, spell)
        assert broken(store, out), column


@pytest.mark.parametrize("form", [Form.JSONL, Form.PARQUET])
def test_rows_in_another_order_stand_elsewhere_and_nothing_else_is_wrong(
    store: Path, exported: Exported, form: Form
) -> None:
    """SkyRL and slime take the rows of a rollout, and a replay those of a group, from where they stand."""
    change(out := exported("skyrl", form), lambda rows: rows.reverse())
    assert broken(store, out) == {"I20"}


def test_what_was_sealed_since_is_still_proven(store: Path, tmp_path: Path) -> None:
    """A row of `rows` names its sources, the state among them, which sealing writes anew."""
    shutil.copytree(store, tmp_path / "store")
    shutil.copy(store.parent / "rows.jsonl", tmp_path)
    for form in (Form.JSONL, Form.PARQUET):
        out = written(tmp_path / "store", "rows", form, named(tmp_path, form))
    for state in (tmp_path / "store").glob("*.state.json"):
        state.write_bytes(state.read_bytes() + b" ")
    for form in (Form.JSONL, Form.PARQUET):
        assert breaches(tmp_path / "store", named(tmp_path, form)) == []
    for place in range(len(read_rows(out)[0]["sources"])):
        before = out.read_bytes()
        change(out, lambda rows, place=place: rows[0]["sources"][place].update(sha256="0"))  # type: ignore[misc]
        assert broken(tmp_path / "store", out) == {"I32"}
        out.write_bytes(before)


def test_rollouts_that_came_later_are_nothing_to_the_file(store: Path, tmp_path: Path) -> None:
    """Nor do they vote in the groups that it was made of."""
    part, out = tmp_path / "part", tmp_path / "out.jsonl"
    part.mkdir()
    for path in store.glob("7-0.*"):
        shutil.copy(path, part)
    rows = RowsFile(str(store.parent / "rows.jsonl"))
    how = Rebuild(Shape.ROWS, Judging(), export=Export(advantage=AdvantageOf.MEAN_CENTRED))
    with RebuildWriter(str(out), None, how, described(rows)) as writer:
        writer.write_all(rebuild(list_rollouts([str(part / "7-0.tokens.jsonl")]), rows, how))
    assert [row["advantage"] for row in read_rows(out)] == [0.0]
    assert breaches(store, out) == []


def test_what_stands_in_the_place_of_a_row_is_named(store: Path, exported: Exported) -> None:
    for other in ([1], "x", 5):
        change(out := exported("verl", Form.JSONL), lambda rows, other=other: rows.__setitem__(0, other))  # type: ignore[misc]
        assert broken(store, out) == {"I7"}


def test_a_mask_is_zero_or_one(store: Path, exported: Exported) -> None:
    change(out := exported("rows", Form.JSONL), lambda rows: rows[0]["loss_mask"].__setitem__(-1, 2))
    assert "I7" in broken(store, out)


def test_a_loss_that_nothing_predicts_and_a_row_without_loss_are_named(store: Path, exported: Exported) -> None:
    change(out := exported("rows", Form.JSONL), lambda rows: rows[0]["loss_mask"].__setitem__(0, 1))
    assert broken(store, out) == {"I3", "I11"}
    change(out := exported("skyrl-sft", Form.JSONL), lambda rows: rows[0].update(loss_mask=[0] * 7))
    assert broken(store, out) == {"I6", "I12"}


def test_finished_rows_that_nothing_is_trained_in_are_held_against_what_is_delivered(tmp_path: Path) -> None:
    """Masked rollouts, and rows that no capture belongs to."""
    forge = Forge("m")
    forge.root([1, 2], [3]).broken([1, 9, 9], [5])
    forge.write(tmp_path / "store")
    rows = [{**forge.row(forge.calls[-1], reward=1.0)}, {"_ng_rollout_id": "m-2", "note": 1}]
    write_rows(tmp_path / "rows.jsonl", rows)
    out = written(tmp_path / "store", "rollouts", Form.JSONL, tmp_path / "out.jsonl")
    assert breaches(tmp_path / "store", out) == []

    def reward(rows: Rows) -> None:
        for row in rows:
            row["reward"] = 5.0

    change(out, reward)
    assert {each.row for each in breaches(tmp_path / "store", out)} == {None, *range(len(read_rows(out)))}


@pytest.mark.parametrize("half", ["train", "val"])
def test_a_group_in_the_wrong_half_is_named(store: Path, tmp_path: Path, half: Half) -> None:
    """What is validated on would be trained on."""
    division, rows, out = Division(val=0.5), RowsFile(str(store.parent / "rows.jsonl")), tmp_path / "out.jsonl"
    how = Rebuild(Shape.ROWS, Judging())
    with RebuildWriter(str(out), None, how, described(rows), Part(division, half, None)) as writer:
        writer.write_all(rebuild(list_rollouts([str(store)]), rows, how))
    found = [each.message for each in breaches(store, out)]
    wrong = [f"{name}: its group belongs into the other half" for name in ("7-0", "7-1")]
    assert found == ([] if division.half("7") == half else wrong)
